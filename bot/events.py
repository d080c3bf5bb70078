"""Events: what people do, as frozen records that know nothing of how platforms look.

The first half is what an adapter (HTTP, terminal, a chat platform) hands to the core: `bot.core.feedback`,
`bot.commands.person` and `bot.core.gateway` take it from there. The second half is what arrives from a chat platform
once its adapter has read it; `bot.messaging.dispatcher` decides what each of these means. Ids are the platform's own
strings.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Author:
    """The sender: an account on a platform. Of a name only what can be seen is kept, 64 characters at most."""

    platform: str
    account: str
    display_name: str = ""
    is_admin: bool | None = None  # what the caller's API key says of it; None: nothing
    address: str = field(default="", compare=False)  # from which a call over HTTP comes

    def __post_init__(self) -> None:
        # Names come from strangers: no line breaks, no bidi controls, nothing that storage cannot hold.
        seen = "".join(char for char in self.display_name if char.isprintable())
        object.__setattr__(self, "display_name", seen.strip()[:64])


@dataclass(frozen=True)
class Place:
    """The conversation it was sent in, by the platform's own id; in private, no one else reads along."""

    platform: str
    external_id: str
    is_private: bool = True
    server: str = field(default="", compare=False)  # on which it is, where a platform has servers


@dataclass(frozen=True)
class Message:
    """An ordinary message: the next turn of a conversation."""

    author: Author
    place: Place
    text: str


@dataclass(frozen=True)
class Reply:
    """A text that points at an answer in order to say something about it."""

    completion_id: str
    text: str


@dataclass(frozen=True)
class Edit:
    """An answer as the person would have written it."""

    completion_id: str
    text: str


@dataclass(frozen=True)
class Reaction:
    """An emoji, or "+1" / "-1", on an answer; `reason` is what the person said about it, if anything."""

    completion_id: str
    emoji: str
    reason: str = ""


@dataclass(frozen=True)
class Press:
    """A button under an answer: "approve"."""

    completion_id: str
    action: str


@dataclass(frozen=True)
class Command:
    """`/name argument`, perhaps said about one answer; `note_id` is the note that a number meant at first."""

    name: str
    argument: str = ""
    completion_id: str | None = None
    note_id: str = ""


FeedbackEvent = Reply | Edit | Reaction | Press | Command


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
