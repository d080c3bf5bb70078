"""The mind of a person who is measured: the heed under measurement, over HTTP, by its weights alone: notes off."""

from typing import Any

from bot.agent.session import CallLesson
from bot.agent.state import CallCorrection, MindAnswer
from bot.errors import CONTEXT_LENGTH_EXCEEDED, SessionTooLong
from engine.requests import ChatMessage, Tool
from evals.client import Client
from evals.errors import CallRefused


class MeasuredMind:
    """Answers greedily and learns as one person; keeps no answer as a good one: to measure is not to teach."""

    def __init__(self, client: Client, user: str) -> None:
        self._client = client
        self._user = user
        self.lessons: list[dict[str, Any]] = []  # as heed answered them

    async def answer(self, messages: list[ChatMessage], tools: list[Tool]) -> MindAnswer:
        """Return the next answer. Raises SessionTooLong, CallRefused, HeedUnreachable."""
        try:
            given = await self._client.step(self._user, messages, tools, notes="off")
        except CallRefused as error:
            if error.code == CONTEXT_LENGTH_EXCEEDED:
                raise SessionTooLong(str(error)) from None
            raise
        message = given["choices"][0]["message"]
        return MindAnswer(given["id"], message["content"] or "", message.get("tool_calls") or [])

    async def teach(self, correction: CallCorrection) -> CallLesson:
        """Learn from a correction, however long it takes. Raises CallRefused, HeedUnreachable.

        If heed asks how far it reaches, the person says "from now on" (`was_asked`).
        """
        said, context = correction.text, list(correction.context)
        given = await self._client.correct(self._user, correction.answer_id, said, context=context)
        was_asked = bool(given.get("is_unsure"))
        if was_asked:
            given = await self._client.choose_always(self._user, given["feedback_id"])
        self.lessons.append(given | {"was_asked": was_asked})
        version = given["adapter_version"] if given["status"] == "learned" else None
        return CallLesson(str(given["status"]), version)

    async def approve(self, answer_id: str) -> None:
        """Keep nothing."""
