"""bot.messaging.supervisor: a platform that fails costs itself only, and at the end nothing is lost."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.agent.service import AgentService
from bot.channel import Unreachable
from bot.config import Settings
from bot.core.core import Core
from bot.errors import StartError
from bot.events import Author, MessageReceived, Place
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from storage.conversations import inbox
from storage.database import Session
from storage.errors import DatabaseLost
from tests.bot.fake_channel import ANA, HOME, FakeChannel, FakePlatform
from tests.bot.platform_rig import rig
from tests.bot.test_app import Started
from tests.bot.test_app import model as model
from tests.bot.test_app import settings as settings
from tests.patience import PATIENCE_S, until
from tests.storage.new_data_dir import copy_to

BEA = Author("discord", "21", "Bea")
CHANNEL = Place("discord", "55")


def no_jitter(low: float, high: float) -> float:
    """As soon as allowed."""
    return low


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    """A core whose outbox is not used."""
    copy_to(tmp_path / "data")
    async with rig(tmp_path / "data", FakeChannel(FakePlatform())) as heed:
        yield heed.core


@asynccontextmanager
async def running(core: Core, *fakes: FakeChannel) -> AsyncIterator[ChannelSupervisor]:
    """Channels at work."""
    channels = ChannelSupervisor(fakes, core, Metrics(), AgentService(core), lambda _: asyncio.sleep(0), no_jitter)
    channels.start()
    try:
        yield channels
    finally:
        await channels.stop(5)


async def test_what_is_taken_is_answered(core: Core) -> None:
    """An update goes from the channel through inbox, dispatcher and outbox back to the channel."""
    fake = FakeChannel(FakePlatform())
    async with running(core, fake) as channels:
        await until(lambda: channels.health() == {"telegram": "ok"})
        assert fake.take is not None
        assert await fake.take(fake.update(MessageReceived(ANA, HOME, "1", "bees"), "1"))
        await until(lambda: any("You asked about bees" in text for text in fake.shown.texts()))
    assert fake.events == ["start", "stop", "close"]


@pytest.mark.parametrize("error", [Unreachable("down", is_ambiguous=False), ValueError("bug")])
async def test_a_channel_that_cannot_start_is_tried_again(core: Core, error: Exception) -> None:
    """Whatever it raises, it is started once the platform is there."""
    fake = FakeChannel(FakePlatform())
    fake.shown.failures["start"] = [error] * 3
    async with running(core, fake) as channels:
        assert channels.health()["telegram"] == "not started"
        await until(lambda: channels.health()["telegram"] == "ok")


async def test_a_database_that_is_away_at_the_start_is_waited_for(
    core: Core, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While storage is away neither the inbox nor the outbox gives up reading what waits in it."""
    real, failures = core.database.read, [DatabaseLost("gone")] * 6

    async def read(work: Callable[[Session], Any]) -> Any:
        if failures:
            raise failures.pop()
        return await real(work)

    monkeypatch.setattr(core.database, "read", read)
    fake = FakeChannel(FakePlatform())
    async with running(core, fake) as channels:
        await until(lambda: not failures and channels.health() == {"telegram": "ok"})
        assert fake.take is not None
        assert await fake.take(fake.update(MessageReceived(ANA, HOME, "1", "bees"), "1"))
        await until(lambda: any("You asked about bees" in text for text in fake.shown.texts()))
    assert "waits for storage: Gone" in caplog.text


async def test_a_refused_token_ends_its_platform_only(core: Core) -> None:
    """Its health says what to do; the other platform works."""
    bad, good = FakeChannel(FakePlatform()), FakeChannel(FakePlatform(), platform="discord")
    bad.shown.failures["start"] = [StartError("TELEGRAM_BOT_TOKEN: not accepted")] * 9
    async with running(core, bad, good) as channels:
        await until(lambda: good.take is not None)
        assert good.take is not None
        await good.take(good.update(MessageReceived(BEA, CHANNEL, "1", "bees"), "1"))
        await until(lambda: any("You asked about bees" in text for text in good.shown.texts()))
        assert channels.health() == {"telegram": "TELEGRAM_BOT_TOKEN: not accepted", "discord": "ok"}
    assert [name for name, _ in bad.shown.calls].count("start") == 1


async def test_nothing_is_handled_before_the_platform_has_started(core: Core) -> None:
    """What waits goes on waiting, and is answered when it has."""
    fake = FakeChannel(FakePlatform())
    hold = asyncio.Event()
    start = fake.start

    async def late(take: Any) -> None:
        await hold.wait()
        await start(take)

    fake.start = late  # type: ignore[method-assign]
    await core.database.write(lambda s: inbox.add(s, fake.update(MessageReceived(ANA, HOME, "1", "bees"), "1")))
    async with running(core, fake) as channels:
        await core.database.write(lambda s: None)  # what was begun before is behind it
        assert await core.database.read(inbox.num_waiting) == 1
        hold.set()
        await until(lambda: channels.health() == {"telegram": "ok"})
        await until(lambda: any("You asked about bees" in text for text in fake.shown.texts()))


async def test_what_is_over_is_dropped_once_the_platform_has_started(core: Core) -> None:
    """The keys of updates handled days ago go; what came within the time that is kept is still known."""
    fake = FakeChannel(FakePlatform())
    start, hold, week_s = fake.start, asyncio.Event(), 7 * 24 * 3600.0

    async def late(take: Any) -> None:
        await start(take)
        await hold.wait()

    fake.start = late  # type: ignore[method-assign]
    for key, age_s in (("old", week_s), ("new", 47 * 3600.0)):
        row = fake.update(MessageReceived(ANA, HOME, "1", "bees"), key)
        row.received_at, row.is_done = time.time() - age_s, True
        await core.database.write(lambda s, row=row: inbox.add(s, row))
    async with running(core, fake):
        await until(lambda: fake.take is not None)
        assert await keys_of(core) == ["old", "new"]
        hold.set()
        while await keys_of(core) != ["new"]:  # noqa: ASYNC110  storage is what is waited for
            await asyncio.sleep(0.005)
        assert fake.take is not None
        assert await fake.take(fake.update(MessageReceived(ANA, HOME, "1", "bees"), "new")) is False


async def keys_of(core: Core) -> list[str]:
    """The updates that are known."""
    return await core.database.read(lambda s: inbox.keys(s, "telegram", "7", ""))


async def test_a_channel_that_hangs_does_not_hold_up_the_end(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left behind after its time, and the others are stopped."""
    monkeypatch.setattr("bot.messaging.supervisor.STOP_S", 0.05)
    stuck, good = FakeChannel(FakePlatform()), FakeChannel(FakePlatform(), platform="discord")

    async def hang() -> None:
        await asyncio.Event().wait()

    stuck.stop = hang  # type: ignore[method-assign]
    async with running(core, stuck, good) as channels:
        await until(lambda: set(channels.health().values()) == {"ok"})
    assert good.events == ["start", "stop", "close"]


async def test_readiness_tells_each_platform(settings: Settings) -> None:
    """heed is ready for the web page; a platform that is down makes it "degraded" and is named."""
    fake = FakeChannel(FakePlatform())
    fake.state = "no connection"
    started = Started(settings, channels=lambda *_: [fake])
    task = asyncio.create_task(started.app.run())
    await asyncio.wait_for(started.ready.wait(), PATIENCE_S)
    await until(lambda: fake.take is not None)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        response = await stack.enter_async_context(session.get(f"{started.app.url}/readyz"))
        body = await response.json()
    assert (response.status, body["status"], body["parts"]["telegram"]) == (200, "degraded", "no connection")
    started.app.stop()
    await asyncio.wait_for(task, PATIENCE_S)
    assert fake.events == ["start", "stop", "close"]
