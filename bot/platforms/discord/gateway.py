"""The connection to Discord, kept up: log in, connect, resume after a loss, and start anew if that fails.

Owns the client and the socket. A refused token or a switched-off intent ends this platform, with the reason in
`health`; everything else is tried again with back-off, as sessions a day are counted and too many cost the token.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from bot.channel import ChannelError
from bot.errors import StartError
from bot.platforms.discord.client import Listener, RawEventClient
from bot.platforms.discord.rest import DiscordRest
from bot.platforms.discord.resume import Position, ResumePoint
from bot.platforms.discord.shard import Shard

REFUSED = (
    "Discord refuses the token. Make a new one in the developer portal (your application, Bot, Reset Token) "
    "and set DISCORD_BOT_TOKEN."
)
NO_CONTENT = (
    "The Message Content Intent is off. Switch it on in the developer portal (your application, Bot, "
    "Privileged Gateway Intents, Message Content Intent), then start heed again."
)
FATAL = {
    4004: REFUSED,
    4010: "Discord does not take this connection (invalid shard). Check discord.shards.",
    4011: "This bot is on so many servers that Discord wants several (sharding): set discord.shards.",
    4012: "Discord no longer speaks this version of its protocol. Update heed.",
    4013: "Discord does not know one of the intents heed asks for. Update heed.",
    4014: NO_CONTENT,
}
STEADY = 5.0  # times the shortest back-off: a connection that held so long starts the back-off anew
LIVE = frozenset({"READY", "RESUMED"})
RESUMABLE = 4000  # with 1000 or 1001 Discord would end the session

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """How long the connection waits, in seconds."""

    call_s: float = 20.0
    first_answer_s: float = 10.0  # for Discord's word on one: it takes none after three seconds, and may say so later
    start_s: float = 15.0
    identify_s: float = 5.0
    guilds_s: float = 2.0
    connect_s: float = 60.0
    backoff_s: float = 1.0
    backoff_cap_s: float = 60.0
    drain_s: float = 2.0
    stale_s: float = 90.0  # without an acknowledged heartbeat; Discord acknowledges one about every 41 s


class Ended(Exception):
    """This platform is over; the message is the reason and the remedy."""


class DiscordGateway:
    """One supervised connection."""

    def __init__(
        self,
        token: str,
        listener: Listener,
        prepare: Callable[[str], Awaitable[None]],
        resume_point: ResumePoint,
        shard: Shard,
        pace: Pace,
    ) -> None:
        self.reconnects = 0
        self.bot_id = ""
        self.client: RawEventClient | None = None
        self.rest = DiscordRest(pace.call_s, lambda: self._end(REFUSED))
        self._token = token
        self._listener = listener
        self._prepare = prepare
        self._resume_point = resume_point
        self._shard = shard
        self._pace = pace
        self._position = Position()
        self._failures = 0
        self._is_live = False
        self._live_since_s = 0.0
        self._reason = "connecting"
        self._ended = ""
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect; goes on trying in the background if Discord does not answer. Raises StartError."""
        self._task = asyncio.create_task(self._supervise(), name="discord gateway")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pace.start_s):
                await self._settled.wait()
        if self._ended:
            await self.close()
            raise StartError(f"Discord: {self._ended}")

    async def stop(self) -> None:
        """Close the connection, so that the next heed can resume it; calls still work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._hang_up()

    async def close(self) -> None:
        """Close everything."""
        await self.stop()
        self.rest.http = None
        if self.client is not None:
            await self.client.close()

    @property
    def heartbeat_age_s(self) -> float | None:
        """Seconds since Discord last acknowledged a heartbeat, None without a connection."""
        keep_alive = getattr(self.client and self.client.ws, "_keep_alive", None)
        return None if keep_alive is None else time.perf_counter() - keep_alive._last_ack

    def health(self) -> str:
        """ "ok", or what is wrong."""
        if self._ended or not self._is_live:
            return self._ended or f"{self._reason}, {self.reconnects} reconnects"
        age_s = self.heartbeat_age_s
        if age_s is not None and age_s <= self._pace.stale_s:
            return "ok"
        return f"no heartbeat for {age_s or self._pace.stale_s:.0f} s, {self.reconnects} reconnects"

    def _hear(self, event: str, data: dict[str, Any]) -> None:
        if event in LIVE:
            self._is_live, self._live_since_s = True, time.monotonic()
            self._settled.set()
        self._resume_point.hear(self._here())
        self._listener(event, data)

    async def _supervise(self) -> None:
        try:
            while not self._ended:
                await self._once()
        finally:
            await self._hang_up()

    async def _once(self) -> None:
        try:
            await self._connect()
        except ReconnectWebSocket as error:
            self._remember(can_resume=error.resume)
            self._reason = "reconnecting"
        except Ended as error:
            self._end(str(error))
        except Exception as error:  # noqa: BLE001 - the edge: whatever Discord sends, the process goes on
            self._remember(can_resume=True)
            self._reason = f"reconnecting after {type(error).__name__}"
            logger.warning("the connection to Discord broke: %s", type(error).__name__)
        await self._pause()

    async def _pause(self) -> None:
        was_steady = self._is_live and time.monotonic() - self._live_since_s > STEADY * self._pace.backoff_s
        self._is_live = False
        if self._ended:
            return
        await self._hang_up()
        self.reconnects += 1
        self._failures = 0 if was_steady else self._failures
        if self._failures:
            longest_s = min(self._pace.backoff_cap_s, self._pace.backoff_s * 2 ** min(self._failures, 10))
            await asyncio.sleep(longest_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads reconnects, nothing secret
        self._failures += 1

    async def _connect(self) -> None:
        client = self.client or await self._log_in()
        last = self._position
        url = yarl.URL(last.url) if last.can_resume else await self._gateway_url()
        try:
            opening = DiscordWebSocket.from_client(
                client,
                initial=self.reconnects == 0,
                gateway=url,
                shard_id=self._shard.number,
                session=last.session_id or None,
                sequence=last.sequence or None,
                resume=last.can_resume,
            )
            async with asyncio.timeout(self._pace.connect_s):
                client.ws = await opening
            while True:
                await client.ws.poll_event()
        except discord.ConnectionClosed as error:
            if error.code in FATAL:
                raise Ended(FATAL[error.code]) from None
            raise

    async def _log_in(self) -> RawEventClient:
        pace = self._pace
        client = RawEventClient(self._hear, self._shard, guild_wait_s=pace.guilds_s, identify_pause_s=pace.identify_s)
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(client.http.close)
            try:
                async with asyncio.timeout(pace.connect_s):
                    await client.login(self._token)
            except discord.LoginFailure:
                raise Ended(REFUSED) from None
            assert client.user is not None  # logged in
            self.bot_id = str(client.user.id)
            await self._prepare(self.bot_id)
            self._position = await self._resume_point.recall(self.bot_id)
            undo.pop_all()
        self.client, self.rest.http = client, client.http
        return client

    async def _gateway_url(self) -> yarl.URL:
        answer = await self.rest.call("GET", "/gateway/bot")
        limit = answer.get("session_start_limit") or {}
        if limit.get("remaining", 1) < 1:
            self._reason = "Discord takes no new session today; heed waits until it does"
            await asyncio.sleep(float(limit.get("reset_after", 0)) / 1000)
        return yarl.URL(answer["url"])

    def _remember(self, *, can_resume: bool) -> None:
        here = self._here()
        if can_resume and self._is_live and here.can_resume:
            self._position = here
        elif not can_resume or self._failures > 3:
            self._position = Position()

    def _here(self) -> Position:
        ws = self.client.ws if self.client is not None else None
        return Position() if ws is None else Position(ws.session_id or "", ws.sequence or 0, str(ws.gateway))

    async def _hang_up(self) -> None:
        if self.client is not None and self.client.ws is not None:
            with contextlib.suppress(aiohttp.ClientError, OSError, RuntimeError, ChannelError):
                async with asyncio.timeout(self._pace.drain_s):
                    await self.client.ws.close(RESUMABLE)

    def _end(self, reason: str) -> None:
        if not self._ended:
            logger.error("Discord: %s", reason)
        self._ended, self._is_live = reason, False
        self._settled.set()
        if self._task is not None and asyncio.current_task() is not self._task:
            self._task.cancel()
