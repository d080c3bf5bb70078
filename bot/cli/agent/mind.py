"""The mind of an agent in a terminal: the running heed, over HTTP."""

from collections.abc import Callable

from bot.agent.session import CallLesson
from bot.agent.state import CallCorrection, MindAnswer
from bot.cli.client import HeedClient, Json
from bot.cli.terminal import PATIENCE_S, lesson_line
from bot.errors import CONTEXT_LENGTH_EXCEEDED, ServerRefused, SessionTooLong
from engine.requests import ChatMessage, Tool


def lesson_of(given: Json) -> CallLesson:
    """Return the lesson that heed's answer to feedback tells of, without the question how far it reaches."""
    heat = (given.get("update") or {}).get("heat") or []
    version = given["adapter_version"] if given["status"] == "learned" else None
    line = lesson_line(given | {"is_unsure": False})
    unsure_of = given["feedback_id"] if given.get("is_unsure") else ""
    return CallLesson(line, version, [(token, weight) for token, weight in heat], unsure_of)


class HttpMind:
    """Answers and learns through a client, as its person; `on_progress` is told each phase of a lesson."""

    def __init__(self, client: HeedClient, on_progress: Callable[[str], None]) -> None:
        self._client = client
        self._on_progress = on_progress

    async def answer(self, messages: list[ChatMessage], tools: list[Tool]) -> MindAnswer:
        """Return the next answer. Raises SessionTooLong, ServerError."""
        try:
            given = await self._client.answer(messages, tools)
        except ServerRefused as error:
            if error.code == CONTEXT_LENGTH_EXCEEDED:
                raise SessionTooLong(str(error)) from None
            raise
        message = given["choices"][0]["message"]
        return MindAnswer(given["id"], message["content"] or "", message.get("tool_calls") or [])

    async def teach(self, correction: CallCorrection) -> CallLesson:
        """Learn from a correction, however long it takes. Raises ServerError."""
        taught = {"completion_id": correction.answer_id, "kind": "correction", "text": correction.text}
        body = taught | {"context": list(correction.context), "wait": PATIENCE_S}
        given = await self._client.feedback(body, correction.key)
        while given["status"] == "queued":
            async for progress in self._client.phases(given["feedback_id"]):
                self._on_progress(progress)
            given = await self._client.feedback(body, correction.key)
        return lesson_of(given)

    async def approve(self, answer_id: str) -> None:
        """Keep an answer as a good one. Raises ServerError."""
        await self._client.feedback({"completion_id": answer_id, "kind": "approval"})
