"""What a platform hands to the core, and nothing about how platforms look.

Frozen records only: an adapter (HTTP, terminal, a chat platform) makes one of these from its own update,
and `bot.core.feedback`, `bot.commands.person` and `bot.core.gateway` take it from there. Ids are the platform's own
strings.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Author:
    """Who sent it: an account on a platform. Of a name only what can be seen is kept, 64 characters at most."""

    platform: str
    account: str
    display_name: str = ""
    is_admin: bool | None = None  # what the caller's API key says of it; None: nothing

    def __post_init__(self) -> None:
        # Names come from strangers: no line breaks, no bidi controls, nothing that storage cannot hold.
        seen = "".join(char for char in self.display_name if char.isprintable())
        object.__setattr__(self, "display_name", seen.strip()[:64])


@dataclass(frozen=True)
class Place:
    """The conversation it was sent in, by the platform's own id; in private, nobody else reads along."""

    platform: str
    external_id: str
    is_private: bool = True


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
    """`/name argument`, perhaps said about one answer."""

    name: str
    argument: str = ""
    completion_id: str | None = None


FeedbackEvent = Reply | Edit | Reaction | Press | Command
