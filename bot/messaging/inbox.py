"""The durable inbox at work: takes every platform update once and hands it on, in order within a chat.

Invariants: `take` returns after the commit, so an update that was acknowledged is never lost; an update's effect and
its done mark share one transaction (the handler calls `done` inside it), so it takes effect once; a chat's updates are
handled one after the other, unless a handler lets its chat go on meanwhile, and chats side by side; an update whose
handling fails repeatedly is set aside, so that its chat goes on; one that was being handled each time heed ended is
handled alone, so that only what ends heed is blamed for it; one that its handler puts off waits in storage; what waited
when heed stopped is taken up by the next one. Updates are logged by number only.
"""

import asyncio
import logging
import time
import traceback
from bisect import insort
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, repeat

from bot.backoff import Sleep, while_storage_is_away
from bot.errors import NotReady, Overloaded
from bot.monitoring.metrics import Metrics
from engine.errors import EngineRestarting
from storage.coalescing import Coalescer
from storage.conversations import inbox
from storage.database import Database, Session
from storage.errors import PASSING, StorageError
from storage.tables import Inbox

logger = logging.getLogger(__name__)

HIGH_WATER = 1000  # waiting updates; above that `take` waits, and platforms keep what they have
ALONE_AFTER = 3  # deaths of heed while an update was being handled: others may have been the reason so far
MAX_DEATHS = 20
MAX_PARALLEL = 256  # chats handled at once
RETRY_S = (0.2, 1.0, 0.0)  # after each failure of a handler; after the last the update is set aside
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)  # while the engine, the disk or the server is away; the last again and again

ChatKey = tuple[str, str, str]


class AlreadyDone(Exception):
    """The update has taken effect before: what the transaction changed must be undone."""


class Done:
    """Marks one update done, inside the transaction of its effect. Raises AlreadyDone."""

    def __init__(self, seq: int, let_go: Callable[[], None] = lambda: None) -> None:
        """`let_go` begins the chat's next update while this one goes on."""
        self.seq = seq
        self.let_go = let_go
        self.is_called = False
        self.is_put_off = False  # the update is neither done nor handled again before `take_up`

    def __call__(self, s: Session) -> None:
        """In place: the done mark joins the transaction of `s`."""
        self.is_called = True
        if not inbox.mark_done(s, self.seq):
            raise AlreadyDone(f"update {self.seq}")


Handle = Callable[[Inbox, Done], Awaitable[None]]


class Slots:
    """`num` places, given in the order in which they were asked for: a number of tasks side by side, or one alone."""

    def __init__(self, num: int) -> None:
        self._num = num
        self._free = asyncio.Semaphore(num)
        self._is_gathering = asyncio.Lock()  # two that gather all at once would wait for each other

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold one place, beside others."""
        async with self._free:
            yield

    @asynccontextmanager
    async def all(self) -> AsyncIterator[None]:
        """Hold every place: begin once all are free, and let none be taken before the end."""
        async with AsyncExitStack() as taken:
            async with self._is_gathering:
                for _ in range(self._num):
                    await taken.enter_async_context(self._free)
            yield


class InboxWorker:
    """Takes updates from channels and runs their handler.

    What waits of a platform that is off, or has not started, goes on waiting: before what an earlier heed had to show
    is taken up again, no one knows what each message is for.
    """

    def __init__(
        self,
        database: Database,
        handle: Handle,
        metrics: Metrics,
        sleep: Sleep = asyncio.sleep,
        *,
        is_ours: Callable[[Inbox], bool],
    ) -> None:
        """`is_ours`: of what waits, what this heed handles."""
        self._is_ours = is_ours
        self._database = database
        self._handle = handle
        self._metrics = metrics
        self._sleep = sleep
        self._arrivals: Coalescer[Inbox, tuple[Inbox, bool]] = Coalescer(self._add, "arrivals")
        self._chats: dict[ChatKey, list[Inbox]] = {}  # waiting, oldest first; a chat without any is not here
        self._known: set[int] = set()  # numbers of what waits or is being handled
        self._workers: dict[ChatKey, asyncio.Task[None]] = {}
        self._handlers: dict[int, asyncio.Task[None]] = {}  # by number, also those whose chat goes on
        self._let_go: dict[int, asyncio.Event] = {}  # set when the chat of an update may go on
        self._slots = Slots(MAX_PARALLEL)
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._open: set[str] = set()  # platforms that have started
        self._is_running = False

    @property
    def num_waiting(self) -> int:
        """Updates that wait or are being handled."""
        return len(self._known)

    async def take(self, row: Inbox) -> bool:
        """Commit an update. Return False if it was known. Durable on return. Waits while too many updates wait."""
        await self._has_room.wait()
        taken, is_new = await self._arrivals.ask(row)
        self._metrics.updates.labels(row.platform, "new" if is_new else "known").inc()
        if is_new:
            self._queue(taken)
        elif not taken.is_done:
            self._queue_again(taken)
        return is_new

    async def run(self) -> None:
        """Take up what an earlier heed left, then handle what comes from platforms that are open until cancelled."""
        await while_storage_is_away("what an earlier heed left", self._load, self._sleep)
        self._is_running = True
        for key in list(self._chats):
            self._wake(key)
        await asyncio.Event().wait()

    def open(self, platform: str) -> None:
        """Handle what comes from a platform, and what waits, from now on."""
        self._open.add(platform)
        for key in list(self._chats):
            self._wake(key)

    async def drain(self, timeout_s: float) -> None:
        """Hand on nothing more and give running handlers `timeout_s`; what they have not done waits in storage."""
        self._is_running = False
        running = [*self._workers.values(), *self._handlers.values()]
        if running:
            await asyncio.wait(running, timeout=timeout_s)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _add(self, rows: list[Inbox]) -> list[tuple[Inbox, bool]]:
        return await self._database.write(lambda s: [inbox.add(s, row) for row in rows])

    async def take_up(self) -> None:
        """Handle what was put off."""
        if self._is_running:
            await while_storage_is_away("what was put off", self._load, self._sleep)

    async def _load(self) -> None:
        for row in await self._database.read(inbox.waiting):
            if self._is_ours(row):
                self._queue_again(row)

    def _queue_again(self, row: Inbox) -> None:
        """Queue what an earlier heed took: it may have begun it, and that may be what ended it."""
        row.attempts = max(row.attempts, 1)  # the handler sees that it is not the first; counted from here on
        self._queue(row)

    def _queue(self, row: Inbox) -> None:
        seq = row.seq or 0
        if seq in self._known:
            return
        self._known.add(seq)
        if len(self._known) >= HIGH_WATER:
            self._has_room.clear()
        key = (row.platform, row.bot_id, row.chat_key)
        insort(self._chats.setdefault(key, []), row, key=lambda waiting: waiting.seq or 0)
        self._wake(key)

    def _wake(self, key: ChatKey) -> None:
        if self._is_running and key[0] in self._open and key not in self._workers:
            self._workers[key] = asyncio.create_task(self._work(key), name=f"chat on {key[0]}")

    async def _work(self, key: ChatKey) -> None:
        """Handle a chat's updates until none waits."""
        try:
            while self._is_running and (rows := self._chats.get(key)):
                await self._settled_or_let_go(rows[0])
                rows.pop(0)
                if not rows:
                    del self._chats[key]
        finally:
            del self._workers[key]

    async def _settled_or_let_go(self, row: Inbox) -> None:
        """Handle an update. Return when it is settled, or when its handler lets the chat go on."""
        seq = row.seq or 0
        let_go = self._let_go[seq] = asyncio.Event()
        handler = self._handlers[seq] = asyncio.create_task(self._until_settled(row), name="update")
        handler.add_done_callback(lambda _: let_go.set())
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            handler.cancel()
            raise

    async def _until_settled(self, row: Inbox) -> None:
        seq = row.seq or 0
        try:
            while self._is_running and not await self._is_settled(row):
                pass  # storage was away; `_is_settled` has waited
            self._known.discard(seq)
            if len(self._known) < HIGH_WATER:
                self._has_room.set()
        finally:
            del self._handlers[seq], self._let_go[seq]

    async def _is_settled(self, row: Inbox) -> bool:
        try:
            async with self._slots.all() if row.attempts >= ALONE_AFTER else self._slots.one():
                await self._settle(row)
        except StorageError as error:
            self._report(row.seq or 0, error)
            await self._sleep(PAUSES_S[-1])
            return False
        return True

    async def _settle(self, row: Inbox) -> None:
        """Handle an update until it is done or set aside. Raises StorageError if nothing can be written."""
        if row.attempts and not await self._may_begin(row):
            return
        for pause_s in RETRY_S:
            try:
                await self._patiently(row)
            except Exception as error:  # noqa: BLE001  the edge of what is handled: reported, and tried again
                self._report(row.seq or 0, error)
            else:
                return
            row.attempts += 1
            await self._sleep(pause_s)
        await self._set_aside(row.seq or 0, f"failed {len(RETRY_S)} times")

    async def _may_begin(self, row: Inbox) -> bool:
        """Count that an update an earlier heed did not finish is begun again; Return False if it waits no more."""
        seq = row.seq or 0
        num_begun = await self._database.write(lambda s: inbox.begin_attempt(s, seq))
        if num_begun > MAX_DEATHS:
            await self._set_aside(seq, f"was being handled when heed ended {MAX_DEATHS} times")
        return 0 < num_begun <= MAX_DEATHS

    async def _patiently(self, row: Inbox) -> None:
        """Handle an update, waiting as long as the engine, the disk or the database's server is not there."""
        for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            try:
                await self._attempt(row)
            except (NotReady, Overloaded, EngineRestarting, *PASSING) as error:
                logger.info("update %d waits: %s", row.seq, type(error).__name__)
            else:
                return
            row.attempts = max(row.attempts, 1)  # the handler sees that it is not the first
            await self._sleep(pause_s)

    async def _attempt(self, row: Inbox) -> None:
        done = Done(row.seq or 0, self._let_go[row.seq or 0].set)
        started_s = time.monotonic()
        try:
            await self._handle(row, done)
            if not (done.is_called or done.is_put_off):
                await self._database.write(lambda s: inbox.mark_done(s, done.seq))
        except AlreadyDone:
            logger.info("update %d had taken effect before", done.seq)
        except Exception:
            if done.is_called or await self._database.read(lambda s: inbox.is_waiting(s, done.seq)):
                raise
            logger.info("update %d was erased while it was handled, with the person who sent it", done.seq)
        self._metrics.update_s.observe(time.monotonic() - started_s)

    async def _set_aside(self, seq: int, why: str) -> None:
        await self._database.write(lambda s: inbox.mark_done(s, seq))
        self._metrics.errors.labels("set_aside").inc()
        logger.error("update %d %s and is set aside; its chat goes on", seq, why)

    def _report(self, seq: int, error: Exception) -> None:
        # Without the message: it may hold a person's words.
        self._metrics.errors.labels("update").inc()
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        logger.warning("update %d could not be handled: %s\n%s", seq, type(error).__name__, where)
