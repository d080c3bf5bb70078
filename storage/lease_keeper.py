"""Leases of one process of a cluster on one kind of thing: taken when they are needed, lengthened while it lives.

Invariants: a thing is taken over before anything is done with it; a lease that another process took is noticed within
a third of its time, and what this process still writes meanwhile is refused by the storage where that is fenced.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from storage import fencing, leases
from storage.database import Database
from storage.errors import StorageError
from storage.fencing import Tokens

logger = logging.getLogger(__name__)

DURATION_S = 10.0  # after which the things of a process that is gone are another's
RENEWALS = 3  # within that time


@dataclass
class HeldLease:
    """One lease, as far as its process knows."""

    key: str  # a person's id, a platform, ...
    ends_s: float  # by this machine's clock, asked before the database was: never later than there
    is_lost: asyncio.Event = field(default_factory=asyncio.Event)


class LeaseKeeper:
    """The leases of one process. `taken` goes on with a thing, `lost` forgets what waits for it."""

    def __init__(
        self,
        database: Database,
        tokens: Tokens,
        taken: Callable[[str], Awaitable[None]],
        lost: Callable[[str], None],
        duration_s: float = DURATION_S,
        named: Callable[[str], str] = fencing.person,
    ) -> None:
        """`named` gives the name of a thing's lease."""
        self._database = database
        self._tokens = tokens
        self._taken = taken
        self._lost = lost
        self._duration_s = duration_s
        self._named = named
        self._held: dict[str, HeldLease] = {}  # by name
        self.num_taken = 0  # so far, also of things that others have now
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def renewal_s(self) -> float:
        """The seconds after which to lengthen leases."""
        return self._duration_s / RENEWALS

    @property
    def held(self) -> set[str]:
        """The things whose leases this process holds, as far as it knows."""
        return {lease.key for lease in self._held.values()}

    def is_sure_of(self, key: str) -> bool:
        """Return True while no other process can have taken a thing: its lease has not ended by this clock."""
        lease = self._held.get(self._named(key))
        return lease is not None and time.monotonic() < lease.ends_s

    async def hold(self, key: str, user_id: str | None = None) -> None:
        """Have a thing's lease, and have gone on with what waited for it. Raises LeaseHeld, with its owner.

        `user_id`: the person it is about, with whom the lease is erased.
        """
        name = self._named(key)
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            if name not in self._held:
                asked_s = time.monotonic()
                lease = await self._database.write(
                    lambda s: leases.take(s, name, self._tokens.owner, self._duration_s, user_id)
                )
                self._tokens.keep(name, lease.token)
                await self._take_over(name, HeldLease(key, asked_s + self._duration_s))

    async def _take_over(self, name: str, lease: HeldLease) -> None:
        try:
            await self._taken(lease.key)
        except BaseException:
            self._tokens.drop(name)  # held in the database until it ends, and taken over again at the next call
            raise
        self._held[name] = lease
        self.num_taken += 1

    def lose(self, key: str) -> None:
        """Forget a lease that another process has; harmless if it is not held."""
        name = self._named(key)
        self._tokens.drop(name)
        if lease := self._held.pop(name, None):
            lease.is_lost.set()
            self._lost(key)

    async def until_lost(self, key: str) -> None:
        """Return once a lease is not held any more."""
        if lease := self._held.get(self._named(key)):
            await lease.is_lost.wait()

    async def watch(self) -> None:
        """Lengthen all leases before they end, until cancelled."""
        while True:
            await asyncio.sleep(self.renewal_s)
            try:
                await self.renew()
            except StorageError as error:  # a named edge: the storage refuses what was lost meanwhile
                logger.warning("leases are not renewed: %s", error)

    async def release(self) -> None:
        """End every lease, so that the others need not wait."""
        for key in self.held:
            await self.let_go(key)

    async def let_go(self, key: str) -> None:
        """End a lease, if it is held."""
        name = self._named(key)
        self.lose(key)
        try:
            await self._database.write(lambda s: leases.release(s, name, self._tokens.owner))
        except StorageError as error:  # a named edge: it ends by itself
            logger.warning("a lease is not released: %s", error)

    async def renew(self) -> None:
        """Lengthen all leases once. Raises StorageError."""
        names, asked_s = list(self._held), time.monotonic()
        held = await self._database.write(lambda s: leases.renew(s, names, self._tokens.owner, self._duration_s))
        for name in names:
            lease = self._held.get(name)
            if lease is None:
                continue
            if name in held:
                lease.ends_s = asked_s + self._duration_s
            else:
                logger.warning("another process has taken over what this one had: %s", name.partition("/")[0])
                self.lose(lease.key)
