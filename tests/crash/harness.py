"""People talk to a heed that is repeatedly killed or stopped; afterwards the history must be right.

What differs between platforms is in `telegram_side` and `discord_side`. Everything random comes from one seed.
"""

import asyncio
import json
import os
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.crash.discord_side import discord
from tests.crash.history import History, Verdict, check
from tests.crash.lives import WAIT_S, Lives
from tests.crash.side import Side
from tests.crash.telegram_side import telegram

ROOT = Path(__file__).resolve().parents[2]
SIDES: dict[str, Callable[[random.Random], AbstractAsyncContextManager[Side]]] = {
    "telegram": telegram,
    "discord": discord,
    "discord forgets": partial(discord, forgets=True),
}
LIFE_S = (0.0, 0.6)  # after it began to listen, or after its start
POINTS = ("time", "early", "before-commit", "after-commit", "call")
COMMITS = (1, 60)
CALLS = (1, 40)
PAUSE_S = 0.15  # between two acts while heed is killed, on average
LOAD_PAUSE_S = 0.05  # while it is stopped
MAX_ACTS = 40  # in one life: a slow machine must not have more to do
CHECKED_EVERY = 100  # lives: then everything has to be right so far
STOP_WITHIN_S = 30.0


@dataclass
class Figures:
    """The figures of one run."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(POINTS, 0))
    stops_s: list[float] = field(default_factory=list)  # from SIGTERM to the end of the process
    wall_s: float = 0.0

    @property
    def num_lives(self) -> int:
        """The number of times heed was ended from outside."""
        return sum(self.kills.values()) + len(self.stops_s)

    @property
    def median_stop_s(self) -> float:
        """Half of the stops took longer."""
        return statistics.median(self.stops_s or [0.0])

    @property
    def longest_stop_s(self) -> float:
        """The slowest stop."""
        return max(self.stops_s, default=0.0)


Report = Callable[[Verdict, Figures], None]


@asynccontextmanager
async def lives(folder: Path, platform: dict[str, str], mode: str) -> AsyncIterator[Lives]:
    """Lives of one heed on one data directory."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    own = ("HEED_", "TELEGRAM_", "DISCORD_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)} | {
        "HEED_MODEL": str(model),
        "HEED_ACCESS_MODE": "open",
        "HEED_ACCESS_MESSAGES_PER_HOUR": "1000000",
        "HEED_ACCESS_UPDATES_PER_HOUR": "1000000",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.heed_process",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT, env=environment | platform,
    )  # fmt: skip
    made = Lives(process, folder / "data", mode)
    try:
        yield made
    finally:
        await made.close()


class Run:
    """One run: so many lives, then the verdict."""

    def __init__(self, side: Side, lives: Lives, data_dir: Path, random_: random.Random) -> None:
        self.figures = Figures()
        self._side = side
        self._lives = lives
        self._data_dir = data_dir
        self._random = random_
        self._started_s = time.monotonic()

    async def all(self, num_kills: int, num_stops: int, report: Report) -> Verdict:
        """The whole run; `report` hears how things stand now and then."""
        pid = await self._lives.begin()
        await self._side.consent()
        await self._lives.kill(pid)
        for number in range(num_kills + num_stops):
            if number < num_kills:
                await self._killed(POINTS[number % len(POINTS)])
            else:
                await self._stopped()
            if (number + 1) % CHECKED_EVERY == 0:
                report(await self._verdict(), self.figures)
        return await self._verdict()

    async def _verdict(self) -> Verdict:
        """Let a heed finish everything, and look whether it is right."""
        self._side.calm()
        pid = await self._lives.begin()
        await self._connected()
        num_left = await self._quiet()
        await self._lives.stop(pid)
        self.figures.wall_s = time.monotonic() - self._started_s
        return check(self._history(num_left))

    async def _killed(self, point: str) -> None:
        """Start, let people act, and kill."""
        self._side.disturb()
        pid = await self._lives.begin(point, self._random.randint(*COMMITS))
        async with self._acting(PAUSE_S):
            if point.endswith("commit"):
                await self._lives.died()
            else:
                await self._moment(point)
                await self._lives.kill(pid)
        self.figures.kills[point] += 1

    async def _stopped(self) -> None:
        """Start, let people act a lot, also while heed is asked to end and ends."""
        self._side.disturb()
        pid = await self._lives.begin()
        await self._connected()
        async with self._acting(LOAD_PAUSE_S):
            await self._moment(self._random.choice(("time", "call")))
            self.figures.stops_s.append(await self._lives.stop(pid))

    async def _moment(self, point: str) -> None:
        """Wait for the moment of the end."""
        if point != "early":
            await self._connected()
        if point == "call":
            due = self._side.num_calls + self._random.randint(*CALLS)
            await self._side.until(lambda: self._side.num_calls >= due)
        else:
            await asyncio.sleep(self._random.uniform(*LIFE_S))

    async def _connected(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self._side.connected()

    @asynccontextmanager
    async def _acting(self, pause_s: float) -> AsyncIterator[None]:
        """People act at random moments."""
        acting = asyncio.create_task(self._act(pause_s))
        try:
            yield
        finally:
            acting.cancel()
            (problem,) = await asyncio.gather(acting, return_exceptions=True)
        if isinstance(problem, Exception):
            raise problem

    async def _act(self, pause_s: float) -> None:
        for _ in range(MAX_ACTS):
            await self._side.act()
            await asyncio.sleep(self._random.expovariate(1 / pause_s))

    async def _quiet(self) -> int:
        """Wait until everything is handled and shown, as far as it ever will be; how much is left."""
        moved_s, left = time.monotonic(), self._num_left()
        while left and time.monotonic() - moved_s < WAIT_S:
            await asyncio.sleep(0.1)
            before, left = left, self._num_left()
            moved_s = moved_s if left == before else time.monotonic()
        return left

    def _num_left(self) -> int:
        kept = {str(key): json.loads(str(value)) for key, value in self._rows("SELECT key, value FROM setting")}
        return self._side.num_pending(kept) + self._num_waiting()

    def _num_waiting(self) -> int:
        inbox, outbox = "SELECT count(*) FROM inbox WHERE NOT is_done", "SELECT count(*) FROM outbox WHERE state IN "
        return sum(int(str(self._rows(query)[0][0])) for query in (inbox, outbox + "('waiting', 'sending')"))

    def _history(self, num_left: int) -> History:
        self._side.account_for({str(key) for (key,) in self._rows("SELECT update_id FROM inbox")})
        history = self._side.history
        asked = "SELECT json_extract(messages, '$[#-1].content') FROM completion WHERE retry_of IS "
        history.turns = [str(row[0]) for row in self._rows(asked + "NULL")]
        history.repeats = [str(row[0]) for row in self._rows(asked + "NOT NULL")]
        keys = self._rows("SELECT idempotency_key FROM feedback")  # platform:bot:update
        history.feedback = [str(key).split(":", 2)[2] for (key,) in keys]
        taken_back = "SELECT count(*) FROM update_run WHERE status = 'taken back'"
        history.num_taken_back = int(str(self._rows(taken_back)[0][0]))
        history.shown = self._side.shown()
        history.num_waiting = num_left
        return history

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(f"file:{self._data_dir / 'heed.db'}?mode=ro", uri=True, timeout=20)) as database:
            return database.execute(query).fetchall()


async def run(
    folder: Path,
    platform: str = "telegram",
    *,
    num_kills: int = 0,
    num_stops: int = 0,
    seed: int = 0,
    mode: str = "durable",
    report: Report = lambda verdict, figures: None,
) -> tuple[Verdict, Figures]:
    """One run in an empty folder. Mode `memory` is the negative control."""
    random_ = random.Random(seed)
    async with SIDES[platform](random_) as side, lives(folder, side.environment, mode) as made:
        going = Run(side, made, folder / "data", random_)
        return await going.all(num_kills, num_stops, report), going.figures
