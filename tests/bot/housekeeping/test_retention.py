"""bot.housekeeping.retention: old answers go, and leave nothing."""

from pathlib import Path

import pytest

from bot.housekeeping.periodic import DAY_S
from bot.housekeeping.retention import Retention
from storage.conversations import completions
from storage.database import Database
from storage.people import people
from storage.tables import Completion
from tests.storage import rows

NOW_S = 40 * DAY_S


def retention(database: Database) -> Retention:
    """Thirty days, at a time of the test's own."""
    return Retention(database, 30, clock=lambda: NOW_S)


async def answered(database: Database, text: str, age_days: float) -> None:
    """An answer of some days ago."""
    user_id = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    row = rows.completion(user_id, text, created_at=NOW_S - age_days * DAY_S)
    await database.write(lambda s: completions.add(s, row))


async def left(database: Database) -> list[str]:
    """What Ana was answered."""
    user = await database.read(lambda s: people.find(s, "http", "ana"))
    found: list[Completion] = await database.read(lambda s: completions.recent(s, user.id if user else "", 100))
    return [row.text for row in found]


async def test_what_is_older_than_it_should_be_goes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, however few go at a time."""
    monkeypatch.setattr("bot.housekeeping.retention.AT_ONCE", 2)
    for number in range(5):
        await answered(database, str(number), 31)
    await answered(database, "young", 29)
    assert await retention(database).drop() == 5
    assert await left(database) == ["young"]


async def test_nothing_of_it_is_left_in_any_file(database: Database, tmp_path: Path) -> None:
    """Not in the write-ahead log either."""
    await answered(database, "canary-6113", 31)
    await retention(database).drop()
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"canary-6113" in path.read_bytes()] == []
