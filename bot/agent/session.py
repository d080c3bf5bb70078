"""A session of an agent: what was said and done, and the one call that waits for the person.

Knows no surface and no model: a `Mind` answers and learns. Invariants: no call runs before the person has said so, and
none runs twice, also where the process ends in between; an answer with two calls, or with one that cannot be read, is
told so and given again, never guessed at; a call that was denied with words has not happened: the model is asked again
from where it was, with what it has learned; what files and programs say is told to the model as that, and is never
taken for the person's feedback.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bot.agent.inside.result import TOO_LARGE, ToolResult
from bot.agent.repository import Repository
from bot.agent.state import CallCorrection, MindAnswer, Proposal, SessionState
from bot.agent.toolbox import Toolbox
from bot.agent.tools import Call, definitions, read_call
from bot.errors import CallUnreadable, NoteTooLong, NothingWaits, SessionTooLong
from engine.requests import ChatMessage, Tool, ToolCallPiece

ONE_CALL = "Call exactly one tool at a time. None of these calls was run: write the one that comes first."
NOT_READ = "That call was not run. {}"
DENIED = "The person did not allow this call."
BROKEN_OFF = "The person broke this call off while it ran: some of it may be done."
NO_CALL = "I have written no call of a tool that can be run. Say it otherwise, or what to do first."
LEFT_OUT = "(output left out: the conversation has grown too long)"
HERE = "The person has noted about this folder:"
THE_CALL = "The call was {} {}."
MOST_TOLD = 16  # notes of a session; the oldest go
MOST_TOLD_CHARS = 500
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")  # what the name of a function may not have
MOST_TRIES = 3  # answers in a row that are no single call, before the person is asked


@dataclass(frozen=True)
class CallLesson:
    """The end of a correction: a line for the person, and how far each token of the call moves with it."""

    line: str
    version: int | None = None  # that it made; None if nothing was learned
    heat: list[tuple[str, float]] = field(default_factory=list)  # (token, log p_teacher - log p_student in nats)
    unsure_of: str = ""  # the feedback, if heed is unsure how far it reaches: the person is asked


class Mind(Protocol):
    """A model that answers and learns from corrections."""

    async def answer(self, messages: list[ChatMessage], tools: list[Tool]) -> MindAnswer:
        """Return the next answer. Raises SessionTooLong if the conversation does not fit."""

    async def teach(self, correction: CallCorrection) -> CallLesson:
        """Learn from what was wrong with an answer. Return what became of it."""

    async def approve(self, answer_id: str) -> None:
        """Keep an answer as a good one, once: gates measure by it, nothing is trained."""


@dataclass(frozen=True)
class AgentWords:
    """The agent has said something, and calls nothing."""

    text: str


Step = AgentWords | Proposal
Keep = Callable[[SessionState], Awaitable[None]]


async def kept_here(_state: SessionState) -> None:
    """Keep a session in this process alone."""


class AgentSession:
    """One person's work with an agent in one workspace.

    `keep` is awaited with the state before a call runs or is taught, and after all that changes it: a session that
    was broken off there goes on in another process.
    """

    def __init__(self, mind: Mind, toolbox: Toolbox, state: SessionState | None = None, keep: Keep = kept_here) -> None:
        self.state = state or SessionState.new()
        self.here: list[str] = []  # notes about the workspace, which the model is told in every session there
        self._mind = mind
        self._toolbox = toolbox
        self._keep = keep

    @property
    def folder(self) -> Path:
        """The folder that is worked in."""
        return self._toolbox.folder

    @property
    def repository(self) -> Repository:
        """The git repository that its workspace may be."""
        return self._toolbox.repository

    @property
    def waiting(self) -> Proposal:
        """The call that waits for the person. Raises NothingWaits."""
        if self.state.waiting is None:
            raise NothingWaits
        return self.state.waiting

    @property
    def last_words(self) -> str | None:
        """The agent's answer, if the conversation ends with one that calls nothing."""
        last = self.state.messages[-1]
        return last["content"] if last["role"] == "assistant" else None

    @property
    def is_last_broken_off(self) -> bool:
        """True if the conversation ends with a call that was broken off while it ran."""
        return bool(self.state.messages[-1]["content"] == BROKEN_OFF)

    @property
    def is_allowed(self) -> bool:
        """True if a call waits whose tool needs no question in this session."""
        return self.state.waiting is not None and self.state.waiting.call.tool in self.state.allowed

    async def allow(self, *tools: str) -> None:
        """Let tools run without a question from now on."""
        self.state.allowed = sorted({*self.state.allowed, *tools})
        await self._keep(self.state)

    async def recover(self) -> CallLesson | None:
        """Go on where the process before has ended: a call that ran may be done in part, a word is given again.

        Return what became of the lesson, None if there was none.
        """
        if self.state.running is not None:
            await self._ran(self.state.running, BROKEN_OFF)
        await self._praised()
        return await self._taught() if self.state.teaching is not None else None

    async def ask(self, text: str, name: str = "") -> Step:
        """Say something to the agent; a call that waits is dropped. `name` is kept as that of what was heard last."""
        said: ChatMessage = {"role": "user", "content": text}
        asked = replace(self.state, waiting=None, messages=[*self.state.messages, said], is_due=True, heard=name)
        await self._keep(asked)
        self.state = asked
        return await self.go_on()

    async def go_on(self) -> Step:
        """Let the agent take its next step."""
        self.state.failed = None
        if not self.state.is_due:
            self.state.is_due = True
            await self._keep(self.state)
        try:
            return await self._next()
        except Exception:  # whoever asked is told of it, and may ask again
            await self.let_be()
            raise

    async def let_be(self) -> None:
        """Expect no answer any more."""
        self.state.is_due = False
        await self._keep(self.state)

    async def approve(self) -> ToolResult:
        """Run the call that waits, because the person said yes to it.

        As the model wrote it, and if it succeeds, it is a good answer. Raises NothingWaits.
        """
        result = await self._run(is_praised=not self.waiting.is_edited)
        await self._praised()
        return result

    async def run(self) -> ToolResult:
        """Run the call that waits, once, because the person allowed its tool before. Raises NothingWaits."""
        return await self._run(is_praised=False)

    async def deny(self, correction: str = "") -> CallLesson | None:
        """Drop the call that waits. With words it is unlearned, and as if never made; without, the model is told.

        Returns what became of the lesson, None without one. Raises NothingWaits.
        """
        proposal = self.waiting
        if not correction:
            await self.drop()
            return None
        self.state.waiting, self.state.is_due = None, True
        return await self._teach(proposal.answer, correction)

    async def drop(self) -> None:
        """Drop a call that waits, if one does: the model is told that it was not allowed."""
        if self.state.waiting is not None:
            proposal, self.state.waiting = self.state.waiting, None
            await self._ran(proposal, DENIED)

    async def edit(self, arguments: str) -> CallLesson | None:
        """Put other arguments, as JSON, in place of the waiting call's; what differs is taught.

        Returns what became of the lesson, None if nothing differs. Raises CallUnreadable, which changes nothing, and
        NothingWaits.
        """
        proposal = self.waiting
        call = read_call(proposal.call.tool, arguments)
        said = difference(proposal.call, call)
        if not said:
            return None
        preview = await self._shown(call)
        self.state.waiting = replace(proposal, call=call, preview=preview, is_edited=True)
        return await self._teach(proposal.answer, said)

    async def correct(self, correction: str) -> CallLesson:
        """Teach what was wrong with the call that ran last and failed. Raises NothingWaits."""
        if self.state.failed is None:
            raise NothingWaits
        answer, self.state.failed, self.state.is_due = self.state.failed, None, True
        return await self._teach(answer, correction)

    async def tell(self, note: str) -> None:
        """Remember something about the work for the teacher of the next lessons; the model that answers is not told.

        Raises NoteTooLong.
        """
        said = " ".join(note.split())
        if len(said) > MOST_TOLD_CHARS:
            raise NoteTooLong(MOST_TOLD_CHARS)
        if said:
            self.state.told = [*self.state.told, said][-MOST_TOLD:]
            await self._keep(self.state)

    async def clear(self) -> None:
        """Forget what was said; what was learned and written stays."""
        del self.state.messages[1:]
        self.state.waiting = self.state.failed = None
        self.state.told, self.state.is_due = [], False
        await self._keep(self.state)

    async def _next(self) -> Step:
        messages = self.state.messages
        for _ in range(MOST_TRIES):
            answer = await self._answer(messages)
            if not answer.calls:
                return await self._said(answer.text)
            try:
                return await self._propose(answer, _only(answer.calls))
            except CallUnreadable as error:  # told to the model, and no part of what the session remembers
                said = [_told(call, NOT_READ.format(error)) for call in answer.calls]
                messages = [*self.state.messages, _called(answer, answer.calls), *said]
        return await self._said(answer.text or NO_CALL)

    async def _run(self, *, is_praised: bool) -> ToolResult:
        proposal = self.waiting
        self.state.waiting, self.state.running = None, proposal
        try:
            await self._keep(self.state)
            result = await self._toolbox.run(proposal.call, proposal.preview)
        except BaseException:  # also an error of heed's own: an approved call is never forgotten
            await self._ran(proposal, BROKEN_OFF)
            raise
        self.state.failed = None if result.success else proposal.answer
        self.state.is_due = result.success
        self.state.good = proposal.answer.id if result.success and is_praised else ""
        await self._ran(proposal, json.dumps(result.__dict__, ensure_ascii=False))
        return result

    async def _propose(self, answer: MindAnswer, piece: ToolCallPiece) -> Proposal:
        call = read_call(piece["function"]["name"], piece["function"]["arguments"])
        self.state.waiting, self.state.is_due = Proposal(answer, call, await self._shown(call)), False
        await self._keep(self.state)
        return self.state.waiting

    async def _shown(self, call: Call) -> ToolResult:
        """Return what the person sees of a call. Raises CallUnreadable if they are asked and cannot see all of it."""
        preview = await self._toolbox.preview(call)
        if preview == TOO_LARGE and call.tool not in self.state.allowed:
            raise CallUnreadable(TOO_LARGE.output)
        return preview

    async def _said(self, text: str) -> AgentWords:
        self.state.messages.append({"role": "assistant", "content": text})
        self.state.is_due = False
        await self._keep(self.state)
        return AgentWords(text)

    async def _answer(self, messages: list[ChatMessage]) -> MindAnswer:
        while True:
            try:
                told = [_as_text(message) for message in _with_notes(messages, self.here)]
                return await self._mind.answer(told, definitions())
            except SessionTooLong:
                if not _shorten(messages):
                    raise

    async def _teach(self, answer: MindAnswer, correction: str) -> CallLesson:
        (called,) = (call["function"] for call in answer.calls)
        call = THE_CALL.format(called["name"], called["arguments"])[:MOST_TOLD_CHARS]
        self.state.teaching = CallCorrection(answer.id, correction, context=(*self.state.told, call))
        await self._keep(self.state)
        return await self._taught()

    async def _taught(self) -> CallLesson:
        assert self.state.teaching is not None
        try:
            lesson = await self._mind.teach(self.state.teaching)
        except Exception:
            await self._not_teaching()
            raise
        await self._not_teaching()  # not where this is broken off: it may not be stored yet, and is given again
        return lesson

    async def _not_teaching(self) -> None:
        self.state.teaching = None
        await self._keep(self.state)

    async def _praised(self) -> None:
        """Keep an answer that did well as a good one; that it is kept is stored with what comes next."""
        if self.state.good:
            await self._mind.approve(self.state.good)
            self.state.good = ""

    async def _ran(self, proposal: Proposal, said: str) -> None:
        """Remember a call with what came of it."""
        (piece,) = proposal.answer.calls
        if proposal.is_edited:
            arguments = json.dumps(proposal.call.arguments, ensure_ascii=False)
            piece = piece | {"function": {"name": proposal.call.tool, "arguments": arguments}}
        self.state.messages += [_called(proposal.answer, [piece]), _told(piece, said)]
        self.state.running = None
        await self._keep(self.state)


def difference(before: Call, after: Call) -> str:
    """Say in words what another call has other than the first."""
    changed = [
        f"{name} must be {json.dumps(value, ensure_ascii=False)}, not "
        f"{json.dumps(before.arguments[name], ensure_ascii=False)}."
        for name, value in after.arguments.items()
        if value != before.arguments[name]
    ]
    return " ".join([f"In this call of {before.tool}:", *changed]) if changed else ""


def _with_notes(messages: list[ChatMessage], notes: list[str]) -> list[ChatMessage]:
    """Return a conversation whose system message has the notes about the workspace, if there are any."""
    system, *said = messages
    told = "\n".join([f"{system['content']}\n\n{HERE}", *(f"- {note}" for note in notes)])
    return [{"role": "system", "content": told}, *said] if notes else messages


def _only(calls: list[ToolCallPiece]) -> ToolCallPiece:
    if len(calls) != 1:
        raise CallUnreadable(ONE_CALL)
    return calls[0]


def _called(answer: MindAnswer, calls: list[ToolCallPiece]) -> ChatMessage:
    kept = [{"id": call["id"], "type": call["type"], "function": _named(call["function"])} for call in calls]
    return {"role": "assistant", "content": answer.text, "tool_calls": kept}


def _named(function: dict[str, Any]) -> dict[str, Any]:
    """Return a function with a name that an API takes, also where a model has made up one that none does."""
    return function | {"name": _NO_NAME.sub("_", function["name"])[:64] or "_"}


def _told(call: ToolCallPiece, text: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _as_text(message: ChatMessage) -> ChatMessage:
    """Return a message as the model reads it: a tool's result, which is kept as JSON, is text to it."""
    if message["role"] != "tool":
        return message
    try:
        return message | {"content": ToolResult(**json.loads(message["content"])).told}
    except ValueError:  # a sentence of heed's
        return message


def _shorten(messages: list[ChatMessage]) -> bool:
    """Leave something out: an old output of a tool, else the oldest exchange, else the newest output.

    Return False if nothing is left that could be.
    """
    outputs: list[dict[str, Any]] = [m for m in messages if m["role"] == "tool" and m["content"] != LEFT_OUT]
    asked = [place for place, message in enumerate(messages) if message["role"] == "user"]
    if len(outputs) < 2 <= len(asked):
        del messages[asked[0] : asked[1]]
    elif outputs:
        outputs[0]["content"] = LEFT_OUT
    return bool(outputs) or len(asked) > 1
