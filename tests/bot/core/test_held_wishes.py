"""bot.core.held_wishes: a wish that heed keeps in mind already is no lesson."""

import pytest

from bot.core.feedback import FeedbackRecord
from bot.core.lessons import LessonResult
from bot.events import Author, Message, Place
from storage.conversations import completions
from storage.kinds import FeedbackKind, FeedbackStatus, NoteState, Scope
from storage.learning import notes
from storage.tables import Completion, Note
from tests.bot.conftest import Heed, text_of

ANA = Author("http", "ana", "ana")


async def answer(heed: Heed) -> Completion:
    """An answer to Ana."""
    return await heed.core.gateway.answer(await heed.core.gateway.turn(Message(ANA, Place("http", "web"), "bees")))


async def teach(heed: Heed, about: Completion, text: str, **fields: object) -> LessonResult:
    """Correct an answer."""
    record = FeedbackRecord(FeedbackKind.CORRECTION, about.id, text, **fields)  # type: ignore[arg-type]
    return await heed.core.lessons.teach(about.user_id, record, retry=True)


async def test_a_wish_that_holds_is_no_lesson_about_an_older_answer(heed: Heed) -> None:
    """heed says so, learns nothing, and answers as it would now."""
    old = await answer(heed)
    await teach(heed, old, "too long")
    again = await teach(heed, old, "Too  long.")
    assert (again.outcome.status, again.outcome.reason) == ("kept", "I already keep that in mind: too long")
    assert again.feedback.status in (FeedbackStatus.PENDING, FeedbackStatus.KEPT)
    assert heed.engine.num_learned == 1
    assert again.retry is not None
    assert again.retry.adapter_version == 1


async def test_an_answer_that_did_not_follow_it_is_a_lesson(heed: Heed) -> None:
    """Said again about an answer that was given with the wish in force, it is taught once more."""
    await teach(heed, await answer(heed), "too long")
    assert (await teach(heed, await answer(heed), "too long")).outcome.adapter_version == 2


@pytest.mark.parametrize(("learned_version", "is_lesson"), [(1, True), (2, False), (None, False)])
async def test_a_version_that_learned_the_note_had_it_in_force(
    heed: Heed, learned_version: int | None, is_lesson: bool
) -> None:
    """A consolidation moved it into the weights of a version, which a lesson did not make."""
    await teach(heed, await answer(heed), "no emoji")
    now = await answer(heed)  # of version 1
    row = Note(user_id=now.user_id, text="too long", state=NoteState.IN_WEIGHTS, learned_version=learned_version)
    await heed.core.database.write(lambda s: notes.add(s, row))
    assert ((await teach(heed, now, "too long")).outcome.status == "learned") == is_lesson


async def test_an_answer_with_the_note_in_its_prompt_is_a_lesson(heed: Heed) -> None:
    """heed was told, and did not do it."""
    user_id = await heed.core.gateway.person(ANA)
    await heed.core.database.write(lambda s: notes.add(s, Note(user_id=user_id, text="be brief")))
    assert (await teach(heed, await answer(heed), "be brief")).outcome.status == "learned"


async def test_a_wish_that_was_taken_back_is_a_new_one(heed: Heed) -> None:
    """Its note holds no more."""
    old = await answer(heed)
    await teach(heed, old, "too long")
    await heed.engine.undo(old.user_id)
    assert (await teach(heed, old, "too long")).outcome.status == "learned"


async def test_a_scope_or_settings_make_it_a_lesson(heed: Heed) -> None:
    """Someone who says how it is to be learned wants it learned."""
    old = await answer(heed)
    await teach(heed, old, "too long")
    assert (await teach(heed, old, "too long", scope=Scope.ALWAYS)).outcome.status == "learned"
    record = FeedbackRecord(FeedbackKind.CORRECTION, old.id, "too long")
    lesson = await heed.core.lessons.teach(old.user_id, record, training={"steps": 3})
    assert lesson.outcome.status == "learned"


async def test_the_same_call_again_says_the_same(heed: Heed) -> None:
    """By its idempotency key, with the same new answer; also over HTTP."""
    first = await heed.ask("bees", user="ana")
    await heed.correct(first["id"], "too long", user="ana")
    key = {"Idempotency-Key": "k"}
    body = {"user": "ana", "completion_id": first["id"], "kind": "correction", "text": "too long", "retry": True}
    (_, told), (_, repeated) = [await heed.post("/v1/feedback", body, headers=key) for _ in range(2)]
    assert (told["status"], told["reason"]) == ("kept", "I already keep that in mind: too long")
    assert told["retry"]["text"] != text_of(first)
    assert repeated["retry"]["completion_id"] == told["retry"]["completion_id"]
    stored = await heed.core.database.read(
        lambda s: completions.get(s, told_user(heed), told["retry"]["completion_id"])
    )
    assert stored.retry_of == first["id"]


def told_user(heed: Heed) -> str:
    """Return Ana's id, who is known by now."""
    return heed.core.gateway._acquaintances._known[("http", "ana")]
