"""Tests of bot.platforms.discord.shard: several connections of one bot, each held by one of two gateways."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.agent.service import AgentService
from bot.commands import person
from bot.config import Settings
from bot.core.core import Core
from bot.messaging import leased_channels
from bot.messaging.leased_channels import LeasedChannels
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from bot.platforms.discord.channel import DiscordChannel
from bot.platforms.discord.events import CREATED, message_row
from bot.platforms.discord.messages import LIMITS
from bot.platforms.discord.shard import Shard
from engine.config import EngineConfig
from storage import fencing
from storage.conversations import inbox
from storage.database import Database
from storage.fencing import Tokens
from storage.lease_keeper import LeaseKeeper
from tests.bot.fake_engine import FakeEngine
from tests.bot.platforms.discord_bench import PACE
from tests.contract.discord_server import DiscordServer
from tests.contract.discord_world import BOT, OTHER_SERVER, TOKEN, Channel
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("short_end")

MENTION = f"<@{BOT['id']}>"
SHARDS = (Shard(0, 2), Shard(1, 2))
QUICK = replace(LIMITS, edit_interval_s=0.01, post_interval_s=0.001, burst=100, calls_per_s=1000.0)


class OneGateway:
    """A gateway that has Discord's connections that no other one has; it asks for them in the order of `shards`."""

    def __init__(self, name: str, server: DiscordServer, core: Core, shards: tuple[Shard, ...]) -> None:
        settings = Settings(discord={"token": TOKEN, "api_base": server.api_base}).discord  # type: ignore[arg-type]

        def make() -> list[DiscordChannel]:
            made = [DiscordChannel(settings, person.menu(), core.database, shard=one, pace=PACE) for one in shards]
            for channel in made:
                channel.limits = QUICK
            return made

        tokens, lasts_s = Tokens(name), 2 * PATIENCE_S  # no lease is renewed here
        self.leases = LeaseKeeper(core.database, tokens, _nothing, lambda _: None, lasts_s, fencing.platform)
        self.channels = LeasedChannels(
            make, lambda own: ChannelSupervisor(own, core, Metrics(), AgentService(core)), self.leases
        )
        self.channels.start()

    @property
    def connections(self) -> set[str]:
        """The connections it has, and which are well."""
        return {name for name, own in self.channels._ours.items() if own.health()["discord"] == "ok"}

    async def stop(self) -> None:
        """End it in order; harmless if it has ended."""
        with suppress(ValueError):
            await self.channels.stop(5.0)


@dataclass
class TwoGateways:
    """Two gateways of one cluster, and Discord."""

    server: DiscordServer
    database: Database
    one: OneGateway
    two: OneGateway

    async def ask(self, chat: Channel, text: str) -> None:
        """Say something, and wait for the answer."""
        await self.server.say(chat, text)
        await self.answered(chat, text)

    async def answered(self, chat: Channel, text: str) -> None:
        """Wait until something that was said is answered."""
        asked = text.removeprefix(MENTION).strip()
        await self.server.until(lambda: any(f"You asked about {asked}" in said for said in self.server.said(chat)))


async def _nothing(_key: str) -> None:
    """Nothing is gone on with."""


async def each_has_one(*gateways: OneGateway) -> None:
    """Wait until each has one connection that is well; if that does not come, say what they have instead."""
    try:
        await until(lambda: all(len(gateway.connections) == 1 for gateway in gateways))
    except TimeoutError:
        pytest.fail(f"held: {[gateway.leases.held for gateway in gateways]}, well: {[g.connections for g in gateways]}")


@asynccontextmanager
async def gateways(data_dir: Path, server: DiscordServer) -> AsyncIterator[TwoGateways]:
    """Two gateways, of which each has one connection: they begin with different ones, so that none is late for both."""
    database = Database.open(data_dir)
    engine: Any = FakeEngine(EngineConfig("fake", data_dir), database)
    await engine.start(lambda _: None)
    cores = [
        Core.build(Settings(data_dir=data_dir, access={"mode": "open"}), database, engine, Metrics())  # type: ignore[arg-type]
        for _ in range(2)
    ]
    orders = (SHARDS, SHARDS[::-1])
    one, two = (OneGateway(name, server, core, order) for name, core, order in zip("ab", cores, orders, strict=True))
    try:
        await each_has_one(one, two)
        yield TwoGateways(server, database, one, two)
    finally:
        await one.stop()
        await two.stop()
        for core in cores:
            await core.lessons.drain()
        await database.close()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    """A Discord with a private chat and a channel of each of two servers."""
    monkeypatch.setattr(leased_channels, "LOOK_EVERY_S", 0.1)
    made = DiscordServer()
    made.dm(), made.text(), made.text("601", OTHER_SERVER)
    await made.start()
    yield made
    await made.stop()


def test_servers_are_shared_by_discords_formula() -> None:
    """Each server is heard by one of them, private chats by the first."""
    shards = [Shard(number, 3) for number in range(3)]
    for server in ("", "900", "81384788765712384", "197038439483310086", str(5 << 22)):
        assert sum(shard.hears(server) for shard in shards) == 1
    assert shards[(81384788765712384 >> 22) % 3].hears("81384788765712384")
    assert [shard.hears("") for shard in shards] == [shard.is_first for shard in shards] == [True, False, False]


def test_a_connection_that_is_alone_is_the_platform() -> None:
    """Several have numbers."""
    assert (Shard().name, Shard().hears("900"), Shard().hears(OTHER_SERVER)) == ("discord", True, True)
    assert [shard.name for shard in SHARDS] == ["discord/0", "discord/1"]


async def test_each_gateway_has_one_connection_and_answers_what_it_hears(
    server: DiscordServer, quick_dir: Path
) -> None:
    """Discord is told which share each wants; private chats are the first one's; the menu is set once."""
    async with gateways(quick_dir, server) as both:
        assert both.one.connections | both.two.connections == {"discord/0", "discord/1"}
        assert both.one.channels.health() == {"discord/0": "ok", "discord/1": "ok"}
        assert sorted(payload["shard"] for payload in server.sockets.identified) == [[0, 2], [1, 2]]
        await both.ask(server.dm(), "bees")
        await both.ask(server.text(), f"{MENTION} wasps")
        await both.ask(server.text("601"), f"{MENTION} moths")
        await server.until(lambda: len(server.made("PUT", "/applications/.*/commands")) == 1)
        rows = await both.database.read(lambda s: inbox.taken(s, "discord", BOT["id"], "m:"))
        assert {row.chat_key: row.server for row in rows} == {"500": "", "600": "900", "601": OTHER_SERVER}


async def test_the_other_gateway_goes_on_where_a_connection_ended(server: DiscordServer, quick_dir: Path) -> None:
    """It resumes the session, takes what was said meanwhile, and hands nothing on twice."""
    async with gateways(quick_dir, server) as both:
        await both.ask(server.text(), f"{MENTION} wasps")
        await both.ask(server.text("601"), f"{MENTION} moths")
        await both.one.stop()
        await server.say(server.text(), f"{MENTION} hornets")
        await server.say(server.text("601"), f"{MENTION} flies")
        await until(lambda: both.two.connections == {"discord/0", "discord/1"})
        await both.answered(server.text(), f"{MENTION} hornets")
        await both.answered(server.text("601"), f"{MENTION} flies")
        assert len(server.sockets.identified) == 2
        assert len(server.sockets.resumed) == 1
        for chat in (server.text(), server.text("601")):
            assert sum("You asked about" in said for said in server.said(chat)) == 2


async def test_each_connection_looks_through_its_own_history(server: DiscordServer, quick_dir: Path) -> None:
    """Where no session is left; the first one leaves alone what it cannot tell, as it may be the other's."""
    async with gateways(quick_dir, server) as both:
        await both.ask(server.dm(), "bees")
        await both.ask(server.text(), f"{MENTION} wasps")
        await both.ask(server.text("601"), f"{MENTION} moths")
    server.sockets.forget()
    missed = [(server.dm(), "ants"), (server.text(), f"{MENTION} hornets"), (server.text("601"), f"{MENTION} flies")]
    for chat, text in missed:
        await server.say(chat, text)
    before = len(server.calls)
    async with gateways(quick_dir, server) as both:
        for chat, text in missed:
            await both.answered(chat, text)
        rows = await both.database.read(lambda s: inbox.taken(s, "discord", BOT["id"], "m:"))
        assert [row.server for row in rows].count(OTHER_SERVER) == 2
        looked = [call.path for call in server.calls[before:] if call.method == "GET" and "/messages" in call.path]
        assert sorted(looked) == [f"/channels/{chat.id}/messages" for chat, _ in missed]


async def test_what_waits_is_left_to_the_connection_that_hears_it(server: DiscordServer, quick_dir: Path) -> None:
    """A connection that begins does not handle what another one has taken."""
    database = Database.open(quick_dir)
    engine: Any = FakeEngine(EngineConfig("fake", quick_dir), database)
    await engine.start(lambda _: None)
    core = Core.build(Settings(data_dir=quick_dir, access={"mode": "open"}), database, engine, Metrics())  # type: ignore[arg-type]
    settings = Settings(discord={"token": TOKEN, "api_base": server.api_base}).discord  # type: ignore[arg-type]
    channels = [DiscordChannel(settings, (), database, shard=shard, pace=PACE) for shard in SHARDS]
    hears, does_not = (ChannelSupervisor([one], core, Metrics(), AgentService(core)) for one in reversed(channels))
    try:
        message = await server.say(server.text("601"), f"{MENTION} moths")
        event = message | {"guild_id": OTHER_SERVER}
        row = message_row(CREATED, event, BOT["id"])
        assert row is not None
        await database.write(lambda s: inbox.add(s, row))
        does_not.start()
        await server.until(lambda: does_not.health()["discord"] == "ok")
        async with asyncio.timeout(PATIENCE_S):
            # Its own first mark is done, and what the other one hears is not.
            while [one.update_id for one in await database.read(inbox.waiting)] != [row.update_id]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await until(lambda: does_not.inbox.num_waiting == 0)
        assert server.said(server.text("601")) == []
        hears.start()
        async with asyncio.timeout(PATIENCE_S):
            while not server.said(server.text("601")):  # noqa: ASYNC110  the platform tells nothing
                await asyncio.sleep(0.01)
    finally:
        await does_not.stop(1.0)
        await hears.stop(1.0)
        await core.lessons.drain()
        await database.close()
