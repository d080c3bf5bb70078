"""How far a lesson reaches, chosen by the person afterwards: just this answer, or from now on.

The choice is kept beside what heed took the feedback for; where the lesson was taught otherwise it is undone and
taught again: a lesson for one answer holds all others to what they were, and would stand in the way of one for all.
Invariant: handled twice under the same key, it is undone and taught again once.
"""

from bot.core.core import Core
from bot.core.feedback import FeedbackRecord
from bot.errors import InvalidField
from storage.database import Session
from storage.errors import FeedbackNotFound
from storage.kinds import TAUGHT_AT_ONCE, FeedbackKind, FeedbackStatus, Meaning, NoteState, Scope
from storage.learning import feedback, notes, versions
from storage.people import people
from storage.tables import Feedback

RECENT = 100  # pieces of feedback among which the newest lesson is looked for
NO_LESSON = "You have corrected nothing yet."
NOT_THE_NEWEST = "That is not the newest lesson any more; /undo takes back the newest one."


async def choose(core: Core, user_id: str, feedback_id: str, scope: Scope, key: str) -> FeedbackRecord | None:
    """Keep the choice. Return what to teach again under `key`, which is committed, or None if it was taught like that.

    Raises FeedbackNotFound, and InvalidField if the lesson would have to be undone and is not the newest one.
    """
    row = await core.database.read(lambda s: feedback.of_person(s, user_id, feedback_id))
    is_begun = await core.database.read(lambda s: feedback.by_key(s, user_id, key)) is not None
    must_teach = is_begun or must_be_taught_again(row, scope)
    context = tuple(row.context or ())
    record = FeedbackRecord(FeedbackKind(row.kind), row.completion_id, row.text, row.value, scope, context)
    if must_teach and not is_begun:
        await _take_back(core, row)
        await _drop_waiting_notes(core, row)
        await core.lessons.commit(user_id, record, idempotency_key=key)
    await core.database.write(lambda s: feedback.set_scope(s, row.id, scope))
    return record if must_teach else None


async def newest(core: Core, user_id: str) -> Feedback:
    """Return the person's newest correction. Raises InvalidField if there is none."""
    rows = await core.database.read(lambda s: feedback.history(s, user_id, RECENT))
    found = next((row for row in rows if row.kind in TAUGHT_AT_ONCE), None)
    if found is None:
        raise InvalidField(NO_LESSON, "text")
    return found


def reach(row: Feedback) -> Scope | None:
    """Return how far a lesson reaches that was learned, or None if it was not."""
    if row.status != FeedbackStatus.LEARNED:
        return None
    if row.scope:
        return Scope(row.scope)
    return Scope.ANSWER if row.is_unsure or row.reading == Meaning.REMARK else Scope.ALWAYS


def must_be_taught_again(row: Feedback, scope: Scope) -> bool:
    """Return True if a lesson does not reach as far as the person chose, or reaches further."""
    if row.completion_id is None or row.kind not in TAUGHT_AT_ONCE:
        raise FeedbackNotFound(f"no lesson {row.id!r}")
    if scope == Scope.ALWAYS:
        return reach(row) != Scope.ALWAYS
    return reach(row) == Scope.ALWAYS or row.status == FeedbackStatus.UNDONE


async def _take_back(core: Core, row: Feedback) -> None:
    """Undo what was taught so far. Of a lesson for one answer that is not the newest any more nothing is undone."""
    reached = reach(row)
    if reached is None:
        return
    if await core.database.read(lambda s: _is_newest(s, row)):
        await core.engine.undo(row.user_id)
    elif reached == Scope.ALWAYS:
        raise InvalidField(NOT_THE_NEWEST, "scope")


async def _drop_waiting_notes(core: Core, row: Feedback) -> None:
    """Delete a fact that waits for its question: the same words get a note of their own when they are taught again."""
    for note in await core.database.read(lambda s: notes.by_feedback(s, row.user_id, row.id)):
        if note.state == NoteState.WHEN_ASKED:
            await core.engine.delete_note(row.user_id, note.id)


def _is_newest(s: Session, row: Feedback) -> bool:
    active = people.get(s, row.user_id).active_version
    return bool(active) and versions.get(s, row.user_id, active).feedback_id == row.id
