"""The state of an agent's session: what was said and done, and what waits, runs or is being taught at the moment.

Invariant: it is all that a session knows, and JSON holds it, so that another process can go on with it.
"""

import hashlib
import json
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pydantic import TypeAdapter

from bot.agent.inside.result import ToolResult
from bot.agent.tools import Call
from engine.requests import ChatMessage, ToolCallPiece

SYSTEM = (
    "You work on the files of one folder, with the tools you are given. Call exactly one tool at a time and read its "
    "result before you go on. Do not guess what a file holds. Say in a sentence what you did when you are done."
)


@dataclass(frozen=True)
class MindAnswer:
    """An answer: what it says, and the calls in it; `id` is what feedback names it by."""

    id: str
    text: str
    calls: list[ToolCallPiece] = field(default_factory=list)


@dataclass(frozen=True)
class Proposal:
    """The agent wants to call a tool; `preview` is what the person sees of it."""

    answer: MindAnswer
    call: Call
    preview: ToolResult
    is_edited: bool = False  # the arguments are the person's
    asked_s: float = field(default_factory=time.time)  # when the person was asked, in seconds since the epoch

    @property
    def mark(self) -> str:
        """Return what tells this question from every other: 12 hex digits."""
        told = json.dumps([self.answer.id, self.call.tool, self.call.arguments], sort_keys=True)
        return hashlib.blake2s(told.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class CallCorrection:
    """A correction that is being learned; the same `key` is one lesson, however often it is given."""

    answer_id: str
    text: str
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    context: tuple[str, ...] = ()  # that the teacher reads besides


@dataclass
class SessionState:
    """One session. `messages` begin with the system's."""

    messages: list[ChatMessage]
    waiting: Proposal | None = None  # for the person
    running: Proposal | None = None  # begun, and its end not known yet
    failed: MindAnswer | None = None  # whose call ran last, and failed
    teaching: CallCorrection | None = None  # begun, and not known yet to be stored
    is_due: bool = False  # the agent has the word: it is asked, and has not answered yet
    heard: str = ""  # what names the message that was said last, where the surface may give one twice
    good: str = ""  # the id of an answer that did well, and is not known yet to be kept as a good one
    allowed: list[str] = field(default_factory=list)  # tools that need no question
    told: list[str] = field(default_factory=list)  # about the work, for the teacher of lessons to come

    @property
    def is_broken_off(self) -> bool:
        """True if the process before has ended in the middle of something."""
        return bool(self.running or self.teaching or self.good or self.is_due)

    @classmethod
    def new(cls, *lines: str) -> Self:
        """Return the state of a session that begins; `lines` tell the model more, empty ones nothing."""
        return cls([{"role": "system", "content": "\n".join([SYSTEM, *filter(None, lines)])}])

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Self:
        """Return the state that `stored` gave."""
        return TypeAdapter(cls).validate_python(stored)

    def stored(self) -> dict[str, Any]:
        """Return the state as JSON holds it."""
        return asdict(self)
