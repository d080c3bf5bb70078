"""bot.core.lessons: committed before anything is said, learned whoever waits, the same twice is once."""

import asyncio
from typing import Any

import pytest

from bot.config import ChatSettings
from bot.core.feedback import WORSE, FeedbackRecord
from bot.core.gateway import Turn
from bot.core.lessons import stored_outcome
from bot.events import Author
from engine.requests import LearnOutcome, Sampling
from storage.conversations import completions
from storage.errors import CompletionNotFound, IdempotencyConflict
from storage.kinds import FeedbackKind, FeedbackStatus
from storage.learning import feedback, updates
from storage.tables import Completion, Feedback
from tests.bot.conftest import Heed, StartHeed
from tests.bot.fake_engine import EMOJI
from tests.patience import PATIENCE_S, until


async def answer(heed: Heed, account: str = "ana") -> Completion:
    """One answer to a person."""
    gateway = heed.core.gateway
    user_id = await gateway.person(Author("http", account))
    return await gateway.answer(Turn(user_id, [{"role": "user", "content": "bees"}], Sampling()))


def correction(row: Completion, text: str = "too long") -> FeedbackRecord:
    """A correction of an answer."""
    return FeedbackRecord(FeedbackKind.CORRECTION, row.id, text)


async def history(heed: Heed, user_id: str) -> list[Feedback]:
    """The person's stored feedback."""
    return await heed.core.database.read(lambda s: feedback.history(s, user_id, 10))


async def until_stored(heed: Heed, user_id: str) -> Feedback:
    """The person's first feedback, once it is stored."""
    async with asyncio.timeout(PATIENCE_S):
        while not (stored := await history(heed, user_id)):  # noqa: ASYNC110  storage is what is waited for
            await asyncio.sleep(0.005)
    return stored[0]


async def until_learned(heed: Heed, user_id: str) -> None:
    """Waits for the person's first feedback to be learned."""
    async with asyncio.timeout(PATIENCE_S):
        while (await history(heed, user_id))[0].status != FeedbackStatus.LEARNED:  # noqa: ASYNC110  storage is what is waited for
            await asyncio.sleep(0.01)


async def test_a_correction_is_learned_and_answered_again(heed: Heed) -> None:
    """The lesson has the new version, and the same question answered with it."""
    row = await answer(heed)
    lesson = await heed.core.lessons.teach(row.user_id, correction(row), retry=True)
    assert (lesson.outcome.status, lesson.outcome.adapter_version) == ("learned", 1)
    assert lesson.retry is not None
    assert (lesson.retry.retry_of, lesson.retry.adapter_version) == (row.id, 1)
    assert len(lesson.retry.text) < len(row.text)


async def test_a_warm_answer_is_answered_again_as_the_first_was(heed: Heed) -> None:
    """Correcting an answer that was asked for once more gives the next one its turn's own sampling."""
    gateway = heed.core.gateway
    row = await answer(heed)
    warm = await gateway.answer(gateway.again(row, gateway.varied(row)))
    lesson = await heed.core.lessons.teach(row.user_id, correction(warm), retry=True)
    assert lesson.retry is not None
    assert lesson.retry.sampling["temperature"] == 0.0


async def test_a_remark_about_one_answer_shows_in_the_next_try_at_it(heed: Heed) -> None:
    """Where nothing was learned from it the words stand beside the notes of that try, and of no later answer."""
    row = await answer(heed)
    lesson = await heed.core.lessons.teach(row.user_id, correction(row, "unsure"), retry=True)
    assert (lesson.outcome.status, lesson.outcome.reading) == ("kept", "remark")
    assert lesson.retry is not None
    assert lesson.retry.retry_of == row.id
    await answer(heed)
    assert [request.remark for request in heed.engine.requests] == ["", "unsure", ""]


def thumb_down(row: Completion) -> FeedbackRecord:
    """A bare thumb down."""
    return FeedbackRecord(FeedbackKind.REACTION, row.id, value="-1")


def worse(row: Completion) -> FeedbackRecord:
    """Words that it was better before."""
    return FeedbackRecord(FeedbackKind.REACTION, row.id, "go back", WORSE)


async def taught(heed: Heed, text: str) -> Completion:
    """One lesson; an answer that follows it."""
    row = await answer(heed)
    await heed.core.lessons.teach(row.user_id, correction(row, text))
    return await answer(heed)


async def test_two_disliked_answers_take_the_newest_lesson_back(heed: Heed) -> None:
    """Version and note go, the person is told what and why, the update's row says so; more words change nothing."""
    lessons = heed.core.lessons
    await taught(heed, "too long")
    first, second = await taught(heed, "no emoji"), await answer(heed)
    asked = await lessons.teach(first.user_id, thumb_down(first))
    assert (asked.ask, asked.is_taken_back) == ("What should be different?", False)
    taken = await lessons.teach(second.user_id, thumb_down(second), retry=True)
    assert (taken.ask, taken.is_taken_back, taken.outcome.adapter_version) == ("", True, 1)
    assert taken.outcome.reason == (
        "The last lesson (v2) is undone, because 2 of its first answers were disliked. Version 1 answers again. "
        'The note "no emoji" is deleted. If the lesson should hold after all, say it once more in other words.'
    )
    assert taken.retry is not None
    assert (taken.retry.adapter_version, EMOJI in taken.retry.text) == (1, True)
    runs = await heed.core.database.read(lambda s: updates.recent(s, first.user_id, 9))
    assert [(run.version, run.status, run.error) for run in runs] == [
        (2, "taken back", "2 of its first answers were disliked"),
        (1, "accepted", ""),
    ]
    again = await lessons.teach(second.user_id, thumb_down(second))
    assert (again.ask, again.is_taken_back) == ("What should be different?", False)


async def test_a_sentence_takes_the_newest_lesson_back(heed: Heed) -> None:
    """Once is enough, on an answer of that version only; of the base model's answers nothing can be taken back."""
    before = await answer(heed)
    after = await taught(heed, "no emoji")
    lessons = heed.core.lessons
    asked = await lessons.teach(before.user_id, worse(before))
    assert "/undo takes back" in asked.ask
    assert (await lessons.teach(after.user_id, worse(after))).outcome.adapter_version == 0
    assert not (await lessons.teach(after.user_id, worse(await answer(heed)))).is_taken_back


async def test_probation_ends_after_its_answers(start_heed: StartHeed) -> None:
    """What is said about later answers takes nothing back."""
    heed = await start_heed(versions={"probation_answers": 1})
    await taught(heed, "no emoji")
    later = await answer(heed)
    assert not (await heed.core.lessons.teach(later.user_id, worse(later))).is_taken_back
    assert (await heed.core.gateway.user(later.user_id)).active_version == 1


async def test_a_complaint_that_comes_twice_takes_one_lesson_back_and_is_told_twice(heed: Heed) -> None:
    """The same key brings the same answer, also where two lessons are on probation."""
    await taught(heed, "too long")
    row = await taught(heed, "no emoji")
    told = [await heed.core.lessons.teach(row.user_id, worse(row), idempotency_key="k") for _ in range(2)]
    assert [(lesson.is_taken_back, lesson.outcome.adapter_version) for lesson in told] == [(True, 1), (True, 1)]


async def test_only_the_complaint_that_took_a_lesson_back_is_told_so_again(heed: Heed) -> None:
    """Another one about the same version, handled once more after heed was killed, is asked for a reason as before."""
    lessons = heed.core.lessons
    first, second = await taught(heed, "no emoji"), await answer(heed)
    await lessons.teach(first.user_id, thumb_down(first), idempotency_key="first")
    assert (await lessons.teach(first.user_id, thumb_down(second), idempotency_key="second")).is_taken_back
    again = await lessons.teach(first.user_id, thumb_down(first), idempotency_key="first")
    assert (again.ask, again.is_taken_back) == ("What should be different?", False)


async def test_whoever_goes_back_to_a_lesson_keeps_it(heed: Heed) -> None:
    """Taken back once and made active again on purpose, a version is not on probation any more."""
    row = await taught(heed, "no emoji")
    assert (await heed.core.lessons.teach(row.user_id, worse(row))).is_taken_back
    await heed.engine.rollback(row.user_id, 1)
    assert not (await heed.core.lessons.teach(row.user_id, worse(row))).is_taken_back
    assert (await heed.core.gateway.user(row.user_id)).active_version == 1


async def test_while_the_engine_restarts_a_complaint_waits(heed: Heed) -> None:
    """It is kept, and counts with the next one."""
    row = await taught(heed, "no emoji")
    heed.engine.is_ready = False
    assert not (await heed.core.lessons.teach(row.user_id, worse(row))).is_taken_back
    heed.engine.is_ready = True
    assert (await heed.core.lessons.teach(row.user_id, thumb_down(row))).is_taken_back


async def test_feedback_is_committed_before_it_is_learned(heed: Heed) -> None:
    """While the update runs, the feedback is in storage already."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 30
    waiting = asyncio.create_task(heed.core.lessons.teach(row.user_id, correction(row)))
    stored = await until_stored(heed, row.user_id)
    assert stored.status == FeedbackStatus.PENDING
    waiting.cancel()


async def test_a_client_that_leaves_does_not_stop_the_update(heed: Heed) -> None:
    """Cancelling the request leaves its update running to the end."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 0.2
    waiting = asyncio.create_task(heed.core.lessons.teach(row.user_id, correction(row)))
    await until_stored(heed, row.user_id)
    waiting.cancel()
    await until_learned(heed, row.user_id)


async def test_a_client_that_leaves_while_its_feedback_is_stored_does_not_stop_the_update(
    heed: Heed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lesson begins all the same, not at the next start."""
    row = await answer(heed)
    lessons = heed.core.lessons
    commit, is_stored, may_go_on = lessons.commit, asyncio.Event(), asyncio.Event()

    async def slow(*args: Any, **about: Any) -> tuple[Feedback, bool]:
        found = await commit(*args, **about)
        is_stored.set()
        await may_go_on.wait()
        return found

    monkeypatch.setattr(lessons, "commit", slow)
    waiting = asyncio.create_task(lessons.teach(row.user_id, correction(row)))
    await is_stored.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    may_go_on.set()
    await until_learned(heed, row.user_id)


async def test_without_waiting_it_is_queued(heed: Heed) -> None:
    """wait_s=0 answers at once; the update runs all the same."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    lesson = await heed.core.lessons.teach(row.user_id, correction(row), wait_s=0)
    assert lesson.outcome.status == "queued"
    heed.engine.finish_lessons()
    await until_learned(heed, row.user_id)


async def test_an_update_that_ends_while_its_state_is_read_is_told(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person hears what became of it, not that it will come: nobody would say so later."""
    row = await answer(heed)
    lessons = heed.core.lessons
    read = lessons.outcome_of

    async def slow(stored: Feedback) -> LearnOutcome:
        found = await read(stored)
        await until_learned(heed, row.user_id)
        await until(lambda: not lessons.is_under_way(stored.id))
        return found

    monkeypatch.setattr(lessons, "outcome_of", slow)
    assert (await lessons.teach(row.user_id, correction(row), wait_s=0)).outcome.status == "learned"


async def test_an_update_that_has_ended_is_looked_up(heed: Heed) -> None:
    """Also by who was told that it runs."""
    row = await answer(heed)
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    lesson = await heed.core.lessons.teach(row.user_id, correction(row), wait_s=0)
    assert lesson.outcome.status == "queued"
    heed.engine.finish_lessons()
    await until(lambda: not heed.core.lessons.is_under_way(lesson.feedback.id))
    assert (await heed.core.lessons.ended(lesson)).outcome.status == "learned"


async def test_a_long_update_is_not_waited_for_for_ever(start_heed: StartHeed) -> None:
    """After chat.learn_timeout_s the answer is: queued."""
    heed = await start_heed(chat=ChatSettings(learn_timeout_s=0.05))
    row = await answer(heed)
    heed.engine.learn_delay_s = 30
    assert (await heed.core.lessons.teach(row.user_id, correction(row))).outcome.status == "queued"


async def test_a_failed_update_leaves_the_feedback_pending(heed: Heed) -> None:
    """The person is told that it comes later, and nothing is lost."""
    row = await answer(heed)
    heed.engine.failure = RuntimeError("the trainer died")
    lesson = await heed.core.lessons.teach(row.user_id, correction(row))
    assert (lesson.outcome.status, "interrupted" in lesson.outcome.reason) == ("queued", True)
    assert (await history(heed, row.user_id))[0].status == FeedbackStatus.PENDING


async def test_while_the_engine_is_down_feedback_is_kept(heed: Heed) -> None:
    """Feedback is taken also when nothing can be learned now."""
    row = await answer(heed)
    heed.engine.is_ready = False
    lesson = await heed.core.lessons.teach(row.user_id, correction(row), retry=True)
    assert (lesson.outcome.status, lesson.retry) == ("queued", None)


async def test_the_same_key_is_the_same_feedback(heed: Heed) -> None:
    """Twice with one key: one row, one update, one retried answer, and the same result."""
    row = await answer(heed)
    first, second = [
        await heed.core.lessons.teach(row.user_id, correction(row), idempotency_key="k", retry=True) for _ in range(2)
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
    await heed.core.lessons.teach(row.user_id, correction(row), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await heed.core.lessons.teach(row.user_id, correction(row, "too short"), idempotency_key="k")
    assert len(await history(heed, row.user_id)) == 1


async def test_a_key_belongs_to_one_person(heed: Heed) -> None:
    """Two people may use the same key."""
    for account in ("ana", "bob"):
        row = await answer(heed, account)
        lesson = await heed.core.lessons.teach(row.user_id, correction(row), idempotency_key="k")
        assert lesson.outcome.status == "learned"


async def test_another_persons_answer_does_not_exist(heed: Heed) -> None:
    """Feedback on somebody else's answer is refused and not stored."""
    row = await answer(heed)
    other = await answer(heed, "bob")
    with pytest.raises(CompletionNotFound):
        await heed.core.lessons.teach(other.user_id, correction(row))
    assert await history(heed, other.user_id) == []


async def test_an_approval_makes_gold_and_trains_nothing(heed: Heed) -> None:
    """The answer is marked in the same transaction; the engine is not asked."""
    row = await answer(heed)
    record = FeedbackRecord(FeedbackKind.APPROVAL, row.id)
    lesson = await heed.core.lessons.teach(row.user_id, record)
    assert (lesson.outcome.status, heed.engine.num_learned) == ("kept", 0)
    assert (await heed.core.database.read(lambda s: completions.get(s, row.user_id, row.id))).is_gold


@pytest.mark.parametrize("record", [(FeedbackKind.CORRECTION, "too long", ""), (FeedbackKind.REACTION, "", "👎")])
async def test_what_somebody_finds_fault_with_is_approved_no_more(heed: Heed, record: tuple[str, str, str]) -> None:
    """The gates would hold the answer that the correction is about."""
    row = await answer(heed)
    kind, text, value = record
    await heed.core.lessons.teach(row.user_id, FeedbackRecord(FeedbackKind.APPROVAL, row.id))
    await heed.core.lessons.teach(row.user_id, FeedbackRecord(FeedbackKind(kind), row.id, text, value))
    assert not (await heed.core.database.read(lambda s: completions.get(s, row.user_id, row.id))).is_gold


async def test_a_bare_thumb_down_is_kept_and_asks(heed: Heed) -> None:
    """A weak negative for later, and a question for the person."""
    row = await answer(heed)
    lesson = await heed.core.lessons.teach(row.user_id, FeedbackRecord(FeedbackKind.REACTION, row.id, "", "👎"))
    assert (lesson.outcome.status, bool(lesson.ask)) == ("kept", True)


async def test_a_refused_lesson_is_not_answered_again(heed: Heed) -> None:
    """Where the gate said no, the old answer stands."""
    row = await answer(heed)
    lesson = await heed.core.lessons.teach(row.user_id, correction(row, "refuse this"), retry=True)
    assert (lesson.outcome.status, lesson.retry) == ("rejected", None)


async def test_request_level_settings_are_stored(heed: Heed) -> None:
    """What a request says about the learning travels with its feedback."""
    row = await answer(heed)
    await heed.core.lessons.teach(row.user_id, correction(row), training={"learning_rate": 0.5})
    assert (await history(heed, row.user_id))[0].training == {"learning_rate": 0.5}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("pending", "queued"), ("training", "queued"), ("learned", "learned"), ("kept", "kept"),
     ("rejected", "rejected"), ("failed", "rejected"), ("undone", "kept")],
)  # fmt: skip
def test_stored_feedback_has_an_outcome(status: str, outcome: str) -> None:
    """Every status in storage is one of the four a client knows."""
    row = Feedback(id="f", user_id="u", kind="correction", status=status)
    assert stored_outcome(row, None, 3, is_calibrated=True).status == outcome


async def test_an_update_that_is_dropped_cancels_nobody(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where learning is withdrawn while a lesson waits, whoever waits for it gets an answer."""
    row = await answer(heed)

    async def dropped(_: str) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(heed.engine, "learn", dropped)
    lesson = await heed.core.lessons.teach(row.user_id, correction(row))
    assert lesson.outcome.status == "queued"
