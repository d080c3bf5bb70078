"""A chat platform in memory, and a channel to it: what is posted, edited and pressed, and failures on order.

`FakePlatform` outlives channels, as a real one does. A test puts errors into `failures` and they are raised by the next
calls of that name; `lost` ones are raised after the platform has done what it was asked.
"""

import asyncio
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from aiohttp import web

from bot import events as arrivals
from bot.channel import File, Gone, Limits, NotOffered, Post, Rows, Take
from bot.events import Author, Inbound, Place
from storage.conversations.inbox import Kept
from storage.tables import Inbox

ANA = Author("telegram", "11", "Ana")
BEN = Author("telegram", "12", "Ben")
HOME = Place("telegram", "11")
GROUP = Place("telegram", "-77", is_private=False)


@dataclass
class Shown:
    """A message on the platform, with every text it has had."""

    place: Place
    message_id: str
    texts: list[str]
    rows: Rows = ()
    reply_to: str | None = None
    files: tuple[File, ...] = ()
    token: str = ""
    is_private: bool = False

    @property
    def text(self) -> str:
        """What it says now."""
        return self.texts[-1]


@dataclass
class FakePlatform:
    """Everything that was ever shown, in order."""

    messages: list[Shown] = field(default_factory=list)
    nonces: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)  # what, and in which place
    drafts: list[str] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)  # token, text
    failures: dict[str, list[Exception]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[str, list[Exception]] = field(default_factory=lambda: defaultdict(list))
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def texts(self, place: Place | None = None) -> list[str]:
        """What every message says now."""
        return [shown.text for shown in self.messages if place is None or shown.place == place]

    def message(self, message_id: str) -> Shown:
        """One message."""
        return next(shown for shown in self.messages if shown.message_id == message_id)


class FakeChannel:
    """A channel to a FakePlatform."""

    def __init__(
        self, shown: FakePlatform, *, platform: str = "telegram", limits: Limits | None = None, has_drafts: bool = False
    ) -> None:
        self.platform = self.name = platform
        self.heard = ("",)  # the servers that are heard, "" for private chats
        self.bot_id = "7"
        self.kept_keys = Kept()
        self.shown = shown
        self.limits = limits or Limits(4096, len, 0.0, 0.0, 100, calls_per_s=1e9)
        self.has_drafts = has_drafts
        self.take: Take | None = None
        self.events: list[str] = []
        self.state = "ok"

    def hears(self, server: str) -> bool:
        """True for what was put into `heard`."""
        return server in self.heard

    def routes(self) -> list[web.RouteDef]:
        """Return no routes."""
        return []

    async def start(self, take: Take) -> None:
        """Keep `take`."""
        self._fail("start", "")
        self.events.append("start")
        self.take = take

    async def stop(self) -> None:
        """Note it."""
        self.events.append("stop")

    async def close(self) -> None:
        """Note it."""
        self.events.append("close")

    def read(self, payload: dict[str, Any]) -> list[Inbound]:
        """The record that `update` put in."""
        if "kind" not in payload:
            return []
        values = dict(payload["values"])
        for name, kind in (("author", Author), ("place", Place), ("to", Place)):
            if name in values:
                values[name] = kind(**values[name])
        for name in ("added", "removed"):
            if name in values:
                values[name] = tuple(values[name])
        record: Inbound = getattr(arrivals, payload["kind"])(**values)
        return [record]

    def update(self, record: Inbound, update_id: str) -> Inbox:
        """The inbox row this platform would make of an update."""
        payload = {"kind": type(record).__name__, "values": asdict(record)}
        author = getattr(record, "author", None)
        return Inbox(
            platform=self.platform,
            bot_id=self.bot_id,
            update_id=update_id,
            account=author.account if author else "",
            chat_key=record.place.external_id,
            payload=payload,
        )

    async def post(self, post: Post) -> str:
        """Add a message; the same nonce adds none where this platform knows nonces."""
        self._fail("post", post.place.external_id)
        await asyncio.sleep(0)
        if self.limits.has_nonces and post.nonce in self.shown.nonces:
            return self.shown.nonces[post.nonce]
        message_id = str(1000 + len(self.shown.messages))
        fields = {"files": post.files, "token": post.token, "is_private": post.is_private}
        shown = Shown(post.place, message_id, [post.text], post.rows, post.reply_to, **fields)  # type: ignore[arg-type]
        self.shown.messages.append(shown)
        if post.nonce:
            self.shown.nonces[post.nonce] = message_id
        self._changed("post", post.place.external_id)
        return message_id

    async def edit(self, place: Place, message_id: str, text: str, rows: Rows = ()) -> None:
        """Change a message. Raises Gone if there is none."""
        self._fail("edit", place.external_id)
        await asyncio.sleep(0)
        message = next((shown for shown in self.shown.messages if shown.message_id == message_id), None)
        if message is None:
            raise Gone("there is no such message")
        message.texts.append(text)
        message.rows = rows
        self._changed("edit", place.external_id)

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Take the buttons off a message."""
        self._fail("take_buttons", place.external_id)
        self.shown.message(message_id).rows = ()
        self._changed("take_buttons", place.external_id)

    async def draft(self, place: Place, draft_id: int, text: str) -> None:
        """Keep the draft's text."""
        self._fail("draft", place.external_id)
        if not self.has_drafts:
            raise NotOffered("no drafts here")
        self.shown.drafts.append(text)

    async def typing(self, place: Place) -> None:
        """Note it."""
        self._fail("typing", place.external_id)

    async def acknowledge(self, token: str, text: str = "") -> None:
        """Keep the notice."""
        self._fail("acknowledge", "")
        self.shown.notices.append((token, text))
        self._changed("acknowledge", "")

    def health(self) -> str:
        """As set."""
        return self.state

    def _fail(self, name: str, place: str) -> None:
        self.shown.calls.append((name, place))
        if self.shown.failures[name]:
            raise self.shown.failures[name].pop(0)

    def _changed(self, name: str, place: str) -> None:
        self.shown.changed.set()
        if self.shown.lost[name]:
            raise self.shown.lost[name].pop(0)


def in_group(author: Author) -> Place:
    """The place of a group as `author` writes in it."""
    return replace(GROUP, platform=author.platform)
