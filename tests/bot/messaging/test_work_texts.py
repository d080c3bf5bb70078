"""bot.messaging.work_texts: cards that fit a message, with buttons that fit a platform."""

from bot.agent.inside.result import ToolResult
from bot.agent.repository import GitState
from bot.agent.state import MindAnswer, Proposal
from bot.agent.tools import Call
from bot.messaging import work_texts


def card_of(shown: str, tool: str = "write") -> Proposal:
    """A call that waits."""
    return Proposal(MindAnswer("cmpl-1", ""), Call(tool, {"path": "a"}), ToolResult(shown))


def test_a_long_diff_is_a_file() -> None:
    """Its beginning is in the message; a short one is whole there."""
    text, files, rows = work_texts.card(card_of("+" * 9000))
    assert len(text) < 2700
    assert [len(file.content) for file in files] == [9000]
    assert all(len(button.action) <= 48 and button.action.isascii() for row in rows for button in row)
    text, files, _ = work_texts.card(card_of("-a\n+b"))
    assert ("-a\n+b" in text, files) == (True, ())


def test_no_fence_in_a_file_ends_the_card() -> None:
    """The fence around is longer than any in it."""
    text, _, _ = work_texts.card(card_of("```\n[click](http://x)\n````"))
    assert text.endswith("\n`````")


def test_a_result_is_short_and_says_how_it_went() -> None:
    """With the file or the command it was about."""
    ran = work_texts.result(Call("bash", {"command": "ls *"}), ToolResult("x" * 5000))
    assert ran.startswith("✓ bash ls \\*\n")
    assert len(ran) < 700
    failed = work_texts.result(Call("read", {"path": "a"}), ToolResult("", success=False, feedback="none"))
    assert failed == "✗ read a"


def test_a_beginning_names_the_place() -> None:
    """With its repository, where it is one."""
    assert work_texts.begun("").startswith("Say what is to be done in your scratch folder. ")
    said = work_texts.begun("notes", GitState("main", 3, ["a"]))
    assert said.startswith("Say what is to be done in notes (main, 3 changed files, 1 conflict). ")


def test_how_to_begin_names_the_folders() -> None:
    """Where there are some."""
    assert work_texts.not_begun(["a", "b"]).endswith("/work scratch (your own folder), or /work and a name: a, b.")
    assert work_texts.not_begun([]).endswith("/work scratch (your own folder).")
