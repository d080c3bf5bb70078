"""A Telegram channel on a Bot API server, with an inbox that remembers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bot.channel import Channel
from bot.config import TelegramSettings
from bot.events import Inbound, Place
from bot.platforms.telegram.channel import TelegramChannel
from bot.platforms.telegram.client import PollClient
from storage.tables import Inbox
from tests.contract.telegram_server import Json, TelegramServer
from tests.patience import PATIENCE_S

SECRET = "a-long-secret-of-the-webhook"
WEBHOOK = "https://heed.example/telegram/updates"


class Taken:
    """An inbox in memory: an update is new once."""

    def __init__(self) -> None:
        self.rows: list[Inbox] = []
        self.num_calls = 0
        self.problem: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self._changed = asyncio.Condition()

    async def take(self, row: Inbox) -> bool:
        """Commit an update."""
        self.num_calls += 1
        async with self._changed:
            self._changed.notify_all()
        await self.gate.wait()
        is_new = False
        if self.problem is None:
            is_new = row.update_id not in [known.update_id for known in self.rows]
            self.rows += [row] * is_new
        async with self._changed:
            self._changed.notify_all()
        if self.problem is not None:
            raise self.problem
        return is_new

    async def until(self, is_true: Callable[[], Any]) -> None:
        """Wait until something holds; it is looked at after every update."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: bool(is_true()))

    async def first(self, count: int) -> list[Inbox]:
        """The first rows, once there are as many."""
        await self.until(lambda: len(self.rows) >= count)
        return self.rows[:count]

    @property
    def texts(self) -> list[str]:
        """The texts of the messages that were taken."""
        return [row.payload["message"]["text"] for row in self.rows]


def settings(server: TelegramServer, **options: Any) -> TelegramSettings:
    """Settings for the bot of a server."""
    return TelegramSettings.model_validate({"token": server.token, "api_base": server.url, **options})


def place(chat: Json, thread: int | None = None) -> Place:
    """The core's name for a chat."""
    external_id = f"{chat['id']}/{thread}" if thread else str(chat["id"])
    return Place("telegram", external_id, is_private=chat["type"] == "private")


@asynccontextmanager
async def started(
    server: TelegramServer, taken: Taken | None = None, *, webhook: bool = False, **options: Any
) -> AsyncIterator[TelegramChannel]:
    """A channel that takes updates, and is closed at the end."""
    extra = {"webhook_url": WEBHOOK, "webhook_secret": SECRET} if webhook else {}
    chosen = settings(server, **extra)
    options.setdefault("connect", lambda: PollClient(chosen, timeout_s=5))
    channel = TelegramChannel(chosen, options.pop("commands", ()), **options)
    _: Channel = channel  # it is one: mypy checks it
    await channel.start((taken or Taken()).take)
    try:
        yield channel
    finally:
        await channel.stop()
        await channel.close()


async def heard(server: TelegramServer, taken: Taken, channel: TelegramChannel) -> list[Inbound]:
    """What everything that waits on the server says, in order."""
    await server.until(lambda: server.num_pending == 0)
    return [record for row in taken.rows for record in channel.read(row.payload)]
