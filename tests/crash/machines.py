"""A whole heed on several machines, disturbed while people chat and correct: engines and gateways are killed, put to
sleep or parted from the database or from each other for longer than a lease, or lose a connection to the database; the
object store is slow.

People call any gateway and call again until they are answered, a correction under one key. What is left is judged:
each acknowledged lesson is there, once, in one chain of versions; what people were answered with is what one register
would have shown; nothing they asked for stays without an answer.
"""

import asyncio
import math
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import psutil

from evals.client import chat_body
from evals.server import START_TIMEOUT_S
from storage.database import Database, Session
from storage.learning import feedback, versions
from storage.lease_keeper import DURATION_S
from storage.people import people
from storage.tables import AdapterVersion
from tests.crash import unreachable
from tests.crash.wired_cluster import WiredCluster
from tests.storage.atomicity import Operation, faults
from tests.storage.disturbed_cluster import forks, was_accepted
from tests.storage.postgres_server import PostgresServer

PEOPLE = ("ana", "ben", "eva", "kim")
WISHES = (
    "no emoji please",
    "too long, shorter please",
    "write in capitals",
    "use bullet points",
    "end with a question",
)
TOPICS = ("koala", "panda", "ocarina", "otter", "violin", "walrus")
KINDS = (
    "kill an engine",
    "kill a gateway",
    "engine asleep",
    "gateway asleep",
    "cut off",
    "engine parted",
    "gateway parted",
    "slow store",
    unreachable.KIND,
)
CALL_S = 60.0  # after which a person calls another gateway
PAUSE_S = 0.3
SLOW_S = 5.0  # at most, for each piece of what goes to the object store or comes from it
SLEEPY_KINDS = ("engine asleep", "engine parted")  # which an engine without fencing does not outlive for long
ENGINE = re.compile(r"ray::\w*EngineProcess")
_CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'heed' ORDER BY random() LIMIT 1"
)


@dataclass(frozen=True)
class MachineFindings:
    """What was found."""

    num_answers: int
    num_lessons: int
    lost: list[str]
    doubled: list[str]
    forks: list[str]
    stale: list[str]
    unfinished: int  # feedback that is pending at the end

    @property
    def is_right(self) -> bool:
        """True if nothing is wrong."""
        return not (self.lost or self.doubled or self.forks or self.stale or self.unfinished)


@dataclass
class MachinesRun:
    """The cluster under disturbance, and what people were told."""

    cluster: WiredCluster
    database: Database
    postgres: PostgresServer
    database_name: str
    rng: random.Random
    kinds: Sequence[str] = KINDS
    num_faults: Counter[str] = field(default_factory=Counter)
    seen: dict[str, list[Operation]] = field(default_factory=dict)  # by person, of their active version
    learned: dict[str, str] = field(default_factory=dict)  # person by feedback
    is_over: bool = False

    async def run(
        self, num_faults: int, report: Callable[[Counter[str]], None] = lambda _: None, within_s: float = math.inf
    ) -> MachineFindings:
        """Disturb it so often, or until the time is up, let it come to rest, and return what is wrong."""
        last_s = time.monotonic() + within_s
        kinds = [kind for kind in self.kinds if kind != unreachable.KIND or unreachable.is_there()]
        patience = aiohttp.ClientTimeout(total=CALL_S)
        async with aiohttp.ClientSession(timeout=patience) as session, asyncio.TaskGroup() as at_work:
            for name in PEOPLE:
                at_work.create_task(self._person(session, name))
            while self.num_faults.total() < num_faults and time.monotonic() < last_s:
                await self._disturb(self.rng.choice(kinds))
                report(self.num_faults)
                await asyncio.sleep(self.rng.uniform(1.0, 6.0))
            self.is_over = True
        return await self._found()

    # -- people --------------------------------------------------------------------------------------------------------

    async def _person(self, session: aiohttp.ClientSession, name: str) -> None:
        rng = random.Random(f"{name}/{self.rng.random()}")
        mine = self.seen.setdefault(name, [])
        number = 0
        while not self.is_over:
            number += 1
            begun_s = time.monotonic()
            text = f"Tell me about the {rng.choice(TOPICS)}."
            body = chat_body(name, [{"role": "user", "content": text}], "auto", "heed")
            answer = await self._call(session, "/v1/chat/completions", body, f"{name}-{number}-ask")
            mine.append(Operation(False, answer["heed"]["adapter_version"], begun_s, time.monotonic()))
            if rng.random() < 0.5:
                await self._correct(session, name, answer["id"], rng.choice(WISHES), f"{name}-{number}")

    async def _correct(
        self, session: aiohttp.ClientSession, name: str, completion_id: str, wish: str, key: str
    ) -> None:
        begun_s = time.monotonic()
        body = {"user": name, "completion_id": completion_id, "kind": "correction", "text": wish, "wait": True}
        told = await self._call(session, "/v1/feedback", body, key)
        if told["status"] == "learned":
            self.learned[told["feedback_id"]] = name
            self.seen[name].append(Operation(True, told["adapter_version"], begun_s, time.monotonic()))

    async def _call(self, session: aiohttp.ClientSession, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        """Call a gateway, and another one until one has done it: a client with patience."""
        while True:
            gateway = self.rng.choice(list(self.cluster.parts.gateways.values()))
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.post(f"{gateway.url}{path}", json=body, headers={"Idempotency-Key": key}) as given:
                    said: dict[str, Any] = await given.json()
                    if given.status in (200, 202) and said.get("status") != "queued":
                        return said
                    assert given.status in (200, 202, 409, 500, 502, 503, 504), said
            await asyncio.sleep(PAUSE_S)

    # -- faults --------------------------------------------------------------------------------------------------------

    async def _disturb(self, kind: str) -> None:
        """Do one of KINDS to a part drawn at random."""
        self.num_faults[kind] += 1
        match kind:
            case "kill an engine":
                (await self._drawn_engine()).kill()
            case "kill a gateway":
                name = self.rng.choice(list(self.cluster.parts.gateways))
                await self.cluster.parts.gateways[name].end(signal.SIGKILL)
                await self.cluster.parts.start_gateway(name)
            case "engine asleep":
                await self._sleep(await self._drawn_engine())
            case "gateway asleep":
                pid = self.rng.choice(list(self.cluster.parts.gateways.values())).pid
                assert pid is not None
                await self._sleep(psutil.Process(pid))
            case "engine parted":
                await self._part(list(self.cluster.parts.engines))
            case "gateway parted":
                await self._part(list(self.cluster.parts.gateways))
            case "slow store":
                await self.cluster.to_store.slow(self.rng.uniform(0.1, SLOW_S), self._longer_than_a_lease_s)
            case unreachable.KIND:
                await self._part_from_each_other()
            case _:
                await asyncio.to_thread(self.postgres.tell, self.database_name, _CUT)

    async def _part(self, names: list[str]) -> None:
        """Part one of them from the database; what it sent meanwhile arrives afterwards."""
        await self.cluster.to_database[self.rng.choice(names)].cut(self._longer_than_a_lease_s)

    async def _part_from_each_other(self) -> None:
        """Let a gateway and an engine not reach each other, though both reach the database and people the gateway."""
        gateway = self.rng.choice(list(self.cluster.parts.gateways.values()))
        assert gateway.pid is not None
        of_gateway = unreachable.ports_of(psutil.Process(gateway.pid)) - {gateway.port}
        of_engine = unreachable.ports_of(await self._drawn_engine())
        async with unreachable.parted(of_gateway | of_engine):
            await asyncio.sleep(self._longer_than_a_lease_s)

    @property
    def _longer_than_a_lease_s(self) -> float:
        return DURATION_S * self.rng.uniform(1.05, 1.3)

    async def _drawn_engine(self) -> psutil.Process:
        """Return an engine's process, once there is one: each may just have been killed."""
        async with asyncio.timeout(START_TIMEOUT_S):
            while not (found := self._engines()):  # noqa: ASYNC110  processes tell nothing
                await asyncio.sleep(PAUSE_S)
        return self.rng.choice(found)

    def _engines(self) -> list[psutil.Process]:
        return [one for one in psutil.Process(self.cluster.parts.ray_pid).children(recursive=True) if _is_engine(one)]

    async def _sleep(self, process: psutil.Process) -> None:
        """Stop a process and all its children for longer than a lease."""
        family = [process, *process.children(recursive=True)]
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.suspend()
        await asyncio.sleep(self._longer_than_a_lease_s)
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.resume()

    # -- what is left --------------------------------------------------------------------------------------------------

    async def _found(self) -> MachineFindings:
        history = await self.database.read(_history)
        return judged(history, self.seen, set(self.learned), len(await self.database.read(feedback.pending)))


def judged(
    history: Mapping[str, list[AdapterVersion]], seen: Mapping[str, list[Operation]], learned: set[str], unfinished: int
) -> MachineFindings:
    """Compare people's versions with what they were told.

    Args:
        history: the versions of each person, oldest first.
        seen: what each person was answered with, and the versions that they heard of.
        learned: the feedback of the lessons that they were told of.
        unfinished: how much feedback is pending.
    """
    by_feedback = Counter(v.feedback_id for rows in history.values() for v in rows if v.feedback_id and was_accepted(v))
    return MachineFindings(
        sum(not one.is_write for mine in seen.values() for one in mine),
        len(learned),
        sorted(one for one in learned if not by_feedback[one]),
        sorted(one for one, times in by_feedback.items() if times > 1),
        forks(history),
        [
            f"{name}: {fault}"
            for name, mine in seen.items()
            for fault in faults(_with_unheard(mine, history.get(name, [])))
        ],
        unfinished,
    )


def _with_unheard(mine: list[Operation], history: list[AdapterVersion]) -> list[Operation]:
    """Return what a person saw, and versions that they were not told of: those may have come at any time."""
    told = {one.value for one in mine if one.is_write}
    unheard = [v.number for v in history if was_accepted(v) and v.number not in told]
    return [*mine, *(Operation(True, number, -math.inf) for number in unheard)]


def _history(s: Session) -> dict[str, list[AdapterVersion]]:
    """Return the versions of each person, oldest first."""
    found = {name: people.find(s, "http", name) for name in PEOPLE}
    return {name: versions.history(s, user.id)[::-1] for name, user in found.items() if user is not None}


def _is_engine(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any(ENGINE.match(word) for word in process.cmdline())
    return False
