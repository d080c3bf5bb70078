"""The contract between the core and a chat platform (`bot.platforms`).

A channel owns one bot on one platform. It commits every raw update through `take` before it acknowledges it, reads raw
updates back into `bot.events` records, and shows what it is told to show. It decides nothing.

ChannelError
├── SlowDown       the platform asks to wait `retry_after_s`
├── Unreachable    no answer, or the platform is down; `is_ambiguous`: it may have been done all the same
├── Refused        the platform does not take this (malformed, too old to edit); never try again
├── Gone           the place or message is no longer there, or the person blocked the bot
└── NotOffered     the platform has no such thing here
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bot.errors import BotError
from bot.events import Author, Inbound, Place
from storage.conversations.inbox import Kept
from storage.tables import Inbox

if TYPE_CHECKING:
    from aiohttp import web


class ChannelError(BotError):
    """A platform did not do what it was asked."""


class SlowDown(ChannelError):
    """Too much for the platform; `retry_after_s` as it says."""

    retryable = True

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unreachable(ChannelError):
    """No answer. `is_ambiguous` if the platform may have done it all the same."""

    retryable = True

    def __init__(self, message: str, *, is_ambiguous: bool) -> None:
        super().__init__(message)
        self.is_ambiguous = is_ambiguous


class Refused(ChannelError):
    """The platform does not take this."""


class Gone(ChannelError):
    """No one is there any more."""


class NotOffered(ChannelError):
    """The platform has no such thing here."""


@dataclass(frozen=True)
class Button:
    """A button under a message. `action` is at most 48 ASCII characters and survives a restart."""

    label: str
    action: str


Rows = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True)
class File:
    """Something to attach."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Post:
    """One message to show. `nonce` (at most 25 characters) lets a platform that can tell a repetition.

    `token` answers an interaction; `is_private` shows it to the asker alone if the platform can; `wants_reply` asks
    for words, which come back as Said in reply to it, from the person `asked` where others read along. `newer_than`:
    a message that is known to be there before it.
    """

    place: Place
    text: str
    rows: Rows = ()
    reply_to: str | None = None
    nonce: str = ""
    files: tuple[File, ...] = ()
    token: str = ""
    is_private: bool = False
    wants_reply: bool = False
    asked: Author | None = None
    newer_than: str = ""
    number: int = 0  # of the parts of a text that is too long for one message


@dataclass(frozen=True)
class Limits:
    """The limits of a platform. `measure` counts a text in the platform's own units."""

    text_units: int
    measure: Callable[[str], int]
    edit_interval_s: float  # between two edits in one place
    post_interval_s: float  # between two posts in one place, on average
    burst: int  # posts that may go at once
    has_edits_forever: bool = True
    group_interval_s: float = 0.0  # as post_interval_s, in places with other readers; 0: the same as in private
    calls_per_s: float = 30.0  # posts and edits over all places
    has_nonces: bool = False  # a post with a nonce seen before is not shown again; else a chat's message ids count up


Take = Callable[[Inbox], Awaitable[bool]]
"""Commits one raw update. False if it was known. Durable on return."""


class Channel(Protocol):
    """One bot on one platform."""

    @property
    def platform(self) -> str:
        """Its name: "telegram", "discord"."""

    @property
    def name(self) -> str:
        """The name of this connection: the platform's, or "discord/2" where several share it."""

    @property
    def bot_id(self) -> str:
        """The bot's own account."""

    @property
    def limits(self) -> Limits:
        """The limits of the platform."""

    @property
    def kept_keys(self) -> Kept:
        """Keys of updates that it reads again, however old they are."""

    def hears(self, server: str) -> bool:
        """Return True if what happens on a server of the platform comes here; "" stands for private chats."""

    def routes(self) -> list["web.RouteDef"]:
        """Return the HTTP routes the platform calls (webhooks); each checks its callers itself."""

    async def start(self, take: Take) -> None:
        """Check the token, set the commands if they changed, and begin to take updates. Raises StartError."""

    async def stop(self) -> None:
        """Take nothing new and close connections; posting still works until `close`."""

    async def close(self) -> None:
        """Close what posting needs."""

    def read(self, payload: dict[str, Any]) -> list[Inbound]:
        """Return what a raw update says; empty if heed has no use for it. Pure; never raises on a malformed one."""

    async def post(self, post: Post) -> str:
        """Show a message; its id."""

    async def edit(self, place: Place, message_id: str, text: str, rows: Rows = ()) -> None:
        """Change a message heed posted; "not modified" is success."""

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Take the buttons off a message heed posted; that there are none is success."""

    async def draft(self, place: Place, draft_id: int, text: str) -> None:
        """Show a text that is still being written. Raises NotOffered."""

    async def typing(self, place: Place) -> None:
        """Show that an answer is being written, for the next few seconds."""

    async def acknowledge(self, token: str, text: str = "") -> None:
        """Answer a press, with a short notice if there is one. Too late is success."""

    def health(self) -> str:
        """ "ok", or what is wrong in a few words."""


@dataclass(frozen=True)
class CommandMenu:
    """One command as a platform's menu shows it. `argument_hint` is empty if it takes none."""

    name: str
    summary: str
    argument_hint: str = ""
    is_admin: bool = False
    is_private: bool = False
    choices: tuple[str, ...] = ()
