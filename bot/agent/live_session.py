"""A session of an agent in heed: one thing at a time is done in it, on heed's own time, and everyone who looks is told.

Invariants: what was begun goes on when the client that asked for it leaves; only `stop` and the end of heed break it
off; what happens is in the events, in order.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bot.agent.inside.result import ToolResult
from bot.agent.inside.visible import visible
from bot.agent.session import AgentSession, AgentWords, CallLesson, Step
from bot.agent.state import Proposal
from bot.agent.tools import Call
from bot.errors import CallChanged, CallNotThere, CallUnreadable, InvalidField, NothingWaits, SessionBusy

Status = Literal["idle", "working", "waiting", "failed"]
BUSY = "The agent is at work in this session. Wait for it, or stop it."
NOTHING = "No call waits for an answer of yours."
DECIDE = "A call waits for your yes or no."
ANOTHER = "Another call waits by now. Look at it first."
ABOUT = ("path", "command", "pattern")  # arguments that say in a line what a call is about
MOST_UNASKED = 25  # calls in a row, before the person is asked although the tool is allowed
MOST_UNREAD = 1000  # events that one who looks may lag behind


@dataclass(frozen=True)
class AgentEvent:
    """Something that happened in a session; `opened` comes first: nothing that happens after it is left out."""

    kind: Literal["opened", "asked", "words", "call", "result", "progress", "lesson", "stopped", "ended"]
    data: dict[str, Any]


@dataclass
class AgentTurn:
    """The end of one thing that a person said or pressed: words, or a call that waits, and all that ran before."""

    words: str | None = None
    results: list[tuple[Call, ToolResult]] = field(default_factory=list)
    lesson: CallLesson | None = None


class LiveSession:
    """One session, worked on here."""

    def __init__(self, work_id: str, user_id: str, workspace: str, session: AgentSession) -> None:
        self.work_id = work_id
        self.user_id = user_id
        self.workspace = workspace
        self.used_s = 0.0  # when it was asked for last, by this machine's clock
        self._session = session
        self._task: asyncio.Task[AgentTurn] | None = None
        self._is_recovered = False
        self._watchers: set[asyncio.Queue[AgentEvent | None]] = set()

    @property
    def session(self) -> AgentSession:
        """The session itself."""
        return self._session

    @property
    def status(self) -> Status:
        """Its state, as a person sees it."""
        if self._task is not None:
            return "working"
        state = self._session.state
        return "waiting" if state.waiting else "failed" if state.failed else "idle"

    @property
    def is_resting(self) -> bool:
        """True while nothing is done in it and no one looks."""
        return self._task is None and not self._watchers

    def recover(self) -> None:
        """Begin to go on, once, where the process before has ended, if it ended in the middle of something."""
        if not self._is_recovered and self._task is None and self._session.state.is_broken_off:
            self._begin(self._recovered())
        self._is_recovered = True

    async def ask(self, text: str, name: str = "") -> AgentTurn:
        """Say something to the agent, once under the same name. Raises SessionBusy."""
        if name and name == self._session.state.heard:
            return await self.as_it_stands()
        return await self._done(self._asked(text, name))

    async def as_it_stands(self) -> AgentTurn:
        """Wait for what is done now. Return what it led to; if nothing is, the words that were said last."""
        return AgentTurn(self._session.last_words) if self._task is None else await self._ended_turn(self._task)

    async def approve(self, *, from_now_on: bool = False, mark: str | None = None) -> AgentTurn:
        """Run the call that waits and go on; `from_now_on`: its tool needs no question in this session any more.

        `mark`, here and below, is that of the call the person was shown; None if the caller has compared it.
        Raises SessionBusy, CallNotThere, CallChanged.
        """
        return await self._done(self._approved(mark, from_now_on=from_now_on))

    async def deny(self, correction: str = "", *, mark: str | None = None) -> AgentTurn:
        """Drop the call that waits; with words learn from them and try again.

        Raises SessionBusy, CallNotThere, CallChanged.
        """
        return await self._done(self._denied(mark, correction))

    async def edit(self, arguments: dict[str, Any], *, mark: str | None = None) -> AgentTurn:
        """Put other arguments in place of the waiting call's, which goes on waiting; what differs is taught.

        Raises SessionBusy, CallNotThere, CallChanged, InvalidField.
        """
        return await self._done(self._edited(mark, arguments))

    async def go_on(self, correction: str = "") -> AgentTurn:
        """Let the agent go on; after a call that failed, with what was wrong with it.

        Raises SessionBusy, CallNotThere.
        """
        return await self._done(self._gone_on(correction))

    async def clear(self) -> None:
        """Forget what was said. Raises SessionBusy."""
        self._require_idle()
        await self._session.clear()

    async def tell(self, note: str) -> None:
        """Remember something about the work for the lessons to come. Raises SessionBusy, NoteTooLong."""
        self._require_idle()
        await self._session.tell(note)

    async def stop(self) -> bool:
        """Break off what is done now, for good. Return False if nothing is."""
        is_working = await self._break_off()
        await self._session.let_be()
        return is_working

    def tell_progress(self, text: str) -> None:
        """Tell those who look how far a lesson is."""
        self._tell("progress", {"text": text})

    @contextmanager
    def events(self) -> Iterator[AsyncIterator[AgentEvent]]:
        """Collect what happens from now on, until the session is closed or the block ends."""
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue(MOST_UNREAD)
        queue.put_nowait(AgentEvent("opened", {"status": self.status}))
        self._watchers.add(queue)
        try:
            yield _read(queue)
        finally:
            self._watchers.discard(queue)

    async def close(self) -> None:
        """Break off what is done, and end the events: another process goes on with it."""
        await self._break_off()
        for queue in list(self._watchers):
            _put(queue, None)

    def _require_idle(self) -> None:
        if self._task is not None:
            raise SessionBusy(BUSY)

    async def _break_off(self) -> bool:
        task = self._task
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    def _begin(self, work: Coroutine[Any, Any, AgentTurn]) -> "asyncio.Task[AgentTurn]":
        if self._task is not None:
            work.close()
        self._require_idle()
        self._task = asyncio.create_task(work, name="agent")
        self._task.add_done_callback(self._ended)
        return self._task

    async def _done(self, work: Coroutine[Any, Any, AgentTurn]) -> AgentTurn:
        """Do something. Return what it led to, nothing if it was stopped. Raises SessionBusy, CallNotThere."""
        return await self._ended_turn(self._begin(work))

    @staticmethod
    async def _ended_turn(task: "asyncio.Task[AgentTurn]") -> AgentTurn:
        """Wait for work, which is heed's own. Return what it led to, nothing if it was stopped."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise  # whoever waited for it has left
            return AgentTurn()
        except NothingWaits:
            raise CallNotThere(NOTHING) from None

    def _ended(self, task: asyncio.Task[AgentTurn]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # told to whoever waits for it, if they are still there
        self._tell("stopped" if task.cancelled() else "ended", {"status": self.status})

    async def _asked(self, text: str, name: str) -> AgentTurn:
        self._tell("asked", {"text": text})
        return await self._until_asked(await self._session.ask(text, name), AgentTurn())

    def _shown(self, mark: str | None) -> Proposal:
        """Return the call that waits, if it is the one that the person was shown. Raises NothingWaits, CallChanged."""
        waiting = self._session.waiting
        if mark is not None and mark != waiting.mark:
            raise CallChanged(ANOTHER)
        return waiting

    async def _approved(self, mark: str | None, *, from_now_on: bool) -> AgentTurn:
        turn, call = AgentTurn(), self._shown(mark).call
        if from_now_on:
            await self._session.allow(call.tool)
        result = await self._session.approve()
        self._show(turn, call, result)
        return await self._until_asked(await self._session.go_on(), turn) if result.success else turn

    async def _denied(self, mark: str | None, correction: str) -> AgentTurn:
        turn = AgentTurn()
        self._shown(mark)
        self._teach(turn, await self._session.deny(correction))
        return await self._until_asked(await self._session.go_on(), turn) if correction else turn

    async def _edited(self, mark: str | None, arguments: dict[str, Any]) -> AgentTurn:
        turn = AgentTurn()
        self._shown(mark)
        try:
            self._teach(turn, await self._session.edit(json.dumps(arguments, ensure_ascii=False)))
        except CallUnreadable as error:
            raise InvalidField(str(error), "arguments") from None
        self._propose(self._session.waiting)
        return turn

    async def _gone_on(self, correction: str) -> AgentTurn:
        turn = AgentTurn()
        if correction:
            self._teach(turn, await self._session.correct(correction))
        elif self._session.state.waiting is not None:
            raise CallNotThere(DECIDE)
        return await self._until_asked(await self._session.go_on(), turn)

    async def _recovered(self) -> AgentTurn:
        turn = AgentTurn()
        self._teach(turn, await self._session.recover())
        return await self._until_asked(await self._session.go_on(), turn) if self._session.state.is_due else turn

    async def _until_asked(self, step: Step, turn: AgentTurn) -> AgentTurn:
        """Run what needs no question, until the person has the word."""
        while not isinstance(step, AgentWords):
            self._propose(step)
            if not self._session.is_allowed or len(turn.results) >= MOST_UNASKED:
                return turn
            result = await self._session.run()
            self._show(turn, step.call, result)
            if not result.success:
                return turn
            step = await self._session.go_on()
        turn.words = step.text
        self._tell("words", {"text": step.text})
        return turn

    def _propose(self, proposal: Proposal) -> None:
        self._tell("call", call_view(proposal))

    def _show(self, turn: AgentTurn, call: Call, result: ToolResult) -> None:
        turn.results.append((call, result))
        self._tell("result", {"tool": call.tool, **asdict(result)})

    def _teach(self, turn: AgentTurn, lesson: CallLesson | None) -> None:
        turn.lesson = lesson
        if lesson is not None:
            self._tell("lesson", asdict(lesson))

    def _tell(self, kind: Any, data: dict[str, Any]) -> None:
        for queue in list(self._watchers):
            _put(queue, AgentEvent(kind, data))


def call_view(proposal: Proposal) -> dict[str, Any]:
    """Return a call as the person is shown it."""
    arguments = proposal.call.arguments
    return {
        "mark": proposal.mark,
        "tool": proposal.call.tool,
        "arguments": arguments,
        "about": about(arguments),
        "preview": proposal.preview.output or visible(json.dumps(arguments, ensure_ascii=False)),
        "is_edited": proposal.is_edited,
    }


def about(arguments: dict[str, Any]) -> str:
    """Return what a call is about: its file, command or pattern, with nothing hidden in it."""
    return visible(next((str(arguments[name]) for name in ABOUT if arguments.get(name)), ""))


async def _read(queue: "asyncio.Queue[AgentEvent | None]") -> AsyncIterator[AgentEvent]:
    while (event := await queue.get()) is not None:
        yield event


def _put(queue: "asyncio.Queue[AgentEvent | None]", event: AgentEvent | None) -> None:
    """Hand on an event; one who does not read any more is told that it ends here."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        event = None
    queue.put_nowait(event)
