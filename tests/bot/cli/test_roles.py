"""bot.cli.roles: two gateways and two engines, each a process, behind real Ray, a real PostgreSQL and a Telegram."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from bot.cli import main
from bot.cli.main import cli
from evals.client import Client
from storage import fencing, leases
from storage.database import Database
from storage.people import people
from tests.contract.telegram_server import TelegramServer
from tests.live_cluster import LiveCluster
from tests.patience import PATIENCE_S
from tests.storage.postgres_server import PostgresServer

QUESTION, UNSEEN = "Tell me about the koala.", "Describe the panda."
ANA = {"id": 501, "is_bot": False, "first_name": "Ana"}
real = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]


class Machines:
    """The cluster, its database, and the Telegram that its gateways listen to."""

    def __init__(self, cluster: LiveCluster, telegram: TelegramServer, database: Database) -> None:
        self.cluster = cluster
        self.telegram = telegram
        self.database = database

    def client(self, gateway: str) -> Client:
        """A client of one gateway."""
        return Client(self.cluster.gateways[gateway].url)

    async def answers(self, text: str) -> list[str]:
        """Say something on Telegram; what heed has shown there, from then on and come to rest."""
        chat = self.telegram.meet({"id": ANA["id"], "type": "private", "first_name": "Ana"})
        before = self._shown(chat)
        self.telegram.say(text, sender=ANA)
        async with asyncio.timeout(PATIENCE_S):
            await self.telegram.until(lambda: self._shown(chat)[len(before) :])
            await asyncio.sleep(1.5)  # for an answer too many
        return self._shown(chat)[len(before) :]

    def _shown(self, chat: dict[str, object]) -> list[str]:
        own = [message for message in self.telegram.shown(chat) if message["from"]["is_bot"]]
        return [str(message["text"]) for message in own if not message["text"].startswith(("Hello, I am heed", "…"))]

    async def holder(self, name: str) -> str:
        """The member that holds a lease."""
        lease = await self.database.read(lambda s: leases.of(s, name))
        assert lease is not None
        return str(lease.owner.partition("/")[0])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machines(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Machines]:
    """Two engines and two gateways."""
    folder = tmp_path_factory.mktemp("machines")
    async with TelegramServer() as telegram:
        with postgres.database() as name:
            url = postgres.url(name)
            settings = {
                "HEED_ACCESS_MODE": "open",
                "TELEGRAM_BOT_TOKEN": telegram.token,
                "HEED_TELEGRAM_API_BASE": telegram.url,
            }
            cluster = LiveCluster(folder, url, settings)
            try:
                await cluster.start(("one", "two"), ("a", "b"))
                database = await asyncio.to_thread(Database.join, folder, url)
                yield Machines(cluster, telegram, database)
                await database.close()
            finally:
                await cluster.stop()


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize(
    ("given", "missing"),
    [({}, "HEED_DATABASE_URL"), ({"HEED_DATABASE_URL": "postgresql://heed@localhost/heed"}, "HEED_OBJECT_STORE")],
)
@pytest.mark.parametrize("role", ["gateway", "engine"])
def test_what_all_parts_share_has_to_be_set(
    monkeypatch: pytest.MonkeyPatch, role: str, given: dict[str, str], missing: str
) -> None:
    """A part says so before it begins anything."""
    monkeypatch.setattr(main.logs, "begin", lambda *_: None)  # it would log to a stream that is closed afterwards
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    done = CliRunner().invoke(cli, ["run", "--role", role])
    assert done.exit_code == 2
    assert missing in done.stderr


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data directory in the settings, which is not made."""
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path / "data"))


class TestMachines:
    """In the order in which they stand: the last ones end parts of the cluster."""

    pytestmark = real

    async def test_a_message_is_answered_once(self, machines: Machines) -> None:
        """Both gateways know the token; one listens."""
        assert len(await machines.answers(QUESTION)) == 1
        assert await machines.holder(fencing.platform("telegram")) in ("gateway-a", "gateway-b")

    async def test_what_one_gateway_teaches_the_other_knows(self, machines: Machines) -> None:
        """At once, as do its notes."""
        async with machines.client("a") as a, machines.client("b") as b:
            (answer,) = await a.ask("ben", [QUESTION])
            assert (await a.correct("ben", answer.completion_id, "no emoji please"))["status"] == "learned"
            (again,) = await b.ask("ben", [UNSEEN])
            assert (again.adapter_version, again.notes) == (1, ("no emoji please",))

    async def test_who_is_erased_at_one_gateway_is_new_at_the_other(self, machines: Machines) -> None:
        """It remembers no id that is not there any more."""
        async with machines.client("a") as a, machines.client("b") as b:
            for client in (a, b):
                await client.ask("eva", [QUESTION])
            await a.forget("eva")
            (answer,) = await b.ask("eva", [QUESTION])
            assert answer.adapter_version == 0

    async def test_an_engine_that_is_ended_hands_over_its_people(self, machines: Machines) -> None:
        """No call fails meanwhile, and the other one learns on."""
        ben = await machines.database.read(lambda s: people.find(s, "http", "ben"))
        assert ben is not None
        name = await machines.holder(fencing.person(ben.id))
        engine = machines.cluster.engines[name.removeprefix("engine-")]
        async with machines.client("b") as client:
            ending = asyncio.create_task(engine.end())
            while not ending.done():
                (answer,) = await client.ask("ben", [UNSEEN])
                assert answer.adapter_version == 1
            assert await ending == 0
            (answer,) = await client.ask("ben", [QUESTION])
            assert (await client.correct("ben", answer.completion_id, "too long, shorter please"))[
                "status"
            ] == "learned"
        assert await machines.holder(fencing.person(ben.id)) != name

    async def test_a_platform_goes_to_the_other_gateway(self, machines: Machines) -> None:
        """The one that had it was killed; what was said meanwhile is answered once, after the lease."""
        name = await machines.holder(fencing.platform("telegram"))
        await machines.cluster.gateways[name.removeprefix("gateway-")].end(signal.SIGKILL)
        assert len(await machines.answers(UNSEEN)) == 1
        assert await machines.holder(fencing.platform("telegram")) not in ("", name)
