"""What arrives from a chat platform, once its adapter has read it.

Frozen records only. Ids are the platform's own strings. `bot.messaging.dispatcher` decides what each of them means;
nothing here knows how a platform looks.
"""

from dataclasses import dataclass

from bot.events import Author, Place


@dataclass(frozen=True)
class MessageReceived:
    """A message. `is_addressed`: in private, mentioning heed, or answering one of its messages.

    `album`: what Telegram calls the messages that together show several pictures.
    """

    author: Author
    place: Place
    message_id: str
    text: str
    reply_to: str | None = None
    is_addressed: bool = True
    album: str = ""


@dataclass(frozen=True)
class CommandReceived:
    """`/name argument`; `token` answers a Discord interaction, empty on Telegram. `reply_to`: what it is about."""

    author: Author
    place: Place
    message_id: str
    name: str
    argument: str = ""
    reply_to: str | None = None
    token: str = ""


@dataclass(frozen=True)
class MessageEdited:
    """A person changed their own message."""

    author: Author
    place: Place
    message_id: str
    text: str


@dataclass(frozen=True)
class ReactionChanged:
    """Emoji put on a message, and emoji taken off it."""

    author: Author
    place: Place
    message_id: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ButtonPressed:
    """A button under a message of heed; `action` is what `channel.Button.action` was, `token` acknowledges it."""

    author: Author
    place: Place
    message_id: str
    action: str
    token: str


@dataclass(frozen=True)
class FormSubmitted:
    """A form (Discord's modal) that heed opened was sent; `action` names it."""

    author: Author
    place: Place
    message_id: str
    action: str
    text: str
    token: str


@dataclass(frozen=True)
class ChatMigrated:
    """A conversation has a new id from now on."""

    place: Place
    to: Place


Inbound = (
    MessageReceived | CommandReceived | MessageEdited | ReactionChanged | ButtonPressed | FormSubmitted | ChatMigrated
)
