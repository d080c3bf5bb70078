"""bot.messaging.leased_channels: of several gateways one has a platform, and another one once it is gone."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.agent.service import AgentService
from bot.channel import Post
from bot.core.core import Core
from bot.events import MessageReceived
from bot.messaging import leased_channels
from bot.messaging.leased_channels import LeasedChannels
from bot.messaging.outbox_item import OutboxItem
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from storage import fencing
from storage.conversations import outbox
from storage.fencing import Tokens
from storage.lease_keeper import LeaseKeeper
from tests.bot.fake_channel import ANA, HOME, FakeChannel, FakePlatform
from tests.bot.platform_rig import rig
from tests.patience import PATIENCE_S, until
from tests.storage.new_data_dir import copy_to


class Called(FakeChannel):
    """A channel that its platform calls."""

    def routes(self) -> list[web.RouteDef]:
        """One."""
        return [web.post("/telegram/hook", self._answer)]

    async def _answer(self, _request: web.Request) -> web.Response:
        return web.Response(text="taken")


class OneGateway:
    """A gateway with its leases, and the channels that it has made so far."""

    def __init__(
        self, core: Core, name: str, shown: FakePlatform, duration_s: float, connections: tuple[str, ...]
    ) -> None:
        self.core = core
        self.made: list[Called] = []
        self.won_s: list[float] = []  # when it got each of its leases
        self._shown = shown
        self._connections = connections
        self.leases = LeaseKeeper(core.database, Tokens(name), self._won, lambda _: None, duration_s, fencing.platform)
        self.channels = LeasedChannels(
            self._make, lambda own: ChannelSupervisor(own, core, Metrics(), AgentService(core)), self.leases
        )
        self.watching = asyncio.create_task(self.leases.watch())

    def _make(self) -> list[Called]:
        made = [Called(self._shown) for _ in self._connections]
        for channel, name in zip(made, self._connections, strict=True):
            channel.name = name
        self.made += made
        return made

    async def _won(self, _key: str) -> None:
        self.won_s.append(time.monotonic())

    @property
    def hears(self) -> bool:
        """It has the platform, and listens."""
        return self.made[-1].take is not None

    async def stop(self) -> None:
        """End it in order."""
        self.watching.cancel()
        await self.channels.stop(5)


class Begin(Protocol):
    """Begin a gateway of one cluster; all show their messages on the same platform."""

    def __call__(
        self, name: str, duration_s: float = 60.0, connections: tuple[str, ...] = ("telegram",)
    ) -> OneGateway: ...


@pytest.fixture
async def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Begin]:
    """See Begin. What is answered takes long enough to be shown while it is written."""
    monkeypatch.setattr(leased_channels, "LOOK_EVERY_S", 0.05)
    copy_to(tmp_path / "data")
    shown = FakePlatform()
    async with AsyncExitStack() as stack:
        heed = await stack.enter_async_context(rig(tmp_path / "data", FakeChannel(FakePlatform())))

        heed.engine.token_delay_s = 0.01

        def begun(name: str, duration_s: float = 60.0, connections: tuple[str, ...] = ("telegram",)) -> OneGateway:
            gateway = OneGateway(heed.core, name, shown, duration_s, connections)
            stack.push_async_callback(gateway.stop)
            gateway.channels.start()
            return gateway

        yield begun


async def say(gateway: OneGateway, number: int) -> None:
    """Have a gateway's channel take a message."""
    fake = gateway.made[-1]
    assert fake.take is not None
    await fake.take(fake.update(MessageReceived(ANA, HOME, str(number), f"bees {number}"), str(number)))


def answers(gateway: OneGateway, number: int) -> int:
    """How often a message was answered."""
    return sum(f"You asked about bees {number}" in text for text in gateway.made[-1].shown.texts())


async def is_answer_waiting(gateway: OneGateway) -> bool:
    """True once an answer is whole and stored; a greeting may wait before it."""
    rows = await gateway.core.database.read(outbox.waiting)
    return any(row.id.startswith("answer-") for row in rows)


async def test_a_platform_is_one_gateways(begin: Begin) -> None:
    """The other one is well, too; it listens once the first has ended."""
    one = begin("one")
    await until(lambda: one.hears)
    two = begin("two")
    await asyncio.sleep(0.3)
    assert not two.hears
    assert one.channels.health() == two.channels.health() == {"telegram": "ok"}
    await say(one, 1)
    await until(lambda: answers(one, 1) == 1)
    await one.channels.stop(5)
    await until(lambda: two.hears)
    await say(two, 2)
    await until(lambda: answers(two, 2) == 1)


async def test_the_more_of_a_platform_it_has_the_longer_it_leaves_the_next_to_the_others(begin: Begin) -> None:
    """So gateways that start together share the connections, and one that is alone has all of them in the end."""
    one = begin("one", connections=("telegram/0", "telegram/1", "telegram/2"))
    await until(lambda: len(one.won_s) == 3)
    first_s, second_s = (later - before for before, later in pairwise(one.won_s))
    assert first_s >= leased_channels.LOOK_EVERY_S
    assert second_s >= 2 * leased_channels.LOOK_EVERY_S


async def test_a_gateway_that_slept_past_its_lease_shows_nothing(begin: Begin) -> None:
    """What it was about to show the other one has shown; it notices, and stops listening."""
    one = begin("one", duration_s=2.0)
    await until(lambda: one.hears)
    one.watching.cancel()  # it sleeps
    await until(lambda: not one.leases.is_sure_of("telegram"))
    await say(one, 1)  # its platform still calls it: taken, and not shown here
    async with asyncio.timeout(PATIENCE_S):
        while not await is_answer_waiting(one):  # noqa: ASYNC110  what is waited for is stored
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert (one.made[-1].shown.messages, one.made[-1].shown.drafts) == ([], [])
    two = begin("two")
    await until(lambda: two.hears)
    await until(lambda: answers(two, 1) == 1)
    await one.leases.renew()  # it wakes
    await until(lambda: "close" in one.made[-1].events)
    assert answers(two, 1) == 1


async def test_what_the_gateway_before_stores_late_is_shown(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had slept past its lease with an answer under way, and its successor had begun already."""
    monkeypatch.setattr(leased_channels, "LATE_EVERY_S", 0.05)
    one = begin("one")
    await until(lambda: one.hears)
    late = OutboxItem.of_post(Post(HOME, "bees, at last"), None)
    await one.core.database.write(lambda s: outbox.add(s, late.row()))
    await until(lambda: one.made[-1].shown.texts() == ["bees, at last"])
    await one.channels.stop(5)
    assert one.made[-1].shown.texts() == ["bees, at last"]


async def test_a_platform_that_calls_the_wrong_gateway_is_told_to_call_again(begin: Begin) -> None:
    """The right one takes what it brings."""
    one = begin("one")
    await until(lambda: one.hears)
    two = begin("two")
    found = {}
    for name, gateway in (("one", one), ("two", two)):
        app = web.Application()
        app.add_routes(gateway.channels.routes)
        async with TestClient(TestServer(app)) as client, client.post("/telegram/hook") as response:
            found[name] = (response.status, response.headers.get("Retry-After"), await response.text())
    assert found == {"one": (200, None, "taken"), "two": (503, "1", "")}


async def test_who_is_let_in_is_told_by_every_platform_of_a_gateway(begin: Begin) -> None:
    """A gateway has a dispatcher for each connection; those of connections that it lost are not asked any more."""
    one = begin("one")
    await until(lambda: one.hears)
    tells = one.core.access.when_paired
    assert len(tells) == 1
    await one.channels.stop(5)
    assert tells == []
