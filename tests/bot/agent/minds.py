"""A mind whose answers a test writes, and which remembers what it was asked and taught."""

import json
from collections.abc import Iterable
from typing import Any

from bot.agent.session import CallLesson
from bot.agent.state import CallCorrection, MindAnswer
from bot.errors import SessionTooLong
from engine.requests import ChatMessage, Tool, ToolCallPiece


class ScriptedMind:
    """Gives the answers of a script, one after the other."""

    def __init__(self, script: Iterable[MindAnswer], most_chars: int = 10**9) -> None:
        """A conversation of more than `most_chars` does not fit."""
        self._script = iter(script)
        self._most_chars = most_chars
        self.asked: list[list[ChatMessage]] = []
        self.unsure_of = ""  # the feedback of which heed is unsure how far it reaches
        self.taught: list[tuple[str, str]] = []
        self.keys: list[str] = []  # of the lessons
        self.contexts: list[tuple[str, ...]] = []
        self.approved: list[str] = []

    async def answer(self, messages: list[ChatMessage], tools: list[Tool]) -> MindAnswer:
        """Return the next answer of the script."""
        assert tools
        if len(json.dumps(messages)) > self._most_chars:
            raise SessionTooLong
        self.asked.append(json.loads(json.dumps(messages)))
        return next(self._script)

    async def teach(self, correction: CallCorrection) -> CallLesson:
        """Remember the lesson."""
        self.taught.append((correction.answer_id, correction.text))
        self.keys.append(correction.key)
        self.contexts.append(correction.context)
        return CallLesson(f"Learned: {correction.text}", len(self.taught), [("call", 0.5)], self.unsure_of)

    async def approve(self, answer_id: str) -> None:
        """Remember the answer."""
        self.approved.append(answer_id)


def calling(tool: str, number: int = 1, **arguments: Any) -> MindAnswer:
    """An answer that calls one tool."""
    return MindAnswer(f"cmpl-{number}", "", [piece(tool, json.dumps(arguments), number)])


def piece(tool: str, arguments: str, number: int = 1) -> ToolCallPiece:
    """One call as it comes from a model."""
    return {"id": f"call-{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}


def saying(text: str) -> MindAnswer:
    """An answer without calls."""
    return MindAnswer("cmpl-said", text)
