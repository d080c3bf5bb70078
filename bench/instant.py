"""Both ends of heed while its own share is measured: an engine and a chat platform that take no time."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from aiohttp import web

from bot.channel import Limits, NotOffered, Post, Rows, SlowDown, Take
from bot.events import Author, Inbound, MessageReceived, Place
from engine.requests import ChatMessage, Delta, GenerateRequest, GenerateResult, ModelLearning, Sampling
from storage.conversations.inbox import Kept
from storage.tables import Completion, Feedback, Inbox

PLATFORM = "telegram"
ANSWER = ("An answer", " of a few", " words.")
RETRY_AFTER_S = 60.0


class InstantEngine:
    """Answers at once, and notes when it was asked."""

    def __init__(self) -> None:
        self.is_ready = True
        self.sampling = Sampling()
        self.asked_s: dict[str, float] = {}  # the newest message -> when its first token was asked for

    def teacher_view(self, given: Feedback, answer: Completion, standing: Sequence[str]) -> list[ChatMessage]:
        """Return the conversation with the feedback behind it."""
        return [*answer.messages, {"role": "user", "content": " ".join([given.text, *standing])}]

    @property
    def learning(self) -> ModelLearning:
        """Nothing: no model is behind it."""
        return ModelLearning("")

    def health(self) -> dict[str, str]:
        """All well."""
        return {"model": "ok"}

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Delta]:
        """Three pieces and a result."""
        self.asked_s[request.messages[-1]["content"]] = time.perf_counter()
        ids = list(range(len(ANSWER)))
        result = GenerateResult(
            "".join(ANSWER), request.messages, [], ids, ids, [-0.1] * len(ids), 0,
            asdict(request.sampling), "stop", 0, 0.0, 0.0,
        )  # fmt: skip
        for number, piece in enumerate(ANSWER):
            yield Delta(piece, [number], [-0.1], None, result if number == len(ANSWER) - 1 else None)


@dataclass
class InstantChannel:
    """A platform without limits, but for the account that is told to slow down at each post and edit.

    `shown` counts final texts, `shown_s` has the moment of the newest of each account.
    """

    limits: Limits = field(default_factory=lambda: Limits(4096, len, 0.0, 0.0, 100, calls_per_s=1e9))
    platform: str = PLATFORM
    name: str = PLATFORM
    bot_id: str = "1"
    kept_keys: Kept = field(default_factory=Kept)
    slow_account: str = ""
    shown: int = 0
    shown_s: dict[str, float] = field(default_factory=dict)
    _has_shown: asyncio.Event = field(default_factory=asyncio.Event)

    def hears(self, server: str) -> bool:
        """Hear everything: it has no servers."""
        return True

    def routes(self) -> list[web.RouteDef]:
        """Return no routes."""
        return []

    async def start(self, take: Take) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    async def close(self) -> None:
        """Nothing to close."""

    def read(self, payload: dict[str, Any]) -> list[Inbound]:
        """Return a message."""
        account = payload["account"]
        return [MessageReceived(Author(PLATFORM, account), Place(PLATFORM, account), payload["id"], payload["text"])]

    async def post(self, post: Post) -> str:
        """Show it."""
        self._show(post.place, post.text)
        return str(time.monotonic_ns())

    async def edit(self, place: Place, message_id: str, text: str, rows: Rows = ()) -> None:
        """Show it."""
        self._show(place, text)

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Do nothing: no one looks."""

    async def draft(self, place: Place, draft_id: int, text: str) -> None:
        """No drafts."""
        raise NotOffered("no drafts here")

    async def typing(self, place: Place) -> None:
        """Do nothing: no one looks."""

    async def acknowledge(self, token: str, text: str = "") -> None:
        """Do nothing: no one looks."""

    def health(self) -> str:
        """All well."""
        return "ok"

    async def until_shown(self, wanted: int) -> None:
        """Return when this many final texts have been shown."""
        while self.shown < wanted:
            await self._next()

    async def until_shown_to(self, accounts: Iterable[str]) -> None:
        """Return when each of them has a moment in `shown_s`."""
        for account in accounts:
            while account not in self.shown_s:
                await self._next()

    async def _next(self) -> None:
        self._has_shown.clear()
        await self._has_shown.wait()

    def _show(self, place: Place, text: str) -> None:
        if place.external_id == self.slow_account:
            raise SlowDown("too much here", RETRY_AFTER_S)
        if text == "".join(ANSWER):
            self.shown += 1
            self.shown_s[place.external_id] = time.perf_counter()
            self._has_shown.set()


def update(account: int, number: int) -> Inbox:
    """Return a message a person sends; its text names it."""
    text = f"{account}-{number}"
    return Inbox(
        platform=PLATFORM,
        bot_id="1",
        update_id=text,
        account=str(account),
        chat_key=str(account),
        payload={"account": str(account), "id": text, "text": text},
    )
