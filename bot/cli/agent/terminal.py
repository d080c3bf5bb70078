"""The dialogue of `heed agent`: the person's lines in, the agent's steps out.

Invariants: each call is shown before the person is asked about it; nothing that a model, a file or a program says is
taken for the person's answer; where lines end, a call that waits is denied.
"""

import asyncio
import json
from collections.abc import Awaitable

import click

from bot.agent.inside.result import ToolResult
from bot.agent.session import AgentSession, AgentWords, CallLesson, Step
from bot.agent.state import Proposal
from bot.agent.tools import LOOKING
from bot.cli.agent.mind import lesson_of
from bot.cli.agent.views import AgentView
from bot.cli.client import HeedClient
from bot.cli.terminal import LineSource
from bot.errors import CallUnreadable, NoteTooLong, ServerRefused, SessionTooLong

HINT = (
    "Say what is to be done in {}. Before each step you are asked: 1 yes, 2 yes and this tool from now on, 3 no, "
    "4 edit. /here and a note: what holds in this folder; /tell: what only lessons are to know. /c begins anew, /undo "
    "takes the newest lesson back, /metrics tells about it, /q ends."
)
CHOICES = "1 yes · 2 yes, and {} from now on · 3 no · 4 edit"
WHAT_WAS_WRONG = (
    "What was wrong? f wrong file · r read first · e use edit_lines · t tool error · or your own words (empty: only no)"
)
HOW_FAR = "Was that about this call only? Enter: yes · a: no, from now on"
WHAT_NOW = "It failed. Enter: let the model see that · t: teach it “{}” · or your own words: what was wrong"
CHIPS = {
    "f": "That is the wrong file.",
    "r": "Read the file before you change it.",
    "e": "Use edit_lines to change a part of a file.",
    "t": "That call of the tool cannot work.",
}
ANEW_WITHIN_S = 240.0  # a lesson that is chosen to reach further goes on after that, too
TOO_LONG = "The conversation is too long for this model: /c begins anew."
NOT_EDITED = "{}. The call waits as it was."
NOT_OF_THEM = "Please answer 1, 2, 3 or 4."
CLEARED = "Begun anew. What was learned and written stays."
STOPPED = "stopped"
TELL, HERE = "/tell", "/here"
TOLD = "Lessons in this session know that now. The agent is not told."
TELL_WHAT = "Say what lessons are to know: /tell this project uses Poetry"


class _NoReply(Exception):
    """The person has answered a question with Ctrl-C or the end of their lines."""


class TerminalAgent:
    """One person's session in a terminal."""

    def __init__(self, session: AgentSession, client: HeedClient, view: AgentView, lines: LineSource) -> None:
        self._session = session
        self._client = client
        self._view = view
        self._lines = lines
        self._working: asyncio.Task[None] | None = None

    async def allow_reading(self) -> None:
        """Let tools that change nothing run without a question."""
        await self._session.allow(*LOOKING)

    async def run(self, where: str) -> None:
        """Work until the person ends it."""
        await self._note("")
        self._view.tell("hint", HINT.format(where))
        while True:
            try:
                line = (await self._lines.read()).strip()
            except (EOFError, KeyboardInterrupt):
                return
            if line in ("/q", "/quit", "/exit"):
                return
            if line:
                await self._guarded(line)

    def interrupt(self) -> None:
        """Break off what is going on (Ctrl-C): an answer, a tool that runs, a question."""
        if self._working is not None:
            self._working.cancel()

    async def _guarded(self, line: str) -> None:
        """Do what a line asks; a call that waits when it breaks off is denied."""
        self._working = asyncio.create_task(self._line(line), name="agent line")
        try:
            await asyncio.wait([self._working])
            await self._working
        except (asyncio.CancelledError, _NoReply):
            self._view.tell("hint", STOPPED)
        except SessionTooLong:
            self._view.tell("error", TOO_LONG)
        except ServerRefused as error:
            self._view.tell("error", str(error))
        finally:
            self._working = None
            await self._session.drop()

    async def _line(self, line: str) -> None:
        if line in ("/c", "/clear"):
            await self._session.clear()
            self._view.tell("hint", CLEARED)
        elif line.split(" ", 1)[0] in (TELL, HERE):
            word, _, note = line.partition(" ")
            await (self._told(note.strip()) if word == TELL else self._noted(note))
        elif line.startswith("/"):
            self._view.tell("words", (await self._client.command(line))["text"])
        else:
            with self._view.working():
                step = await self._session.ask(line)
            await self._steps(step)

    async def _noted(self, said: str) -> None:
        """Do what the person says about the notes of this folder."""
        self._view.tell("words", await self._note(said))

    async def _note(self, said: str) -> str:
        told = await self._client.workspace_notes(str(self._session.folder), said)
        self._session.here = told["notes"]
        return str(told["text"])

    async def _told(self, note: str) -> None:
        try:
            await self._session.tell(note)
        except NoteTooLong as error:
            self._view.tell("error", str(error))
        else:
            self._view.tell("hint", TOLD if note else TELL_WHAT)

    async def _steps(self, step: Step) -> None:
        """Go on until the agent has nothing more to do, or the person has said no without a word."""
        while isinstance(step, Proposal):
            self._view.propose(step)
            if not await self._decided(step):
                return
            with self._view.working():
                step = await self._session.go_on()
        assert isinstance(step, AgentWords)
        self._view.tell("words", step.text)

    async def _decided(self, proposal: Proposal) -> bool:
        """Do what the person says about a call. Return False if the agent is not to go on."""
        while True:
            if self._session.is_allowed:
                await self._run(self._session.run())
                return True
            match said := await self._reply(CHOICES.format(proposal.call.tool)):
                case "1" | "2":
                    if said == "2":
                        await self._session.allow(proposal.call.tool)
                    await self._run(self._session.approve())
                    return True
                case "3":
                    return await self._denied()
                case "4":
                    proposal = await self._edited(proposal)
                case _:
                    self._view.tell("error", NOT_OF_THEM)

    async def _reply(self, question: str) -> str:
        self._view.tell("question", question)
        try:
            return (await self._lines.read()).strip()
        except (EOFError, KeyboardInterrupt):
            raise _NoReply from None

    async def _run(self, running: Awaitable[ToolResult]) -> None:
        """Show what a call answers; ask what was wrong if it failed."""
        with self._view.working():
            result = await running
        self._view.show(result)
        if result.success:
            return
        said = await self._reply(WHAT_NOW.format(result.feedback))
        if said:
            await self._taught(self._session.correct(result.feedback if said == "t" else said))

    async def _denied(self) -> bool:
        said = await self._reply(WHAT_WAS_WRONG)
        await self._taught(self._session.deny(CHIPS.get(said, said)))
        return bool(said)

    async def _taught(self, lesson: Awaitable[CallLesson | None]) -> None:
        """Show what becomes of a lesson, if there is one."""
        with self._view.working():
            found = await lesson
        if found is not None:
            self._view.teach(found)
            if found.unsure_of:
                await self._asked_how_far(found.unsure_of)

    async def _asked_how_far(self, feedback_id: str) -> None:
        """Ask how far a lesson reaches of which heed is unsure; it is learned anew where it holds from now on."""
        if await self._reply(HOW_FAR) == "a":
            with self._view.working():
                given = await self._client.choose_always(feedback_id, ANEW_WITHIN_S)
            self._view.teach(lesson_of(given))

    async def _edited(self, proposal: Proposal) -> Proposal:
        """Let the person write other arguments; the same call waits if they are none, or the editor fails."""
        arguments = json.dumps(proposal.call.arguments, indent=2, ensure_ascii=False)
        try:
            await self._taught(self._session.edit(await asyncio.to_thread(edited, arguments)))
        except click.ClickException as error:
            self._view.tell("error", NOT_EDITED.format(error.message.rstrip(".")))
            return proposal
        except CallUnreadable as error:
            self._view.tell("error", str(error))
            return proposal
        self._view.propose(self._session.waiting)
        return self._session.waiting


def edited(text: str) -> str:
    """Return a text as the person leaves it in their editor. Blocking. Raises click.ClickException if that fails."""
    return click.edit(text, extension=".json") or text
