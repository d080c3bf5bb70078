"""Answers heed gave, with everything a later update needs, and the platform messages that show them.

Another person's answer is treated as if it did not exist.
"""

from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, exists, not_
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, delete, select

from storage.errors import ChatNotFound, CompletionNotFound
from storage.sql import bulk_rows
from storage.tables import BetterAnswer, Chat, Completion, Feedback, MessageRole, PlatformMessage

_AT_ONCE = 500  # rows that one statement drops
_SAME_TEXT = 1000  # answers of one text that are looked through for a question
_OWNER_OF_CHAT = select(Chat.user_id).where(Chat.id == bindparam("wanted"))
_OWNER = select(Completion.user_id).where(Completion.id == bindparam("wanted"))


def add(s: Session, completion: Completion) -> Completion:
    """Store an answer and return the stored row (with its `seq`); the row given is not touched.

    Raises ChatNotFound and CompletionNotFound if its chat, or the answer it repeats, is not that person's.
    """
    if completion.chat_id is not None and _owner(s, _OWNER_OF_CHAT, completion.chat_id) != completion.user_id:
        raise ChatNotFound(f"no chat {completion.chat_id!r}")
    if completion.retry_of is not None and _owner(s, _OWNER, completion.retry_of) != completion.user_id:
        raise CompletionNotFound(f"no answer {completion.retry_of!r}")
    return bulk_rows.add(s, completion)


def get(s: Session, user_id: str, completion_id: str) -> Completion:
    """Return an answer given to this person. Raises CompletionNotFound."""
    query = select(Completion).where(Completion.id == completion_id, Completion.user_id == user_id)
    completion = s.exec(query).first()
    if completion is None:
        raise CompletionNotFound(f"no answer {completion_id!r}")
    return completion


def recent(s: Session, user_id: str, limit: int) -> list[Completion]:
    """Return the person's newest answers, newest first."""
    query = select(Completion).where(Completion.user_id == user_id)
    return list(s.exec(query.order_by(col(Completion.seq).desc()).limit(limit)))


def by_text(s: Session, user_id: str, question: str, text: str) -> Completion | None:
    """Return the newest answer to this person with exactly this text, given to exactly this question, or None if none
    was.
    """
    query = select(Completion).where(Completion.user_id == user_id, Completion.text == text)
    found = s.exec(query.order_by(col(Completion.seq).desc()).limit(_SAME_TEXT))
    return next((c for c in found if _question(c) == question), None)


def first_of_version(s: Session, user_id: str, adapter_version: int, limit: int) -> list[str]:
    """Return the ids of the first answers that a version gave this person, oldest first."""
    query = select(Completion.id).where(Completion.user_id == user_id, Completion.adapter_version == adapter_version)
    return list(s.exec(query.order_by(col(Completion.seq)).limit(limit)))


def link(s: Session, message: PlatformMessage) -> None:
    """Note which answer a platform message shows; a message that now shows another one is moved to it."""
    bulk_rows.put(s, message)


def by_message(s: Session, platform: str, chat_external_id: str, message_id: str, *, user_id: str) -> Completion:
    """Return the answer to this person that a platform message shows. Raises CompletionNotFound."""
    message = s.get(PlatformMessage, (platform, chat_external_id, message_id))
    if message is None:
        raise CompletionNotFound(f"message {message_id!r} shows no answer")
    return get(s, user_id, message.completion_id)


def mark_gold(s: Session, user_id: str, completion_id: str, is_gold: bool = True) -> Completion:
    """Note that the person approved an answer, or took that back. Raises CompletionNotFound."""
    completion = get(s, user_id, completion_id)
    completion.is_gold = is_gold
    return completion


def drop_unneeded(s: Session, created_before_s: float, limit: int) -> int:
    """Drop the oldest answers that no one said anything about, with what shows them; returns how many.

    Kept are approved ones, those with feedback, with a better answer, or given again by one that stays, and an answer
    given again where the one before it is kept for any of that.
    """
    return _drop(s, col(Completion.created_at) < created_before_s, limit)


def drop_unneeded_of(s: Session, chat_id: str) -> None:
    """Drop the answers of a conversation that no one said anything about, as `drop_unneeded` does."""
    while _drop(s, col(Completion.chat_id) == chat_id, _AT_ONCE):
        pass


def _drop(s: Session, which: ColumnElement[bool], limit: int) -> int:
    old = select(Completion.id).where(which, *_unneeded(Completion))
    before, again = aliased(Completion), aliased(Completion)
    is_again_of_needed = exists().where(col(before.id) == col(Completion.retry_of), not_(and_(*_unneeded(before))))
    is_given_again = exists().where(col(again.retry_of) == col(Completion.id))
    ids = list(s.exec(old.where(~is_given_again, ~is_again_of_needed).order_by(col(Completion.seq)).limit(limit)))
    s.exec(delete(PlatformMessage).where(col(PlatformMessage.completion_id).in_(ids)))
    s.exec(delete(MessageRole).where(col(MessageRole.about).in_(ids)))
    return s.exec(delete(Completion).where(col(Completion.id).in_(ids))).rowcount


def _unneeded(answer: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions under which an answer is needed for nothing but reading it again."""
    has_feedback = exists().where(col(Feedback.completion_id) == answer.id)
    has_better = exists().where(col(BetterAnswer.completion_id) == answer.id)
    return ~col(answer.is_gold), ~has_feedback, ~has_better


def _question(completion: Completion) -> str | None:
    asked = [message["content"] for message in completion.messages if message["role"] == "user"]
    return asked[-1] if asked else None


def _owner(s: Session, query: Any, wanted: str) -> str | None:
    s.flush()
    return s.connection().execute(query, {"wanted": wanted}).scalar()
