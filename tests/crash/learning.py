"""People teach a whole heed, with vLLM and real training, that is killed repeatedly.

Afterwards no adapter may be torn, no signal lost, nothing trained twice, and no process may be left. What is killed is
heed, or the model's processes alone, which heed then starts again by itself; when, is a random moment of an update or
of a consolidation, or right before or after a random commit.
"""

import asyncio
import math
import os
import random
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil

from engine.worker.watchdog import ProcessId, end_all
from evals.errors import StartFailed
from evals.server import HeedServer
from tests.crash import books
from tests.crash.books import Findings
from tests.crash.teachers import Teachers

Points = tuple[tuple[str, str], ...]  # what is killed, and when

POINTS: Points = (
    ("heed", "correction"),
    ("model", "consolidation"),
    ("itself", "after-commit"),
    ("model", "correction"),
    ("heed", "consolidation"),
    ("itself", "before-commit"),
)
FEW_STARTS: Points = (
    ("heed", "correction"),
    ("model", "consolidation"),
    ("heed", "consolidation"),
    ("model", "correction"),
)
HEED = ("bot", "run")
ARMED = ("tests.crash.armed",)
CARELESS = (*ARMED, "careless", "0", "run")
COMMITS = (8, 60)  # the first ones belong to the start
BEGINS_WITHIN_S = 60.0  # an update that was asked for; where none does, any moment will do
GUESSED_S = 3.0  # how long an update takes where none has ended yet
BEYOND = 1.2  # of the time that an update takes: kills come up to a little after its end
ACTS = (2, 4)
MAX_ACTS = 8  # where none of them was a lesson
MAX_WAITING = 3  # lessons: more are not given while so many wait, or consolidations would never begin
POLL_S = 0.05
CHECKED_EVERY = 5  # kills: then everything has to be right so far
WAIT_S = 600.0
STALLED_S = 45.0  # longer than any update takes
GONE_WITHIN_S = 10.0
HELPERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")
NOTHING_NEW = "There is nothing new to consolidate."
ROUNDS = 4  # consolidations in the end: more signals than one has places for wait for the next


@dataclass
class Figures:
    """The figures of one run."""

    kills: dict[str, int] = field(default_factory=dict)  # by what was killed, and when
    under_way: dict[str, int] = field(default_factory=dict)  # by the kind of update that ran at that moment
    left: list[str] = field(default_factory=list)  # processes that a killed heed left behind
    torn: list[str] = field(default_factory=list)  # seen right after a kill
    so_far: Findings | None = None  # after the last kills that were followed by a look at everything
    wall_s: float = 0.0

    @property
    def num_kills(self) -> int:
        """All of them."""
        return sum(self.kills.values())


Report = Callable[[Figures], None]


def descendants(pid: int) -> list[ProcessId]:
    """Everything the process has started, and what that has."""
    try:
        found = (ProcessId.of(child.pid) for child in psutil.Process(pid).children(recursive=True))
        return [process for process in found if process is not None]
    except psutil.NoSuchProcess:
        return []


def is_model(process: ProcessId) -> bool:
    """Return True if a process of heed's is the model's, not one of Python's own helpers."""
    try:
        return not any(helper in Path(f"/proc/{process.pid}/cmdline").read_bytes() for helper in HELPERS)
    except OSError:
        return False


class Run:
    """One run on one heed, which may be running already."""

    def __init__(
        self, heed: HeedServer, teachers: Teachers, random_: random.Random, program: tuple[str, ...] = HEED
    ) -> None:
        """`program`: what is started as heed where it does not kill itself."""
        self.figures = Figures()
        self._heed = heed
        self._program = program
        self._teachers = teachers
        self._random = random_
        self._family: set[ProcessId] = set()
        self._asked: set[asyncio.Task[object]] = set()
        self._started_s = time.monotonic()

    async def all(self, points: Points, report: Report, within_s: float) -> Findings:
        """One kill for every point, or as many as there is time for, then the verdict."""
        for what, when in points:
            if time.monotonic() - self._started_s > within_s:
                break
            await self._killed(what, when)
            self._count(self.figures.kills, f"{what}, {when}")
            if self.figures.num_kills % CHECKED_EVERY == 0:
                await self._check()
            self.figures.wall_s = time.monotonic() - self._started_s
            report(self.figures)
        return await self._verdict()

    async def _check(self) -> None:
        """Lets a heed finish every lesson, and looks whether all is right so far."""
        await self._live(self._program)
        await self._quiet()
        with suppress(TimeoutError):  # heed may be removing the file at this moment
            await self._until(self._is_right_so_far, GONE_WITHIN_S)

    def _is_right_so_far(self) -> bool:
        self.figures.so_far = books.check(self._books(), self._teachers.acknowledged)
        return self.figures.so_far.is_right

    async def _killed(self, what: str, when: str) -> None:
        """A heed, something to learn, and a kill."""
        if what == "itself":
            await self._end()
            with suppress(StartFailed):  # it may die before it has answered once
                await self._live((*ARMED, when, str(self._random.randint(*COMMITS)), "run"))
                await self._teach()
            await self._died()
            return
        await self._live(self._program)
        await self._teach()
        if when == "consolidation":
            await self._quiet()
            self._ask_for_consolidations()
        await self._moment(when)
        self._note_what_runs()
        await (self._kill_heed() if what == "heed" else self._kill_model())

    # -- life and death ----------------------------------------------------------------------------------------------

    async def _live(self, program: tuple[str, ...]) -> None:
        """Starts heed unless it runs; sends again what the last one did not acknowledge."""
        if self._heed.pid is None:
            self._heed.program = program
            await self._heed.start()
        self._look()
        await self._teachers.deliver()

    async def _end(self) -> None:
        if self._heed.pid is not None:
            assert await self._heed.end() == 0
            await self._gone()

    async def _kill_heed(self) -> None:
        self._look()
        assert await self._heed.end(signal.SIGKILL) == -signal.SIGKILL
        await self._gone()

    async def _kill_model(self) -> None:
        """One of the model's processes dies, and heed goes on with others by itself."""
        assert self._heed.pid is not None
        model = [process for process in descendants(self._heed.pid) if is_model(process)]
        os.kill(self._random.choice(model).pid, signal.SIGKILL)
        await self._until(lambda: not any(process.is_alive() for process in model))
        await self._answering()
        self._look()

    async def _died(self) -> None:
        """Waits until heed has killed itself, which it does at a commit; where none comes any more, kills it."""
        users, was_running = self._teachers.known, ""
        while self._heed.pid is not None:
            self._look()
            was_running = self._running()
            if self._is_idle():
                if not users:
                    await self._heed.end(signal.SIGKILL)
                    break
                self._ask_for(users.pop())
            await asyncio.sleep(POLL_S)
        self._count(self.figures.under_way, was_running or "nothing")
        await self._gone()

    async def _gone(self) -> None:
        """After the end of heed: nothing of it is left after ten seconds, and nothing on disk is torn."""
        for task in self._asked:
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        with suppress(TimeoutError):
            await self._until(lambda: not any(process.is_alive() for process in self._family), GONE_WITHIN_S)
        left = [process for process in self._family if process.is_alive()]
        self.figures.left += [f"process {process.pid} after kill {self.figures.num_kills + 1}" for process in left]
        end_all(left)
        self._family.clear()
        self.figures.torn += books.torn(self._books())

    def _look(self) -> None:
        """Remembers heed's processes: one that kills itself can be asked no more."""
        if self._heed.pid is not None:
            self._family |= set(descendants(self._heed.pid))

    # -- what there is to learn --------------------------------------------------------------------------------------

    async def _teach(self) -> None:
        wanted = self._random.randint(*ACTS)
        for number in range(MAX_ACTS):
            waiting = self._num_waiting()
            if waiting < MAX_WAITING and (number < wanted or not waiting):
                await self._teachers.act()

    def _ask_for_consolidations(self) -> None:
        for user in self._teachers.known:
            self._ask_for(user)

    def _ask_for(self, user: str) -> None:
        task: asyncio.Task[object] = asyncio.create_task(self._teachers.consolidate(user), name=f"consolidate {user}")
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _moment(self, kind: str) -> None:
        """A random moment of an update of that kind; where none begins, any moment."""
        with suppress(TimeoutError):
            await self._until(lambda: self._running() == kind or self._is_idle(), BEGINS_WITHIN_S)
        query = "SELECT avg(duration_ms) FROM update_run WHERE status = 'accepted' AND kind = ?"
        typical_ms = self._one(query, kind)
        typical_s = float(str(typical_ms)) / 1e3 if typical_ms else GUESSED_S
        await asyncio.sleep(self._random.uniform(0, BEYOND * typical_s))

    def _note_what_runs(self) -> None:
        self._count(self.figures.under_way, self._running() or "nothing")

    @staticmethod
    def _count(counted: dict[str, int], name: str) -> None:
        counted[name] = counted.get(name, 0) + 1

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _verdict(self) -> Findings:
        """Lets a heed finish everything, and holds its books against what was acknowledged."""
        await self._live(self._program)
        await self._quiet()
        emptied = [user for user in self._teachers.known if await self._emptied(user)]
        await self._quiet()
        await self._end()
        self.figures.wall_s = time.monotonic() - self._started_s
        return books.check(self._books(), self._teachers.acknowledged, emptied)

    async def _emptied(self, user: str) -> bool:
        """Return True if consolidations have taken in all new feedback of a person."""
        for _ in range(ROUNDS):
            outcome = await self._teachers.consolidate(user)
            if outcome is None or outcome.get("reason") == NOTHING_NEW:
                return outcome is not None
        return False

    # -- looking -----------------------------------------------------------------------------------------------------

    async def _quiet(self) -> None:
        """Waits until every lesson has ended and no update runs, as far as that ever comes about."""
        await self._answering()
        moved_s, left = time.monotonic(), self._left()
        while any(left) and time.monotonic() - moved_s < STALLED_S:
            await asyncio.sleep(POLL_S)
            before, left = left, self._left()
            moved_s = moved_s if left == before else time.monotonic()

    def _is_idle(self) -> bool:
        """Return True if nothing is being learned or waits to be."""
        return not self._asked and not any(self._left())

    def _left(self) -> tuple[int, str]:
        return self._num_waiting(), self._running()

    async def _answering(self) -> None:
        async with aclosing(self._looks()) as looks:
            async for is_ready in looks:
                if is_ready:
                    return

    async def _looks(self) -> AsyncIterator[bool]:
        async with asyncio.timeout(WAIT_S), aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"{self._heed.url}/readyz") as response:
                    yield response.status == 200
                await asyncio.sleep(POLL_S)

    async def _until(self, is_true: Callable[[], bool], within_s: float = WAIT_S) -> None:
        async with asyncio.timeout(within_s):
            while not is_true():  # noqa: ASYNC110  neither a row nor a process tells anybody
                await asyncio.sleep(POLL_S)

    def _num_waiting(self) -> int:
        return int(self._one("SELECT count(*) FROM feedback WHERE status IN ('pending', 'training')") or 0)

    def _running(self) -> str:
        """The kind of update that runs, empty for none."""
        return str(self._one("SELECT kind FROM update_run WHERE status = 'running' ORDER BY seq DESC") or "")

    def _one(self, query: str, *values: str) -> object:
        path = self._data_dir / "heed.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as database:
            row = database.execute(query, values).fetchone()
        return row[0] if row else None

    def _books(self) -> books.Books:
        return books.read(self._data_dir, self._teachers.names)

    @property
    def _data_dir(self) -> Path:
        return self._heed.folder / "data"


async def run(
    heed: HeedServer,
    points: Points,
    *,
    seed: int = 0,
    people: int = 4,
    program: tuple[str, ...] = HEED,
    report: Report = lambda _figures: None,
    within_s: float = math.inf,
) -> tuple[Findings, Figures]:
    """One run on a heed, which is ended afterwards; its data stays. Program `CARELESS` is the negative control."""
    random_ = random.Random(seed)
    names = tuple(f"kills-{seed}-{number}" for number in range(people))
    async with aiohttp.ClientSession(heed.url) as session:
        going = Run(heed, Teachers(session, names, random_), random_, program)
        return await going.all(points, report, within_s), going.figures


@asynccontextmanager
async def heed_of_its_own() -> AsyncIterator[HeedServer]:
    """A heed for one run, with few versions kept, so that old ones are given up all the time."""
    heed = HeedServer({"HEED_MODEL": "pocket", "HEED_VERSIONS_KEEP": "3"})
    try:
        yield heed
    finally:
        await heed.stop()
