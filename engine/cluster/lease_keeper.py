"""Leases of one engine on the people whom it teaches: taken when they are needed, lengthened while it lives.

Invariants: a person is taken over before anything is done for them; a lease that another engine took is noticed within
a third of its time, and what this engine still writes meanwhile is refused by the storage.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from storage import fencing, leases
from storage.database import Database
from storage.errors import StorageError
from storage.fencing import Tokens

logger = logging.getLogger(__name__)

DURATION_S = 10.0  # after which the people of an engine that is gone are another's
RENEWALS = 3  # within that time


class LeaseKeeper:
    """The leases of one process. `taken` goes on with a person, `lost` forgets what waits for one."""

    def __init__(
        self,
        database: Database,
        tokens: Tokens,
        taken: Callable[[str], Awaitable[None]],
        lost: Callable[[str], None],
        duration_s: float = DURATION_S,
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._taken = taken
        self._lost = lost
        self._duration_s = duration_s
        self._people: dict[str, str] = {}  # by the name of their lease
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def people(self) -> set[str]:
        """The people whose leases this engine holds, as far as it knows."""
        return set(self._people.values())

    async def hold(self, user_id: str) -> None:
        """Have a person's lease, and have gone on with what waited for them. Raises LeaseHeld, with its owner."""
        name = fencing.person(user_id)
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            if name not in self._people:
                lease = await self._database.write(
                    lambda s: leases.take(s, name, self._tokens.owner, self._duration_s, user_id)
                )
                self._tokens.keep(name, lease.token)
                await self._take_over(name, user_id)

    async def _take_over(self, name: str, user_id: str) -> None:
        try:
            await self._taken(user_id)
        except BaseException:
            self._tokens.drop(name)  # held in the database until it ends, and taken over again at the next call
            raise
        self._people[name] = user_id

    def lose(self, user_id: str) -> None:
        """Forget a lease that another engine has; harmless if it is not held."""
        name = fencing.person(user_id)
        self._tokens.drop(name)
        if self._people.pop(name, None) is not None:
            self._lost(user_id)

    async def watch(self) -> None:
        """Lengthen all leases before they end, until cancelled."""
        while True:
            await asyncio.sleep(self._duration_s / RENEWALS)
            try:
                await self._renew()
            except StorageError as error:  # a named edge: the storage refuses what was lost meanwhile
                logger.warning("leases are not renewed: %s", error)

    async def release(self) -> None:
        """End every lease, so that the others need not wait."""
        for name, user_id in list(self._people.items()):
            self.lose(user_id)
            try:
                await self._database.write(lambda s, name=name: leases.release(s, name, self._tokens.owner))  # type: ignore[misc]
            except StorageError as error:  # a named edge: it ends by itself
                logger.warning("a lease is not released: %s", error)

    async def _renew(self) -> None:
        names = list(self._people)
        held = await self._database.write(lambda s: leases.renew(s, names, self._tokens.owner, self._duration_s))
        for name in names:
            if name not in held:
                logger.warning("another engine has taken over a person of this one")
                self.lose(self._people.get(name, ""))
