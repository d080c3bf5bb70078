"""The chat platforms of one gateway among several: each connection to one is held by one gateway at a time.

That gateway has the connection's lease, and everything behind it runs there from the lease's beginning to its
end: inbox, dispatcher and outbox, as in a heed that is alone. What the one before had not handled or shown is in
storage, and is done by the next, also what that one stores when it has slept past its lease and wakes. Invariant:
nothing is shown by a gateway whose lease has ended by its own clock.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from aiohttp import web

from bot.channel import Channel
from bot.messaging.supervisor import ChannelSupervisor
from storage.errors import LeaseHeld, StorageError
from storage.lease_keeper import LeaseKeeper

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0  # for a lease that is another gateway's
MOST_LOOKS = 3  # that a gateway leaves to the others before it takes one more connection to a platform
LATE_EVERY_S = 10.0  # what a gateway that has lost a connection stores is looked for
LET_GO_S = 0.0  # for answers of a platform that another gateway has by now: that one gives them

Supervise = Callable[[Sequence[Channel]], ChannelSupervisor]


class LeasedChannels:
    """Every chat platform of one gateway, while it has them."""

    def __init__(self, make: Callable[[], Sequence[Channel]], supervise: Supervise, leases: LeaseKeeper) -> None:
        """`make` gives each connection's channel, anew each time; a supervisor is built over one of them."""
        self._make = make
        self._supervise = supervise
        self._leases = leases
        shown = make()
        self._connections = {channel.name: channel.platform for channel in shown}
        self.routes = [self._passed_on(channel.name, route) for channel in shown for route in channel.routes()]
        self._turns = {platform: asyncio.Lock() for platform in self._connections.values()}
        self._ours: dict[str, ChannelSupervisor] = {}
        self._channels: dict[str, Channel] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def health(self) -> dict[str, str]:
        """Each connection's state, of those that are another gateway's "ok"."""
        ours = {name: supervisor.health()[self._connections[name]] for name, supervisor in self._ours.items()}
        return dict.fromkeys(self._connections, "ok") | ours

    def start(self) -> None:
        """Begin, once the engine is ready, to have each connection that no other gateway has."""
        for name in self._connections:
            self._tasks.append(asyncio.create_task(self._keep(name), name=f"lease on {name}"))

    async def stop(self, timeout_s: float) -> None:
        """See ChannelSupervisor; every connection is free then."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._end(name, timeout_s) for name in list(self._ours)))
        await self._leases.release()

    async def _keep(self, name: str) -> None:
        """Have a connection whenever it can be had, until cancelled."""
        while True:
            if await self._is_won(name):
                logger.info("this gateway has %s", name)
                self._begin(name)
                await self._until_lost(name)
                logger.warning("another gateway has %s", name)
                await self._end(name, LET_GO_S)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _until_lost(self, name: str) -> None:
        """Return once a connection is another gateway's; show meanwhile what the one before has stored late."""
        while True:
            try:
                async with asyncio.timeout(LATE_EVERY_S):
                    return await self._leases.until_lost(name)
            except TimeoutError:
                await self._show_late(name)

    async def _show_late(self, name: str) -> None:
        try:
            await self._ours[name].outbox.take_up()
        except StorageError as error:  # a named edge: it is looked for again
            logger.warning("what is to be shown on %s cannot be read: %s", name, error)

    async def _is_won(self, name: str) -> bool:
        """Ask for a connection's lease; the more of a platform's are here, the longer others have to be first."""
        platform = self._connections[name]
        async with self._turns[platform]:
            num_beside = sum(self._connections[other] == platform for other in self._ours)
            await asyncio.sleep(LOOK_EVERY_S * min(num_beside, MOST_LOOKS))
            return await self._is_held(name)

    async def _is_held(self, name: str) -> bool:
        try:
            await self._leases.hold(name)
        except LeaseHeld:
            return False
        except StorageError as error:  # a named edge: it is asked for again
            logger.warning("the lease on %s cannot be asked for: %s", name, error)
            return False
        return True

    def _begin(self, name: str) -> None:
        channel = next(channel for channel in self._make() if channel.name == name)
        self._channels[name] = channel
        supervisor = self._ours[name] = self._supervise([channel])
        supervisor.outbox.may_show = partial(self._leases.is_sure_of, name)
        supervisor.start()

    async def _end(self, name: str, timeout_s: float) -> None:
        del self._channels[name]
        await self._ours.pop(name).stop(timeout_s)

    def _passed_on(self, name: str, route: web.RouteDef) -> web.RouteDef:
        """Return a route that goes on to the connection's channel, while it is here."""

        async def handle(request: web.Request) -> web.StreamResponse:
            """Pass a call on."""
            channel = self._channels.get(name)
            if channel is None:  # the platform calls again, and meets the gateway that has it
                return web.Response(status=503, headers={"Retry-After": "1"})
            own = next(own for own in channel.routes() if (own.method, own.path) == (route.method, route.path))
            answered: web.StreamResponse = await own.handler(request)
            return answered

        return web.route(route.method, route.path, handle)
