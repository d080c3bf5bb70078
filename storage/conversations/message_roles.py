"""Roles of messages on platforms that are not answers themselves.

A question for a reason belongs to the answer it is about, a message that was feedback to that answer, a notice of
something learned to the version that was made. Another person's message is treated as if it had no role.
"""

from collections.abc import Collection
from enum import StrEnum

from sqlmodel import Session, col, select

from storage.sql import bulk_rows
from storage.tables import MessageRole, PlatformMessage


class Role(StrEnum):
    """The roles there are, and what `about` holds."""

    REASON = "reason"  # asks what should be different; the completion
    FEEDBACK = "feedback"  # a person's words about an answer; the completion
    LESSON = "lesson"  # says what was learned; the version, as a number
    LEARNING = "learning"  # says how far a lesson is; the feedback
    WORK = "work"  # asks about a call of an agent; the session, and the mark of the call
    QUESTION = "question"  # has buttons for this person; nothing
    UNDO = "undo"  # an undo that has begun (message id: the update's key); the version it takes back
    NOTE = "note"  # a note whose deletion has begun (message id: the update's key); its id


def put(s: Session, row: MessageRole) -> None:
    """Note what a message is for; a later role of the same message replaces it."""
    bulk_rows.put(s, row)


def find(s: Session, user_id: str, platform: str, chat_external_id: str, message_id: str) -> MessageRole | None:
    """Return the role of a message that concerns this person, None if it has none."""
    row = s.get(MessageRole, (platform, chat_external_id, message_id))
    return row if row is not None and row.user_id == user_id else None


def known(s: Session, platform: str, chat_external_id: str, message_ids: Collection[str]) -> set[str]:
    """Return those of a chat's messages that show an answer or have a role."""
    found = set[str]()
    for table in (PlatformMessage, MessageRole):
        here = (table.platform == platform, table.chat_external_id == chat_external_id)
        found.update(s.exec(select(table.message_id).where(*here, col(table.message_id).in_(message_ids))))
    return found
