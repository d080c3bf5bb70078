"""The resume point of Discord's event stream, kept so that the next heed goes on at the event this one ended with.

Discord replays what came after a number as long as it remembers the session, which is some minutes. That is the only
way to a press, or to the first words in a private chat no one has spoken in before, that came while heed was down: they
are in no history a bot can ask for. Invariant: of the session that is kept everything up to the number is committed.
More may be replayed than was missed; update ids name the thing, so that taking it again changes nothing.
"""

import asyncio
import logging
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from bot.platforms.discord.shard import Shard
from storage import settings
from storage.database import Database
from storage.errors import StorageError

KEY = "discord.session:"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Position:
    """The values that resuming needs; empty if a new session has to begin."""

    session_id: str = ""
    sequence: int = 0
    url: str = ""

    @property
    def can_resume(self) -> bool:
        """True if there is anything to go on with."""
        return bool(self.session_id and self.sequence and self.url)


class ResumePoint:
    """The position of one connection, moved on as what was heard is committed."""

    def __init__(self, database: Database, shard: Shard) -> None:
        self._database = database
        self._suffix = "" if shard.is_alone else f":{shard.number}/{shard.count}"
        self._key = ""
        self._heard = Position()
        self._open: dict[tuple[str, int], None] = {}  # (session, number) of what is not committed yet, oldest first
        self._kept = Position()
        self._saver: asyncio.Task[None] | None = None

    async def recall(self, bot_id: str) -> Position:
        """Return the position at which an earlier heed of this bot ended."""
        self._key = f"{KEY}{bot_id}{self._suffix}"
        found: dict[str, Any] | None = await self._database.read(lambda s: settings.get(s, self._key))
        self._kept = Position(**found) if found else Position()
        return self._kept

    def hear(self, position: Position) -> None:
        """Note that an event has come; unless `hold` is called for it, there is nothing to commit."""
        if position.session_id != self._heard.session_id:
            self._open.clear()
        self._heard = position
        self._keep()

    def hold(self, work: "asyncio.Future[None]") -> None:
        """Commit what was heard last once `work` has ended; never if it is cancelled."""
        item = self._heard.session_id, self._heard.sequence
        self._open[item] = None

        def let_go(done: "asyncio.Future[None]") -> None:
            if not done.cancelled():
                self._open.pop(item, None)
                self._keep()

        work.add_done_callback(let_go)

    async def close(self) -> None:
        """Wait until the newest position is stored."""
        if self._saver is not None:
            await self._saver

    @property
    def _committed(self) -> Position:
        """The end of what is committed without a gap."""
        session_id, sequence = next(iter(self._open), (self._heard.session_id, self._heard.sequence + 1))
        return Position(session_id, sequence - 1, self._heard.url)

    def _keep(self) -> None:
        if self._saver is None or self._saver.done():
            self._saver = asyncio.create_task(self._save(), name="discord position")

    async def _save(self) -> None:
        """Commit the position until it moves no more; those that come while one is committed are one step."""
        while (position := self._committed).can_resume and position != self._kept:
            try:
                await self._database.write(partial(settings.put, key=self._key, value=asdict(position)))
            except StorageError as error:
                logger.warning("the position in Discord's events could not be kept: %s", type(error).__name__)
                return
            self._kept = position
