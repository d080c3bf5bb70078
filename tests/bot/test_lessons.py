"""bot.lessons: committed before anything is said, learned whoever waits, the same twice is once."""

import asyncio

import pytest

from bot.config import ChatSettings
from bot.events import Author
from bot.feedback import FeedbackRecord
from bot.gateway import Turn
from bot.lessons import stored_outcome
from engine.requests import Sampling
from storage import completions, feedback
from storage.errors import CompletionNotFound, IdempotencyConflict
from storage.tables import Completion, Feedback, FeedbackKind, FeedbackStatus
from tests.bot.conftest import Heed, StartHeed


async def answer(heed: Heed, account: str = "ana") -> Completion:
    """One answer to a person."""
    gateway = heed.services.gateway
    user_id = await gateway.person(Author("http", account))
    return await gateway.answer(Turn(user_id, [{"role": "user", "content": "bees"}], Sampling()))


def correction(row: Completion, text: str = "too long") -> FeedbackRecord:
    """A correction of an answer."""
    return FeedbackRecord(FeedbackKind.CORRECTION, row.id, text)


async def history(heed: Heed, user_id: str) -> list[Feedback]:
    """The person's stored feedback."""
    return await heed.services.database.read(lambda s: feedback.history(s, user_id, 10))


async def until_learned(heed: Heed, user_id: str) -> None:
    """Waits for the person's first feedback to be learned."""
    async with asyncio.timeout(20):
        while (await history(heed, user_id))[0].status != FeedbackStatus.LEARNED:  # noqa: ASYNC110  storage is what is waited for
            await asyncio.sleep(0.01)


async def test_a_correction_is_learned_and_answered_again(heed: Heed) -> None:
    """The lesson has the new version, and the same question answered with it."""
    row = await answer(heed)
    lesson = await heed.services.lessons.teach(row.user_id, correction(row), retry=True)
    assert (lesson.outcome.status, lesson.outcome.adapter_version) == ("learned", 1)
    assert lesson.retry is not None
    assert (lesson.retry.retry_of, lesson.retry.adapter_version) == (row.id, 1)
    assert len(lesson.retry.text) < len(row.text)


async def test_a_warm_answer_is_answered_again_as_the_first_was(heed: Heed) -> None:
    """Correcting an answer that was asked for once more gives the next one its turn's own sampling."""
    gateway = heed.services.gateway
    row = await answer(heed)
    warm = await gateway.answer(gateway.again(row, gateway.varied(row)))
    lesson = await heed.services.lessons.teach(row.user_id, correction(warm), retry=True)
    assert lesson.retry is not None
    assert lesson.retry.sampling["temperature"] == 0.0


async def test_feedback_is_committed_before_it_is_learned(heed: Heed) -> None:
    """While the update runs, the feedback is in storage already."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 30
    waiting = asyncio.create_task(heed.services.lessons.teach(row.user_id, correction(row)))
    for _ in range(100):
        if stored := await history(heed, row.user_id):
            break
        await asyncio.sleep(0.01)
    assert stored[0].status == FeedbackStatus.PENDING
    waiting.cancel()


async def test_a_client_that_leaves_does_not_stop_the_update(heed: Heed) -> None:
    """Cancelling the request leaves its update running to the end."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 0.2
    waiting = asyncio.create_task(heed.services.lessons.teach(row.user_id, correction(row)))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await until_learned(heed, row.user_id)


async def test_without_waiting_it_is_queued(heed: Heed) -> None:
    """wait=False answers at once; the update runs all the same."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 0.1
    lesson = await heed.services.lessons.teach(row.user_id, correction(row), wait=False)
    assert lesson.outcome.status == "queued"
    await until_learned(heed, row.user_id)


async def test_a_long_update_is_not_waited_for_for_ever(start_heed: StartHeed) -> None:
    """After chat.learn_timeout_s the answer is: queued."""
    heed = await start_heed(chat=ChatSettings(learn_timeout_s=0.05))
    row = await answer(heed)
    heed.engine.learn_delay_s = 30
    assert (await heed.services.lessons.teach(row.user_id, correction(row))).outcome.status == "queued"


async def test_a_failed_update_leaves_the_feedback_pending(heed: Heed) -> None:
    """The person is told that it comes later, and nothing is lost."""
    row = await answer(heed)
    heed.engine.failure = RuntimeError("the trainer died")
    lesson = await heed.services.lessons.teach(row.user_id, correction(row))
    assert (lesson.outcome.status, "interrupted" in lesson.outcome.reason) == ("queued", True)
    assert (await history(heed, row.user_id))[0].status == FeedbackStatus.PENDING


async def test_while_the_engine_is_down_feedback_is_kept(heed: Heed) -> None:
    """Feedback is taken also when nothing can be learned now."""
    row = await answer(heed)
    heed.engine.is_ready = False
    lesson = await heed.services.lessons.teach(row.user_id, correction(row), retry=True)
    assert (lesson.outcome.status, lesson.retry) == ("queued", None)


async def test_the_same_key_is_the_same_feedback(heed: Heed) -> None:
    """Twice with one key: one row, one update, one retried answer, and the same result."""
    row = await answer(heed)
    first, second = [
        await heed.services.lessons.teach(row.user_id, correction(row), idempotency_key="k", retry=True)
        for _ in range(2)
    ]
    assert first.feedback.id == second.feedback.id
    assert (first.outcome.status, first.outcome.heat) == (second.outcome.status, second.outcome.heat)
    assert first.retry is not None
    assert second.retry is not None
    assert first.retry.id == second.retry.id
    assert heed.engine.num_learned == 1


async def test_a_key_is_not_used_for_something_else(heed: Heed) -> None:
    """The same key with other words is refused, and nothing is stored."""
    row = await answer(heed)
    await heed.services.lessons.teach(row.user_id, correction(row), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await heed.services.lessons.teach(row.user_id, correction(row, "too short"), idempotency_key="k")
    assert len(await history(heed, row.user_id)) == 1


async def test_a_key_belongs_to_one_person(heed: Heed) -> None:
    """Two people may use the same key."""
    for account in ("ana", "bob"):
        row = await answer(heed, account)
        lesson = await heed.services.lessons.teach(row.user_id, correction(row), idempotency_key="k")
        assert lesson.outcome.status == "learned"


async def test_another_persons_answer_does_not_exist(heed: Heed) -> None:
    """Feedback on somebody else's answer is refused and not stored."""
    row = await answer(heed)
    other = await answer(heed, "bob")
    with pytest.raises(CompletionNotFound):
        await heed.services.lessons.teach(other.user_id, correction(row))
    assert await history(heed, other.user_id) == []


async def test_an_approval_makes_gold_and_trains_nothing(heed: Heed) -> None:
    """The answer is marked in the same transaction; the engine is not asked."""
    row = await answer(heed)
    record = FeedbackRecord(FeedbackKind.APPROVAL, row.id)
    lesson = await heed.services.lessons.teach(row.user_id, record)
    assert (lesson.outcome.status, heed.engine.num_learned) == ("kept", 0)
    assert (await heed.services.database.read(lambda s: completions.get(s, row.user_id, row.id))).is_gold


async def test_a_bare_thumb_down_is_kept_and_asks(heed: Heed) -> None:
    """A weak negative for later, and a question for the person."""
    row = await answer(heed)
    lesson = await heed.services.lessons.teach(row.user_id, FeedbackRecord(FeedbackKind.REACTION, row.id, "", "👎"))
    assert (lesson.outcome.status, bool(lesson.ask)) == ("kept", True)


async def test_a_refused_lesson_is_not_answered_again(heed: Heed) -> None:
    """Where the gate said no, the old answer stands."""
    row = await answer(heed)
    lesson = await heed.services.lessons.teach(row.user_id, correction(row, "refuse this"), retry=True)
    assert (lesson.outcome.status, lesson.retry) == ("rejected", None)


async def test_request_level_settings_are_stored(heed: Heed) -> None:
    """What a request says about the learning travels with its feedback."""
    row = await answer(heed)
    await heed.services.lessons.teach(row.user_id, correction(row), training={"learning_rate": 0.5})
    assert (await history(heed, row.user_id))[0].training == {"learning_rate": 0.5}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("pending", "queued"), ("training", "queued"), ("learned", "learned"), ("kept", "kept"),
     ("rejected", "rejected"), ("failed", "rejected"), ("undone", "kept")],
)  # fmt: skip
def test_stored_feedback_has_an_outcome(status: str, outcome: str) -> None:
    """Every status in storage is one of the four a client knows."""
    row = Feedback(id="f", user_id="u", kind="correction", status=status)
    assert stored_outcome(row, None, 3).status == outcome


async def test_an_update_that_is_dropped_cancels_nobody(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where learning is withdrawn while a lesson waits, whoever waits for it gets an answer."""
    row = await answer(heed)

    async def dropped(_: str) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(heed.engine, "learn", dropped)
    lesson = await heed.services.lessons.teach(row.user_id, correction(row))
    assert lesson.outcome.status == "queued"
