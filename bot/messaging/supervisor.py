"""The bots that are switched on, with everything behind them: inbox worker, dispatcher and outbox sender.

Invariants: a channel that cannot start, or fails while it runs, never ends heed: a refused token ends its platform,
with the reason in its health, anything else is tried again with back-off; nothing is sent on a platform that has not
started, and only then what is over is dropped; at the end the channels stop first, running answers get their time, and
what is not shown stays in storage.
"""

import asyncio
import functools
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from aiohttp import web

from bot.agent.service import AgentService
from bot.backoff import Jitter, Sleep, backoff_s, while_storage_is_away
from bot.channel import Channel
from bot.core.core import Core
from bot.errors import StartError
from bot.housekeeping.retention import UpdateRetention
from bot.messaging.dispatcher import Dispatcher
from bot.messaging.inbox import InboxWorker
from bot.messaging.outbox import OutboxSender
from bot.monitoring.metrics import Metrics
from storage.tables import Inbox

logger = logging.getLogger(__name__)

STOP_S = 5.0  # given to the channels to close their connections
TRYING = "trying to start"
LAST_POSTS_S = 3.0  # given at least to what is being shown at the end


class ChannelSupervisor:
    """Every chat platform of one heed."""

    def __init__(
        self,
        channels: Sequence[Channel],
        core: Core,
        metrics: Metrics,
        agents: AgentService,
        sleep: Sleep = asyncio.sleep,
        jitter: Jitter = random.uniform,
    ) -> None:
        self._channels = {channel.platform: channel for channel in channels}
        self._core = core
        self._metrics = metrics
        self._sleep = sleep
        self._jitter = jitter
        self._problems = dict.fromkeys(self._channels, "not started")
        self._tasks: list[asyncio.Task[None]] = []
        self.outbox = OutboxSender(core.database, core.gateway, metrics, self._channels)
        self._retention = UpdateRetention(core.database, core.settings.keep_updates_hours * 3600)
        dispatcher = self._dispatcher = Dispatcher(core, self.outbox, self._channels, agents)
        self.inbox = InboxWorker(core.database, dispatcher.handle, metrics, is_ours=self._is_ours)
        core.lessons.when_resumed.append(self.inbox.take_up)
        core.access.when_paired.append(dispatcher.let_in)

    @property
    def routes(self) -> list[web.RouteDef]:
        """The HTTP routes that the platforms call; each checks its callers itself."""
        return [route for channel in self._channels.values() for route in channel.routes()]

    def health(self) -> dict[str, str]:
        """Each platform's state: "ok", or what is wrong."""
        return {name: self._problems[name] or channel.health() for name, channel in self._channels.items()}

    def start(self) -> None:
        """Begin, once the engine is ready: take up what waits, and keep every channel running."""
        if self._channels:
            self._tasks.append(asyncio.create_task(self.inbox.run(), name="inbox"))
        for channel in self._channels.values():
            self._tasks.append(asyncio.create_task(self._keep(channel), name=f"channel {channel.platform}"))

    async def stop(self, timeout_s: float) -> None:
        """Take nothing new, let running answers end within `timeout_s`, and show what can still be shown."""
        deadline_s = time.monotonic() + timeout_s
        with suppress(ValueError):  # it is stopped once more
            self._core.lessons.when_resumed.remove(self.inbox.take_up)
            self._core.access.when_paired.remove(self._dispatcher.let_in)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._each("stop", lambda channel: channel.stop())
        await self.inbox.drain(timeout_s)
        await self.outbox.drain(max(deadline_s - time.monotonic(), LAST_POSTS_S))
        await self._each("close", lambda channel: channel.close())

    def _is_ours(self, row: Inbox) -> bool:
        channel = self._channels.get(row.platform)
        return channel is not None and channel.hears(row.server)

    async def _keep(self, channel: Channel) -> None:
        """Start a channel, repeatedly until it has started or its token is refused; then see to its old rows."""
        num_failures = 0
        while not await self._has_started(channel):
            if self._is_over(channel):
                return
            num_failures += 1
            await self._sleep(backoff_s(num_failures, self._jitter))
        shown = functools.partial(self.outbox.open, channel.platform)
        await while_storage_is_away("what an earlier heed had to show", shown, self._sleep, self._jitter)
        self.inbox.open(channel.platform)
        await self._retention.run(channel)

    async def _has_started(self, channel: Channel) -> bool:
        try:
            await channel.start(self.inbox.take)
        except StartError as error:
            self._problems[channel.platform] = str(error)
            logger.critical("%s: %s; the other parts of heed go on", channel.platform, error)
        except Exception as error:  # noqa: BLE001  the edge to the platform: it must not end heed
            self._metrics.errors.labels("channel").inc()
            self._problems[channel.platform] = f"{TRYING}: {type(error).__name__}"
            logger.warning("%s could not be started and is tried again: %s", channel.platform, type(error).__name__)
        else:
            self._problems[channel.platform] = ""
            return True
        return False

    def _is_over(self, channel: Channel) -> bool:
        return not self._problems[channel.platform].startswith(TRYING)

    async def _each(self, what: str, act: Callable[[Channel], Awaitable[None]]) -> None:
        """Have every channel do something, side by side; one that hangs or fails is left behind."""

        async def one(channel: Channel) -> None:
            try:
                async with asyncio.timeout(STOP_S):
                    await act(channel)
            except Exception as error:  # noqa: BLE001  the edge to the platform: heed is ending, and must end
                logger.warning("%s did not %s: %s", channel.platform, what, type(error).__name__)

        await asyncio.gather(*(one(channel) for channel in self._channels.values()))
