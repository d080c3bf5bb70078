"""The mind of an agent in heed itself: the person's own answers and lessons, without HTTP in between."""

from collections.abc import Callable
from contextlib import aclosing

from bot.agent.session import CallLesson
from bot.agent.state import CallCorrection, MindAnswer
from bot.commands import texts
from bot.core.core import Core
from bot.core.feedback import FeedbackRecord
from bot.core.gateway import Turn
from bot.errors import SessionTooLong
from engine.errors import PromptTooLongError
from engine.requests import ChatMessage, GenerateResult, LessonProgress, Tool
from storage.kinds import FeedbackKind

LOOK_EVERY_S = 0.5
GOOD = "agent-good-{}"  # the key of the word that an answer was good


class CoreMind:
    """Answers and learns as one person; `on_progress` is told how far a lesson is."""

    def __init__(self, core: Core, user_id: str, on_progress: Callable[[str], None]) -> None:
        self._core = core
        self._user_id = user_id
        self._on_progress = on_progress

    async def answer(self, messages: list[ChatMessage], tools: list[Tool]) -> MindAnswer:
        """Return the next answer. Raises SessionTooLong."""
        gateway = self._core.gateway
        turn = Turn(self._user_id, messages, gateway.sampling(), tools=tools, is_whole=True)
        try:
            result = await self._result(turn)
        except PromptTooLongError as error:
            raise SessionTooLong(str(error)) from None
        said = result.said.strip() if result.tool_calls else result.text
        return MindAnswer(turn.completion_id, said, result.tool_calls)

    async def teach(self, correction: CallCorrection) -> CallLesson:
        """Learn from a correction, however long it takes."""
        answer_id, context = correction.answer_id, correction.context
        record = FeedbackRecord(FeedbackKind.CORRECTION, answer_id, correction.text, context=context)
        begun = await self._core.lessons.teach(self._user_id, record, idempotency_key=correction.key, wait_s=0)
        lesson = await self._core.lessons.followed(begun, self._shown)
        outcome = lesson.outcome
        version = outcome.adapter_version if outcome.status == "learned" else None
        unsure_of = lesson.feedback.id if outcome.is_unsure else ""
        return CallLesson(texts.learned(outcome, lesson.ask), version, list(outcome.heat), unsure_of)

    async def approve(self, answer_id: str) -> None:
        """Keep an answer as a good one; said again, it is the same word."""
        record = FeedbackRecord(FeedbackKind.APPROVAL, answer_id)
        await self._core.lessons.teach(self._user_id, record, idempotency_key=GOOD.format(answer_id))

    async def _result(self, turn: Turn) -> GenerateResult:
        async with aclosing(self._core.gateway.stream(turn)) as deltas:
            async for delta in deltas:
                if delta.result is not None:
                    return delta.result
        raise AssertionError("an answer ended without its result")

    async def _shown(self, progress: LessonProgress | None) -> float:
        if progress is not None:
            self._on_progress(texts.learning(progress))
        return LOOK_EVERY_S
