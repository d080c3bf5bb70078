"""engine.cluster.cluster_engine: what changes a person is done by the holder of their lease alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.cluster.cluster_engine import ClusterEngine
from engine.config import EngineConfig
from engine.engine import Engine
from engine.requests import EngineLoad
from storage import fencing, leases
from storage.database import Database
from storage.errors import LeaseHeld, LeaseLost
from storage.fencing import Tokens
from storage.people import people
from tests.storage.postgres_server import PostgresServer


class Cluster:
    """Two engines that were never started, and a person."""

    def __init__(self, url: str, folder: Path) -> None:
        self.engines: list[ClusterEngine] = []
        self.databases: list[Database] = []
        for name in ("one", "two"):
            tokens = Tokens(f"{name}/1")
            self.databases.append(Database.enter(url, name, tokens))
            engine = ClusterEngine(EngineConfig("m", folder / name), self.databases[-1], tokens)
            engine.leases._taken = self._taken
            engine.leases._lost = lambda _user_id: None
            self.engines.append(engine)

    async def _taken(self, _user_id: str) -> None:
        """There is nothing to go on with."""


@pytest.fixture
async def cluster(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    """On one database."""
    with ExitStack() as stack:
        made = await asyncio.to_thread(Cluster, postgres.url(stack.enter_context(postgres.database())), tmp_path)
        yield made
        for database in made.databases:
            await database.close()


async def person(cluster: Cluster) -> str:
    """Somebody new."""
    return (await cluster.databases[0].write(lambda s: people.resolve(s, "http", "ana"))).id


def test_every_change_of_a_person_is_the_holders() -> None:
    """The calls of an engine that change no one are named here; a new one has to be thought about."""
    changes_no_one = {
        "start", "stop", "calibrate", "settled", "generate", "score", "adopt", "export_adapter", "export_batch",
        "check_adapter", "prompt_notes", "note_size", "lesson_progress", "pause_consolidation", "is_ready", "sampling",
        "skills", "learning", "health", "loads", "prepare", "teacher_view",
    }  # fmt: skip
    calls = {name for name in vars(Engine) if not name.startswith("_")} - changes_no_one
    assert calls <= set(vars(ClusterEngine))


async def test_the_first_call_takes_the_lease(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second engine is refused, with the name of the first."""
    ana = await person(cluster)

    async def rollback(_self: Engine, _user_id: str, version: int) -> int:
        return version

    monkeypatch.setattr(Engine, "rollback", rollback)
    one, two = cluster.engines
    assert await one.rollback(ana, 3) == 3
    with pytest.raises(LeaseHeld) as refused:
        await two.rollback(ana, 3)
    assert refused.value.owner == "one/1"


async def test_a_lease_that_was_lost_on_the_way_is_another_engines_call(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one slept past its lease; what it would have written was refused."""
    ana = await person(cluster)
    one = cluster.engines[0]

    async def undo(_self: Engine, user_id: str) -> None:
        await cluster.databases[1].write(lambda s: _stolen(s, user_id))
        raise LeaseLost("refused by the storage")

    monkeypatch.setattr(Engine, "undo", undo)
    with pytest.raises(LeaseHeld) as refused:
        await one.undo(ana)
    assert refused.value.owner == "two/1"
    assert one.leases.held == set()


async def test_an_erased_person_is_nobodys(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their lease goes with their rows."""
    ana = await person(cluster)
    one = cluster.engines[0]

    async def forget(_self: Engine, user_id: str) -> None:
        await cluster.databases[0].write(lambda s: people.forget(s, user_id))

    monkeypatch.setattr(Engine, "forget", forget)
    await one.forget(ana)
    assert one.leases.held == set()
    assert await cluster.databases[1].read(lambda s: leases.of(s, fencing.person(ana))) is None


async def test_a_person_is_taken_up_with_their_lease(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a gateway asks when it starts; and the engine says how many it has and has taken over."""
    ana, two = await person(cluster), cluster.engines[1]
    monkeypatch.setattr(Engine, "loads", lambda _: {"engine": EngineLoad(num_lessons=1)})
    await two.take_up(ana)
    await two.take_up(ana)
    assert two.leases.held == {ana}
    assert two.loads() == {"engine": EngineLoad(num_people=1, num_lessons=1, num_taken_over=1)}
    two.leases.lose(ana)
    assert two.loads() == {"engine": EngineLoad(num_lessons=1, num_taken_over=1)}


async def test_nothing_is_taken_up_before_a_person_comes(cluster: Cluster) -> None:
    """What waits belongs to whoever has the person's lease."""
    assert await cluster.engines[0].resume_pending() == 0


def _stolen(s: object, user_id: str) -> None:
    name = fencing.person(user_id)
    leases.take(s, name, "one/1", -1.0, user_id)  # type: ignore[arg-type]
    leases.take(s, name, "two/1", 60.0, user_id)  # type: ignore[arg-type]
