"""Answers heed gave, with everything a later update needs, and the platform messages that show them.

Another person's answer is treated as if it did not exist.
"""

from sqlmodel import Session, col, select

from storage import chats
from storage.errors import CompletionNotFound
from storage.tables import Completion, PlatformMessage, copy_of


def add(s: Session, completion: Completion) -> Completion:
    """Store an answer and return the stored row (with its `seq`); the row given is not touched.

    Raises ChatNotFound and CompletionNotFound if its chat, or the answer it repeats, is not that person's.
    """
    if completion.chat_id is not None:
        chats.get(s, completion.user_id, completion.chat_id)
    if completion.retry_of is not None:
        get(s, completion.user_id, completion.retry_of)
    row = copy_of(completion)
    s.add(row)
    s.flush()
    return row


def get(s: Session, user_id: str, completion_id: str) -> Completion:
    """An answer given to this person. Raises CompletionNotFound."""
    query = select(Completion).where(Completion.id == completion_id, Completion.user_id == user_id)
    completion = s.exec(query).first()
    if completion is None:
        raise CompletionNotFound(f"no answer {completion_id!r}")
    return completion


def recent(s: Session, user_id: str, limit: int) -> list[Completion]:
    """The person's newest answers, newest first."""
    query = select(Completion).where(Completion.user_id == user_id)
    return list(s.exec(query.order_by(col(Completion.seq).desc()).limit(limit)))


def link(s: Session, message: PlatformMessage) -> PlatformMessage:
    """Note which answer a platform message shows; a message that now shows another one is moved to it."""
    return s.merge(copy_of(message))


def by_message(s: Session, platform: str, chat_external_id: str, message_id: str, *, user_id: str) -> Completion:
    """The answer to this person that a platform message shows. Raises CompletionNotFound."""
    message = s.get(PlatformMessage, (platform, chat_external_id, message_id))
    if message is None:
        raise CompletionNotFound(f"message {message_id!r} shows no answer")
    return get(s, user_id, message.completion_id)


def mark_gold(s: Session, user_id: str, completion_id: str, is_gold: bool = True) -> Completion:
    """Note that the person approved an answer, or took that back. Raises CompletionNotFound."""
    completion = get(s, user_id, completion_id)
    completion.is_gold = is_gold
    return completion
