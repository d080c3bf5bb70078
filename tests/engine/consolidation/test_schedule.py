"""Tests of the schedule: whose turn it is, and how failures are handled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ConsolidationConfig
from engine.consolidation.schedule import ConsolidationSchedule, against, attempts
from engine.errors import EngineRestarting, TrainerError
from engine.learning.scheduler import MAX_ATTEMPTS
from engine.requests import ConsolidationOutcome
from storage.database import Database, Session
from storage.errors import StorageError
from storage.learning import signals, updates
from storage.people import people
from storage.tables import UpdateRun
from tests.engine.rows import opened, person, taught

NIGHT_S = datetime(2026, 11, 20, 3, 0).timestamp()  # noqa: DTZ001 - local time
DAY_S = 86_400.0
CONFIG = ConsolidationConfig(min_new=2)
CAN_BE_CONSOLIDATED = ConsolidationOutcome("learned", 2)


def run(status: str, at_s: float) -> UpdateRun:
    """Return a consolidation of that time."""
    return UpdateRun(user_id="ana", kind=signals.CONSOLIDATION, status=status, started_at=at_s)


def runs(*found: tuple[str, float]) -> Sequence[UpdateRun]:
    """Return consolidations, newest first, from their ages in days."""
    return [run(status, NIGHT_S - days * DAY_S) for status, days in found]


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        ([], ""),
        ([("accepted", 1)], ""),
        ([("accepted", 0.01)], "There was one this night."),
        ([("skipped", 0.01)], "There was one this night."),
        ([("postponed", 0.01)], ""),
        ([("failed", 0.01)], ""),
        ([("rejected", 0.5)], "The last one failed not long ago."),
        ([("rejected", 1.01)], ""),
        ([("parked", 1.01), ("rejected", 2)], ""),
        ([("parked", 1.01), ("rejected", 2), ("rejected", 3)], "The last 3 consolidations failed"),
        ([("parked", 1.01), ("accepted", 1.5), ("rejected", 2), ("rejected", 3)], ""),
        ([("parked", 1.01), ("rejected", 2), ("rejected", 8)], ""),
        ([("parked", -1), ("rejected", -2), ("rejected", -3)], ""),
    ],
)
def test_what_stands_against_one_at_night(past: list[tuple[str, float]], reason: str) -> None:
    """There is one a night, a cooldown of a day, and a break of seven days after three failures in a row.

    Failures in the future, left by a clock that jumped, do not count.
    """
    assert against(NIGHT_S, runs(*past), CONFIG, is_asked=False).startswith(reason)
    assert bool(against(NIGHT_S, runs(*past), CONFIG, is_asked=False)) == bool(reason)


def test_by_day_only_who_asks_is_consolidated() -> None:
    """Hour, an earlier one this night and a fresh failure do not stop a request; the break does."""
    noon_s = NIGHT_S + 9 * 3600
    assert against(noon_s, [], CONFIG, is_asked=False).startswith("It is not night")
    assert against(noon_s, [run("rejected", noon_s - 60)], CONFIG, is_asked=True) == ""
    three = [run("rejected", noon_s - n * 3600) for n in (1, 2, 3)]
    assert "failed" in against(noon_s, three, CONFIG, is_asked=True)


@given(
    st.lists(
        st.tuples(st.sampled_from(["accepted", "rejected", "skipped", "parked", "failed", "postponed", "running"]),
                  st.floats(-400, 400)), max_size=12
    ),
    st.floats(-400, 400),
)  # fmt: skip
def test_no_past_blocks_for_good(past: list[tuple[str, float]], jump_days: float) -> None:
    """Long enough after any past, and after any jump of the clock, a consolidation is possible at night."""
    later_s = NIGHT_S + round(max([0.0, *(-days for _, days in past)]) + CONFIG.failure_age_s / DAY_S + 2) * DAY_S
    assert against(NIGHT_S + jump_days * DAY_S, runs(*past), CONFIG, is_asked=False) is not None
    at = datetime.fromtimestamp(later_s).replace(hour=3, minute=0)  # noqa: DTZ006 - local time
    assert against(at.timestamp(), runs(*past), CONFIG, is_asked=False) == ""


@pytest.mark.parametrize(
    ("statuses", "number"),
    [
        ([], 0),
        (["failed"], 1),
        (["running", "postponed", "failed", "parked", "failed"], 2),
        (["accepted", "failed"], 0),
    ],
)
def test_attempts_are_those_since_the_last_one_that_ended(statuses: list[str], number: int) -> None:
    """A consolidation that gave way to a lesson did not break off."""
    assert attempts([run(status, NIGHT_S) for status in statuses]) == number


class Night:
    """A database with people, and a schedule whose clock, idleness and consolidations the test decides."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now_s = NIGHT_S
        self.is_idle = True
        self.failures: list[Exception] = []
        self.consolidated: list[str] = []
        self.sleep = self.made()

    def made(self, config: ConsolidationConfig = CONFIG) -> ConsolidationSchedule:
        """Return a schedule that knows nothing but what is stored."""
        return ConsolidationSchedule(
            config, self.database, self.consolidate, lambda: self.is_idle, clock=lambda: self.now_s, retry_after_s=0.0
        )

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """Write the row that the real one would."""
        self.consolidated.append(user_id)
        failure = self.failures.pop(0) if self.failures else None
        status = "failed" if failure else "accepted"
        await self.database.write(lambda s: _row(s, user_id, status, self.now_s))
        if failure:
            raise failure
        rows = await self.database.read(lambda s: signals.fresh(s, user_id))
        await self.database.write(lambda s: signals.take_in(s, user_id, "upd", [row.id for row in rows], []))
        return CAN_BE_CONSOLIDATED

    async def someone(self, account: str, num_lessons: int = 2, *, is_learning: bool = True) -> str:
        """Return a person who has taught something."""

        def make(s: Session) -> str:
            user_id = person(s, account)
            for number in range(num_lessons):
                taught(s, user_id, f"wish {number}")
            people.set_learning(s, user_id, is_learning)
            return user_id

        return await self.database.write(make)

    async def statuses(self, user_id: str) -> list[str]:
        """Return how this person's consolidations ended, newest first."""
        return [row.status for row in await self.database.read(lambda s: signals.runs(s, user_id))]


def _row(s: Session, user_id: str, status: str, at_s: float) -> None:
    updates.start(s, UpdateRun(user_id=user_id, kind=signals.CONSOLIDATION, status=status, started_at=at_s))


@pytest.fixture
async def night(tmp_path: Path) -> AsyncIterator[Night]:
    """Return a schedule at three in the morning, while no one talks."""
    async with opened(tmp_path) as database:
        yield Night(database)


async def test_who_waited_longest_comes_first(night: Night) -> None:
    """People without a consolidation come first, by their oldest signal; then by the age of the last one."""
    first, second, third = [await night.someone(name) for name in ("ana", "ben", "eva")]
    for user_id in (second, first):
        await night.database.write(lambda s, u=user_id: _row(s, u, "accepted", NIGHT_S - 3 * DAY_S))
    order = []
    while (user_id := await night.sleep.due()) is not None:
        order.append(user_id)
        await night.sleep.run(user_id)
    assert order == [third, second, first]


async def test_everybody_has_one_a_night(night: Night) -> None:
    """More signals in the same night wait for the next one."""
    user_id = await night.someone("ana")
    await night.sleep.run(user_id)
    await night.database.write(lambda s: [taught(s, user_id, f"more {n}") for n in range(2)])
    assert await night.sleep.due() is None
    night.now_s += DAY_S
    assert await night.sleep.due() == user_id


@pytest.mark.parametrize("why", ["day", "talking", "paused", "few", "learning off", "switched off"])
async def test_nobody_is_due(night: Night, why: str) -> None:
    """No one is due by day, during an answer, while paused, below the threshold, without consent, or with it off."""
    sleep = night.made(ConsolidationConfig(min_new=2, is_nightly=why != "switched off"))
    await night.someone("ana", 1 if why == "few" else 2, is_learning=why != "learning off")
    night.now_s += 12 * 3600 if why == "day" else 0
    night.is_idle = why != "talking"
    sleep.is_paused = why == "paused"
    assert await sleep.due() is None


async def test_one_whose_time_has_passed_is_not_begun(night: Night) -> None:
    """Morning may come, or people may talk again, before a queued one has its turn."""
    user_id = await night.someone("ana")
    night.is_idle = False
    await night.sleep.run(user_id)
    night.is_idle, night.now_s = True, NIGHT_S + 12 * 3600
    await night.sleep.run(user_id)
    assert night.consolidated == []


async def test_whoever_asks_is_served_by_day_and_while_people_talk(night: Night) -> None:
    """Two requests wait for the same consolidation."""
    user_id = await night.someone("ana", 1)
    night.now_s, night.is_idle = NIGHT_S + 12 * 3600, False
    one, other = night.sleep.ask(user_id), night.sleep.ask(user_id)
    await night.sleep.run(user_id)
    assert await one == await other == CAN_BE_CONSOLIDATED
    assert night.consolidated == [user_id]


async def test_whoever_asks_during_the_break_is_told(night: Night) -> None:
    """The caller gets the reason, and nothing begins."""
    user_id = await night.someone("ana")
    for days in (3, 2, 1):
        await night.database.write(lambda s, d=days: _row(s, user_id, "rejected", NIGHT_S - d * DAY_S))
    asked = night.sleep.ask(user_id)
    await night.sleep.run(user_id)
    assert ("failed" in (await asked).reason, night.consolidated) == (True, [])


async def test_one_that_broke_off_is_tried_again(night: Night) -> None:
    """It breaks off twice and is then learned."""
    user_id = await night.someone("ana")
    night.failures = [EngineRestarting("gone")] * 2
    await night.sleep.run(user_id)
    assert await night.statuses(user_id) == ["accepted", "failed", "failed"]


@pytest.mark.parametrize(("failure", "times"), [(EngineRestarting("gone"), MAX_ATTEMPTS), (TrainerError("odd"), 1)])
async def test_one_that_keeps_breaking_off_is_parked(night: Night, failure: Exception, times: int) -> None:
    """It is parked after three attempts, or at once if a retry is useless, and the caller gets the reason."""
    user_id = await night.someone("ana")
    night.failures = [failure] * 9
    asked = night.sleep.ask(user_id)
    await night.sleep.run(user_id)
    assert (len(night.consolidated), (await night.statuses(user_id))[0]) == (times, "parked")
    assert ((await asked).status, str(failure) in (await asked).reason) == ("rejected", True)
    assert await night.sleep.due() is None


async def test_attempts_are_counted_over_restarts(night: Night) -> None:
    """Two attempts before the restart leave one; giving way is no attempt."""
    user_id = await night.someone("ana")
    for status in ("failed", "postponed", "failed"):
        await night.database.write(lambda s, status=status: _row(s, user_id, status, NIGHT_S))
    assert await night.sleep.resume() == [user_id]
    night.failures = [EngineRestarting("gone")] * 9
    await night.sleep.run(user_id)
    assert (len(night.consolidated), (await night.statuses(user_id))[0]) == (1, "parked")


async def test_after_a_restart_one_that_was_under_way_goes_on_and_a_hopeless_one_is_parked(night: Night) -> None:
    """It goes on by day, too, because it had begun; one that ended well is left alone."""
    again, hopeless, done = [await night.someone(name) for name in ("ana", "ben", "eva")]
    for user_id, statuses in ((again, ["failed"]), (hopeless, ["failed"] * 3), (done, ["failed", "accepted"])):
        for status in statuses:
            await night.database.write(lambda s, u=user_id, status=status: _row(s, u, status, NIGHT_S))
    night.now_s += 12 * 3600
    assert await night.sleep.resume() == [again]
    assert (await night.statuses(hopeless))[0] == "parked"
    await night.sleep.run(again)
    assert night.consolidated == [again]


async def test_one_that_never_got_a_row_is_parked_all_the_same(night: Night) -> None:
    """Otherwise every look would begin it again."""

    async def broken(_user_id: str) -> ConsolidationOutcome:
        raise TrainerError("odd")

    user_id = await night.someone("ana")
    night.consolidate = broken  # type: ignore[method-assign]
    await night.made().run(user_id)
    assert await night.statuses(user_id) == ["parked"]


async def test_nobody_waits_for_one_that_cannot_even_be_looked_up(night: Night) -> None:
    """If the person is gone, the caller is released and the scheduler hears of the error."""
    asked = night.sleep.ask("nobody")
    night.failures = [TrainerError("odd")]
    with pytest.raises(StorageError):
        await night.sleep.run("nobody")
    assert asked.cancelled()


async def test_a_look_that_fails_is_not_the_last(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is counted, and the next look finds the person."""
    user_id = await night.someone("ana")
    sleep = night.made(ConsolidationConfig(min_new=2, look_every_s=0.05))
    looks: list[Callable[[], object]] = [lambda: 1 / 0, sleep.due]

    async def due() -> str | None:
        return await looks.pop(0)()  # type: ignore[misc, no-any-return]

    monkeypatch.setattr(sleep, "due", due)
    submitted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    watching = asyncio.create_task(sleep.watch(submitted.set_result))
    assert await submitted == user_id
    assert sleep.num_failures == 1
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_who_is_gone_waits_no_more(night: Night) -> None:
    """Callers of that person learn that it was dropped, and other callers wait on."""
    one, other = night.sleep.ask("ana"), night.sleep.ask("ben")
    night.sleep.drop("ana")
    assert (one.cancelled(), other.done()) == (True, False)
    night.sleep.drop()
    assert other.cancelled()
