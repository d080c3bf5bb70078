"""A few processes that teach the same people on one database, disturbed at random moments: what it leaves is judged.

The versions that a person was given are one chain: each was made from the one that was accepted before it. What was
acknowledged is there, once. What everybody saw of a person's active version is what one register would have shown.
"""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

from storage.database import Database
from storage.fencing import Tokens
from storage.kinds import VersionState
from storage.learning import versions
from storage.people import people
from tests.storage import cluster_worker
from tests.storage.atomicity import Operation, faults
from tests.storage.postgres_server import PostgresServer

Teaching = Callable[[str, str, list[str], int], None]
MEMBERS = ("engine-1", "engine-2", "engine-3")
PEOPLE = ("ana", "ben")
KINDS = ("kill", "pause", "cut off", "slow")
_SLOW = f"BEGIN; LOCK TABLE lease IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({1.5 * cluster_worker.LEASE_S}); COMMIT"


def starting() -> ForkServerContext:
    """Return what starts a process in milliseconds: the imports are done once."""
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


@dataclass(frozen=True)
class Findings:
    """What was found: `lost` and `doubled` are numbers of versions that were acknowledged."""

    num_versions: int
    lost: list[int]
    doubled: list[int]
    forks: list[str]
    stale: list[str]

    @property
    def is_right(self) -> bool:
        """True if nothing is wrong."""
        return not (self.lost or self.doubled or self.forks or self.stale)


class DisturbedCluster:
    """A few members that teach the same people."""

    def __init__(self, processes: ForkServerContext, postgres: PostgresServer, name: str, teaching: Teaching) -> None:
        self.url = postgres.url(name)
        self.told: list[Told] = []
        self.num_faults = Counter[str]()
        self._processes, self._postgres, self._name, self._teaching = processes, postgres, name, teaching
        self.user_ids = self._with_database(_meet)
        self._running = {member: self._start(member) for member in MEMBERS}

    def disturb(self, rng: random.Random) -> None:
        """Kill a member and start it again, stop it or the database for longer than its lease, or cut the two off."""
        member, kind = rng.choice(MEMBERS), rng.choice(KINDS)
        process, _ = self._running[member]
        self.num_faults[kind] += 1
        if kind == "kill":
            self._end(member)
            self._running[member] = self._start(member)
        elif kind == "pause":
            os.kill(process.pid or 0, signal.SIGSTOP)
            time.sleep(cluster_worker.LEASE_S + rng.uniform(0.1, 0.3))
            os.kill(process.pid or 0, signal.SIGCONT)
        elif kind == "slow":
            self._postgres.tell(self._name, _SLOW)
        else:
            self._postgres.tell(self._name, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                "WHERE application_name = 'heed' ORDER BY random() LIMIT 1")  # fmt: skip
        time.sleep(rng.uniform(0.05, 0.3))

    def stop(self) -> None:
        """Kill all members, and read what they had acknowledged."""
        for member in list(self._running):
            self._end(member)

    def found(self) -> "Findings":
        """Return what is wrong with what the members left."""
        history = self.history()
        accepted = [v for rows in history.values() for v in rows if v.state == VersionState.ACCEPTED]
        kept = {(v.user_id, v.number) for v in accepted}
        return Findings(
            len(kept),
            sorted(number for user_id, number in self.accepted.keys() - kept),
            sorted(number for (_, number), times in self.accepted.items() if times > 1),
            forks(history),
            [fault for user_id in self.user_ids for fault in faults(self.seen(user_id))],
        )

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


def forks(history: Mapping[str, list[Any]]) -> list[str]:
    """Return where two versions of one person that were accepted once were made from the same one."""
    parents = Counter((v.user_id, v.parent) for rows in history.values() for v in rows if was_accepted(v))
    return [f"{count} versions made from {place}" for place, count in parents.items() if count > 1]


def was_accepted(version: Any) -> bool:
    """Return True for a pruned one, too: its lesson is in what came after it."""
    return version.state in (VersionState.ACCEPTED, VersionState.PRUNED)
