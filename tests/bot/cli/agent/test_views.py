"""bot.cli.agent.views: what a person and what a program sees of a session."""

import io
import json

from rich.console import Console

from bot.agent.inside.result import ToolResult
from bot.agent.session import CallLesson
from bot.agent.state import Proposal
from bot.agent.tools import Call
from bot.cli.agent.views import AgentView, JsonView, TerminalView
from tests.bot.agent.minds import saying

CALL = Proposal(
    saying(""), Call("edit", {"path": "a.py"}), ToolResult("--- a\n+++ b\n@@ -1 +1 @@\n-[red]x[/red]\n+y\n")
)
FAILED = ToolResult("none.txt cannot be read.", success=False, feedback="Use glob.")


def shown(view: type[AgentView], *, has_colour: bool = False) -> str:
    """Everything that a view can show, once."""
    file = io.StringIO()
    seen = view(Console(file=file, width=100, force_terminal=has_colour, color_system="256" if has_colour else None))  # type: ignore[call-arg]
    seen.tell("words", "Done [bold]here[/bold]\x1b[2J")
    seen.propose(CALL)
    with seen.working():
        seen.show(FAILED)
    seen.teach(CallLesson("Learned: v1.", 1, [("re\x1bd", 2.0), ("me", -0.5)]))
    return file.getvalue()


def test_a_person_sees_everything_as_it_is() -> None:
    """No markup is followed, no sequence reaches the terminal; the diff is green and red."""
    text = shown(TerminalView)
    assert "Done [bold]here[/bold]<U+001B>[2J\n" in text
    assert "edit a.py\n--- a\n+++ b\n@@ -1 +1 @@\n-[red]x[/red]\n+y\n" in text
    assert text.endswith("none.txt cannot be read.\nUse glob.\n      re<U+001B>dme\nLearned: v1.\n")
    assert "\x1b[32m+y" in shown(TerminalView, has_colour=True)


def test_a_path_hides_nothing() -> None:
    """In the line above the preview, too."""
    file = io.StringIO()
    call = Call("edit", {"path": "a\x1b[2J\u202eyp.b"})
    TerminalView(Console(file=file, width=100)).propose(Proposal(saying(""), call, ToolResult("")))
    assert file.getvalue() == "edit a<U+001B>[2J<U+202E>yp.b\n"


def test_a_remark_about_a_success_is_shown() -> None:
    """Such as that a file has conflicts."""
    file = io.StringIO()
    TerminalView(Console(file=file, width=100)).show(ToolResult("one", feedback="Mind the conflicts."))
    assert file.getvalue() == "one\nMind the conflicts.\n"


def test_a_program_reads_an_object_a_line() -> None:
    """With the whole call and the whole result."""
    words, call, result, lesson = map(json.loads, shown(JsonView).splitlines())
    assert words == {"event": "words", "text": "Done [bold]here[/bold]\x1b[2J"}
    assert (call["event"], call["tool"], call["arguments"]) == ("call", "edit", {"path": "a.py"})
    assert result == {
        "event": "result",
        "output": "none.txt cannot be read.",
        "success": False,
        "feedback": "Use glob.",
    }
    assert lesson == {"event": "lesson", "text": "Learned: v1.", "heat": [["re\x1bd", 2.0], ["me", -0.5]]}
