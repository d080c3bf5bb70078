"""engine.learning.update_log: the row of an update, however it ends, and how long its phases took."""

import asyncio
import math
from pathlib import Path

import pytest

from engine.host.trainer_client import Trained
from engine.learning import update_log
from engine.learning.update_log import PhaseTimer
from storage.database import Database, Session
from storage.errors import StorageFull
from storage.kinds import VersionState
from storage.learning import updates, versions
from storage.tables import UpdateRun
from tests.engine.rows import opened, person


async def begun(database: Database) -> UpdateRun:
    """Start an update of a new person."""
    return await database.write(lambda s: updates.start(s, UpdateRun(user_id=person(s, "ana"))))


async def test_a_broken_update_stores_no_number_that_is_none(tmp_path: Path) -> None:
    """NaN becomes null; status and steps are what the update says."""
    async with opened(tmp_path) as database:
        run = await begun(database)
        trained = Trained(steps=3, divergence_before=math.nan, divergence_after=0.5)
        await database.write(lambda s: update_log.finish(s, run.id, "rejected", trained, error="why"))
        row = await database.read(lambda s: updates.get(s, run.user_id, run.id))
    assert (row.status, row.steps, row.divergence_before, row.divergence_after) == ("rejected", 3, None, 0.5)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [(RuntimeError("no room"), "failed", "no room"), (asyncio.CancelledError(), "postponed", "it gave way")],
)
async def test_what_breaks_off_is_recorded_and_raised(
    tmp_path: Path, error: BaseException, status: str, reason: str
) -> None:
    """Its row says why, its candidate is rejected, and the error goes on."""
    async with opened(tmp_path) as database:
        run = await begun(database)
        await database.write(lambda s: versions.allocate(s, run.user_id, 0, "base", None, run.id))

        def record(s: Session, status: str, reason: str) -> None:
            update_log.fail(s, run, status, reason, 5.0)

        with pytest.raises(type(error)):
            async with update_log.failures_recorded(database, record, cancelled_as=update_log.POSTPONED):
                raise error
        row = await database.read(lambda s: updates.get(s, run.user_id, run.id))
        (version,) = await database.read(lambda s: versions.history(s, run.user_id))
    assert (row.status, row.error, version.state) == (status, reason, VersionState.REJECTED)


async def test_a_write_that_fails_hides_no_cancellation(tmp_path: Path) -> None:
    """Whoever cancelled the update must see it end; its row is ended by the next start."""

    def record(_: Session, _status: str, _reason: str) -> None:
        raise StorageFull("no room")

    async with opened(tmp_path) as database:
        with pytest.raises(asyncio.CancelledError):
            async with update_log.failures_recorded(database, record):
                raise asyncio.CancelledError


async def test_a_row_that_has_ended_stays_as_it_is(tmp_path: Path) -> None:
    """An update cancelled while its last transaction was under way keeps what that transaction said."""
    async with opened(tmp_path) as database:
        run = await begun(database)
        await database.write(lambda s: updates.finish(s, run.id, status="accepted"))
        assert not await database.write(lambda s: update_log.fail(s, run, "failed", "late", 1.0))
        row = await database.read(lambda s: updates.get(s, run.user_id, run.id))
    assert row.status == "accepted"


def test_laps_follow_one_another_and_a_phase_may_come_again() -> None:
    """Each books what has passed since the last; together they are all the time so far."""
    timed = PhaseTimer(started_s=PhaseTimer().started_s - 1.0)
    timed.lap("rollouts")
    timed.started_s -= 2.0
    timed.lap("train")
    timed.started_s -= 0.5
    timed.lap("rollouts")
    assert timed.phases_ms["rollouts"] >= 1500
    assert timed.phases_ms["train"] >= 2000
    assert 3500 <= sum(timed.phases_ms.values()) <= timed.duration_ms
