"""Group commit: one transaction for those who wait together, and each alone with its errors."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlmodel import Session

from storage import settings
from storage.database import Database
from storage.errors import ConstraintViolated, DatabaseBusy, DatabaseClosed, NotStorable, StorageFull
from storage.people import people
from storage.sql import sqlite
from storage.sql.writer import MAX_GROUP
from storage.tables import Identity
from tests.patience import PATIENCE_S
from tests.storage.stored import all_ids


class Gate:
    """Holds the writer inside a work until it is opened."""

    def __init__(self, database: Database) -> None:
        self._opened = threading.Event()
        self._entered = threading.Event()
        self.task = asyncio.ensure_future(database.write(self._work))

    async def entered(self) -> None:
        """Wait until the writer stands in the gate."""
        await asyncio.to_thread(self._entered.wait, 10)

    def open(self) -> None:
        """Let the writer go on."""
        self._opened.set()

    def _work(self, s: Session) -> None:
        self._entered.set()
        self._opened.wait(PATIENCE_S)


async def _gate(database: Database) -> Gate:
    gate = Gate(database)
    await gate.entered()
    return gate


def _put(key: str, value: object = True) -> Callable[[Session], str]:
    def work(s: Session) -> str:
        settings.put(s, key, value)
        return key

    return work


def _fail(key: str, error: BaseException) -> Callable[[Session], None]:
    def work(s: Session) -> None:
        settings.put(s, key, True)
        s.flush()
        raise error

    return work


async def _stored(database: Database, *keys: str) -> list[str]:
    return await database.read(lambda s: [key for key in keys if settings.get(s, key)])


async def test_works_that_wait_together_share_a_commit(database: Database) -> None:
    """Fifty writes sent at once take a few commits, fifty one after another take fifty."""
    before = database.num_commits
    results = await asyncio.gather(*(database.write(_put(f"k{n}")) for n in range(50)))
    assert results == [f"k{n}" for n in range(50)]
    assert database.num_commits - before <= 3
    before = database.num_commits
    for n in range(50):
        await database.write(_put(f"k{n}"))
    assert database.num_commits - before == 50


async def test_a_group_has_a_bounded_size(database: Database) -> None:
    """More waiting works than fit into one group take as many commits as it takes, and lose none."""
    gate = await _gate(database)
    before = database.num_commits
    keys = [f"k{n}" for n in range(2 * MAX_GROUP + 1)]
    writes = [asyncio.ensure_future(database.write(_put(key))) for key in keys]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*writes)
    assert database.num_commits - before == 1 + 3
    assert await _stored(database, *keys) == keys


async def test_nothing_is_acknowledged_before_its_commit(database: Database) -> None:
    """While a later work of the same group still runs, an earlier one has no answer, and no reader sees its row."""
    gate = await _gate(database)
    first = asyncio.ensure_future(database.write(_put("first")))
    inside, go_on = threading.Event(), threading.Event()
    second = asyncio.ensure_future(database.write(lambda s: (inside.set(), go_on.wait(PATIENCE_S))))
    await asyncio.sleep(0)
    gate.open()
    await asyncio.to_thread(inside.wait, PATIENCE_S)
    await asyncio.sleep(0.05)
    assert not first.done()
    assert await _stored(database, "first") == []
    go_on.set()
    await asyncio.gather(first, second)
    assert await _stored(database, "first") == ["first"]


async def test_a_failing_work_is_undone_alone(database: Database) -> None:
    """Of a group the works before and after a failing one are kept; only its own caller hears of it."""
    gate = await _gate(database)
    commits = database.num_commits
    works = [_put("before"), _fail("failing", LookupError("mine")), _put("after")]
    tasks = [asyncio.ensure_future(database.write(work)) for work in works]
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [results[0], results[2]] == ["before", "after"]
    assert isinstance(results[1], LookupError)
    assert await _stored(database, "before", "failing", "after") == ["before", "after"]
    assert database.num_commits == commits + 2


async def test_a_broken_constraint_is_undone_alone(database: Database) -> None:
    """A row that SQLite itself refuses does not harm its neighbours in the group."""
    gate = await _gate(database)

    def orphan(s: Session) -> None:
        s.add(Identity(platform="http", account="x", user_id="nobody"))

    tasks = [asyncio.ensure_future(database.write(work)) for work in (_put("before"), orphan, _put("after"))]
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], ConstraintViolated)
    assert await _stored(database, "before", "after") == ["before", "after"]


async def test_a_work_that_commits_or_rolls_back_itself_harms_nobody(database: Database) -> None:
    """A work's own commit or rollback ends at its savepoint."""
    gate = await _gate(database)

    def commits_then_fails(s: Session) -> None:
        s.add(Identity(platform="http", account="x", user_id="nobody"))
        with contextlib.suppress(Exception):
            s.commit()
        s.rollback()
        raise LookupError

    tasks = [asyncio.ensure_future(database.write(work)) for work in (_put("a"), commits_then_fails, _put("b"))]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await _stored(database, "a", "b") == ["a", "b"]


async def test_works_run_in_the_order_in_which_they_were_given(database: Database) -> None:
    """Order comes from the queue: the last of many writes to one key stands."""
    await asyncio.gather(*(database.write(_put("key", n)) for n in range(1, 100)))
    assert await database.read(lambda s: settings.get(s, "key")) == 99


async def test_a_cancelled_waiter_takes_a_work_that_has_not_begun_with_it(database: Database) -> None:
    """Work cancelled in the queue does not run; the writer goes on."""
    gate = await _gate(database)
    cancelled = asyncio.ensure_future(database.write(_put("cancelled")))
    kept = asyncio.ensure_future(database.write(_put("kept")))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    gate.open()
    assert await kept == "kept"
    assert await _stored(database, "cancelled", "kept") == ["kept"]


async def test_a_work_that_has_begun_is_finished_without_its_waiter(database: Database) -> None:
    """Cancelling in the middle of a work leaves it committed and the writer alive."""
    inside, go_on = threading.Event(), threading.Event()

    def work(s: Session) -> None:
        inside.set()
        go_on.wait(PATIENCE_S)
        settings.put(s, "begun", True)

    task = asyncio.ensure_future(database.write(work))
    await asyncio.to_thread(inside.wait, PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await database.write(_put("next"))
    assert await _stored(database, "begun", "next") == ["begun", "next"]


@pytest.mark.parametrize("error", [StopIteration(), SystemError("x"), GeneratorExit(), KeyError("x")])
async def test_no_error_ends_the_writer(database: Database, error: BaseException) -> None:
    """Every error of a work reaches its caller, and the next work runs."""
    with pytest.raises((RuntimeError, SystemError, GeneratorExit, KeyError)):
        await asyncio.wait_for(database.write(_fail("failing", error)), PATIENCE_S)
    assert await database.write(_put("next")) == "next"


@pytest.mark.sqlite_only
async def test_a_full_disk_fails_the_work_and_keeps_what_was_acknowledged(database: Database) -> None:
    """SQLITE_FULL ends the whole transaction: that is StorageFull for the work, and no later work is half kept."""
    await database.write(_put("before"))
    await database.write(lambda s: s.connection().exec_driver_sql("PRAGMA max_page_count = 1"))
    gate = await _gate(database)
    works = [_put("small"), _put("huge", "x" * 1_000_000), _put("later")]
    tasks = [asyncio.ensure_future(database.write(work)) for work in works]
    await asyncio.sleep(0)
    gate.open()
    small, huge, later = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(huge, StorageFull)
    assert isinstance(small, StorageFull), "it shared the lost transaction"
    assert later == "later"
    assert await _stored(database, "before", "small", "huge", "later") == ["before", "later"]


@pytest.mark.sqlite_only
async def test_writing_goes_on_once_there_is_space_again(database: Database) -> None:
    """The same write succeeds after space was made."""
    await database.write(lambda s: s.connection().exec_driver_sql("PRAGMA max_page_count = 1"))
    with pytest.raises(StorageFull, match="Free some disk space") as caught:
        await database.write(_put("huge", "x" * 1_000_000))
    assert caught.value.retryable
    await database.write(lambda s: s.connection().exec_driver_sql("PRAGMA max_page_count = 100000"))
    assert await database.write(_put("huge", "x" * 1_000_000)) == "huge"


@contextlib.contextmanager
def _somebody_else_writes(path: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_a_database_held_by_another_program_is_busy_and_then_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If not even BEGIN succeeds, every waiter is told to try again; later the writer works."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    database = Database.open(tmp_path)
    with _somebody_else_writes(tmp_path / "heed.db"):
        results = await asyncio.gather(*(database.write(_put(f"k{n}")) for n in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [DatabaseBusy] * 3
    assert await database.write(_put("k")) == "k"
    await database.close()


@pytest.mark.sqlite_only
async def test_nobody_writes_between_what_a_work_reads_and_what_it_writes(database: Database, data_dir: Path) -> None:
    """A work has the write lock from its beginning: another program's write waits, and the work succeeds."""

    def work(s: Session) -> None:
        settings.get(s, "n")
        other = sqlite3.connect(data_dir / "heed.db", timeout=0)
        with contextlib.closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO setting VALUES ('other', '1')")
        settings.put(s, "n", 1)

    await database.write(work)
    assert await _stored(database, "n", "other") == ["n"]


@pytest.mark.parametrize("value", ["\ud800", 2**70, [float("nan")], {"x": float("inf")}])
async def test_values_no_column_can_hold_are_refused_by_name(database: Database, value: object) -> None:
    """Lone surrogates, too large integers and non-finite numbers are NotStorable, and change nothing."""

    def work(s: Session) -> None:
        user = people.resolve(s, "http", "ana")
        if isinstance(value, str):
            people.set_persona(s, user.id, value)
        elif isinstance(value, int):
            user.last_version = value
        else:
            settings.put(s, "value", value)

    with pytest.raises(NotStorable, match="finite numbers"):
        await database.write(work)
    assert await database.read(all_ids) == []


async def test_closing_finishes_what_waits_and_refuses_what_comes_later(database: Database) -> None:
    """Every write given before close is committed and answered; a later one is refused."""
    writes = [asyncio.ensure_future(database.write(_put(f"k{n}"))) for n in range(100)]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*writes) == [f"k{n}" for n in range(100)]
    with pytest.raises(DatabaseClosed):
        await database.write(_put("late"))
