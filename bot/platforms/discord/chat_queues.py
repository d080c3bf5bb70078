"""Work on events, in order within a chat and in parallel across chats.

What is waiting is bounded: beyond `limit` nothing is taken, and the caller finds it in the history later.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[None]]

logger = logging.getLogger(__name__)


class ChatQueues:
    """One queue per chat, worked on while there is something in it."""

    def __init__(self, limit: int, on_idle: Callable[[], None]) -> None:
        self._limit = limit
        self._on_idle = on_idle
        self._waiting: dict[str, deque[tuple[Work, asyncio.Future[None]]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._num_open = 0

    @property
    def is_idle(self) -> bool:
        """True if nothing is open."""
        return not self._tasks

    def submit(self, chat: str, work: Work) -> asyncio.Future[None] | None:
        """Queue work behind what the chat has; done when it ended either way. None: too much is waiting."""
        if self._num_open >= self._limit:
            return None
        done = asyncio.get_running_loop().create_future()
        self._num_open += 1
        self._waiting.setdefault(chat, deque()).append((work, done))
        if chat not in self._tasks:
            self._tasks[chat] = asyncio.create_task(self._run(chat), name="discord chat")
        return done

    async def drain(self, timeout_s: float) -> None:
        """Wait until nothing is open; what takes longer than `timeout_s` is given up."""
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=timeout_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, chat: str) -> None:
        queue = self._waiting[chat]
        try:
            while queue:
                work, done = queue.popleft()
                await self._do(work)
                self._num_open -= 1
                done.set_result(None)
        finally:
            for _, done in queue:
                done.cancel()
            self._num_open -= len(queue)
            del self._waiting[chat], self._tasks[chat]
        if not self._tasks:
            self._on_idle()

    async def _do(self, work: Work) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the edge: one event must not stop the others of its chat
            logger.warning("an event from Discord was not taken: %s", type(error).__name__)
