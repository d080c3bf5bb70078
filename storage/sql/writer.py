"""The one thread that writes, with group commit.

Works that wait at the same time share one transaction: each runs in its own SAVEPOINT, then one COMMIT, then all
are acknowledged. A work that fails is rolled back alone and raises to its own caller. Nothing is acknowledged
before its commit, and no work is ever run twice, but where others write to the same database, too: what contradicts
them is undone as a whole and run again. A waiter that is cancelled before its work starts takes the work with it; once
started, the work is carried through.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlmodel import Session

from storage.errors import DatabaseClosed, StorageBroken, StorageError

T = TypeVar("T")
Connected = Callable[[Callable[[Connection], None]], None]  # runs something on the connection that writes

MAX_GROUP = 256  # works in one commit: bounds how long the first of them waits for the last
MAX_CONFLICTS = 30  # how often a work is run again before its caller is told
LONGEST_PAUSE_S = 0.1  # before it is


@dataclass(frozen=True)
class _Job:
    """A work and its caller. `is_alone`: it gets nothing, and no transaction is open."""

    work: Callable[..., Any]
    future: "Future[Any]"
    is_alone: bool = False
    num_conflicts: int = 0  # with another writer of the database; such a work has a transaction to itself


@dataclass(frozen=True)
class _Outcome:
    """The value or error of a work, told to its caller after the commit."""

    job: _Job
    value: Any = None
    error: BaseException | None = None


class Writer:
    """Runs works one after another in its own thread.

    `is_conflict` says of an error that the same work can be right the next time; `info` is what each work finds in its
    session's.
    """

    def __init__(
        self,
        connected: Connected,
        named: Callable[[BaseException], BaseException],
        is_conflict: Callable[[BaseException], bool],
        info: dict[str, Any] | None = None,
    ) -> None:
        self.num_commits = 0
        self._connected = connected
        self._named = named
        self._is_conflict = is_conflict
        self._info = info or {}
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._is_closed = False
        # A daemon: the interpreter must not wait for a writer left open; what it loses was not acknowledged.
        self._thread = threading.Thread(target=self._run, name="heed-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Session], T]) -> "Future[T]":
        """Queue a work; the future is set after its commit. Raises DatabaseClosed."""
        return self._put(_Job(work, Future()))

    def submit_alone(self, work: Callable[[], T]) -> "Future[T]":
        """Queue something that no transaction may be open for. Raises DatabaseClosed."""
        return self._put(_Job(work, Future(), is_alone=True))

    def close(self) -> None:
        """Finish what waits, then stop. Blocking."""
        with self._gate:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(None)
        self._thread.join()

    def _put(self, job: _Job) -> "Future[Any]":
        with self._gate:  # nothing may be queued behind the end mark: it would wait for ever
            if self._is_closed:
                raise DatabaseClosed("the database is closed")
            self._jobs.put(job)
        return job.future

    def _run(self) -> None:
        is_open = True
        while is_open:
            waiting, is_open = self._take()
            while waiting:
                if waiting[0].is_alone:
                    self._run_alone(waiting.popleft())
                else:
                    self._commit_group(waiting)

    def _take(self) -> tuple[deque[_Job], bool]:
        """Wait for a job, then take what else is there; the flag is False at the end mark."""
        waiting: deque[_Job] = deque()
        job = self._jobs.get()
        while job is not None:
            waiting.append(job)
            if len(waiting) == MAX_GROUP:
                return waiting, True
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return waiting, True
        return waiting, False

    def _run_alone(self, job: _Job) -> None:
        if job.future.set_running_or_notify_cancel():
            try:
                outcome = _Outcome(job, job.work())
            except BaseException as error:  # noqa: BLE001  the job loop: the error goes to the caller
                outcome = _Outcome(job, error=error)
            self._tell(outcome)

    def _commit_group(self, waiting: deque[_Job]) -> None:
        """Run jobs from the front up to the first that wants to be alone, commit, then tell all of them."""
        outcomes: list[_Outcome] = []
        try:
            self._connected(lambda connection: self._run_group(connection, waiting, outcomes))
            self.num_commits += 1
        except BaseException as error:  # noqa: BLE001  the job loop: the error goes to every caller of the group
            outcomes = outcomes or [_Outcome(job) for job in _startable(waiting)]  # empty: not even BEGIN succeeded
            if self._is_conflict(error):
                outcomes = self._without_those_again(waiting, outcomes)
            outcomes = [replace(outcome, error=outcome.error or error) for outcome in outcomes]
        for outcome in outcomes:
            self._tell(outcome)

    def _run_group(self, connection: Connection, waiting: deque[_Job], outcomes: list[_Outcome]) -> None:
        """In place: what became of each job joins `outcomes`; returns after the commit."""
        with connection.begin():
            for job in _startable(waiting):
                outcomes.append(self._run_in_savepoint(connection, job))
                self._check_transaction(connection, outcomes[-1])

    def _check_transaction(self, connection: Connection, outcome: _Outcome) -> None:
        """Raise if the failed work took the whole transaction with it, or met another writer.

        SQLite rolls everything back on a full disk or an I/O error (sqlite.org/lang_transaction.html, 3): going on
        would commit each later SAVEPOINT by itself. A lost connection takes its transaction along, too. What ran
        before is lost, what waits gets a new transaction.
        """
        if outcome.error is None:
            return
        if self._is_conflict(outcome.error):
            raise outcome.error
        if _is_in_transaction(connection):
            return
        named = self._named(outcome.error)
        raise named if isinstance(named, StorageError) else StorageBroken("the database ended the transaction")

    def _run_in_savepoint(self, connection: Connection, job: _Job) -> _Outcome:
        try:
            with Session(
                connection, expire_on_commit=False, join_transaction_mode="create_savepoint", info=self._info
            ) as session:
                value = job.work(session)
                session.commit()
            return _Outcome(job, value)
        except BaseException as error:  # noqa: BLE001  the job loop: the error goes to the caller
            return _Outcome(job, error=error)

    def _without_those_again(self, waiting: deque[_Job], outcomes: list[_Outcome]) -> list[_Outcome]:
        """In place: the works of an undone transaction wait again, in front. Return those that have had their turns."""
        jobs = [replace(outcome.job, num_conflicts=outcome.job.num_conflicts + 1) for outcome in outcomes]
        pause_s = 0.001 * 2 ** max((job.num_conflicts for job in jobs), default=0)
        time.sleep(random.uniform(0, min(LONGEST_PAUSE_S, pause_s)))  # noqa: S311  so that two writers part
        waiting.extendleft(job for job in reversed(jobs) if job.num_conflicts <= MAX_CONFLICTS)
        return [_Outcome(job) for job in jobs if job.num_conflicts > MAX_CONFLICTS]

    def _tell(self, outcome: _Outcome) -> None:
        if outcome.error is None:
            outcome.job.future.set_result(outcome.value)
        else:
            outcome.job.future.set_exception(self._named(outcome.error))


def _is_in_transaction(connection: Connection) -> bool:
    """Return True if the database itself still is in the transaction; only SQLite's connections say, others end with
    it.
    """
    return not connection.invalidated and getattr(connection.connection.dbapi_connection, "in_transaction", True)


def _startable(waiting: deque[_Job]) -> Iterator[_Job]:
    """Take the jobs that share a transaction off the front, without those whose waiter has gone."""
    if waiting and waiting[0].num_conflicts:
        yield waiting.popleft()
        return
    while waiting and not waiting[0].is_alone:
        job = waiting.popleft()
        if job.future.set_running_or_notify_cancel():
            yield job
