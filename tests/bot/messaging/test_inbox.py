"""inbox: every update takes effect once, in order within its chat, whatever fails and whenever heed ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from bot.errors import NotReady
from bot.messaging import inbox as taking
from bot.messaging.inbox import Done, Handle, InboxWorker, Slots
from bot.monitoring.metrics import Metrics
from storage import settings
from storage.conversations import inbox
from storage.database import Database, Session
from storage.errors import ConstraintViolated, DatabaseLost, NotStorable, StorageFull
from storage.tables import Inbox
from tests.patience import PATIENCE_S, until
from tests.storage import rows


class Handler:
    """Notes each update once in the database, inside the transaction that marks it done, and may be told to fail."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.order: list[str] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_waiting = asyncio.Event()

    async def __call__(self, row: Inbox, done: Done) -> None:
        """Take effect, or fail as told."""
        self.is_waiting.set()
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)

        def effect(s: Session) -> None:
            key = f"effect-{row.update_id}"
            settings.put(s, key, (settings.get(s, key) or 0) + 1)
            done(s)

        await self.database.write(effect)
        self.order.append(row.update_id)

    async def effects(self, update_id: str) -> int:
        """How often an update took effect."""
        found = await self.database.read(lambda s: settings.get(s, f"effect-{update_id}"))
        return int(found or 0)


@pytest.fixture
def handler(database: Database) -> Handler:
    """A handler that works."""
    return Handler(database)


async def no_wait(_: float) -> None:
    """A sleep that takes no time."""
    await asyncio.sleep(0)


@asynccontextmanager
async def running(database: Database, handle: Handle) -> AsyncIterator[InboxWorker]:
    """An inbox worker at work."""
    worker = InboxWorker(database, handle, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    worker.open("telegram")
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await worker.drain(0)


async def test_an_update_takes_effect_once(database: Database, handler: Handler) -> None:
    """Delivered three times, handled once; its content is gone afterwards."""
    async with running(database, handler) as worker:
        assert [await worker.take(rows.inbox("1")) for _ in range(3)] == [True, False, False]
        await until(lambda: worker.num_waiting == 0)
        assert await worker.take(rows.inbox("1")) is False
        await until(lambda: worker.num_waiting == 0)
    assert await handler.effects("1") == 1
    assert handler.order == ["1"]
    kept = await database.read(lambda s: s.get_one(Inbox, 1))
    assert kept.payload == {}


async def test_chats_go_side_by_side_and_each_in_order(database: Database) -> None:
    """A slow chat holds up nobody else, and within a chat the order is that of arrival."""
    seen: list[str] = []
    slow = asyncio.Event()

    async def handle(row: Inbox, _: Done) -> None:
        if row.chat_key == "slow":
            await slow.wait()
        seen.append(row.update_id)

    async with running(database, handle) as worker:
        for number in range(5):
            await worker.take(rows.inbox(f"s{number}", "slow"))
            await worker.take(rows.inbox(f"f{number}", "fast"))
        await until(lambda: len(seen) == 5)
        assert seen == [f"f{number}" for number in range(5)]
        slow.set()
        await until(lambda: worker.num_waiting == 0)
    assert seen[5:] == [f"s{number}" for number in range(5)]


async def test_what_waited_is_taken_up_by_the_next_heed(database: Database, handler: Handler) -> None:
    """Updates that were taken and not handled are handled after a restart, in order."""
    idle = InboxWorker(database, handler, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    for number in range(4):
        await idle.take(rows.inbox(str(number)))
    async with running(database, handler) as worker:
        await until(lambda: len(handler.order) == 4)
        assert worker.num_waiting == 0
    assert handler.order == ["0", "1", "2", "3"]


async def test_a_failed_update_is_tried_again(database: Database, handler: Handler) -> None:
    """Two failures are survived; the update takes effect once."""
    handler.failures = [ValueError("x"), KeyError("y")]
    async with running(database, handler) as worker:
        await worker.take(rows.inbox("1"))
        await until(lambda: worker.num_waiting == 0)
    assert await handler.effects("1") == 1


async def test_an_update_that_is_erased_while_it_is_handled_has_not_failed(
    database: Database, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    """Its person is gone, and with them what it said: it is neither reported nor handled again."""

    async def erased(row: Inbox, done: Done) -> None:
        await database.write(lambda s: inbox.mark_done(s, row.seq or 0))
        handler.order.append(row.update_id)
        raise ConstraintViolated("no such person")

    async with running(database, erased) as worker:
        await worker.take(rows.inbox("1"))
        await until(lambda: worker.num_waiting == 0)
    assert handler.order == ["1"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_an_update_that_always_fails_is_set_aside(
    database: Database, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    """After three attempts its chat goes on; the log names it by number and not by what was in it."""
    handler.failures = [ValueError("SECRET WORDS")] * 3
    with caplog.at_level(logging.DEBUG):
        async with running(database, handler) as worker:
            await worker.take(rows.inbox("1"))
            await worker.take(rows.inbox("2"))
            await until(lambda: worker.num_waiting == 0)
    assert handler.order == ["2"]
    assert "update 1 failed 3 times" in caplog.text
    assert "SECRET" not in caplog.text


async def test_an_update_that_ends_heed_is_set_aside(database: Database, handler: Handler) -> None:
    """An update that was being handled each time heed ended is set aside one day; its chat goes on."""
    idle = InboxWorker(database, handler, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    await idle.take(rows.inbox("1"))
    await idle.take(rows.inbox("2"))
    handler.gate.clear()
    for _ in range(taking.MAX_DEATHS):
        handler.is_waiting.clear()
        async with running(database, handler):
            await handler.is_waiting.wait()
    handler.gate.set()
    async with running(database, handler):
        await until(lambda: handler.order == ["2"])
    assert await handler.effects("1") == 0


async def test_what_is_brought_again_may_have_been_begun(database: Database) -> None:
    """Also where the platform brings it before heed has looked at what waits: something may be shown already."""
    seen: list[int] = []

    async def handle(row: Inbox, done: Done) -> None:
        seen.append(row.attempts)

    before = InboxWorker(database, handle, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    await before.take(rows.inbox("1"))
    after = InboxWorker(database, handle, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    assert not await after.take(rows.inbox("1"))
    after.open("telegram")
    running = asyncio.create_task(after.run())
    await until(lambda: seen)
    running.cancel()
    await after.drain(PATIENCE_S)
    assert seen == [1]


async def test_who_was_there_when_heed_ended_is_not_blamed(database: Database, handler: Handler) -> None:
    """After some deaths what may be the reason is handled alone: what was handled beside it is done in the end."""
    idle = InboxWorker(database, handler, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    for name in ("1", "2", "3"):
        await idle.take(rows.inbox(name, chat_key=name))
    handler.gate.clear()
    for _ in range(taking.MAX_DEATHS + taking.ALONE_AFTER):
        handler.is_waiting.clear()
        async with running(database, handler):
            await handler.is_waiting.wait()
    handler.gate.set()
    async with running(database, handler):
        await until(lambda: sorted(handler.order) == ["2", "3"])
    assert await handler.effects("1") == 0


@pytest.mark.parametrize("error", [NotReady("starting"), StorageFull("full"), DatabaseLost("gone")])
async def test_what_passes_is_waited_for(database: Database, handler: Handler, error: Exception) -> None:
    """While the engine is restarted, the disk is full or the server is away nothing is set aside."""
    handler.failures = [error] * 10
    async with running(database, handler) as worker:
        await worker.take(rows.inbox("1"))
        await until(lambda: worker.num_waiting == 0)
    assert await handler.effects("1") == 1


async def test_an_effect_is_undone_where_it_was_had_before(database: Database, handler: Handler) -> None:
    """A handler that lost the race changes nothing."""

    async def late(row: Inbox, done: Done) -> None:
        await database.write(lambda s: inbox.mark_done(s, row.seq or 0))
        await handler(row, done)

    async with running(database, late) as worker:
        await worker.take(rows.inbox("1"))
        await until(lambda: worker.num_waiting == 0)
    assert await handler.effects("1") == 0


async def test_too_much_is_not_taken(database: Database, handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the high-water mark `take` waits until something is done: the platform keeps what it has."""
    monkeypatch.setattr(taking, "HIGH_WATER", 3)
    handler.gate.clear()
    async with running(database, handler) as worker:
        for number in range(3):
            await worker.take(rows.inbox(str(number)))
        late = asyncio.create_task(worker.take(rows.inbox("late")))
        await handler.is_waiting.wait()
        assert not late.done()
        handler.gate.set()
        assert await late
        await until(lambda: worker.num_waiting == 0)


async def test_draining_lets_a_handler_end_and_begins_no_other(database: Database, handler: Handler) -> None:
    """What runs ends, what waits is still there for the next heed."""
    handler.gate.clear()
    worker = InboxWorker(database, handler, Metrics(), no_wait, is_ours=lambda row: row.platform == "telegram")
    worker.open("telegram")
    task = asyncio.create_task(worker.run())
    for number in range(3):
        await worker.take(rows.inbox(str(number)))
    await handler.is_waiting.wait()
    task.cancel()
    draining = asyncio.create_task(worker.drain(20))
    await asyncio.sleep(0)
    handler.gate.set()
    await draining
    assert handler.order == ["0"]
    assert await database.read(inbox.num_waiting) == 2


async def test_fifty_updates_at_once_share_commits(database: Database, handler: Handler) -> None:
    """Group commit: far fewer commits than updates."""
    async with running(database, handler) as worker:
        takes: list[Awaitable[bool]] = [worker.take(rows.inbox(str(n), f"c{n}")) for n in range(50)]
        before = database.num_commits
        await asyncio.gather(*takes)
        assert database.num_commits - before < 25
        await until(lambda: worker.num_waiting == 0)


async def test_one_that_cannot_be_kept_among_many_fails_alone(database: Database, handler: Handler) -> None:
    """What came at the same moment is durable and handled all the same."""
    updates = [rows.inbox(str(number), chat_key=f"chat {number}") for number in range(5)]
    updates[2].payload = {"text": float("nan")}
    async with running(database, handler) as worker:
        taken = await asyncio.gather(*map(worker.take, updates), return_exceptions=True)
        await until(lambda: len(handler.order) == 4)
    assert isinstance(taken.pop(2), NotStorable)
    assert taken == [True] * 4
    assert sorted(handler.order) == ["0", "1", "3", "4"]


async def test_nothing_is_handled_before_its_platform_has_started(database: Database, handler: Handler) -> None:
    """Neither what waited nor what comes; then all of it, in order. Ending before that takes no time."""
    worker = InboxWorker(database, handler, Metrics(), no_wait, is_ours=lambda _: True)
    await worker.take(rows.inbox("1"))
    task = asyncio.create_task(worker.run())
    worker.open("discord")
    await worker.take(rows.inbox("2"))
    await worker.take(rows.inbox("3", platform="discord"))
    await until(lambda: handler.order == ["3"])
    worker.open("telegram")
    await until(lambda: handler.order == ["3", "1", "2"])
    task.cancel()
    await worker.drain(20)


async def test_what_waits_of_a_platform_that_is_off_goes_on_waiting(database: Database, handler: Handler) -> None:
    """Without its token for one start nothing is lost, and nothing is handled without its channel."""
    idle = InboxWorker(database, handler, Metrics(), no_wait, is_ours=lambda _: True)
    await idle.take(rows.inbox("1", platform="discord"))
    await idle.take(rows.inbox("2"))
    async with running(database, handler):
        await until(lambda: handler.order == ["2"])
    assert await database.read(inbox.num_waiting) == 1


class WorkInSlots:
    """Tasks that say which of them run at the same time."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.at_work: set[str] = set()
        self.seen: list[set[str]] = []

    async def run(self, name: str, *, alone: bool = False) -> None:
        async with self.slots.all() if alone else self.slots.one():
            self.at_work.add(name)
            await asyncio.sleep(0)
            self.seen.append(set(self.at_work))
            await asyncio.sleep(0)
            self.at_work.remove(name)


@pytest.fixture
def slots_work() -> WorkInSlots:
    """Two places."""
    return WorkInSlots(Slots(2))


async def test_as_many_as_there_are_places_work_side_by_side(slots_work: WorkInSlots) -> None:
    """And not one more."""
    await asyncio.gather(*(slots_work.run(name) for name in "abc"))
    assert max(map(len, slots_work.seen)) == 2


async def test_who_works_alone_sees_nobody(slots_work: WorkInSlots) -> None:
    """Two that want to be alone do not wait for each other, and whoever comes later is served, too."""
    await asyncio.gather(*(slots_work.run(name, alone=name in "bc") for name in "abcd"))
    assert {"b"} in slots_work.seen
    assert {"c"} in slots_work.seen
    assert all(len(seen) == 1 for seen in slots_work.seen if seen & {"b", "c"})
    assert len(slots_work.seen) == 4


async def test_giving_up_leaves_every_place_free(slots_work: WorkInSlots) -> None:
    """A cancelled wait for all of them gives back what it had."""
    async with slots_work.slots.one():
        waiting = asyncio.create_task(slots_work.run("a", alone=True))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await slots_work.run("b", alone=True)
    assert slots_work.seen == [{"b"}]


async def test_a_handler_lets_its_chat_go_on(database: Database) -> None:
    """The next update of the chat is handled meanwhile; the first one is done when it is done, and waits until then."""
    seen: list[str] = []
    slow = asyncio.Event()

    async def handle(row: Inbox, done: Done) -> None:
        if row.update_id == "slow":
            done.let_go()
            await slow.wait()
        seen.append(row.update_id)

    async with running(database, handle) as worker:
        await worker.take(rows.inbox("slow"))
        await worker.take(rows.inbox("next"))
        await until(lambda: seen == ["next"])
        assert [row.update_id for row in await database.read(inbox.waiting)] == ["slow"]
        assert await worker.take(rows.inbox("slow")) is False, "it is being handled"
        slow.set()
        await until(lambda: worker.num_waiting == 0)
    assert seen == ["next", "slow"]
    assert await database.read(inbox.waiting) == []


async def test_what_was_let_go_is_taken_up_by_the_next_heed(database: Database, handler: Handler) -> None:
    """A heed that ends cancels it, and it waits in storage."""

    async def handle(_: Inbox, done: Done) -> None:
        done.let_go()
        await asyncio.Event().wait()

    async with running(database, handle) as worker:
        await worker.take(rows.inbox("1"))
        await asyncio.sleep(0.05)
    async with running(database, handler) as worker:
        await until(lambda: handler.order == ["1"])
    assert await handler.effects("1") == 1
