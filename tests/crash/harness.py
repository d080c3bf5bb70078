"""People talk to a heed that is killed again and again; afterwards the history must be right.

The platform is the Bot API server of the contract tests. It outlives heed, redelivers what was confirmed and reorders
what is delivered at once. Everything random comes from one seed.
"""

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.telegram_server import Json, TelegramServer, private
from tests.crash.history import History, Verdict, about, check

ROOT = Path(__file__).resolve().parents[2]
NUM_PEOPLE = 8
REDELIVERED = 60  # of what was confirmed, the newest: Telegram forgets, too
LIFE_S = (0.0, 0.6)  # after it began to poll, or after its start
POINTS = ("time", "early", "before-commit", "after-commit", "call")
COMMITS = (1, 60)
CALLS = (1, 40)
WAIT_S = 120.0


@dataclass
class Figures:
    """What a run has measured."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(POINTS, 0))
    stop_s: float = 0.0
    wall_s: float = 0.0


class Lives:
    """The process that forks a heed for every life."""

    def __init__(self, process: asyncio.subprocess.Process, data_dir: Path, mode: str) -> None:
        self._process = process
        self._data_dir = data_dir
        self._mode = mode

    async def begin(self, point: str = "none", number: int = 0) -> int:
        """A new heed; its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._data_dir} {self._mode} {point} {number}\n".encode())
        return int(await self._line())

    async def end(self, pid: int, with_signal: signal.Signals | None) -> None:
        """End a heed, or wait for one that ends itself."""
        if with_signal is not None:
            os.kill(pid, with_signal)  # nobody has waited for it, so the pid is still its own
        assert await self._line() == "gone"

    async def _line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def lives(folder: Path, server: TelegramServer, mode: str) -> AsyncIterator[Lives]:
    """Lives of one heed on one data directory."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEED_")} | {
        "HEED_MODEL": str(model),
        "HEED_ACCESS_MODE": "open",
        "HEED_ACCESS_MESSAGES_PER_HOUR": "1000000",
        "HEED_ACCESS_UPDATES_PER_HOUR": "1000000",
        "TELEGRAM_BOT_TOKEN": server.token,
        "HEED_TELEGRAM_API_BASE": server.url,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.heed_process",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT, env=environment,
    )  # fmt: skip
    try:
        yield Lives(process, folder / "data", mode)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


class People:
    """Who talks to heed, and what they have done."""

    def __init__(self, server: TelegramServer, random_: random.Random) -> None:
        self.history = History()
        self._server = server
        self._random = random_
        self._people: list[Json] = [
            {"id": 1000 + number, "is_bot": False, "first_name": f"P{number}"} for number in range(NUM_PEOPLE)
        ]

    async def consent(self) -> None:
        """Everybody says hello and lets heed learn."""
        for person in self._people:
            self._ask(person)
        for person in self._people:
            chat = private(person)
            await self._server.until(lambda chat=chat: self._with_button(chat, "learn:yes"))
            self._server.press(chat, self._with_button(chat, "learn:yes")[0]["message_id"], "learn:yes", person)
            await self._server.until(lambda chat=chat: any("learning is on" in t for t in self._server.texts(chat)))

    def act(self) -> None:
        """Somebody does something."""
        person = self._random.choice(self._people)
        answers = self._with_button(private(person), "up")
        what = self._random.choice(("ask", "ask", "correct", "up", "down", "react", "again")) if answers else "ask"
        if what == "ask":
            self._ask(person)
        else:
            self._feed_back(person, self._random.choice(answers[-5:]), what)

    def _ask(self, person: Json) -> None:
        question = f"q{len(self.history.questions)}"
        self.history.questions.append(question)
        self._server.say(question, sender=person)

    def _feed_back(self, person: Json, answer: Json, what: str) -> None:
        chat, message_id, question = private(person), answer["message_id"], about(answer["text"])
        match what:
            case "correct":
                self._server.say("that was too long", sender=person, reply_to=message_id)
            case "react":
                self._server.react(chat, message_id, ["👎"], sender=person)
            case _:
                self._server.press(chat, message_id, what, person)
        if what in ("correct", "again"):
            self.history.repeats_wanted.append(question)
        if what != "again":
            self.history.feedback_given.append(str(self._server._next_update))

    def _with_button(self, chat: Json, action: str) -> list[Json]:
        return [message for message in self._server.shown(chat) if action in json.dumps(message.get("reply_markup"))]

    def shown(self) -> list[str]:
        """Every text of heed's that is shown."""
        return [text for person in self._people for text in self._server.texts(private(person))]


class Run:
    """One run: so many kills, then the verdict."""

    def __init__(self, server: TelegramServer, lives: Lives, data_dir: Path, seed: int) -> None:
        self.figures = Figures()
        self._random = random.Random(seed)
        self._server = server
        self._lives = lives
        self._data_dir = data_dir
        self.people = People(server, self._random)

    async def kill_often(self, num_kills: int) -> Verdict:
        """The whole run."""
        started_s = time.monotonic()
        pid = await self._lives.begin()
        await self.people.consent()
        await self._lives.end(pid, signal.SIGKILL)
        for number in range(num_kills):
            await self._life(POINTS[number % len(POINTS)])
        self._server.shuffle(None)
        pid = await self._lives.begin()
        await self._quiet()
        stopping_s = time.monotonic()
        await self._lives.end(pid, signal.SIGTERM)
        self.figures.stop_s = time.monotonic() - stopping_s
        self.figures.wall_s = time.monotonic() - started_s
        return check(self._history())

    async def _life(self, point: str) -> None:
        """Start, let people act, and kill."""
        self._server._confirmed = self._server._confirmed[-REDELIVERED:]
        self._server.redeliver()
        self._server.shuffle(self._random.randrange(2**31))
        number = self._random.randint(*COMMITS)
        self._server.polled.clear()
        pid = await self._lives.begin(point, number)
        acting = asyncio.create_task(self._act())
        try:
            if point.endswith("commit"):
                await self._lives.end(pid, None)
            else:
                await self._moment(point)
                await self._lives.end(pid, signal.SIGKILL)
        finally:
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
        self.figures.kills[point] += 1

    async def _moment(self, point: str) -> None:
        """Wait for the moment of the kill."""
        if point != "early":
            async with asyncio.timeout(WAIT_S):
                await self._server.polled.wait()
        if point == "call":
            due = len(self._server.calls) + self._random.randint(*CALLS)
            await self._server.until(lambda: len(self._server.calls) >= due)
        else:
            await asyncio.sleep(self._random.uniform(*LIFE_S))

    async def _act(self) -> None:
        """People act at random moments; at least as long as heed lives."""
        while True:
            self.people.act()
            await asyncio.sleep(self._random.expovariate(1 / 0.15))

    async def _quiet(self) -> None:
        """Wait until everything is handled and shown, as far as it ever will be."""
        async with asyncio.timeout(WAIT_S):
            while self._server.num_pending or self._num_waiting():  # noqa: ASYNC110  another process is waited for
                await asyncio.sleep(0.1)

    def _num_waiting(self) -> int:
        inbox, outbox = "SELECT count(*) FROM inbox WHERE NOT is_done", "SELECT count(*) FROM outbox WHERE state IN "
        return sum(int(self._rows(query)[0][0]) for query in (inbox, outbox + "('waiting', 'sending')"))

    def _history(self) -> History:
        history = self.people.history
        asked = "SELECT json_extract(messages, '$[#-1].content') FROM completion WHERE retry_of IS "
        history.turns = [str(row[0]) for row in self._rows(asked + "NULL")]
        history.repeats = [str(row[0]) for row in self._rows(asked + "NOT NULL")]
        keys = self._rows("SELECT idempotency_key FROM feedback")
        history.feedback = [str(key).rpartition(":")[2] for (key,) in keys]
        history.shown = self.people.shown()
        history.num_waiting = self._num_waiting() + self._server.num_pending
        return history

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(f"file:{self._data_dir / 'heed.db'}?mode=ro", uri=True, timeout=20)) as database:
            return database.execute(query).fetchall()


async def run(folder: Path, num_kills: int, seed: int, mode: str = "durable") -> tuple[Verdict, Figures]:
    """One run in an empty folder. Mode `memory` is the negative control."""
    async with TelegramServer() as server, lives(folder, server, mode) as made:
        going = Run(server, made, folder / "data", seed)
        return await going.kill_often(num_kills), going.figures
