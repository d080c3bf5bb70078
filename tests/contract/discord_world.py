"""The state of the Discord server: accounts, channels, messages, reactions, interactions; and its error codes.

Nothing here knows of sockets. `Refusal` is an answer with a status and one of Discord's codes.
"""

import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

Json = dict[str, Any]

NAME = re.compile(r"[a-z0-9_-]{1,32}")
TOKEN = "MTAwMDAwMDAwMDAwMDAwMDAx.GxYzAb.not-a-real-token-but-long-enough"
EPOCH_MS = 1_420_070_400_000
BOT: Json = {"id": "100000000000000001", "username": "heed", "discriminator": "0", "avatar": None, "bot": True}
ANA: Json = {"id": "111", "username": "ana", "global_name": "Ana", "discriminator": "0", "avatar": None}
BEN: Json = {"id": "222", "username": "ben", "global_name": "Ben", "discriminator": "0", "avatar": None}
APPLICATION = "100000000000000001"
SERVER = "900"
OTHER_SERVER = str(1 << 22)  # the second of two connections hears it
DM, TEXT, THREAD = 1, 0, 11

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK, UNKNOWN_INTERACTION = 10003, 10008, 10015, 10062
NO_ACCESS, NOT_AUTHOR, EMPTY, CANNOT_SEND, INVALID_BODY = 50001, 50005, 50006, 50007, 50035
TOO_MANY_OLD_EDITS, ALREADY_ANSWERED = 30046, 40060


class Refusal(Exception):
    """An error as the API answers it."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class Channel:
    """A server's channel, a thread, or a private chat."""

    id: str
    kind: int
    server: str = SERVER  # unless it is private
    messages: dict[str, Json] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)  # nonce -> message id
    refusal: Refusal | None = None  # what everything here is answered with
    typed: int = 0

    @property
    def payload(self) -> Json:
        data: Json = {"id": self.id, "type": self.kind, "last_message_id": max(self.messages, key=int, default=None)}
        if self.kind == DM:
            return data | {"recipients": [ANA]}
        return data | {
            "guild_id": self.server, "name": f"c{self.id}", "position": 0, "permission_overwrites": [], "nsfw": False,
            "parent_id": None, "topic": None,
        }  # fmt: skip


@dataclass
class Interaction:
    """A command, a press or a form, and what was answered."""

    payload: Json
    first: Json | None = None  # the body of the first answer
    original: str = ""  # the message id of what the first answer showed
    follow_ups: list[Json] = field(default_factory=list)
    deleted: bool = False
    is_too_late: bool = False  # three seconds are over
    is_expired: bool = False  # fifteen minutes are over

    @property
    def is_private(self) -> bool:
        return bool(((self.first or {}).get("data") or {}).get("flags", 0) & 64)


class World:
    """Everything there is."""

    def __init__(self) -> None:
        self.channels: dict[str, Channel] = {}
        self.interactions: dict[str, Interaction] = {}  # by token
        self.commands: list[Json] = []
        self._serial = count(1)

    def new_id(self, age_s: float = 0.0) -> str:
        """A snowflake: ids made later are greater."""
        made_ms = int((time.time() - age_s) * 1000) - EPOCH_MS
        return str((made_ms << 22) + next(self._serial) % (1 << 22))

    @property
    def servers(self) -> list[str]:
        """The servers that the bot is on."""
        return list(dict.fromkeys([SERVER, *(c.server for c in self.channels.values() if c.kind != DM)]))

    def channel(self, channel_id: str) -> Channel:
        """A channel. Raises Refusal."""
        channel = self.channels.get(channel_id)
        if channel is None:
            raise Refusal(404, UNKNOWN_CHANNEL, "Unknown Channel")
        if channel.refusal is not None:
            raise channel.refusal
        return channel

    def message(self, channel_id: str, message_id: str) -> Json:
        """A message. Raises Refusal."""
        message = self.channel(channel_id).messages.get(message_id)
        if message is None:
            raise Refusal(404, UNKNOWN_MESSAGE, "Unknown Message")
        return message

    def add(self, channel: Channel, author: Json, content: str, *, age_s: float = 0.0, **fields: Any) -> Json:
        """Put a message into a channel."""
        message: Json = {
            "id": self.new_id(age_s), "channel_id": channel.id, "author": author, "content": content, "type": 0,
            "timestamp": stamp(age_s), "edited_timestamp": None, "tts": False, "mention_everyone": False,
            "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": False, "components": [],
        } | fields  # fmt: skip
        channel.messages[message["id"]] = message
        return message

    def reply(self, channel: Channel, reply_to: str | None) -> Json:
        """The fields that make a message a reply."""
        if reply_to is None:
            return {}
        answered = channel.messages.get(reply_to)
        reference = {"type": 0, "message_id": reply_to, "channel_id": channel.id}
        return {"type": 19, "message_reference": reference, "referenced_message": answered}


def check_body(body: Json, *, has_files: bool = False) -> None:
    """Check a message as Discord does. Raises Refusal."""
    content = body.get("content") or ""
    if len(content) > 2000:
        raise Refusal(400, INVALID_BODY, "Must be 2000 or fewer in length.")
    if not content.strip() and not has_files:
        raise Refusal(400, EMPTY, "Cannot send an empty message")
    if len(str(body.get("nonce", ""))) > 25:
        raise Refusal(400, INVALID_BODY, "nonce: must be 25 or fewer in length.")
    rows = body.get("components") or []
    names = [button["custom_id"] for row in rows for button in row["components"]]
    is_wrong = len(rows) > 5 or any(not 1 <= len(row["components"]) <= 5 for row in rows)
    if is_wrong or len(set(names)) != len(names) or any(not 1 <= len(name) <= 100 for name in names):
        raise Refusal(400, INVALID_BODY, "Invalid components")


def check_commands(commands: list[Json]) -> None:
    """Check slash commands as Discord does. Raises Refusal."""
    options = [option for command in commands for option in command["options"]]
    named = [*commands, *options]
    is_wrong = any(not NAME.fullmatch(it["name"]) or not 1 <= len(it["description"]) <= 100 for it in named)
    if is_wrong or len(commands) > 100 or len({command["name"] for command in commands}) != len(commands):
        raise Refusal(400, INVALID_BODY, "Invalid Form Body")


def shown(message: Json) -> Json:
    """Return a message as the API gives it: reactions counted, without names."""
    reactions = [
        {"emoji": {"id": None, "name": name}, "count": len(users), "me": False}
        for name, users in message.get("_reactions", {}).items()
        if users
    ]
    plain = {key: value for key, value in message.items() if not key.startswith("_")}
    return plain | ({"reactions": reactions} if reactions else {})


def stamp(age_s: float = 0.0) -> str:
    """A time as Discord writes it."""
    return datetime.fromtimestamp(time.time() - age_s, UTC).isoformat()
