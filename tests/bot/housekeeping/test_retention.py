"""bot.housekeeping.retention: old answers and old updates go, nothing earlier and nothing that is still needed."""

import asyncio
from pathlib import Path

import pytest
from sqlmodel import select

from bot.housekeeping.periodic import DAY_S
from bot.housekeeping.retention import AnswerRetention, UpdateRetention
from storage.conversations import completions, inbox, outbox
from storage.conversations.inbox import Kept
from storage.database import Database
from storage.errors import StorageFull
from storage.people import people
from storage.tables import Completion, Inbox, Outbox
from tests.bot.fake_channel import FakeChannel, FakePlatform
from tests.bot.sleeps import Sleeps
from tests.patience import until
from tests.storage import rows

NOW_S = 1_000_000.0
KEEP_S = 1000.0
DAYS_40_S = 40 * DAY_S
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


def update_retention(database: Database, sleeps: Sleeps | None = None) -> UpdateRetention:
    """At a time of the test's own."""
    return UpdateRetention(database, KEEP_S, clock=lambda: NOW_S, sleep=sleeps or Sleeps())


async def test_what_is_old_goes_and_what_is_new_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, however few go at a time."""
    monkeypatch.setattr("bot.housekeeping.retention.UPDATES_AT_ONCE", 2)
    for number in range(5):
        await handled(database, f"old {number}", OLD_S)
    await handled(database, "new", NEW_S)
    assert await update_retention(database).drop(FakeChannel(FakePlatform())) == 10
    assert await left(database) == (["new"], ["new"])


async def test_nothing_younger_than_what_waits_is_dropped(database: Database) -> None:
    """An update that was half handled days ago finds what it has said, and says it once."""
    await handled(database, "before", OLD_S - 9)
    await database.write(lambda s: inbox.add(s, rows.inbox("waits", received_at=OLD_S - 5)))
    await database.write(lambda s: outbox.add(s, rows.outbox("waits:greeting", created_at=OLD_S - 4)))
    await database.write(lambda s: outbox.finish(s, "waits:greeting", "m1"))
    await update_retention(database).drop(FakeChannel(FakePlatform()))
    assert await left(database) == (["waits"], ["waits:greeting"])


async def test_what_is_to_be_shown_and_what_the_platform_needs_stay(database: Database) -> None:
    """And whatever belongs to a platform that is off."""
    channel = FakeChannel(FakePlatform())
    channel.kept_keys = Kept(prefixes=("s:",))
    await handled(database, "s:1", OLD_S)
    await database.write(lambda s: outbox.add(s, rows.outbox("waits", created_at=OLD_S)))
    await update_retention(database).drop(channel)
    await update_retention(database).drop(FakeChannel(FakePlatform(), platform="discord"))
    assert await left(database) == (["s:1"], ["waits"])


async def test_it_happens_at_once_and_every_day(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a day on which there was no room."""
    sleeps = Sleeps()
    work = update_retention(database, sleeps)
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
    await update_retention(database).drop(FakeChannel(FakePlatform()))
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"canary-7261" in path.read_bytes()] == []


def answer_retention(database: Database) -> AnswerRetention:
    """Thirty days, at a time of the test's own."""
    return AnswerRetention(database, 30, clock=lambda: DAYS_40_S)


async def answered(database: Database, text: str, age_days: float) -> None:
    """An answer of some days ago."""
    user_id = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    row = rows.completion(user_id, text, created_at=DAYS_40_S - age_days * DAY_S)
    await database.write(lambda s: completions.add(s, row))


async def answers_left(database: Database) -> list[str]:
    """What Ana was answered."""
    user = await database.read(lambda s: people.find(s, "http", "ana"))
    found: list[Completion] = await database.read(lambda s: completions.recent(s, user.id if user else "", 100))
    return [row.text for row in found]


async def test_answers_older_than_they_should_be_go(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, however few go at a time."""
    monkeypatch.setattr("bot.housekeeping.retention.ANSWERS_AT_ONCE", 2)
    for number in range(5):
        await answered(database, str(number), 31)
    await answered(database, "young", 29)
    assert await answer_retention(database).drop() == 5
    assert await answers_left(database) == ["young"]


async def test_nothing_of_it_is_left_in_any_file(database: Database, tmp_path: Path) -> None:
    """Not in the write-ahead log either."""
    await answered(database, "canary-6113", 31)
    await answer_retention(database).drop()
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"canary-6113" in path.read_bytes()] == []
