"""bot.housekeeping.pruning: what is over is dropped, nothing earlier and nothing that is still needed."""

import asyncio
from pathlib import Path

import pytest
from sqlmodel import select

from bot.housekeeping.periodic import DAY_S
from bot.housekeeping.pruning import Pruning
from storage.conversations import inbox, outbox
from storage.conversations.inbox import Kept
from storage.database import Database
from storage.errors import StorageFull
from storage.tables import Inbox, Outbox
from tests.bot.fake_channel import FakeChannel, FakePlatform
from tests.bot.sleeps import Sleeps
from tests.patience import until
from tests.storage import rows

NOW_S = 1_000_000.0
KEEP_S = 1000.0
OLD_S, NEW_S = NOW_S - KEEP_S - 1, NOW_S - KEEP_S + 1


async def handled(database: Database, update_id: str, received_at: float) -> None:
    """An update that was handled, and what it had to say shown."""
    item, _ = await database.write(lambda s: inbox.add(s, rows.inbox(update_id, received_at=received_at)))
    await database.write(lambda s: inbox.mark_done(s, item.seq or 0))
    await database.write(lambda s: outbox.add(s, rows.outbox(update_id, created_at=received_at)))
    await database.write(lambda s: outbox.finish(s, update_id, "m1"))


async def left(database: Database) -> tuple[list[str], list[str]]:
    """The keys of both tables."""
    return await database.read(
        lambda s: (
            list(s.exec(select(Inbox.update_id).order_by("seq"))),
            list(s.exec(select(Outbox.id).order_by("seq"))),
        )
    )


def pruning(database: Database, sleeps: Sleeps | None = None) -> Pruning:
    """At a time of the test's own."""
    return Pruning(database, KEEP_S, clock=lambda: NOW_S, sleep=sleeps or Sleeps())


async def test_what_is_old_goes_and_what_is_new_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, however few go at a time."""
    monkeypatch.setattr("bot.housekeeping.pruning.AT_ONCE", 2)
    for number in range(5):
        await handled(database, f"old {number}", OLD_S)
    await handled(database, "new", NEW_S)
    assert await pruning(database).prune(FakeChannel(FakePlatform())) == 10
    assert await left(database) == (["new"], ["new"])


async def test_nothing_younger_than_what_waits_is_dropped(database: Database) -> None:
    """An update that was half handled days ago finds what it has said, and says it once."""
    await handled(database, "before", OLD_S - 9)
    await database.write(lambda s: inbox.add(s, rows.inbox("waits", received_at=OLD_S - 5)))
    await database.write(lambda s: outbox.add(s, rows.outbox("waits:greeting", created_at=OLD_S - 4)))
    await database.write(lambda s: outbox.finish(s, "waits:greeting", "m1"))
    await pruning(database).prune(FakeChannel(FakePlatform()))
    assert await left(database) == (["waits"], ["waits:greeting"])


async def test_what_is_to_be_shown_and_what_the_platform_needs_stay(database: Database) -> None:
    """And whatever belongs to a platform that is off."""
    channel = FakeChannel(FakePlatform())
    channel.kept_keys = Kept(prefixes=("s:",))
    await handled(database, "s:1", OLD_S)
    await database.write(lambda s: outbox.add(s, rows.outbox("waits", created_at=OLD_S)))
    await pruning(database).prune(channel)
    await pruning(database).prune(FakeChannel(FakePlatform(), platform="discord"))
    assert await left(database) == (["s:1"], ["waits"])


async def test_it_happens_at_once_and_every_day(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a day on which there was no room."""
    sleeps = Sleeps()
    work = pruning(database, sleeps)
    task = asyncio.create_task(work.run(FakeChannel(FakePlatform())))
    await until(lambda: len(sleeps.asked) == 1)
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "prune", no_room)
        sleeps.next.set()
        await until(lambda: len(sleeps.asked) == 2)
    await handled(database, "1", OLD_S)
    sleeps.next.set()
    await until(lambda: len(sleeps.asked) == 3)
    assert await left(database) == ([], [])
    assert sleeps.asked == [DAY_S] * 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def no_room(*_: object) -> int:
    """A full disk."""
    raise StorageFull("no room")


async def test_nothing_of_what_was_dropped_is_left_in_any_file(database: Database, tmp_path: Path) -> None:
    """Not in the write-ahead log either."""
    await handled(database, "canary-7261", OLD_S)
    await pruning(database).prune(FakeChannel(FakePlatform()))
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"canary-7261" in path.read_bytes()] == []
