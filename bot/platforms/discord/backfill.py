"""Messages and reactions that Discord sent while heed was not connected, found in the history of each chat.

After every new session each known chat is looked through once, before anything newer of that chat is taken, so the
order holds. Messages, edits and reactions found go the way of live ones and under the same keys: finding them again
changes nothing. What is older than a day is left alone; interactions are in no history.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial

from bot.channel import ChannelError, Gone, Refused
from bot.platforms.discord.chat_queues import ChatQueues
from bot.platforms.discord.events import (
    CREATED,
    MALFORMED,
    UPDATED,
    Json,
    emoji_key,
    emoji_of,
    mark_of,
    message_row,
    reaction_row,
    seen_row,
)
from bot.platforms.discord.rest import DiscordRest
from bot.platforms.discord.seen import SeenUpdates, Watermarks, Who, next_number, still_on
from storage.tables import Inbox

DISCORD_EPOCH_MS = 1_420_070_400_000
OLDEST_S = 24 * 3600.0
PAGE, MAX_PAGES = 100, 10
AT_ONCE = 4  # chats looked through at the same time
PRIVATE_CHANNEL = 1

Commit = Callable[[Inbox], Awaitable[bool]]

logger = logging.getLogger(__name__)


class DiscordBackfill:
    """Looks through the chats of one bot."""

    def __init__(
        self,
        rest: DiscordRest,
        taken: SeenUpdates,
        commit: Commit,
        server: Callable[[str], str],
        clock: Callable[[], float],
    ) -> None:
        self._rest = rest
        self._taken = taken
        self._commit = commit
        self._server = server
        self._shard = taken.shard
        self._clock = clock
        self._bot_id = ""
        self._watermarks: asyncio.Task[Watermarks] | None = None
        self._looked: set[str] = set()
        self._room = asyncio.Semaphore(AT_ONCE)

    def begin(self, bot_id: str) -> None:
        """Begin a new session: every chat has to be looked through again."""
        self._bot_id = bot_id
        self._looked = set()
        self._watermarks = asyncio.create_task(self._taken.watermarks(bot_id), name="discord watermarks")

    async def sweep(self, chat_queues: ChatQueues, servers: dict[str, int], missed: Iterable[str] = ()) -> None:
        """Look through every chat heed knows, those in `missed`, and those in `servers` with a newer last message.

        Of several connections each looks through its own chats, and the first through those it cannot tell.
        """
        if self._watermarks is None:
            return
        watermarks = await self._watermarks
        news = [chat for chat, last in servers.items() if last > watermarks.known(chat)]
        known = [*watermarks.by_chat, *watermarks.places]
        ours = [chat for chat in known if self._shard.hears(self._server_of(chat, watermarks))]
        chats = list(dict.fromkeys([*news, *missed, *ours]))
        for start in range(0, len(chats), AT_ONCE):
            begun = [chat_queues.submit(chat, partial(self.catch_up, chat)) for chat in chats[start : start + AT_ONCE]]
            looks = [look for look in begun if look is not None]
            if looks:
                await asyncio.wait(looks)

    def _server_of(self, chat: str, watermarks: Watermarks) -> str:
        """Return the server that a chat is on, empty in private and where no one can tell."""
        return self._server(chat) or watermarks.servers.get(chat, "")

    async def knows(self, chat: str) -> bool:
        """Return True if heed had a conversation here before this session, so that there may be something to catch up
        with.
        """
        if self._watermarks is None or chat in self._looked:
            return False
        watermarks = await self._watermarks
        return chat in watermarks.by_chat or chat in watermarks.places

    async def catch_up(self, chat: str) -> None:
        """Take what this chat's history has and heed has not; return at once if that was done in this session."""
        looked = self._looked
        if self._watermarks is None or chat in looked:
            return
        watermarks = await self._watermarks
        try:
            async with self._room:
                await self._look(chat, watermarks)
        except (Gone, Refused):
            logger.info("a chat on Discord has no history for heed")
        except ChannelError as error:
            logger.warning("a chat's history could not be read: %s", type(error).__name__)
            return
        except MALFORMED as error:
            logger.warning("a chat's history makes no sense: %s", type(error).__name__)
        looked.add(chat)

    async def _look(self, chat: str, watermarks: Watermarks) -> None:
        after = watermarks.known(chat)
        oldest = snowflake(self._clock() - OLDEST_S)
        if not watermarks.newest:
            return
        server = self._server_of(chat, watermarks)
        where = {"guild_id": server} if server else {}  # as in live ones
        messages = [message | where async for message in self._history(chat, max(after, oldest))]
        recent = [message for message in reversed(messages) if int(message["id"]) > oldest]
        is_private = not server and bool(recent) and await self._is_private(chat)
        if not (server or is_private or self._shard.is_alone):
            return  # on a server, of which only the one that hears it knows
        for message in recent:
            try:
                await self._one(message, is_private, watermarks, is_new=int(message["id"]) > after)
            except MALFORMED as error:
                logger.warning("a message in a chat's history makes no sense: %s", type(error).__name__)
            except (Gone, Refused) as error:  # of its reactions: it was deleted meanwhile, or has none of this emoji
                logger.info("a message in a chat's history could not be looked into: %s", type(error).__name__)

    async def _one(self, message: Json, is_private: bool, watermarks: Watermarks, *, is_new: bool) -> None:
        if str(message["author"]["id"]) == self._bot_id:
            await self._reactions(message, is_private, watermarks)
        else:
            await self._message(message, is_private, is_new=is_new)

    async def _history(self, chat: str, after: int) -> AsyncIterator[Json]:
        before: Json = {}
        for _ in range(MAX_PAGES):
            page = await self._rest.call(
                "GET", "/channels/{channel_id}/messages", {"channel_id": chat}, params={"limit": PAGE} | before
            )
            for message in page:
                yield message
            if len(page) < PAGE or int(page[-1]["id"]) <= after:
                return
            before = {"before": page[-1]["id"]}

    async def _is_private(self, chat: str) -> bool:
        channel = await self._rest.call("GET", "/channels/{channel_id}", {"channel_id": chat})
        return bool(channel["type"] == PRIVATE_CHANNEL)

    async def _message(self, message: Json, is_private: bool, *, is_new: bool) -> None:
        created = message_row(CREATED, message, self._bot_id, is_private=is_private)
        edited = message_row(UPDATED, message, self._bot_id, is_private=is_private)
        is_first = is_new and created is not None and await self._commit(created)
        if edited is None:
            return
        if is_first:  # what was taken is the edited text already
            edited = seen_row(self._bot_id, edited.update_id, edited.chat_key, edited.account, edited.server)
        await self._commit(edited)

    async def _reactions(self, message: Json, is_private: bool, watermarks: Watermarks) -> None:
        emojis = [reaction["emoji"] for reaction in message.get("reactions") or ()]
        if not emojis and str(message["id"]) not in watermarks.reacted:
            return
        there = {who: found async for who, found in self._people(message, emojis)}
        states = await self._taken.reactions(self._bot_id, str(message["id"]))
        where: Json = {name: message[name] for name in ("channel_id", "guild_id") if name in message}
        base = where | {"message_id": message["id"], "is_private": is_private}
        for who, (emoji, user) in there.items():
            number = next_number(states.get(who), "add")
            if number is not None:
                found = base | {"user_id": user["id"], "emoji": emoji, "member": {"user": user}}
                await self._commit(reaction_row("add", found, self._bot_id, number))
        for (_, key), state in still_on(states, but=there).items():
            lost = base | {"user_id": state.account, "emoji": emoji_of(key)}
            await self._commit(reaction_row("remove", lost, self._bot_id, state.number))

    async def _people(self, message: Json, emojis: Iterable[Json]) -> AsyncIterator[tuple[Who, tuple[Json, Json]]]:
        path = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}"
        for emoji in emojis:
            name = f"{emoji['name']}:{emoji['id']}" if emoji.get("id") else emoji["name"]
            places = {"channel_id": str(message["channel_id"]), "message_id": str(message["id"]), "emoji": name}
            for user in await self._rest.call("GET", path, places, params={"limit": PAGE}):
                if not user.get("bot"):
                    yield (mark_of(str(message["id"]), str(user["id"])), emoji_key(emoji)), (emoji, user)


def snowflake(time_s: float) -> int:
    """Return the id that something made at this time would have."""
    return (int(time_s * 1000) - DISCORD_EPOCH_MS) << 22
