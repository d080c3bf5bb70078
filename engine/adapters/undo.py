"""Undo and roll back: a person's versions, notes and feedback go back and forth together.

Every function runs inside one transaction, between two updates of the person. Invariant: after it, the lessons in
force are exactly those on the path from the zero adapter to the active version, plus notes that never had a version;
every note that holds is in the prompt, and the next probe decides which of them the weights hold. Order comes from
the sequence in which feedback arrived, never from a clock.
"""

from engine.adapters import superseding
from engine.errors import NothingToUndo
from engine.requests import UndoResult
from storage.database import Session
from storage.kinds import FeedbackKind, FeedbackStatus, NoteState, VersionState
from storage.learning import feedback, updates, versions
from storage.learning import notes as note_rows
from storage.people import people
from storage.tables import AdapterVersion, Feedback, Note


def undo(s: Session, user_id: str) -> UndoResult:
    """Undo the newest lesson: a note that came after the active version, else the version with its note.

    A rebuilt version holds many lessons: the newest note is deleted, and the base model serves until the others are
    learned again. So it does if the versions below are pruned. Raises NothingToUndo.
    """
    active = people.get(s, user_id).active_version
    version = versions.get(s, user_id, active) if active else None
    live = note_rows.live(s, user_id)
    if live and _arrived(s, live[-1].feedback_id) > _arrived(s, version.feedback_id if version else None):
        return _undo_note(s, live[-1], version)
    if version is None or version.feedback_id is None:
        raise NothingToUndo("there is no lesson to take back")
    return _undo_version(s, version)


def _undo_note(s: Session, note: Note, version: AdapterVersion | None) -> UndoResult:
    note_rows.set_state(s, note.id, NoteState.DELETED)
    if note.feedback_id is not None:
        feedback.set_status(s, note.feedback_id, FeedbackStatus.UNDONE)
    is_rebuilt = version is not None and version.feedback_id is None
    if is_rebuilt:
        versions.activate(s, note.user_id, 0)
    _into_prompt(s, note.user_id)
    return UndoResult(people.get(s, note.user_id).active_version, note.text, must_rebuild=is_rebuilt)


def _undo_version(s: Session, version: AdapterVersion) -> UndoResult:
    user_id, note = version.user_id, _note_of(s, version)
    was_live = note is not None and note.state in note_rows.LIVE
    _set_lesson(s, version, FeedbackStatus.UNDONE, NoteState.DELETED)
    ancestor = _good_ancestor(s, version)
    versions.activate(s, user_id, ancestor)
    _into_prompt(s, user_id)
    text = note.text if note is not None and was_live else None
    return UndoResult(ancestor, text, must_rebuild=_is_pruned_between(s, version, ancestor))


def take_back(s: Session, complaint: Feedback, number: int, reason: str) -> UndoResult | None:
    """Undo the complained-about version and its note. Return None if it is no longer active.

    A lesson's first version is active in the one that has taken its place. The reason is kept with the feedback that
    taught it and with its update. Raises VersionNotFound.
    """
    user_id = complaint.user_id
    taught_by = versions.get(s, user_id, number).feedback_id
    active = people.get(s, user_id).active_version
    if not active or taught_by is None:
        return None
    version = versions.get(s, user_id, active)
    if version.feedback_id != taught_by:
        return None
    result = _undo_version(s, version)
    feedback.set_status(s, version.feedback_id, FeedbackStatus.UNDONE, reason)
    feedback.note_taken_back(s, complaint.id, number)
    if version.update_id is not None:
        updates.finish(s, version.update_id, status=updates.TAKEN_BACK, error=reason)
    return result


def delete_note(s: Session, user_id: str, note_id: str) -> bool:
    """Delete a note; what it had replaced holds again. Return True if an update was taught it. Raises NoteNotFound."""
    note = note_rows.get(s, user_id, note_id)
    was_live = note.state in note_rows.LIVE
    note_rows.set_state(s, note.id, NoteState.DELETED)
    superseding.bring_back(s, user_id)
    path = _path(s, user_id, people.get(s, user_id).active_version)
    taught = {v.feedback_id for v in path} - {None}
    is_taken_in = any(v.feedback_id is None for v in path) and _is_taken_in(s, note)
    return was_live and (note.learned_version is not None or note.feedback_id in taught or is_taken_in)


def return_to(s: Session, user_id: str, number: int) -> None:
    """Make an accepted version active (0: the base). Lessons off its path are undone, those on it hold again.

    Raises VersionNotFound, VersionPruned, VersionStateError.
    """
    left, kept = _path(s, user_id, people.get(s, user_id).active_version), _path(s, user_id, number)
    versions.activate(s, user_id, number)
    for version in (v for v in left if v.number not in {k.number for k in kept}):
        _set_lesson(s, version, FeedbackStatus.UNDONE, NoteState.DELETED)
    for version in kept:
        _set_lesson(s, version, FeedbackStatus.LEARNED, NoteState.IN_PROMPT)
    _into_prompt(s, user_id)


def fall_back(s: Session, user_id: str, number: int) -> int:
    """Give up a damaged version and return the one that is active now. Its lessons hold as notes in the prompt."""
    active = versions.mark_damaged(s, user_id, number)
    _into_prompt(s, user_id)
    return active


def return_to_base(s: Session, user_id: str) -> None:
    """Make the base model answer, if nothing is left for weights to hold. Standing notes are in the prompt."""
    versions.activate(s, user_id, 0)
    _into_prompt(s, user_id)


def take_in(s: Session, version: AdapterVersion, words: str, sha256: str, size_bytes: int) -> None:
    """Make an imported candidate active, as the person's newest lesson; every note goes into the prompt."""
    row = Feedback(user_id=version.user_id, kind=FeedbackKind.IMPORT, text=words, status=FeedbackStatus.LEARNED)
    taught_by, _ = feedback.add(s, row)
    versions.accept(s, version.user_id, version.number, sha256, size_bytes).feedback_id = taught_by.id
    _into_prompt(s, version.user_id)


def _into_prompt(s: Session, user_id: str) -> None:
    """Return every note to the prompt after the weights have changed, also those that a note now gone had replaced.

    A fact that no probe has placed waits since it was told, and goes on waiting.
    """
    for state in (NoteState.WHEN_ASKED, NoteState.IN_WEIGHTS):
        for note in note_rows.in_state(s, user_id, state):
            if state == NoteState.IN_WEIGHTS or note.probe is not None:
                note_rows.set_state(s, note.id, NoteState.IN_PROMPT)
    superseding.bring_back(s, user_id)


def _is_taken_in(s: Session, note: Note) -> bool:
    """Return True if a consolidation has taught the note, even if no probe has found it in the weights."""
    return note.feedback_id is None or feedback.get(s, note.feedback_id).consolidated_by is not None


def _arrived(s: Session, feedback_id: str | None) -> int:
    """Return the place of a piece of feedback in the order of arrival, 0 for none."""
    return (feedback.get(s, feedback_id).seq or 0) if feedback_id is not None else 0


def _good_ancestor(s: Session, version: AdapterVersion) -> int:
    """Return the nearest version below this one that can be served, 0 at worst."""
    return next((v.number for v in _path(s, version.user_id, version.parent) if v.state == VersionState.ACCEPTED), 0)


def _is_pruned_between(s: Session, version: AdapterVersion, ancestor: int) -> bool:
    """Return True if lessons below the version have lost the weights that held them."""
    skipped = (v for v in _path(s, version.user_id, version.parent) if v.number > ancestor)
    return any(v.state == VersionState.PRUNED for v in skipped)


def _path(s: Session, user_id: str, number: int) -> list[AdapterVersion]:
    path = []
    while number:
        version = versions.get(s, user_id, number)
        path.append(version)
        number = version.parent
    return path


def _set_lesson(s: Session, version: AdapterVersion, status: FeedbackStatus, state: NoteState) -> None:
    if version.feedback_id is not None:
        feedback.set_status(s, version.feedback_id, status)
    note = _note_of(s, version)
    if note is not None:
        note_rows.set_state(s, note.id, state)


def _note_of(s: Session, version: AdapterVersion) -> Note | None:
    if version.feedback_id is None:
        return None
    return next(iter(note_rows.by_feedback(s, version.user_id, version.feedback_id)), None)
