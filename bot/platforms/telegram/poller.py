"""heed's own loop of getUpdates: an update is confirmed after it is committed, never before.

Invariants: the offset moves only over updates that `take` has committed; no error but a revoked token ends the loop; a
poll that does not come back, or a connection on which no poll has succeeded for WATCHDOG_S, is thrown away. After an
empty poll the offset is forgotten (everything before it is confirmed by then), because Telegram may begin to number
anew after a week without updates.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from telegram.error import Conflict, RetryAfter, TelegramError

from bot.backoff import backoff_s
from bot.platforms.telegram.arrivals import update_id
from bot.platforms.telegram.client import POLL_TIMEOUT_S, PollClient
from bot.platforms.telegram.errors import describe, is_revoked, says, seconds
from bot.platforms.telegram.reader import ALLOWED_UPDATES

WATCHDOG_S = 120.0
REVOKED = "Telegram does not accept the token any more: get a new one from @BotFather and set TELEGRAM_BOT_TOKEN"
WEBHOOK = "a webhook was set for this bot, so it cannot poll: delete it, or set HEED_TELEGRAM_WEBHOOK_URL"
CONFLICT = "another program takes this bot's updates: stop it, or give heed a bot of its own"

logger = logging.getLogger(__name__)


class Poller:
    """Takes the updates of one bot."""

    def __init__(
        self,
        connect: Callable[[], PollClient],
        take_all: Callable[[list[Any]], Awaitable[None]],
        *,
        watchdog_s: float = WATCHDOG_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.problem = ""  # what is wrong now, empty if nothing is
        self.num_renewed = 0
        self._connect = connect
        self._take_all = take_all
        self._watchdog_s = watchdog_s
        self._sleep = sleep
        self._client: PollClient | None = None
        self._offset: int | None = None
        self._failures = 0
        self._polled_s = time.monotonic()
        self._progress_s = self._polled_s

    @property
    def age_s(self) -> float:
        """Seconds since Telegram last answered a poll."""
        return time.monotonic() - self._polled_s

    async def run(self) -> None:
        """Poll until cancelled, or until the token is revoked."""
        try:
            while await self._round():
                pass
        finally:
            await self._disconnect()

    async def _round(self) -> bool:
        """Poll once and handle the result. Return False if another poll makes no sense."""
        try:
            await self._take_all(await self._poll())
        except TelegramError as error:
            if is_revoked(error):
                self.problem = REVOKED
                logger.critical("telegram: %s", REVOKED)
                return False
            await self._wait(error)
        except Exception as error:  # noqa: BLE001  the loop's edge: an update that is not committed comes again
            await self._wait(error)
        else:
            self._settle()
        return True

    async def _poll(self) -> list[Any]:
        if self._client is None:
            self._client = self._connect()
        self._batch_end = self._offset
        async with asyncio.timeout(self._watchdog_s):
            updates = await self._client.updates(self._offset, ALLOWED_UPDATES)
        self._polled_s = self._progress_s = time.monotonic()
        numbers = [number for update in updates if (number := update_id(update)) is not None]
        self._batch_end = max(numbers) + 1 if numbers else None
        return updates

    def _settle(self) -> None:
        self._offset = self._batch_end
        self._failures = 0
        self.problem = ""

    async def _wait(self, error: Exception) -> None:
        self._failures += 1
        self.problem = _problem(error)
        logger.warning("telegram: poll %d in a row failed (%s): %s", self._failures, type(error).__name__, self.problem)
        if isinstance(error, TimeoutError) or time.monotonic() - self._progress_s > self._watchdog_s:
            await self._disconnect()
        await self._sleep(self._delay_s(error))

    def _delay_s(self, error: Exception) -> float:
        if isinstance(error, RetryAfter):
            return seconds(error)
        least_s = POLL_TIMEOUT_S if isinstance(error, Conflict) else 0.0  # the other poller's poll has to run out
        return least_s + backoff_s(self._failures - 1)

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        self._progress_s = time.monotonic()
        if client is not None:
            self.num_renewed += 1
            try:
                await client.close()
            except Exception as error:  # noqa: BLE001  it is thrown away, however it ends: the loop goes on
                logger.info("telegram: a connection did not close (%s)", type(error).__name__)


def _problem(error: Exception) -> str:
    if isinstance(error, Conflict):
        return WEBHOOK if says(error, "webhook") else CONFLICT
    if isinstance(error, TimeoutError):
        return "Telegram does not answer"
    return describe(error) if isinstance(error, TelegramError) else f"updates cannot be kept ({type(error).__name__})"
