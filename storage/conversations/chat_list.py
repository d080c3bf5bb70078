"""A person's conversations as a list: their titles, a search in them, and the erasure of one.

A conversation without an answer since its last reset is in no list. The title is the person's own, else the beginning
of the first question.
"""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Text, cast, exists, func, or_
from sqlmodel import Session, col, select

from storage.conversations import chats, completions
from storage.tables import Chat, Completion

MAX_TITLE_CHARS = 80


@dataclass(frozen=True)
class ChatLine:
    """One conversation in a list."""

    chat: Chat
    title: str
    num_answers: int
    last_at_s: float


def lines(s: Session, user_id: str, platform: str, limit: int, words: str = "") -> list[ChatLine]:
    """Return a person's conversations, the last used first; with `words` those that have them in title or text."""
    first, last = func.min(Completion.seq), func.max(Completion.seq)
    query = (
        select(Chat, func.count(col(Completion.seq)), func.max(Completion.created_at), first)
        .join(Completion, col(Completion.chat_id) == Chat.id)
        .where(Chat.user_id == user_id, Completion.user_id == user_id, Chat.platform == platform)
        .where(col(Completion.seq) > Chat.reset_seq, Completion.choice_index == 0, *_having(words))
    )
    rows = list(s.exec(query.group_by(col(Chat.id)).order_by(last.desc()).limit(limit)))
    asked = _questions(s, [at for *_, at in rows])
    return [ChatLine(chat, chat.title or shortened(asked[at]), number, at_s) for chat, number, at_s, at in rows]


def rename(s: Session, chat_id: str, title: str) -> None:
    """Give a conversation a title; with an empty one it has that of its first question again."""
    chat = s.get(Chat, chat_id)
    if chat is not None:
        chat.title = title


def erase(s: Session, chat_id: str) -> None:
    """Erase a conversation with its answers, but for those that feedback is about: lessons were made of them."""
    completions.drop_unneeded_of(s, chat_id)
    chats.remove(s, chat_id)


def shortened(text: str) -> str:
    """Return a text as a title: one line of at most MAX_TITLE_CHARS."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1].rstrip()}…"


def _having(words: str) -> tuple[Any, ...]:
    if not words:
        return ()
    stored = json.dumps(words)[1:-1]  # as questions are stored
    said = exists().where(
        col(Completion.chat_id) == Chat.id,
        or_(_has(col(Completion.text), words), _has(cast(col(Completion.messages), Text), stored)),
    )
    return (or_(_has(col(Chat.title), words), said.correlate(Chat)),)


def _has(column: Any, words: str) -> Any:
    return column.icontains(words, autoescape=True)


def _questions(s: Session, seqs: list[int | None]) -> dict[int | None, str]:
    found = s.exec(select(Completion.seq, Completion.messages).where(col(Completion.seq).in_(seqs)))
    asked = {seq: [m["content"] for m in messages if m["role"] == "user"] for seq, messages in found}
    return {seq: texts[-1] if texts else "" for seq, texts in asked.items()}
