"""Processes of a cluster that are killed, paused past their leases or cut off: nobody is ever taught twice at once.

The versions that a person was given are one chain: each was made from the one that was accepted before it. What was
acknowledged is there. What everybody saw of a person's active version is what one register would have shown
(`tests.storage.atomicity`). The controls, one without fencing and one that answers from memory, must break that.
"""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from storage.database import Database
from storage.fencing import Tokens
from storage.kinds import VersionState
from storage.learning import versions
from storage.people import people
from tests.storage import cluster_worker
from tests.storage.atomicity import Operation, faults
from tests.storage.postgres_server import PostgresServer

pytestmark = pytest.mark.crash
Teaching = Callable[[str, str, list[str], int], None]
MEMBERS = ("engine-1", "engine-2", "engine-3")
PEOPLE = ("ana", "ben")
NUM_FAULTS = 24
TRIES = 10  # of the control


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts a process in milliseconds: the imports are done once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.storage.cluster_worker"])
    return context


@dataclass(frozen=True)
class Told:
    """A line of a member's."""

    what: str
    user_id: str
    number: int
    begun_s: float
    ended_s: float

    @classmethod
    def of(cls, line: str) -> "Told":
        """Return a line that was read."""
        what, user_id, number, begun_s, ended_s = line.split()
        return cls(what, user_id, int(number), float(begun_s), float(ended_s))


class Cluster:
    """A few members that teach the same people."""

    def __init__(self, processes: ForkServerContext, postgres: PostgresServer, name: str, teaching: Teaching) -> None:
        self.url = postgres.url(name)
        self.told: list[Told] = []
        self._processes, self._postgres, self._name, self._teaching = processes, postgres, name, teaching
        self.user_ids = self._with_database(_meet)
        self._running = {member: self._start(member) for member in MEMBERS}

    def disturb(self, rng: random.Random) -> None:
        """Kill a member and start it again, stop it for longer than its lease, or cut it off from the database."""
        member, kind = rng.choice(MEMBERS), rng.choice(("kill", "pause", "cut off"))
        process, _ = self._running[member]
        if kind == "kill":
            self._end(member)
            self._running[member] = self._start(member)
        elif kind == "pause":
            os.kill(process.pid or 0, signal.SIGSTOP)
            time.sleep(cluster_worker.LEASE_S + rng.uniform(0.1, 0.3))
            os.kill(process.pid or 0, signal.SIGCONT)
        else:
            self._postgres.tell(self._name, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                "WHERE application_name = 'heed' ORDER BY random() LIMIT 1")  # fmt: skip
        time.sleep(rng.uniform(0.05, 0.3))

    def stop(self) -> None:
        """Kill all members, and read what they had acknowledged."""
        for member in list(self._running):
            self._end(member)

    @property
    def accepted(self) -> Counter[tuple[str, int]]:
        """How often each version of a person was acknowledged."""
        return Counter((told.user_id, told.number) for told in self.told if told.what == "accepted")

    def seen(self, user_id: str) -> list[Operation]:
        """Return what was done with a person's active version, and what was seen of it."""
        mine = [told for told in self.told if told.user_id == user_id]
        ended = {told.number for told in mine if told.what == "accepted"}
        done = [t for t in mine if t.what == "accepted"]
        unheard = [t for t in mine if t.what == "accept" and t.number not in ended]
        return [
            *(Operation(True, t.number, t.begun_s, t.ended_s) for t in done),
            *(Operation(True, t.number, t.begun_s) for t in unheard),
            *(Operation(False, t.number, t.begun_s, t.ended_s) for t in mine if t.what == "saw"),
        ]

    def history(self) -> dict[str, list[Any]]:
        """Return the versions of each person, oldest first."""
        return self._with_database(lambda s: {u: versions.history(s, u)[::-1] for u in self.user_ids})

    def _with_database(self, work: Callable[[Any], Any]) -> Any:
        async def run() -> Any:
            database = await asyncio.to_thread(Database.enter, self.url, "checker", Tokens("checker"))
            try:
                return await database.write(work)
            finally:
                await database.close()

        return asyncio.run(run())

    def _start(self, member: str) -> tuple[BaseProcess, Any]:
        reader, writer = multiprocessing.Pipe(duplex=False)
        arguments = (self._teaching, self.url, member, self.user_ids, writer)
        process = self._processes.Process(target=_with_pipe, args=arguments)
        process.start()
        writer.close()
        lines = os.fdopen(os.dup(reader.fileno()), "rb")
        reader.close()
        assert lines.readline() == b"ready\n"
        return process, lines

    def _end(self, member: str) -> None:
        process, lines = self._running.pop(member)
        process.kill()
        process.join()
        self.told += [Told.of(line) for line in lines.read().decode().splitlines()]
        lines.close()


def _with_pipe(teaching: Teaching, url: str, member: str, user_ids: list[str], writer: Any) -> None:
    teaching(url, member, user_ids, writer.fileno())


def _meet(s: Any) -> list[str]:
    return [people.resolve(s, "http", account).id for account in PEOPLE]


def _forks(history: dict[str, list[Any]]) -> list[str]:
    """Return where two accepted versions of one person were made from the same one."""
    accepted = [v for rows in history.values() for v in rows if v.state == VersionState.ACCEPTED]
    parents = Counter((v.user_id, v.parent) for v in accepted)
    return [f"{count} versions made from {place}" for place, count in parents.items() if count > 1]


def test_a_person_has_one_trainer_whatever_happens(
    processes: ForkServerContext, postgres: PostgresServer, name: str
) -> None:
    """Kills, pauses past the lease, lost connections: one chain of versions each, nothing acknowledged lost."""
    cluster = Cluster(processes, postgres, name, cluster_worker.teach)
    rng = random.Random(7)
    for _ in range(NUM_FAULTS):
        cluster.disturb(rng)
    cluster.stop()
    history = cluster.history()
    assert _forks(history) == []
    kept = {(v.user_id, v.number) for rows in history.values() for v in rows if v.state == VersionState.ACCEPTED}
    assert set(cluster.accepted) <= kept
    assert set(cluster.accepted.values()) == {1}
    assert len({user_id for user_id, _ in kept}) == len(PEOPLE)
    for user_id in cluster.user_ids:
        assert faults(cluster.seen(user_id)) == []


def test_without_fencing_it_would_be_found(processes: ForkServerContext, postgres: PostgresServer, name: str) -> None:
    """The control: leases alone let a process that slept accept what it made from an old version."""
    cluster = Cluster(processes, postgres, name, cluster_worker.teach_unfenced)
    rng = random.Random(7)
    found: list[str] = []
    for _ in range(TRIES):
        for _ in range(NUM_FAULTS // 2):
            cluster.disturb(rng)
        found = _forks(cluster.history())
        if found:
            break
    cluster.stop()
    assert found


def test_a_member_that_answers_from_memory_would_be_found(
    processes: ForkServerContext, postgres: PostgresServer, name: str
) -> None:
    """The other control: it shows a version that is older than one which was acknowledged."""
    cluster = Cluster(processes, postgres, name, cluster_worker.teach_from_memory)
    rng = random.Random(7)
    for _ in range(NUM_FAULTS // 2):
        cluster.disturb(rng)
    cluster.stop()
    assert any(faults(cluster.seen(user_id)) for user_id in cluster.user_ids)
