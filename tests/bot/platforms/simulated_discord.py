"""heed's Discord channel on simcord: discord.py's own machinery over a Discord in memory, without a socket.

simcord knows what people can do (press only buttons that are there, see only what is theirs, call only commands that
are set) and refuses what Discord would refuse. What is below it, the raw connection, is for tests/contract.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

from simcord import Env

from bot.platforms.discord.client import RawEventClient
from bot.platforms.discord.gateway import DiscordGateway
from bot.platforms.discord.resume import Position
from tests.patience import PATIENCE_S

API_BASE = "https://discord.com/api/v10"  # simcord takes calls by their path below this, and none goes out


class SimulatedGateway(DiscordGateway):
    """heed's connection with simcord where the socket would be."""

    async def start(self) -> None:
        """Log in and become ready."""
        self.client = RawEventClient(self._hear, self._shard, guild_wait_s=0.0, identify_pause_s=0.0)
        self.client.setup_hook = self._logged_in  # type: ignore[method-assign]
        self.env = Env(self.client)
        self.bot_id = str(self.env.backend.bot_user.id)
        await self._prepare(self.bot_id)
        await self.env.start()

    async def close(self) -> None:
        """Close everything; raises what discord.py met in between."""
        await super().close()
        await self.env.shutdown()
        self.env.raise_errors()

    @property
    def heartbeat_age_s(self) -> float:
        """There is no heart to beat."""
        return 0.0

    async def _logged_in(self) -> None:
        assert self.client is not None
        self.rest.http = self.client.http

    def _hear(self, event: str, data: dict[str, Any]) -> None:
        # In a context of its own: what runs in simcord's has simulated clocks, and nobody moves them on.
        Context().run(super()._hear, event, data)

    def _here(self) -> Position:
        return Position()


class NoServer:
    """Stands where the tests on sockets have their server."""

    api_base = API_BASE
    last_sequence = 0  # events are handed over at once

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():  # noqa: ASYNC110 - what is waited for belongs to others
                await asyncio.sleep(0.005)
