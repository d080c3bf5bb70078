"""discord.py's client as heed uses it: small caches, no pings, and every raw event handed over before it is parsed.

What discord.py cannot parse is counted and left out; the connection and what comes after it go on.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import discord
from discord.state import ConnectionState

from bot.platforms.discord.events import Json
from bot.platforms.discord.rest import LONGEST_WAIT_S
from bot.platforms.discord.shard import Shard

MAX_MESSAGES = 100  # cached by discord.py; heed has its own store
TURNS = 8  # of connections that begin together: Discord takes one at a time, and closes one that waits for long
NEEDED = frozenset({"READY"})  # without it there is no session, so what fails here fails the connection

Listener = Callable[[str, Json], None]

logger = logging.getLogger(__name__)


class RawEventClient(discord.Client):
    """One bot's client. `listener` gets every raw event and must not block."""

    def __init__(self, listener: Listener, shard: Shard, *, guild_wait_s: float, identify_pause_s: float) -> None:
        self._listener = listener
        self._identify_pause_s = identify_pause_s
        self.num_malformed = 0
        _mute()
        super().__init__(
            shard_id=shard.number,
            shard_count=shard.count,
            intents=intents(),
            max_messages=MAX_MESSAGES,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            allowed_mentions=discord.AllowedMentions.none(),
            guild_ready_timeout=guild_wait_s,
        )
        self.http.max_ratelimit_timeout = LONGEST_WAIT_S  # the constructor allows 30 s at least

    def _get_state(self, **options: Any) -> ConnectionState[Any]:
        state = super()._get_state(**options)
        state.parsers = {event: self._guarded(event, parse) for event, parse in state.parsers.items()}
        return state

    def _guarded(self, event: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
        def receive(data: Any) -> None:
            self._try(event, self._listener, event, data)
            self._try(event, parse, data)

        return receive

    def _try(self, event: str, step: Callable[..., None], *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as error:  # noqa: BLE001 - the edge: whatever Discord sends, the connection goes on
            self._skip(event, error)

    def _skip(self, event: str, error: Exception) -> None:
        if event in NEEDED:
            raise error
        self.num_malformed += 1
        logger.warning("a %s from Discord could not be read: %s", event, type(error).__name__)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait before a new session replaces one, as Discord asks, and for the turn of this one among several."""
        turn = (shard_id or 0) % TURNS + (not initial)
        await asyncio.sleep(turn * self._identify_pause_s)

    async def close(self) -> None:
        """Close the connection; discord.py would go on waiting for servers."""
        waiting = self._connection._ready_task
        if waiting is not None:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await super().close()

    async def on_ready(self) -> None:
        """Note that the servers are known."""
        self._listener("SERVERS_KNOWN", {})


def intents() -> discord.Intents:
    """Return what heed wants to hear of: messages and their text, reactions, and which servers there are."""
    wanted = discord.Intents.none()
    wanted.guilds = wanted.messages = wanted.message_content = wanted.reactions = True
    return wanted


def _mute() -> None:
    # At DEBUG these write message texts and interaction tokens.
    for name in ("discord.http", "discord.gateway", "discord.client", "discord.webhook.async_"):
        log = logging.getLogger(name)
        log.setLevel(max(log.level, logging.WARNING))
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
