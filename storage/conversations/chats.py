"""Conversations: one per person, platform and place on that platform."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Text, and_, bindparam, cast, exists, func
from sqlalchemy import select as sql_select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, delete, select, update

from storage.errors import ChatNotFound
from storage.tables import Chat, Completion, User

_JSON = json.JSONDecoder()
_USER = '{"role": "user", '  # in no text: there its quotes are escaped


def resolve(s: Session, user_id: str, platform: str, external_id: str) -> Chat:
    """Return a person's conversation at a place, made when it is first asked for. Raises ConstraintViolated: no one
    there.
    """
    chat = find(s, user_id, platform, external_id)
    if chat is None:
        chat = Chat(user_id=user_id, platform=platform, external_id=external_id)
        s.add(chat)
        s.flush()
    return chat


def find(s: Session, user_id: str, platform: str, external_id: str) -> Chat | None:
    """Return a person's conversation at a place, None if there is none yet."""
    query = select(Chat).where(Chat.user_id == user_id, Chat.platform == platform, Chat.external_id == external_id)
    return s.exec(query).first()


def below(s: Session, user_id: str, platform: str, prefix: str) -> list[Chat]:
    """Return a person's conversations at places whose ids begin like this, the newest first."""
    query = select(Chat).where(
        Chat.user_id == user_id, Chat.platform == platform, col(Chat.external_id).startswith(prefix, autoescape=True)
    )
    return list(s.exec(query.order_by(col(Chat.created_at).desc(), col(Chat.id))))


def remove(s: Session, chat_id: str) -> None:
    """End a conversation for good. Its answers stay, in no conversation, for what they taught; harmless to repeat."""
    s.exec(update(Completion).where(col(Completion.chat_id) == chat_id).values(chat_id=None))
    s.exec(delete(Chat).where(col(Chat.id) == chat_id))


def get(s: Session, user_id: str, chat_id: str) -> Chat:
    """Return a person's conversation. Raises ChatNotFound, also if it is another person's."""
    chat = s.get(Chat, chat_id)
    if chat is None or chat.user_id != user_id:
        raise ChatNotFound(f"no chat {chat_id!r}")
    return chat


def places(s: Session, platform: str, limit: int) -> list[str]:
    """Return the platform's ids of places where a person has a conversation, the newest first."""
    query = select(Chat.external_id).where(Chat.platform == platform).group_by(col(Chat.external_id))
    return list(s.exec(query.order_by(func.max(Chat.created_at).desc()).limit(limit)))


def move(s: Session, platform: str, old: str, new: str) -> int:
    """Give the conversations at a place its new id; one that a person has there already stays. Returns how many."""
    there = select(Chat.user_id).where(Chat.platform == platform, Chat.external_id == new)
    query = select(Chat).where(Chat.platform == platform, Chat.external_id == old, col(Chat.user_id).not_in(there))
    moving = list(s.exec(query))
    for chat in moving:
        chat.external_id = new
    return len(moving)


def turns(s: Session, chat_id: str, limit: int) -> list[Completion]:
    """Return the newest `limit` turns since the last reset, oldest first.

    Of an answer that was given again only the newest counts, of several choices only the first.
    """
    query = select(Completion).where(*_in_context()).order_by(col(Completion.seq).desc()).limit(bindparam("most"))
    return list(s.exec(query, params={"wanted": chat_id, "most": limit}))[::-1]


def _in_context() -> tuple[Any, ...]:
    """Of the chat that is `wanted`: answers since its last reset that were not given again."""
    later = aliased(Completion)
    wanted: Any = bindparam("wanted")
    is_same_turn = col(later.retry_of).in_((col(Completion.id), col(Completion.retry_of)))  # NULL is in nothing
    is_there = col(later.chat_id).concat("") == wanted  # no index on the chat: the one on retry_of finds few rows
    was_answered_again = exists().where(is_same_turn, is_there, col(later.seq) > col(Completion.seq))
    of_chat = and_(
        col(Chat.id) == wanted, col(Chat.user_id) == col(Completion.user_id), col(Completion.seq) > col(Chat.reset_seq)
    )
    is_first_choice = Completion.choice_index == 0
    return Completion.chat_id == wanted, exists().where(of_chat), is_first_choice, ~was_answered_again


@cache
def _persona_at() -> Any:
    c, u = Chat.__table__.c, User.__table__.c  # type: ignore[attr-defined]
    query = sql_select(c.id, u.persona).join_from(Chat, User, c.user_id == u.id)
    is_there = (c.platform == bindparam("on_platform"), c.external_id == bindparam("at"))
    return query.where(c.user_id == bindparam("of_user"), *is_there)


@cache
def _exchanges() -> Any:
    t = Completion.__table__.c  # type: ignore[attr-defined]
    stored = cast(t.messages, Text).label("stored_messages")
    query = sql_select(t.seq, t.retry_of, stored, t.text).where(*_in_context())
    return query.order_by(t.seq.desc()).limit(bindparam("most"))


@dataclass(frozen=True)
class Context:
    """The context that the next turn of a conversation begins with.

    `exchanges`: of each of `turns` the question and the answer that counts, in the order of the questions.
    """

    chat_id: str
    persona: str | None
    exchanges: list[tuple[str, str]]


def context(s: Session, user_id: str, platform: str, external_id: str, limit: int) -> Context | None:
    """Return a person's conversation at a place with its newest `limit` turns, None if there is none yet."""
    place = {"of_user": user_id, "on_platform": platform, "at": external_id}
    found = s.connection().execute(_persona_at(), place).first()
    return Context(found.id, found.persona, _read_exchanges(s, found.id, limit)) if found else None


def _read_exchanges(s: Session, chat_id: str, limit: int) -> list[tuple[str, str]]:
    newest = list(s.connection().execute(_exchanges(), {"wanted": chat_id, "most": limit}))
    newest.sort(key=lambda row: _asked_at(s, row.seq, row.retry_of))
    return [(_question(row.stored_messages), row.text) for row in newest]


def _question(stored_messages: str) -> str:
    """Return what the person said last in a conversation as it is stored, without reading all of it.

    Every conversation of a chat is written by the gateway, the role of a message before its content.
    """
    at = stored_messages.rfind(_USER)
    return str(_JSON.raw_decode(stored_messages, at)[0]["content"]) if at >= 0 else ""


def _asked_at(s: Session, seq: int, retry_of: str | None) -> int:
    """Return the place of a turn's first answer."""
    while retry_of is not None:
        earlier = s.exec(select(Completion.seq, Completion.retry_of).where(Completion.id == retry_of)).one()
        seq, retry_of = earlier[0] or 0, earlier[1]
    return seq


def reset(s: Session, chat_id: str) -> Chat:
    """Start the conversation anew: no earlier turn is context any more. Raises ChatNotFound."""
    chat = s.get(Chat, chat_id)
    if chat is None:
        raise ChatNotFound(f"no chat {chat_id!r}")
    newest = s.exec(select(func.max(Completion.seq)).where(Completion.chat_id == chat_id)).one()
    chat.reset_seq = newest or 0
    return chat
