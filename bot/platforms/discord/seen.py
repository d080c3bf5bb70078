"""Discord updates taken before, read from the inbox's keys: how far each chat is, and which reactions are on.

A reaction has no id of its own. Its key counts how often the same emoji of the same person was put on the same message,
so taking it off and putting it on again are different updates, and the same state seen twice is none. The key has a
mark of the person; who it is stands beside the key, and no longer once that person was forgotten.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Literal

from bot.platforms.discord.events import PLATFORM
from bot.platforms.discord.shard import Shard
from storage.conversations import chats, inbox
from storage.conversations.inbox import Kept
from storage.database import Database

MAX_PLACES = 500
SLACK = 600_000 << 22  # ten minutes, as ids count time
STARTED = "s:"  # keys of starts: since when heed listens where it heard nothing yet
MESSAGE, REACTION = "m:", "r:"
KEPT = Kept(prefixes=(STARTED, REACTION), newest=MESSAGE)  # what is read here, however old it is

Change = Literal["add", "remove"]
Who = tuple[str, str]  # (mark of a person on a message, emoji key)


@dataclass(frozen=True)
class State:
    """The state of an emoji on a message: if it is on, how often it was put on, and by whom (empty: forgotten)."""

    number: int = 0
    is_on: bool = False
    account: str = ""


@dataclass(frozen=True)
class Watermarks:
    """How far heed got before this connection; ids grow with time over all of Discord."""

    by_chat: dict[str, int] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)  # of chats on one, also of those that others hear
    newest: int = 0  # 0: heed never listened
    reacted: frozenset[str] = frozenset()  # messages with a reaction that was taken
    places: tuple[str, ...] = ()
    started: int = 0  # when heed first listened; 0: long ago

    def known(self, chat: str) -> int:
        """Up to where everything in a chat was taken. One that nothing was taken from may be behind the others."""
        return self.by_chat.get(chat) or max(self.newest - SLACK, self.started)


class SeenUpdates:
    """The keys of one bot, as far as one of its connections hears them."""

    def __init__(self, database: Database, shard: Shard) -> None:
        self._database = database
        self.shard = shard

    async def watermarks(self, bot_id: str) -> Watermarks:
        """How far heed got."""
        taken, starts, reactions, places = await self._database.read(
            lambda s: (
                inbox.newest_per_chat(s, PLATFORM, bot_id, MESSAGE),
                inbox.keys(s, PLATFORM, bot_id, STARTED),
                inbox.keys(s, PLATFORM, bot_id, REACTION),
                chats.places(s, PLATFORM, MAX_PLACES),
            )
        )
        by_chat = {row.chat_key: _snowflake(row.update_id) for row in taken if self.shard.hears(row.server)}
        servers = {row.chat_key: row.server for row in taken if row.server}
        began = [_snowflake(key) for key in starts]
        newest = max([*by_chat.values(), *began], default=0)
        reacted = frozenset(key.split(":")[2] for key in reactions)
        return Watermarks(by_chat, servers, newest, reacted, tuple(places), min(began, default=0))

    async def reactions(self, bot_id: str, message_id: str) -> dict[Who, State]:
        """Return the state of each person's emoji on a message."""
        rows = await self._database.read(
            lambda s: [
                row
                for change in ("add", "remove")
                for row in inbox.taken(s, PLATFORM, bot_id, f"{REACTION}{change}:{message_id}:")
            ]
        )
        return reaction_states((row.update_id, row.account) for row in rows)


def reaction_states(taken: Iterable[tuple[str, str]]) -> dict[Who, State]:
    """Return the state each person's emoji is in, from the keys and accounts of the changes in any order."""
    states: dict[Who, State] = {}
    for key, account in taken:
        _, change, _, mark, rest = key.split(":", 4)
        emoji, _, number = rest.rpartition(":")
        state = State(int(number), change == "add", account)
        known = states.get((mark, emoji), State())
        # Taking off is counted with the putting on that it ends, so at the same count "remove" is the later one.
        states[mark, emoji] = max(known, state, key=lambda it: (it.number, not it.is_on))
    return states


def still_on(states: dict[Who, State], but: Container[Who] = ()) -> dict[Who, State]:
    """Return what is on and not in `but`; nothing of who was forgotten."""
    return {who: state for who, state in states.items() if state.is_on and state.account and who not in but}


def next_number(state: State | None, change: Change) -> int | None:
    """Return the count that a change gets, None if it changes nothing."""
    state = state or State()
    if change == "add":
        return None if state.is_on else state.number + 1
    return state.number if state.is_on else None


def _snowflake(key: str) -> int:
    number = key.split(":")[1]
    return int(number) if number.isascii() and number.isdigit() else 0
