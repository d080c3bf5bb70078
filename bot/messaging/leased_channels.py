"""The chat platforms of one gateway among several: each is listened to and spoken on by one gateway at a time.

That gateway has the platform's lease, and everything behind the platform runs there from the lease's beginning to its
end: inbox, dispatcher and outbox, as in a heed that is alone. What the one before had not handled or shown is in
storage, and is done by the next. Invariant: nothing is shown by a gateway whose lease has ended by its own clock.
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
LET_GO_S = 0.0  # for answers of a platform that another gateway has by now: that one gives them

Supervise = Callable[[Sequence[Channel]], ChannelSupervisor]


class LeasedChannels:
    """Every chat platform of one gateway, while it has them."""

    def __init__(self, make: Callable[[], Sequence[Channel]], supervise: Supervise, leases: LeaseKeeper) -> None:
        """`make` gives each platform's channel, anew each time; a platform's supervisor is built over one of them."""
        self._make = make
        self._supervise = supervise
        self._leases = leases
        shown = make()
        self._platforms = [channel.platform for channel in shown]
        self.routes = [self._passed_on(channel.platform, route) for channel in shown for route in channel.routes()]
        self._ours: dict[str, ChannelSupervisor] = {}
        self._channels: dict[str, Channel] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def health(self) -> dict[str, str]:
        """Each platform's state, of those that are another gateway's "ok"."""
        ours = {name: supervisor.health()[name] for name, supervisor in self._ours.items()}
        return dict.fromkeys(self._platforms, "ok") | ours

    def start(self) -> None:
        """Begin, once the engine is ready, to have each platform that no other gateway has."""
        for platform in self._platforms:
            self._tasks.append(asyncio.create_task(self._keep(platform), name=f"lease on {platform}"))

    async def stop(self, timeout_s: float) -> None:
        """See ChannelSupervisor; every platform is free then."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._end(platform, timeout_s) for platform in list(self._ours)))
        await self._leases.release()

    async def _keep(self, platform: str) -> None:
        """Have a platform whenever it can be had, until cancelled."""
        while True:
            if await self._is_won(platform):
                logger.info("this gateway has %s", platform)
                self._begin(platform)
                await self._leases.until_lost(platform)
                logger.warning("another gateway has %s", platform)
                await self._end(platform, LET_GO_S)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _is_won(self, platform: str) -> bool:
        try:
            await self._leases.hold(platform)
        except LeaseHeld:
            return False
        except StorageError as error:  # a named edge: it is asked for again
            logger.warning("the lease on %s cannot be asked for: %s", platform, error)
            return False
        return True

    def _begin(self, platform: str) -> None:
        channel = next(channel for channel in self._make() if channel.platform == platform)
        self._channels[platform] = channel
        supervisor = self._ours[platform] = self._supervise([channel])
        supervisor.outbox.may_show = partial(self._leases.is_sure_of, platform)
        supervisor.start()

    async def _end(self, platform: str, timeout_s: float) -> None:
        del self._channels[platform]
        await self._ours.pop(platform).stop(timeout_s)

    def _passed_on(self, platform: str, route: web.RouteDef) -> web.RouteDef:
        """Return a route that goes on to the platform's channel, while it is here."""

        async def handle(request: web.Request) -> web.StreamResponse:
            """Pass a call on."""
            channel = self._channels.get(platform)
            if channel is None:  # the platform calls again, and meets the gateway that has it
                return web.Response(status=503, headers={"Retry-After": "1"})
            own = next(own for own in channel.routes() if (own.method, own.path) == (route.method, route.path))
            answered: web.StreamResponse = await own.handler(request)
            return answered

        return web.route(route.method, route.path, handle)
