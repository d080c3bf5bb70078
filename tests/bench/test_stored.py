"""A filled database has what was asked for."""

from pathlib import Path

from bench import stored
from storage.database import Database
from storage.reports import dashboards
from storage.reports.dashboards import Counts


async def test_there_are_as_many_rows_as_were_asked_for(tmp_path: Path) -> None:
    """Answers given again included; each update is told whole, and what was done is told on the way."""
    told: list[int] = []
    database = Database.open(tmp_path / "data")
    try:
        await stored.fill(database, 1000, 50, seed=1, told=told.append)
        assert await database.read(lambda s: dashboards.counts(s, 0)) == Counts(1000, 50, 50)
        newest = (await database.read(lambda s: dashboards.updates(s, 1))).rows[0]
        story = await database.read(lambda s: dashboards.update(s, newest.id))
        assert story.run.heat
        assert story.run.curves
        assert (story.before is None) is not story.is_shown
    finally:
        await database.close()
    assert sum(told) == 950
