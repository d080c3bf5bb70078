"""bot.cli.agent.terminal: the dialogue, line by line."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bot.agent.sandbox import Sandbox
from bot.agent.session import AgentSession
from bot.agent.state import MindAnswer
from bot.agent.toolbox import Toolbox
from bot.cli.agent import terminal
from bot.cli.agent.terminal import CLEARED, NOT_OF_THEM, STOPPED, TELL_WHAT, TOLD, TOO_LONG, TerminalAgent
from bot.cli.agent.views import JsonView
from bot.cli.client import HeedClient
from bot.cli.terminal import PipedLines
from bot.errors import NoteTooLong
from tests.bot.agent.minds import ScriptedMind, calling, saying
from tests.bot.agent.workspaces import names, put
from tests.patience import until

WRITE = calling("write", path="a.txt", content="one\n")


class Desk:
    """A session in a workspace, what is typed in it and what is shown."""

    def __init__(self, sandbox: Sandbox, client: HeedClient, *script: MindAnswer, most_chars: int = 10**9) -> None:
        self.mind = ScriptedMind(script, most_chars)
        self._file = io.StringIO()
        self._given = iter(list[str]())
        session = AgentSession(self.mind, Toolbox(sandbox))
        view = JsonView(Console(file=self._file))
        self.agent = TerminalAgent(session, client, view, PipedLines(lambda: next(self._given)))

    async def type(self, *lines: str) -> list[dict[str, Any]]:
        """Type lines to the end; every event."""
        self._given = iter([*(f"{line}\n" for line in lines), "", ""])
        await self.agent.run("/work")
        return [json.loads(line) for line in self._file.getvalue().splitlines()]


def told(events: list[dict[str, Any]], kind: str) -> list[str]:
    """The texts of one kind of event."""
    return [event["text"] for event in events if event["event"] == kind]


async def test_yes_runs_the_call(sandbox: Sandbox, client: HeedClient, folder: Path) -> None:
    """It was shown before; what the agent says then is shown."""
    events = await Desk(sandbox, client, WRITE, saying("Done.")).type("write", "1", "/q")
    assert [event["event"] for event in events] == ["hint", "call", "question", "result", "words"]
    assert (folder / "a.txt").read_text() == "one\n"


async def test_yes_from_now_on_holds_for_that_tool(sandbox: Sandbox, client: HeedClient, folder: Path) -> None:
    """Another tool is asked about."""
    more = [calling("write", 2, path="b.txt", content="two\n"), calling("bash", 3, command="rm a.txt")]
    desk = Desk(sandbox, client, WRITE, *more, saying("Done."))
    events = await desk.type("write", "2", "3", "")
    assert desk.mind.approved == ["cmpl-1"]  # the second ran without a word
    assert [event["event"] for event in events].count("call") == 3
    assert len(told(events, "question")) == 3  # write, bash, and what was wrong
    assert names(folder) == {"a.txt", "b.txt"}


async def test_reading_may_be_allowed_from_the_start(sandbox: Sandbox, client: HeedClient, folder: Path) -> None:
    """And nothing else."""
    put(folder, "a.txt", "one\n")
    desk = Desk(sandbox, client, calling("read", path="a.txt"), WRITE)
    await desk.agent.allow_reading()
    events = await desk.type("read, then write")
    assert [event["event"] for event in events] == ["hint", "call", "result", "call", "question", "hint"]
    assert told(events, "hint")[-1] == STOPPED


@pytest.mark.parametrize(("said", "correction"), [("r", terminal.CHIPS["r"]), ("not that one", "not that one")])
async def test_no_with_a_word_is_a_lesson(
    sandbox: Sandbox,
    client: HeedClient,
    folder: Path,
    said: str,
    correction: str,
) -> None:
    """By a letter or in one's own words; the next call comes of it."""
    desk = Desk(sandbox, client, WRITE, calling("read", 2, path="a.txt"), saying("Done."))
    events = await desk.type("write", "3", said, "1", "")
    assert desk.mind.taught == [("cmpl-1", correction)]
    assert told(events, "lesson") == [f"Learned: {correction}"]
    assert [event["tool"] for event in events if event["event"] == "call"] == ["write", "read"]
    assert names(folder) == set()


@pytest.mark.parametrize(("said", "lessons"), [("", 1), ("a", 2)])
async def test_where_heed_is_unsure_how_far_a_lesson_reaches_it_asks(
    sandbox: Sandbox, client: HeedClient, monkeypatch: pytest.MonkeyPatch, said: str, lessons: int
) -> None:
    """Only this call, or from now on; then the agent tries again."""
    chosen: list[str] = []

    async def choose_always(_client: HeedClient, feedback_id: str, _wait_s: float) -> dict[str, Any]:
        chosen.append(feedback_id)
        return {"feedback_id": "fb-2", "status": "learned", "adapter_version": 2}

    monkeypatch.setattr(HeedClient, "choose_always", choose_always)
    desk = Desk(sandbox, client, WRITE, saying("Good."))
    desk.mind.unsure_of = "fb-1"
    events = await desk.type("write", "3", "read it first", said, "/q")
    assert told(events, "question")[-1] == terminal.HOW_FAR
    assert (len(told(events, "lesson")), chosen) == (lessons, ["fb-1"] * (lessons - 1))
    assert told(events, "words") == ["Good."]


async def test_lessons_are_told_of_the_work(sandbox: Sandbox, client: HeedClient) -> None:
    """The agent is not; and a note has its bounds."""
    desk = Desk(sandbox, client, WRITE, saying("Good."))
    lines = ["/tell", f"/tell {'a' * 501}", "/tell uses Poetry", "write", "3", "r"]
    events = await desk.type(*lines)
    assert told(events, "hint")[1:3] == [TELL_WHAT, TOLD]
    assert told(events, "error") == [str(NoteTooLong(500))]
    assert desk.mind.contexts[0][0] == "uses Poetry"
    assert "Poetry" not in json.dumps(desk.mind.asked)


async def test_notes_about_a_folder(sandbox: Sandbox, client: HeedClient) -> None:
    """They are kept by heed for that folder, and the agent is told them, in the next session, too."""
    for lines in (["/here uses Poetry"], ["hello"]):
        desk = Desk(sandbox, client, saying("Good."))
        events = await desk.type(*lines)
    assert "uses Poetry" in desk.mind.asked[0][0]["content"]
    assert told(events, "words") == ["Good."]


async def test_no_without_a_word_gives_the_person_the_word(sandbox: Sandbox, client: HeedClient) -> None:
    """Nothing is learned and the agent does not go on by itself."""
    desk = Desk(sandbox, client, WRITE, saying("Two."))
    events = await desk.type("write", "3", "", "something else")
    assert (desk.mind.taught, told(events, "words")) == ([], ["Two."])
    assert len(desk.mind.asked) == 2


async def test_other_arguments(
    sandbox: Sandbox,
    client: HeedClient,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the editor; those that cannot be read are said to be none, and the call waits."""
    written = iter(["{", '{"path": "b.txt", "content": "two\\n"}'])
    monkeypatch.setattr(terminal.click, "edit", lambda _text, **_options: next(written))
    events = await Desk(sandbox, client, WRITE, saying("Done.")).type("write", "4", "5", "4", "1")
    assert "no JSON object" in told(events, "error")[0]
    assert told(events, "error")[1] == NOT_OF_THEM
    assert "path must be" in told(events, "lesson")[0]
    assert (folder / "b.txt").read_text() == "two\n"


@pytest.mark.parametrize("editor", ["false", "/no-such-editor"])
async def test_an_editor_that_fails_leaves_the_call(
    sandbox: Sandbox, client: HeedClient, folder: Path, monkeypatch: pytest.MonkeyPatch, editor: str
) -> None:
    """Such as vi after :cq, or none at all: the person is told and asked again."""
    monkeypatch.setenv("VISUAL", editor)
    events = await Desk(sandbox, client, WRITE, saying("Done.")).type("write", "4", "1")
    assert told(events, "error")[0].endswith(". The call waits as it was.")
    assert (folder / "a.txt").read_text() == "one\n"
    assert told(events, "words") == ["Done."]


async def test_a_failure_can_be_taught_with_the_tools_own_words(sandbox: Sandbox, client: HeedClient) -> None:
    """Or passed over: then the model sees it, and nothing is learned."""
    for said, taught in (("t", 1), ("", 0), ("look in b", 1)):
        desk = Desk(sandbox, client, calling("read", path="none"), saying("Not there."))
        events = await desk.type("read", "1", said)
        assert len(desk.mind.taught) == taught
        assert told(events, "words") == ["Not there."]
        assert not taught or desk.mind.taught[0][1] in (said, events[3]["feedback"])


async def test_a_new_beginning_and_heeds_commands(sandbox: Sandbox, client: HeedClient) -> None:
    """/c forgets; others are heed's; an error is said and the session goes on."""
    desk = Desk(sandbox, client, saying("One."), saying("Two."), most_chars=600)
    events = await desk.type("first", "/c", "/help", "/no-such", "x" * 700, "second")
    assert told(events, "hint")[1] == CLEARED
    assert "/undo" in told(events, "words")[1]
    assert told(events, "error")[-1] == TOO_LONG
    assert told(events, "words")[0] == "One."


async def test_ctrl_c_ends_a_running_tool(sandbox: Sandbox, client: HeedClient, folder: Path) -> None:
    """The session goes on, and a call that waits is dropped."""
    desk = Desk(sandbox, client, calling("bash", command="touch begun; sleep 4716"), saying("Two."))
    typing = asyncio.create_task(desk.type("run", "1", "go on"))
    await until((folder / "begun").exists)
    desk.agent.interrupt()
    events = await typing
    assert told(events, "hint")[-1] == STOPPED
    assert told(events, "words") == ["Two."]
    desk.agent.interrupt()
