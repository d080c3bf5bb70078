"""The reader of raw Telegram updates: from JSON to `bot.events` records.

Pure: an update carries everything that is needed (`ME` is the bot's username when it arrived), so that one that was
kept over a restart reads as it did before. Never raises: what is malformed, or of no use to heed, reads as nothing.
Anonymous admins, channels and bots are no one: they have no adapter, and many people may be behind one of them.
"""

import logging
from collections.abc import Collection, Iterable
from typing import Any

from telegram import (
    Chat,
    MaybeInaccessibleMessage,
    Message,
    MessageEntity,
    MessageReactionUpdated,
    ReactionTypeEmoji,
    Update,
    User,
)

from bot.events import (
    Author,
    ButtonPressed,
    ChatMigrated,
    CommandReceived,
    Inbound,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.platforms.telegram.markup import plain

PLATFORM = "telegram"
ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "message_reaction")
GENERAL_TOPIC = 1  # of a forum: its messages carry no thread id, and sending to it must not name it
ME = "heed_username"  # the key that `labelled` adds to an update

logger = logging.getLogger(__name__)


def labelled(update: dict[str, Any], username: str) -> dict[str, Any]:
    """Return an update with what reading it needs later."""
    return {**update, ME: username}


def sender_and_chat(update: dict[str, Any]) -> tuple[str, str]:
    """Return who sent a raw update (empty: no one) and the key of its conversation; a reaction's is its chat's."""
    for kind in ALLOWED_UPDATES:
        content = update.get(kind)
        if isinstance(content, dict):
            sender = content.get("user") if kind == "message_reaction" else content.get("from")
            message = content.get("message") if kind == "callback_query" else content
            return _number(sender), _raw_place(message)
    return "", ""


def place_of(chat_id: int, thread_id: int | None = None) -> Place:
    """Return the conversation in a chat, or in one of its topics. Private chats are those with a positive id."""
    external_id = f"{chat_id}/{thread_id}" if thread_id else str(chat_id)
    return Place(PLATFORM, external_id, is_private=chat_id > 0)


class Reader:
    """Reads the updates of one bot."""

    def __init__(self, bot_id: str, commands: Collection[str]) -> None:
        self._bot_id = int(bot_id)
        self._commands = frozenset(commands)

    def read(self, payload: dict[str, Any]) -> list[Inbound]:
        """Return what an update says; empty if heed has no use for it."""
        try:
            update = Update.de_json(payload, None)
            return self._update(update, str(payload.get(ME, "")))
        except Exception as error:  # noqa: BLE001  an edge: whatever a malformed update does to its parser, it is dropped
            logger.warning("telegram: update %r cannot be read (%s)", payload.get("update_id"), type(error).__name__)
            return []

    def _update(self, update: Update, username: str) -> list[Inbound]:
        if update.message:
            return self._message(update.message, username)
        if update.edited_message:
            return self._edited(update.edited_message, username)
        if update.message_reaction:
            return _reacted(update.message_reaction)
        query = update.callback_query
        if query and query.message and query.data and not query.from_user.is_bot:
            place, message_id = _place(query.message), str(query.message.message_id)
            return [ButtonPressed(_author(query.from_user), place, message_id, query.data, query.id)]
        return []

    def _message(self, message: Message, username: str) -> list[Inbound]:
        if message.migrate_to_chat_id:
            return [ChatMigrated(place_of(message.chat_id), place_of(message.migrate_to_chat_id))]
        if message.migrate_from_chat_id:
            return [ChatMigrated(place_of(message.migrate_from_chat_id), place_of(message.chat_id))]
        if not _is_from_person(message):
            return []
        words = Words(message, username, self._bot_id)
        if words.command:
            return self._commanded(message, words)
        if not words.text and not words.is_mention and not message.effective_attachment:
            return []
        is_addressed = message.chat.type == Chat.PRIVATE or words.is_mention or self._is_reply_to_me(message)
        author, place, about = _author(message.from_user), _place(message), _reply_to(message)
        return [
            MessageReceived(author, place, _id(message), words.text, about, is_addressed, message.media_group_id or "")
        ]

    def _commanded(self, message: Message, words: "Words") -> list[Inbound]:
        name, _, to = words.command.partition("@")
        is_for_other = to and to.lower() != words.username.lower()
        is_unknown_in_group = not to and message.chat.type != Chat.PRIVATE and name.lower() not in self._commands
        if is_for_other or is_unknown_in_group:
            return []
        author, place = _author(message.from_user), _place(message)
        return [CommandReceived(author, place, _id(message), name.lower(), words.text, _reply_to(message))]

    def _edited(self, message: Message, username: str) -> list[Inbound]:
        words = Words(message, username, self._bot_id)
        if not _is_from_person(message) or not words.text:
            return []
        text = f"/{words.command.partition('@')[0]} {words.text}" if words.command else words.text
        return [MessageEdited(_author(message.from_user), _place(message), _id(message), text)]

    def _is_reply_to_me(self, message: Message) -> bool:
        replied = message.reply_to_message
        return bool(_reply_to(message) and replied and replied.from_user and replied.from_user.id == self._bot_id)


class Words:
    """The words of a message: its command, whether it names the bot, and the text without either at its ends."""

    def __init__(self, message: Message, username: str, bot_id: int) -> None:
        self.username = username
        self.command = ""
        self._bot_id = bot_id
        self._units = (message.text or message.caption or "").encode("utf-16-le", "surrogatepass")
        start, end = 0, len(self._units)
        entities = message.entities or message.caption_entities
        mine = [entity for entity in entities if self._is_me(entity)]
        self.is_mention = bool(mine)
        for entity in mine:
            if not self._text(start, 2 * entity.offset).strip():
                start = 2 * (entity.offset + entity.length)
        for entity in reversed(mine):
            if not self._text(2 * (entity.offset + entity.length), end).strip() and 2 * entity.offset >= start:
                end = 2 * entity.offset
        first = next((entity for entity in entities if entity.type == MessageEntity.BOT_COMMAND), None)
        if first and not self._text(start, 2 * first.offset).strip():
            command_end = 2 * (first.offset + first.length)
            self.command = self._text(2 * first.offset, command_end)[1:]
            start = command_end
        self.text = self._text(start, end).strip()

    def _is_me(self, entity: MessageEntity) -> bool:
        if entity.type == MessageEntity.TEXT_MENTION:
            return entity.user is not None and entity.user.id == self._bot_id
        if entity.type != MessageEntity.MENTION or not self.username:
            return False
        return self._text(2 * entity.offset, 2 * (entity.offset + entity.length)).lower() == f"@{self.username}".lower()

    def _text(self, start: int, end: int) -> str:
        return self._units[start:end].decode("utf-16-le", "surrogatepass")


def _is_from_person(message: Message) -> bool:
    return message.from_user is not None and not message.from_user.is_bot and message.sender_chat is None


def _author(user: User | None) -> Author:
    assert user is not None  # _is_from_person was asked
    return Author(PLATFORM, str(user.id), plain(user.full_name)[:128])


def _id(message: Message) -> str:
    return str(message.message_id)


def _place(message: MaybeInaccessibleMessage) -> Place:
    thread = getattr(message, "message_thread_id", None) if getattr(message, "is_topic_message", False) else None
    if thread is None and message.chat.is_forum and isinstance(message, Message):
        thread = GENERAL_TOPIC
    return place_of(message.chat.id, thread)


def _reply_to(message: Message) -> str | None:
    """Return the message this one answers; in a topic everything else points at the message that opened the topic."""
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created:
        return None
    if message.is_topic_message and replied.message_id == message.message_thread_id:
        return None
    return _id(replied)


def _reacted(change: MessageReactionUpdated) -> list[Inbound]:
    if change.user is None or change.user.is_bot:
        return []
    old, new = _emoji(change.old_reaction), _emoji(change.new_reaction)
    added = tuple(emoji for emoji in new if emoji not in old)
    removed = tuple(emoji for emoji in old if emoji not in new)
    if not added and not removed:
        return []
    return [ReactionChanged(_author(change.user), place_of(change.chat.id), str(change.message_id), added, removed)]


def _emoji(reactions: Iterable[Any]) -> list[str]:
    return [reaction.emoji for reaction in reactions if isinstance(reaction, ReactionTypeEmoji)]


def _number(found: Any) -> str:
    number = found.get("id") if isinstance(found, dict) else None
    return str(number) if isinstance(number, int) else ""


def _raw_place(message: Any) -> str:
    chat = message.get("chat") if isinstance(message, dict) else None
    key = _number(chat)
    thread = message.get("message_thread_id") if key and message.get("is_topic_message") else None
    if thread is None and isinstance(chat, dict) and chat.get("is_forum") and "from" in message:
        thread = GENERAL_TOPIC
    return f"{key}/{thread}" if isinstance(thread, int) else key
