"""The way of Discord's events into the inbox: cut down, in order within a chat, and committed.

Commands, presses and forms get their first answer before they are committed, since Discord waits three seconds; where
that failed the person sees it and nothing is taken. A commit that fails for lack of room is tried again; more than
`MAX_OPEN` events at once are left to the history, and so is what comes after them until nothing is open: a newer
message that was taken would stand for all before it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from bot.channel import ChannelError, Take
from bot.platforms.discord.backfill import DiscordBackfill, snowflake
from bot.platforms.discord.chat_queues import ChatQueues, Work
from bot.platforms.discord.events import (
    CREATED,
    MALFORMED,
    REACTED,
    UPDATED,
    Json,
    emoji_key,
    emoji_of,
    interaction_row,
    mark_of,
    message_row,
    reaction_row,
    seen_row,
)
from bot.platforms.discord.gateway import DiscordGateway, Pace
from bot.platforms.discord.interactions import DiscordInteractions
from bot.platforms.discord.resume import ResumePoint
from bot.platforms.discord.seen import STARTED, Change, SeenUpdates, next_number, still_on
from storage.errors import StorageError
from storage.tables import Inbox

MAX_OPEN = 2000  # events
RETRY_S, RETRY_CAP_S = 0.5, 30.0
CLEARED = frozenset({"MESSAGE_REACTION_REMOVE_ALL", "MESSAGE_REACTION_REMOVE_EMOJI"})
CHANGES: dict[str, Change] = {event: change for change, event in REACTED.items()}  # type: ignore[misc]

logger = logging.getLogger(__name__)


class DiscordIntake:
    """The way in of one connection of a bot."""

    def __init__(self, taken: SeenUpdates, resume_point: ResumePoint, pace: Pace, clock: Callable[[], float]) -> None:
        self._taken = taken
        self._resume_point = resume_point
        self._pace = pace
        self._clock = clock
        self._take: Take | None = None
        self._chat_queues = ChatQueues(MAX_OPEN, self._on_idle)
        self._tasks: set[asyncio.Task[None]] = set()
        self._missed: set[str] = set()  # chats with events that are left to the history
        self._swept: asyncio.Future[None] | None = None
        self._is_open = True

    def attach(self, gateway: DiscordGateway, interactions: DiscordInteractions) -> None:
        """Set the source of events and the target of first answers."""
        self._gateway = gateway
        self._interactions = interactions
        self._backfill = DiscordBackfill(gateway.rest, self._taken, self.commit, self._server, self._clock)

    @property
    def is_idle(self) -> bool:
        """True if a session was looked into and nothing heard is on its way."""
        has_swept = self._swept is not None and self._swept.done()
        return has_swept and not self._tasks and self._chat_queues.is_idle

    async def open(self, take: Take) -> None:
        """Commit what comes through `take` from now on."""
        self._take = take

    async def close(self) -> None:
        """Take nothing new; what is under way is committed first."""
        self._is_open = False
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._pace.drain_s)
        await self._chat_queues.drain(self._pace.drain_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._resume_point.close()

    async def prepare(self, bot_id: str) -> None:
        """Before the first connection ever: note since when heed listens."""
        watermarks = await self._taken.watermarks(bot_id)
        if not watermarks.newest:
            now = snowflake(self._clock())
            await self.commit(seen_row(bot_id, f"{STARTED}{now}", f"{STARTED}{bot_id}"))

    def hear(self, event: str, data: Json) -> None:
        """Take one raw event of the gateway. Raises if it is malformed."""
        if not self._is_open:
            return
        if event == "READY":
            self._begin(str(data["user"]["id"]))
        elif event == "SERVERS_KNOWN":
            self._spawn(self._sweep())
        elif event == "RESUMED" and self._swept is None:  # an earlier heed's session
            self._begin(self._gateway.bot_id)
            self._spawn(self._sweep())
        elif event in (CREATED, UPDATED):
            self._message(event, data)
        elif event in CHANGES:
            self._reaction(CHANGES[event], data)
        elif event in CLEARED:
            self._submit(str(data["channel_id"]), lambda: self._clear(data))
        elif event == "INTERACTION_CREATE":
            self._resume_point.hold(self._spawn(self._interact(data)))

    async def commit(self, item: Inbox) -> bool:
        """Commit a row, waiting for room if there is none. Return False if it was known or can never be stored."""
        assert self._take is not None
        wait_s = RETRY_S
        while True:
            try:
                return await self._take(item)
            except StorageError as error:
                logger.warning("an event from Discord could not be stored: %s", type(error).__name__)
                if not error.retryable:
                    return False
            await asyncio.sleep(wait_s)
            wait_s = min(RETRY_CAP_S, 2 * wait_s)

    def _message(self, event: str, data: Json) -> None:
        item = message_row(event, data, self._gateway.bot_id)
        if item is not None:
            self._submit(item.chat_key, lambda: self._in_order(item))

    def _reaction(self, change: Change, data: Json) -> None:
        bot_id = self._gateway.bot_id
        author = data.get("message_author_id")
        is_bot = ((data.get("member") or {}).get("user") or {}).get("bot", False)
        is_about_heed = author is None or str(author) == bot_id
        if is_about_heed and not is_bot and str(data["user_id"]) != bot_id:
            reaction_row(change, data, bot_id, 0)  # a malformed one shows here, where it is counted
            self._submit(str(data["channel_id"]), lambda: self._react(change, data))

    async def _in_order(self, item: Inbox) -> None:
        is_known = await self._backfill.knows(item.chat_key)
        if is_known:
            await self._backfill.catch_up(item.chat_key)
        await self.commit(item)
        if not is_known:  # a new chat does not wait for its history
            await self._backfill.catch_up(item.chat_key)

    async def _react(self, change: Change, data: Json) -> None:
        await self._backfill.catch_up(str(data["channel_id"]))
        bot_id = self._gateway.bot_id
        states = await self._taken.reactions(bot_id, str(data["message_id"]))
        mark = mark_of(str(data["message_id"]), str(data["user_id"]))
        number = next_number(states.get((mark, emoji_key(data["emoji"]))), change)
        if number is not None:
            await self.commit(reaction_row(change, data, bot_id, number))

    async def _clear(self, data: Json) -> None:
        bot_id, only = self._gateway.bot_id, data.get("emoji")
        states = await self._taken.reactions(bot_id, str(data["message_id"]))
        for (_, key), state in still_on(states).items():
            if only is None or emoji_key(only) == key:
                lost = data | {"user_id": state.account, "emoji": emoji_of(key)}
                await self.commit(reaction_row("remove", lost, bot_id, state.number))

    async def _interact(self, data: Json) -> None:
        try:
            token = await self._interactions.begin(data)
            item = interaction_row(data, self._gateway.bot_id, token) if token else None
        except (ChannelError, TimeoutError) as error:
            logger.info("an interaction on Discord was not answered in time: %s", type(error).__name__)
            return
        except MALFORMED as error:
            logger.warning("an interaction on Discord could not be read: %s", type(error).__name__)
            return
        if item is None:
            return
        done = self._chat_queues.submit(item.chat_key, lambda: self._in_order(item))
        await (self.commit(item) if done is None else done)

    def _submit(self, chat: str, work: Work) -> None:
        done = None if self._missed else self._chat_queues.submit(chat, work)
        if done is None:
            self._missed.add(chat)
        else:
            self._resume_point.hold(done)

    def _begin(self, bot_id: str) -> None:
        """Look through the history of every chat; until that is done an earlier position is the one to go on from."""
        self._backfill.begin(bot_id)
        self._swept = asyncio.get_running_loop().create_future()
        self._resume_point.hold(self._swept)

    def _on_idle(self) -> None:
        if self._missed and self._is_open:
            missed, self._missed = self._missed, set()
            self._begin(self._gateway.bot_id)
            self._spawn(self._sweep(missed))

    async def _sweep(self, missed: Iterable[str] = ()) -> None:
        swept = self._swept
        await self._backfill.sweep(self._chat_queues, self._servers(), missed)
        if swept is not None and not swept.done():
            swept.set_result(None)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name="discord work")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _server(self, chat: str) -> str:
        """Return the server that a chat is on, empty for a private one and for one that this connection has not."""
        client = self._gateway.client
        channel = client.get_channel(int(chat)) if client is not None and chat.isdigit() else None
        guild = getattr(channel, "guild", None)
        return "" if guild is None else str(guild.id)

    def _servers(self) -> dict[str, int]:
        client = self._gateway.client
        if client is None:
            return {}
        servers = client.guilds
        channels = {str(c.id): c.last_message_id or 0 for server in servers for c in server.text_channels}
        return channels | {str(t.id): t.last_message_id or 0 for server in servers for t in server.threads}
