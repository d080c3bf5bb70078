"""bot.core.scope_choice: a press is kept, and what was taught otherwise is undone and taught again."""

import pytest

from bot.core import scope_choice
from bot.core.feedback import FeedbackRecord
from bot.errors import InvalidField
from storage.errors import FeedbackNotFound
from storage.kinds import FeedbackKind, FeedbackStatus, NoteState, Scope
from storage.learning import feedback, notes
from storage.tables import Feedback, Note
from tests.bot.conftest import Heed
from tests.bot.core.test_lessons import answer, correction


async def taught(heed: Heed, text: str = "too long") -> Feedback:
    """A correction of Ana's that was learned, or asked about."""
    row = await answer(heed)
    return (await heed.core.lessons.teach(row.user_id, correction(row, text))).feedback


async def now(heed: Heed, row: Feedback) -> Feedback:
    """The same feedback as it is stored now."""
    return await heed.core.database.read(lambda s: feedback.get(s, row.id))


async def choose(heed: Heed, row: Feedback, scope: Scope, key: str = "k") -> FeedbackRecord | None:
    """The press of a button."""
    return await scope_choice.choose(heed.core, row.user_id, row.id, scope, key)


async def test_what_was_taught_like_that_is_only_kept(heed: Heed) -> None:
    """The choice is in the row, and nothing is taught."""
    row = await taught(heed)
    assert await choose(heed, row, Scope.ALWAYS) is None
    assert ((await now(heed, row)).scope, heed.engine.num_learned) == ("always", 1)


async def test_just_this_answer_undoes_a_wish_and_teaches_it_again(heed: Heed) -> None:
    """Once, however often the press is handled; the lesson before it is taken back with its note."""
    row = await taught(heed)
    for _ in range(2):
        record = await choose(heed, row, Scope.ANSWER)
        assert record == FeedbackRecord(FeedbackKind.CORRECTION, row.completion_id, "too long", scope=Scope.ANSWER)
        lesson = await heed.core.lessons.teach(row.user_id, record, idempotency_key="k")
        assert (lesson.outcome.status, lesson.feedback.scope) == ("learned", "answer")
    old = await now(heed, row)
    assert (old.status, old.scope, heed.engine.num_learned) == (FeedbackStatus.UNDONE, "answer", 2)


async def test_from_now_on_teaches_what_was_asked_about(heed: Heed) -> None:
    """Words that may have meant one answer, and taught nothing, hold from now on."""
    row = await taught(heed, "unsure about this")
    assert (row.status, heed.engine.num_learned) == (FeedbackStatus.PENDING, 0)
    record = await choose(heed, row, Scope.ALWAYS)
    assert record is not None
    assert (await heed.core.lessons.teach(row.user_id, record, idempotency_key="k")).outcome.status == "learned"


async def test_a_fact_that_waits_for_its_question_is_not_kept_twice(heed: Heed) -> None:
    """Held from now on it has the note of its new lesson alone; notes of other words stay."""
    row = await taught(heed, "unsure about this")
    waiting = Note(user_id=row.user_id, feedback_id=row.id, text=row.text, state=NoteState.WHEN_ASKED)
    other = Note(user_id=row.user_id, text="I own a tent", state=NoteState.WHEN_ASKED)
    ids = [(await heed.core.database.write(lambda s, n=n: notes.add(s, n))).id for n in (waiting, other)]
    assert await choose(heed, row, Scope.ALWAYS) is not None
    states = [(await heed.core.database.read(lambda s, i=i: notes.get(s, row.user_id, i))).state for i in ids]
    assert states == [NoteState.DELETED, NoteState.WHEN_ASKED]


@pytest.mark.parametrize("is_newest", [True, False])
async def test_from_now_on_begins_where_the_lesson_for_one_answer_began(heed: Heed, is_newest: bool) -> None:
    """That one is taken back; one behind which more was learned stays, and the new one goes on from there."""
    row = await answer(heed)
    record = FeedbackRecord(FeedbackKind.CORRECTION, row.id, "too long", scope=Scope.ANSWER)
    alone = (await heed.core.lessons.teach(row.user_id, record)).feedback
    if not is_newest:
        await taught(heed, "no emoji")
    again = await choose(heed, alone, Scope.ALWAYS)
    assert again == FeedbackRecord(FeedbackKind.CORRECTION, row.id, "too long", scope=Scope.ALWAYS)
    lesson = await heed.core.lessons.teach(row.user_id, again, idempotency_key="k")
    assert lesson.outcome.status == "learned"
    assert (await now(heed, alone)).status == (FeedbackStatus.UNDONE if is_newest else FeedbackStatus.LEARNED)


async def test_just_this_answer_leaves_what_taught_nothing(heed: Heed) -> None:
    """The choice is kept as it is."""
    row = await taught(heed, "unsure about this")
    assert await choose(heed, row, Scope.ANSWER) is None
    assert (await now(heed, row)).scope == "answer"


async def test_an_older_lesson_is_not_undone(heed: Heed) -> None:
    """Only the newest one can be; the person is told of /undo, and nothing is kept."""
    row = await taught(heed)
    await taught(heed, "no emoji")
    with pytest.raises(InvalidField, match="not the newest"):
        await choose(heed, row, Scope.ANSWER)
    assert ((await now(heed, row)).scope, heed.engine.num_learned) == ("", 2)


async def test_another_persons_lesson_is_not_there(heed: Heed) -> None:
    """It raises FeedbackNotFound."""
    row = await taught(heed)
    ben = await answer(heed, "ben")
    with pytest.raises(FeedbackNotFound):
        await scope_choice.choose(heed.core, ben.user_id, row.id, Scope.ANSWER, "k")


async def test_without_a_correction_there_is_nothing_to_choose(heed: Heed) -> None:
    """The newest correction is looked for in vain."""
    row = await answer(heed)
    with pytest.raises(InvalidField, match="corrected nothing"):
        await scope_choice.newest(heed.core, row.user_id)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "kept"}, None),
        ({"status": "learned"}, Scope.ALWAYS),
        ({"status": "learned", "reading": "wish"}, Scope.ALWAYS),
        ({"status": "learned", "reading": "remark"}, Scope.ANSWER),
        ({"status": "learned", "reading": "wish", "is_unsure": True}, Scope.ANSWER),
        ({"status": "learned", "reading": "remark", "scope": "always"}, Scope.ALWAYS),
    ],
)
def test_how_far_a_lesson_reaches(fields: dict[str, object], expected: Scope | None) -> None:
    """As it was chosen, else as it was read; nowhere if it was not learned."""
    assert scope_choice.reach(Feedback(user_id="u", kind="correction", **fields)) == expected
