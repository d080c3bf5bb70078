"""People work with agents of a heed that is repeatedly killed: no call may run twice, none be lost, no process be left.

Everything random comes from one seed.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bot.agent.workspaces import workspace
from tests.crash.agent import books
from tests.crash.agent.books import AgentFindings
from tests.crash.agent.commands import ENDLESS, LOG
from tests.crash.agent.person import AgentPerson
from tests.crash.agent.process import SOCKET
from tests.crash.lives import WAIT_S, Lives
from tests.patience import until
from tests.storage.new_data_dir import copy_to

ROOT = Path(__file__).resolve().parents[3]
PEOPLE = ("ana", "ben", "cy")
POINTS = ("approval", "before-commit", "call", "lesson", "after-commit", "start")
COMMITS = (1, 40)
WORDS = (1, 3)  # of people, before a kill at one
AFTER_S = 0.1  # a word: as long as a tool or a lesson takes
START_S = 0.4


@dataclass
class AgentFigures:
    """The figures of one run."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(POINTS, 0))
    under_way: dict[str, int] = field(default_factory=lambda: dict.fromkeys(books.UNDER_WAY, 0))  # when heed was killed
    left: list[str] = field(default_factory=list)  # processes that a killed heed left behind
    wall_s: float = 0.0


Report = Callable[[AgentFigures], None]


class AgentRun:
    """One run: so many lives, then the verdict."""

    def __init__(self, lives: Lives, folder: Path, random_: random.Random, patience_s: float) -> None:
        """`folder`: the workspace, beside the data directory; `patience_s`: after it what is not gone is what stays."""
        self.figures = AgentFigures()
        self._lives = lives
        self._folder = folder
        self._data_dir = folder.parent / "data"
        self._random = random_
        self._patience_s = patience_s
        self._people = [AgentPerson(name, self._data_dir / SOCKET, random_) for name in PEOPLE]
        self._started_s = time.monotonic()

    async def all(self, num_kills: int, report: Report) -> AgentFindings:
        """The whole run; `report` hears how things stand now and then."""
        for number in range(num_kills):
            point = POINTS[number % len(POINTS)]
            await self._killed(point)
            self.figures.kills[point] += 1
            self._note_what_was_under_way()
            self.figures.wall_s = time.monotonic() - self._started_s
            report(self.figures)
        return await self._verdict()

    async def _killed(self, point: str) -> None:
        """Start, let people work, and kill."""
        pid = await self._lives.begin(point, self._random.randint(*COMMITS))
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(one.live(may_hang=point == "call")) for one in self._people]
            if not point.endswith("commit"):
                await self._moment(point)
                os.kill(pid, signal.SIGKILL)
            await self._buried()
            for task in work:
                task.cancel()

    async def stopped(self, num_stops: int) -> AgentFindings:
        """Lives that are asked to end in the middle of a call, and do; then the verdict."""
        for _ in range(num_stops):
            pid = await self._lives.begin("call")
            async with asyncio.TaskGroup() as group:
                work = [group.create_task(one.live(may_hang=True)) for one in self._people]
                await self._moment("call")
                await self._lives.stop(pid)
                for task in work:
                    task.cancel()
            self._note_what_was_under_way()
        return await self._verdict()

    async def _buried(self) -> None:
        """Wait until the life has ended, and all that it had begun; end and note what stays."""
        try:
            await self._lives.died(self._patience_s)
        except TimeoutError:
            for pid, command in self._lives.left().items():
                self.figures.left.append(f"{pid}: {command}")
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await self._lives.died()

    async def _moment(self, point: str) -> None:
        """Wait for the moment of a kill."""
        if point == "call":
            num_before = len(self._ran())
            await until(lambda: self._runs_long(num_before))
        elif point != "start":
            due = self._num_said(point) + self._random.randint(*WORDS)
            await until(lambda: self._num_said(point) >= due)
        await asyncio.sleep(self._random.uniform(0, START_S if point == "start" else AFTER_S))

    def _num_said(self, what: str) -> int:
        return sum(person.said[what] for person in self._people)

    def _runs_long(self, num_before: int) -> bool:
        """Return True if a command runs, since so many others, that does not end by itself."""
        shown = {number: call for person in self._people for number, call in person.memory.shown.items()}
        return any(shown[number].command.endswith(ENDLESS) for number in self._ran()[num_before:] if number in shown)

    def _ran(self) -> list[str]:
        log = self._folder / LOG
        return log.read_text().splitlines() if log.exists() else []

    def _note_what_was_under_way(self) -> None:
        for state in books.states(self._data_dir):
            for name in books.UNDER_WAY:
                self.figures.under_way[name] += state[name] is not None

    async def _verdict(self) -> AgentFindings:
        """Let people finish with a heed that is not killed, and hold its books against what they remember."""
        pid = await self._lives.begin()
        async with asyncio.TaskGroup() as group:
            for person in self._people:
                group.create_task(person.live(is_last=True))
        await self._lives.stop(pid)
        self.figures.wall_s = time.monotonic() - self._started_s
        return books.check(books.read(self._data_dir, self._folder), [person.memory for person in self._people])


@asynccontextmanager
async def lives(folder: Path, mode: str) -> AsyncIterator[Lives]:
    """Lives of one heed beside a workspace."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEED_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.agent.process",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT, env=environment,
    )  # fmt: skip
    made = Lives(process, copy_to(folder.parent / "data"), mode)
    try:
        yield made
    finally:
        await made.close()


async def run(
    num_kills: int,
    *,
    seed: int = 0,
    mode: str = "durable",
    patience_s: float = WAIT_S,
    report: Report = lambda _figures: None,
) -> tuple[AgentFindings, AgentFigures]:
    """One run. Modes `careless` and `untied` are the negative controls (`tests.crash.agent.process`)."""
    async with begun(seed, mode, patience_s) as going:
        return await going.all(num_kills, report), going.figures


@asynccontextmanager
async def begun(seed: int, mode: str = "durable", patience_s: float = WAIT_S) -> AsyncIterator[AgentRun]:
    """A run that begins, in a workspace of its own."""
    with workspace() as folder:
        async with lives(folder, mode) as made:
            yield AgentRun(made, folder, random.Random(seed), patience_s)
