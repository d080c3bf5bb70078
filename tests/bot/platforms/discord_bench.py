"""A Discord channel against the Discord server, with a real database behind it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bot.channel import CommandMenu
from bot.config import DiscordSettings
from bot.events import Inbound
from bot.platforms.discord.channel import DiscordChannel
from bot.platforms.discord.gateway import Pace
from storage.conversations import inbox
from storage.database import Database
from storage.tables import Inbox
from tests.contract.discord_server import DiscordServer
from tests.contract.discord_world import TOKEN
from tests.patience import PATIENCE_S

MENUS = (
    CommandMenu("help", "what heed can do"),
    CommandMenu("learning", "learn from me", "on or off", choices=("on", "off")),
    CommandMenu("privacy", "what heed keeps", is_private=True),
    CommandMenu("stats", "figures of all", is_admin=True),
)
PACE = Pace(  # calls have the whole patience: on a machine that stalls for seconds none of them has failed
    call_s=PATIENCE_S,
    first_answer_s=PATIENCE_S,
    start_s=PATIENCE_S,
    identify_s=0.01,
    guilds_s=0.05,
    backoff_s=0.01,
    backoff_cap_s=0.1,
)
HASTE = replace(PACE, call_s=2.0)  # for a server that does not answer


class Bench:
    """One running channel, restarted as often as a test likes, and what it took."""

    def __init__(self, data_dir: Path, pace: Pace) -> None:
        self.server = DiscordServer()
        self.database = Database.open(data_dir)
        self.pace = pace
        self.taken: list[Inbox] = []
        self.offered: list[str] = []  # update ids, also those known before
        self.channel = self.new_channel()

    def new_channel(self, *, token: str = TOKEN, **options: Any) -> DiscordChannel:
        settings = DiscordSettings(token=SecretStr(token) if token else None, api_base=self.server.api_base)
        return DiscordChannel(settings, MENUS, self.database, pace=self.pace, **options)

    async def take(self, row: Inbox) -> bool:
        stored, is_new = await self.database.write(lambda s: inbox.add(s, row))
        self.offered.append(row.update_id)
        if is_new:
            self.taken.append(stored)
        return is_new

    async def start(self, **options: Any) -> DiscordChannel:
        self.channel = self.new_channel(**options)
        await self.channel.start(self.take)
        return self.channel

    async def restart(self, meanwhile: Callable[[], Any] | None = None, **options: Any) -> DiscordChannel:
        """Die without a word, let things happen that nobody hears, and come back."""
        await self.channel.close()
        self.server.sockets.forget()
        if meanwhile is not None:
            await meanwhile()
        return await self.start(**options)

    @property
    def keys(self) -> list[str]:
        """The update ids that were taken, without those that say only since when."""
        return [row.update_id for row in self.taken if not row.update_id.startswith("s:")]

    @property
    def said(self) -> list[Inbound]:
        """Everything that was taken, read."""
        return list(self._read())

    def _read(self) -> Iterator[Inbound]:
        for row in self.taken:
            yield from self.channel.read(row.payload)

    async def until(self, is_so: Callable[[], object]) -> None:
        await self.server.until(is_so)

    async def settled(self) -> None:
        """Wait until the history was looked through and everything heard is committed."""
        inbox = self.channel._intake
        await self.until(lambda: inbox.is_idle)

    async def resumable(self) -> None:
        """Wait until the next heed can go on where this one is."""
        resume_point = self.channel._intake._resume_point
        await self.until(lambda: resume_point._heard.can_resume and resume_point._kept == resume_point._heard)


@asynccontextmanager
async def bench(data_dir: Path, pace: Pace = PACE, *, is_started: bool = True) -> AsyncIterator[Bench]:
    """A bench that is cleaned up."""
    table = Bench(data_dir, pace)
    await table.server.start()
    try:
        if is_started:
            await table.start()
        yield table
    finally:
        await table.channel.stop()
        await table.channel.close()
        await table.server.stop()
        await table.database.close()
