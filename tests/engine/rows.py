"""A person's rows as the engine makes them, for tests that need storage and no model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from storage.conversations import completions
from storage.database import Database, Session
from storage.kinds import FeedbackStatus, NoteState
from storage.learning import feedback, notes, versions
from storage.people import people
from storage.tables import AdapterVersion, Completion, Feedback, Note
from tests.storage.new_data_dir import copy_to

BASE_MODEL = "a fingerprint"


@asynccontextmanager
async def opened(data_dir: Path) -> AsyncIterator[Database]:
    """A database that is closed at the end."""
    database = Database.open(copy_to(data_dir))
    try:
        yield database
    finally:
        await database.close()


def person(s: Session, account: str = "ana") -> str:
    """A person who has learning on; the id."""
    return people.resolve(s, "http", account, is_learning=True).id


def completion(user_id: str, **fields: Any) -> Completion:
    """An answer to "hi"."""
    values: dict[str, Any] = {
        "messages": [{"role": "user", "content": "hi"}],
        "notes": [],
        "prompt_token_ids": [1, 2, 3],
        "completion_token_ids": [4, 5],
        "logprobs": [-0.25, -1.5],
        "sampling": {"temperature": 0.0},
        "finish_reason": "stop",
        "text": "Hello.",
    }
    return Completion(user_id=user_id, **(values | fields))


def said(s: Session, user_id: str, text: str, kind: str = "correction") -> Feedback:
    """Feedback on a new answer."""
    answer = completions.add(s, completion(user_id))
    row, _ = feedback.add(s, Feedback(user_id=user_id, completion_id=answer.id, kind=kind, text=text))
    return row


def noted(s: Session, user_id: str, text: str, *, state: NoteState = NoteState.IN_PROMPT) -> Note:
    """A note somebody wrote, which no version carries."""
    row = said(s, user_id, text, kind="note")
    feedback.set_status(s, row.id, FeedbackStatus.KEPT)
    return notes.add(s, Note(user_id=user_id, feedback_id=row.id, text=text, state=state))


def taught(
    s: Session, user_id: str, text: str, *, state: NoteState = NoteState.IN_WEIGHTS, is_local: bool = False
) -> AdapterVersion:
    """A lesson that made a version, and its note unless it was local; the version is active."""
    row = said(s, user_id, text)
    if not is_local:
        notes.add(s, Note(user_id=user_id, feedback_id=row.id, text=text, state=state))
    feedback.set_status(s, row.id, FeedbackStatus.LEARNED)
    return accepted(s, user_id, row.id)


def accepted(s: Session, user_id: str, feedback_id: str | None, parent: int | None = None) -> AdapterVersion:
    """An accepted version on top of the active one (or of `parent`); without feedback it is a rebuild."""
    below = people.get(s, user_id).active_version if parent is None else parent
    version = versions.allocate(s, user_id, below, BASE_MODEL, feedback_id, None)
    return versions.accept(s, user_id, version.number, "00", 1)


def rebuilt(s: Session, user_id: str) -> AdapterVersion:
    """A version made again from the standing notes."""
    return accepted(s, user_id, None, parent=0)
