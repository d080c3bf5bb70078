"""What of Discord was taken before, read from the inbox's keys: how far each chat is, and which reactions are on.

A reaction has no id of its own. Its key counts how often the same emoji of the same person was put on the same message,
so taking it off and putting it on again are different updates, and the same state seen twice is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from bot.platforms.discord_events import PLATFORM
from storage import chats, inbox
from storage.database import Database

MAX_PLACES = 500
SLACK = 600_000 << 22  # ten minutes, as ids count time
STARTED = "s:"  # keys of starts: since when heed listens where it heard nothing yet

Change = Literal["add", "remove"]
Who = tuple[str, str]  # (account, emoji key)


@dataclass(frozen=True)
class Marks:
    """How far heed got before this connection; ids grow with time over all of Discord."""

    by_chat: dict[str, int] = field(default_factory=dict)
    newest: int = 0  # 0: heed never listened
    reacted: frozenset[str] = frozenset()  # messages with a reaction that was taken
    places: tuple[str, ...] = ()
    started: int = 0  # when heed first listened; 0: long ago

    def known(self, chat: str) -> int:
        """Up to where everything in a chat was taken. One that nothing was taken from may be behind the others."""
        return self.by_chat.get(chat) or max(self.newest - SLACK, self.started)


class Taken:
    """The keys of one bot."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def marks(self, bot_id: str) -> Marks:
        """How far heed got."""
        taken, starts, reactions, places = await self._database.read(
            lambda s: (
                inbox.newest_per_chat(s, PLATFORM, bot_id, "m:"),
                inbox.keys(s, PLATFORM, bot_id, STARTED),
                inbox.keys(s, PLATFORM, bot_id, "r:"),
                chats.places(s, PLATFORM, MAX_PLACES),
            )
        )
        by_chat = {chat: _snowflake(key) for chat, key in taken.items()}
        began = [_snowflake(key) for key in starts]
        newest = max([*by_chat.values(), *began], default=0)
        reacted = frozenset(key.split(":")[2] for key in reactions)
        return Marks(by_chat, newest, reacted, tuple(places), min(began, default=0))

    async def reactions(self, bot_id: str, message_id: str) -> dict[Who, tuple[int, bool]]:
        """Of each person and emoji on a message: how often it was put on, and whether it is on."""
        keys = await self._database.read(
            lambda s: [
                key
                for change in ("add", "remove")
                for key in inbox.keys(s, PLATFORM, bot_id, f"r:{change}:{message_id}:")
            ]
        )
        return reaction_states(keys)


def reaction_states(keys: Iterable[str]) -> dict[Who, tuple[int, bool]]:
    """The state each person's emoji is in, from the keys of the changes in any order."""
    states: dict[Who, tuple[int, bool]] = {}
    for key in keys:
        _, change, _, account, rest = key.split(":", 4)
        emoji, _, number = rest.rpartition(":")
        state = (int(number), change == "add")
        known = states.get((account, emoji), (0, False))
        # Taking off is counted with the putting on that it ends, so at the same count "remove" is the later one.
        states[account, emoji] = max(known, state, key=lambda it: (it[0], not it[1]))
    return states


def next_number(state: tuple[int, bool] | None, change: Change) -> int | None:
    """The count that a change gets, None where it changes nothing."""
    number, is_on = state or (0, False)
    if change == "add":
        return None if is_on else number + 1
    return number if is_on else None


def _snowflake(key: str) -> int:
    number = key.split(":")[1]
    return int(number) if number.isascii() and number.isdigit() else 0
