"""heed on Discord: one bot, through discord.py, as a channel the core can use.

Takes messages, edits, reactions, commands, presses and forms; shows messages, buttons, forms and files. Owns the order
of starting and stopping; what the parts do is in the `discord_*` modules beside this one. Decides nothing.
"""

import base64
import binascii
import contextlib
import time
from collections.abc import Callable, Sequence

from aiohttp import web
from discord.http import Route

from bot.channel import CommandMenu, Gone, NotOffered, Post, Rows, Take
from bot.config import DiscordSettings
from bot.errors import StartError
from bot.events import Inbound, Place
from bot.monitoring.redaction import hide
from bot.platforms.discord.commands import CommandSync
from bot.platforms.discord.events import PLATFORM, Json
from bot.platforms.discord.gateway import LIVE, DiscordGateway, Pace
from bot.platforms.discord.intake import DiscordIntake
from bot.platforms.discord.interactions import DiscordInteractions
from bot.platforms.discord.messages import LIMITS, DiscordMessages
from bot.platforms.discord.reader import read
from bot.platforms.discord.resume import ResumePoint
from bot.platforms.discord.seen import KEPT, SeenUpdates
from bot.platforms.discord.shard import Shard
from storage.database import Database


class DiscordChannel:
    """One connection of a bot on Discord."""

    platform = PLATFORM
    limits = LIMITS
    kept_keys = KEPT

    def __init__(
        self,
        settings: DiscordSettings,
        commands: Sequence[CommandMenu],
        database: Database,
        *,
        shard: Shard | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        pace = pace or Pace()
        self._shard = shard or Shard()
        self._token = settings.token.get_secret_value() if settings.token else ""
        self._api_base = settings.api_base.rstrip("/")
        resume_point = ResumePoint(database, self._shard)
        self._intake = DiscordIntake(SeenUpdates(database, self._shard), resume_point, pace, clock)
        self._gateway = DiscordGateway(self._token, self._hear, self._intake.prepare, resume_point, self._shard, pace)
        self._messages = DiscordMessages(self._gateway.rest)
        self._interactions = DiscordInteractions(self._gateway.rest, self._messages, commands, pace.first_answer_s)
        self._sync = CommandSync(self._gateway.rest, commands)
        self._intake.attach(self._gateway, self._interactions)

    @property
    def name(self) -> str:
        """The name of this connection, which may be one of several."""
        return self._shard.name

    def hears(self, server: str) -> bool:
        """Return True for a server whose events come here; "" stands for private chats."""
        return self._shard.hears(server)

    @property
    def bot_id(self) -> str:
        """The bot's own account; before the first connection as its token says."""
        return self._gateway.bot_id or account_in(self._token)

    @property
    def reconnects(self) -> int:
        """How often the connection was lost."""
        return self._gateway.reconnects

    @property
    def heartbeat_age_s(self) -> float | None:
        """Seconds since Discord last acknowledged a heartbeat, None without a connection."""
        return self._gateway.heartbeat_age_s

    async def start(self, take: Take) -> None:
        """Check the token and the intents, and begin to take events. Raises StartError."""
        if not self._token:
            raise StartError("Discord: There is no token. Set DISCORD_BOT_TOKEN.")
        hide(self._token)
        Route.BASE = self._api_base
        await self._intake.open(take)
        await self._gateway.start()

    def routes(self) -> list[web.RouteDef]:
        """Return no routes: Discord is listened to, it does not call."""
        return []

    async def stop(self) -> None:
        """Take nothing new; what was heard is committed, and messages can still be sent."""
        await self._gateway.stop()
        await self._sync.stop()
        await self._intake.close()

    async def close(self) -> None:
        """Close everything."""
        await self._gateway.close()

    def read(self, payload: Json) -> list[Inbound]:
        """Return what a stored event says."""
        return read(payload)

    async def post(self, post: Post) -> str:
        """Show a message; its id. Raises ChannelError."""
        return await (self._interactions.answer(post) if post.token else self._messages.send(post))

    async def edit(self, place: Place, message_id: str, text: str, rows: Rows = ()) -> None:
        """Change a message of heed's. Raises ChannelError."""
        await self._messages.edit(place, message_id, text, rows)

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Take the buttons off a message of heed's. Raises ChannelError."""
        await self._messages.take_buttons(place, message_id)

    async def draft(self, place: Place, draft_id: int, text: str) -> None:
        """Discord has no drafts. Raises NotOffered."""
        raise NotOffered("Discord has no drafts")

    async def typing(self, place: Place) -> None:
        """Show for ten seconds that an answer is being written. Raises ChannelError."""
        await self._messages.typing(place)

    async def acknowledge(self, token: str, text: str = "") -> None:
        """End a press or a command; one that ran out is ended. Raises ChannelError."""
        with contextlib.suppress(Gone):
            await self._interactions.acknowledge(token, text)

    def health(self) -> str:
        """ "ok", or what is wrong."""
        return self._gateway.health()

    def _hear(self, event: str, data: Json) -> None:
        if event in LIVE and self._shard.is_first and self._gateway.client is not None:
            self._sync.begin(str(self._gateway.client.application_id))
        self._intake.hear(event, data)


def account_in(token: str) -> str:
    """Return the account that a bot token begins with, empty if it does not."""
    first = token.partition(".")[0]
    with contextlib.suppress(binascii.Error, ValueError):
        account = base64.b64decode(first + "=" * (-len(first) % 4), validate=True).decode("ascii")
        return account if account.isdigit() else ""
    return ""
