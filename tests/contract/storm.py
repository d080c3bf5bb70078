"""`python -m tests.contract.storm events=100000`: people do everything at once on both chat platforms; table and JSON.

The engine is the fake one; everything else is real: the platforms' own libraries against their contract servers, the
inbox, the dispatcher, the outbox and the database. Events are drawn, some malformed, delivered twice or in another
order. Afterwards every question has to be answered once, in storage and on the platform, and each command of each
person, given once more, as well. Exit codes: 0 where that is so and the log has no error; 1 otherwise; 2 where it
could not run.
"""

import asyncio
import logging
import math
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlmodel import col, func, select

from bot.commands.person import COMMANDS
from bot.platforms.discord.channel import DiscordChannel
from evals import command, provenance
from evals.arguments import described
from evals.errors import ArgumentError
from storage.database import Database, Session
from storage.kinds import OutboxState
from storage.tables import Completion, Inbox, Outbox
from tests.bot.platforms.discord import test_end_to_end as discord
from tests.bot.platforms.odd import WRONG
from tests.bot.platforms.telegram import test_end_to_end as telegram
from tests.contract.discord_server import DiscordServer
from tests.contract.storm_crowd import ACTS, IDEAL, Crowd, DiscordCrowd, TelegramCrowd, answers
from tests.contract.telegram_server import TelegramServer
from tests.storage.new_data_dir import copy_to

PLATFORMS = ("telegram", "discord")
ENDLESS = 1_000_000
ACCESS = {"mode": "open", "messages_per_hour": ENDLESS, "updates_per_hour": ENDLESS}
UNPACED = replace(telegram.QUICK, calls_per_s=1000.0)
EVENTS_AT_ONCE = 100  # then heed may catch up, so that what waits stays bounded
MAX_WAITING = 200
MALFORMED = ("cannot be read", "from Discord could not be read")  # what heed says of what no platform sends
TELL_EVERY = 5000  # events
POLL_S = 0.01
MAX_IDLE = 500  # polls that find nothing waiting: what is not answered by then never is
TEACHING = ("justthis", "fromnowon")  # said with a new answer if the lesson is taught otherwise


Tell = Callable[[str], None]


def no_one(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class StormConfig:
    """The arguments."""

    events: int = described(100_000, "events, on each platform")
    seed: int = described(0, "which ones")
    people: int = described(4, "on each platform")
    platform: str = described("", "telegram or discord (empty: both)")
    minutes: float = described(0.0, "no event after so many minutes on a platform (0: all of them)")
    out: str = described("tests/contract/results", "folder for storm-<platform>.json")

    def __post_init__(self) -> None:
        """Raises ArgumentError where there would be no storm."""
        if not 1 <= self.events <= 10_000_000:
            raise ArgumentError(f"events wants a number from 1 to 10000000, not {self.events}")
        if not 1 <= self.people <= 1000:
            raise ArgumentError(f"people wants a number from 1 to 1000, not {self.people}")
        if self.platform not in ("", *PLATFORMS):
            raise ArgumentError(f"platform wants {' or '.join(PLATFORMS)}, not {self.platform!r}")


@dataclass
class Damage:
    """The figures of one platform's storm."""

    events: int = 0
    questions: int = 0
    commands: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # of the log
    wall_s: float = 0.0

    @property
    def is_none(self) -> bool:
        """Nothing lost, nothing twice, no error."""
        return not (self.lost or self.doubled or self.errors)

    def compare(self, what: str, wanted: Counter[str], found: Counter[str]) -> None:
        """In place: add what is missing, and what is there too often."""
        self.lost += [f"{what}: {text}" for text in sorted((wanted - found).elements())]
        self.doubled += [f"{what}: {text}" for text in sorted((found - wanted).elements())]


class Errors(logging.Handler):
    """Records of the log that say that something went wrong in heed."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record that tells of an error."""
        text = record.getMessage()
        is_wrong = record.levelno >= logging.ERROR or record.exc_info or any(words in text for words in WRONG)
        if is_wrong and not any(words in text for words in MALFORMED):
            self.found.append(f"{record.name}: {text}{_cause(record)}")


def _cause(record: logging.LogRecord) -> str:
    """Return the exception of a record with the line that raised it, if there is one."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return ""
    frame = (traceback.extract_tb(error.__traceback__) or [None])[-1]
    return f" {error!r}" + (f" in {Path(frame.filename).name}:{frame.lineno}" if frame else "")


@asynccontextmanager
async def crowded(
    platform: str, folder: Path, draw: random.Random, num_people: int
) -> AsyncIterator[tuple[Crowd, Database]]:
    """Provide a heed on a platform, and its people."""
    copy_to(folder)
    if platform == "telegram":
        async with TelegramServer() as server, telegram.heed_on(server, folder, limits=UNPACED, access=ACCESS) as talk:
            yield TelegramCrowd(server, draw, num_people), talk.core.database
        return
    discord_server = DiscordServer()
    await discord_server.start()
    try:
        async with discord.heed_on(discord_server, folder, access=ACCESS) as heed:
            num_unheard = partial(_num_unheard, discord_server, heed.channel)
            yield DiscordCrowd(discord_server, draw, num_people, num_unheard), heed.database
    finally:
        await discord_server.stop()


def _num_unheard(server: DiscordServer, channel: DiscordChannel) -> int:
    """Count events that were sent to a connected heed, and those on their way to its inbox."""
    unread = server.last_sequence - channel._gateway._here().sequence if server.last_sequence else 0
    return max(0, unread) + channel._intake._chat_queues._num_open


async def storm(config: StormConfig, platform: str, tell: Tell = no_one) -> Damage:
    """Let a crowd loose on a heed, and tell how far it is now and then. Return what came of it."""
    draw, damage, errors = random.Random(f"{platform} {config.seed}"), Damage(), Errors()
    started_s = time.monotonic()
    root = logging.getLogger()
    root.addHandler(errors)
    try:
        with tempfile.TemporaryDirectory(prefix="heed-storm-") as folder:
            async with crowded(platform, Path(folder) / "data", draw, config.people) as (crowd, database):
                await crowd.enter()
                acts = draw.choices([*ACTS], [*ACTS.values()], k=config.events)
                damage.events = await _rage(crowd, database, acts, config.minutes * 60 or math.inf, tell)
                await _check_answers(crowd, database, damage)
                await _check_commands(crowd, database, damage)
    finally:
        root.removeHandler(errors)
    damage.errors, damage.wall_s = errors.found, round(time.monotonic() - started_s, 1)
    return damage


async def _rage(crowd: Crowd, database: Database, acts: list[str], limit_s: float, tell: Tell) -> int:
    """Let everything happen, for no longer than that. Return the number of events."""
    num_events, started_s = 0, time.monotonic()
    for number, what in enumerate(acts):
        if number % EVENTS_AT_ONCE == 0:
            await _until(crowd, database, MAX_WAITING)
            passed_s = time.monotonic() - started_s
            if num_events and passed_s > limit_s:
                break
            if num_events and num_events % TELL_EVERY == 0:
                tell(f"{num_events} events in {passed_s:.0f} s")
        await crowd.act(what)
        num_events += 1
    await _until(crowd, database, 0)
    return num_events


async def _until(crowd: Crowd, database: Database, limit: int) -> None:
    """Wait until no more than `limit` things wait, on their way to heed and in its storage."""
    while crowd.num_unheard + await database.read(_num_waiting) > limit:  # noqa: ASYNC110  rows tell no one
        await asyncio.sleep(POLL_S)


def _num_waiting(s: Session) -> int:
    updates = s.exec(select(func.count()).select_from(Inbox).where(col(Inbox.is_done).is_(False))).one()
    return updates + s.exec(select(func.count()).select_from(Outbox).where(Outbox.state == OutboxState.WAITING)).one()


async def _check_answers(crowd: Crowd, database: Database, damage: Damage) -> None:
    """Compare questions with answers in storage, and those, repeats included, with what the platform shows."""
    kept = await database.read(
        lambda s: list(s.exec(select(Completion.messages, Completion.retry_of, Completion.text)))
    )
    asked = {*crowd.asked, IDEAL}
    first = Counter(messages[-1]["content"] for messages, retry_of, _ in kept if retry_of is None)
    every = answers(text for _, _, text in kept)
    damage.questions = len(crowd.asked)
    damage.compare("answer", Counter(crowd.asked), _only(crowd.asked, first))
    damage.compare("shown", _only(asked, every), _only(asked, crowd.shown()))
    given_up = await database.read(
        lambda s: s.exec(select(func.count()).select_from(Outbox).where(Outbox.state == OutboxState.DEAD)).one()
    )
    damage.lost += [f"{given_up} messages were given up"] if given_up else []


def _only(texts: Iterable[str], counted: Counter[str]) -> Counter[str]:
    return Counter({text: counted[text] for text in texts})


async def _check_commands(crowd: Crowd, database: Database, damage: Damage) -> None:
    """Give every command once as every person: each is answered once."""
    for name in COMMANDS:
        counters: list[Callable[[], int]] = await crowd.command(name)
        await _until_idle(crowd, database, counters)
        damage.commands += len(counters)
        answers = [count() for count in counters]
        damage.lost += [f"/{name}"] * answers.count(0)
        damage.doubled += [f"/{name}"] * sum(max(n - (2 if name in TEACHING else 1), 0) for n in answers)


async def _until_idle(crowd: Crowd, database: Database, counters: list[Callable[[], int]]) -> None:
    """Wait until each counter has counted, or nothing waits for so long that it never will, and nothing waits."""
    num_idle = 0
    while num_idle < MAX_IDLE and not all(count() for count in counters):
        num_idle = 0 if await database.read(_num_waiting) else num_idle + 1
        await asyncio.sleep(POLL_S)
    await _until(crowd, database, 0)


def summary(config: StormConfig, code: dict[str, Any], platform: str, damage: Damage) -> dict[str, Any]:
    """Return the figures that are written of a platform; `code` is the commit that was run."""
    return {
        "command": "python -m tests.contract.storm",
        "config": asdict(config) | {"platform": platform},
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **code,
        "machine": provenance.machine(),
        **asdict(damage),
    }


def table(found: dict[str, Damage]) -> Table:
    """Return the figures for a person to read."""
    shown = Table(title="Storm", title_justify="left")
    for name in ("platform", "events", "questions", "commands", "lost", "doubled", "errors", "seconds"):
        shown.add_column(name, justify="left" if name == "platform" else "right")
    for platform, damage in found.items():
        counts = (damage.events, damage.questions, damage.commands)
        wrong = (len(damage.lost), len(damage.doubled), len(damage.errors))
        shown.add_row(platform, *map(str, (*counts, *wrong, damage.wall_s)))
    return shown


async def run(config: StormConfig, console: Console) -> int:
    """Storms, writes and prints; returns the exit code."""
    logging.getLogger().setLevel(logging.INFO)
    code, found = provenance.commit(), dict[str, Damage]()
    for platform in [config.platform] if config.platform else PLATFORMS:
        found[platform] = await storm(config, platform, lambda text, name=platform: console.print(f"{name}: {text}"))
        path = Path(config.out) / f"storm-{platform}.json"
        command.write_json(path, summary(config, code, platform, found[platform]))
        console.print(f"written to {path}")
    console.print(table(found))
    for platform, damage in found.items():
        for line in [*damage.lost, *damage.doubled, *damage.errors][:40]:
            console.print(f"{platform}: {line}", markup=False)
    return 0 if all(damage.is_none for damage in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(command.execute("python -m tests.contract.storm", StormConfig, sys.argv[1:], run))
