"""The real heed with a fast fake engine, made to be killed, in lives that `tests.crash.forks` begins.

Crash points besides those from outside: right before and right after the commit with that number. Mode `memory` is
the negative control: updates are acknowledged and kept in memory only.
"""

import asyncio
import itertools
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.app import App
from bot.channel import Channel
from bot.commands import person
from bot.config import Settings, load
from bot.messaging import supervisor as front
from bot.messaging.inbox import InboxWorker
from bot.platforms.discord.channel import DiscordChannel
from bot.platforms.discord.gateway import Pace
from bot.platforms.telegram.channel import TelegramChannel
from storage.conversations import inbox
from storage.database import Database
from storage.tables import Inbox, User
from tests.bot.fake_engine import FakeEngine
from tests.crash.armed import arm
from tests.crash.forks import fork_lives

UNLIMITED = {"edit_interval_s": 0.01, "post_interval_s": 0.0, "group_interval_s": 0.0, "calls_per_s": 1e9}
PACE = Pace(identify_s=0.01, guilds_s=0.01, backoff_s=0.01, backoff_cap_s=0.1)
NUM_LESSONS = 3  # that the engine looks back: a long run must not become slow
EVERYTHING = "0"


class FastEngine(FakeEngine):
    """Answers in some hundredths of a second."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.token_delay_s = 0.001
        self.learn_delay_s = 0.01

    async def _lessons(self, user: User, number: int) -> list[str]:
        return ["too long"] if number else []


class MemoryIntake(InboxWorker):
    """A wrong inbox that acknowledges before anything is on disk: the negative control."""

    numbers = itertools.count(1_000_000)

    async def take(self, row: Inbox) -> bool:
        """Keep it in memory."""
        row.seq = next(self.numbers)
        self._queue(row)
        return True


def channel(settings: Settings, database: Database) -> Sequence[Channel]:
    """The platform whose token is set, without its limits: the servers the tests start have none."""
    made: TelegramChannel | DiscordChannel
    if settings.telegram.token is not None:
        made = TelegramChannel(settings.telegram, person.menu())
    else:
        made = DiscordChannel(settings.discord, person.menu(), database, pace=PACE)
    made.limits = replace(made.limits, **UNLIMITED)  # type: ignore[misc, arg-type]
    return [made]


def live(data_dir: str, mode: str, point: str, number: int) -> None:
    """One life."""
    arm(point, number)
    if mode == "memory":
        front.InboxWorker = MemoryIntake  # type: ignore[misc]
        inbox.mark_done = lambda s, seq: True
        inbox.begin_attempt = lambda s, seq: 1
    settings = load(data_dir=data_dir, http={"port": 0}, log_level="error")
    app = App(settings, lambda _: None, FastEngine, channel)  # type: ignore[arg-type]

    async def run() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
        await app.run()

    asyncio.run(run())


if __name__ == "__main__":
    fork_lives(live)
