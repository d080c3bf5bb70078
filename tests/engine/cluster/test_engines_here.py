"""engine.cluster.engines_here: two engines behind real Ray, on a real PostgreSQL and an object store."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from engine.cluster import cluster
from engine.cluster.engines_here import EnginesHere
from engine.config import EngineConfig
from engine.errors import NothingToUndo
from engine.requests import GenerateRequest, GenerateResult
from storage import fencing, leases
from storage.database import Database
from storage.fencing import Tokens
from storage.kinds import VersionState
from storage.learning import feedback, versions
from tests.engine.live import Live
from tests.patience import PATIENCE_S, until
from tests.storage.postgres_server import PostgresServer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

QUESTION, UNSEEN = "Tell me about the koala.", "Describe the panda."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    postgres: PostgresServer, pocket: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Live]:
    """The engine of a gateway, with two engines on this machine."""
    folder = tmp_path_factory.mktemp("cluster")
    with postgres.database() as name:
        url = postgres.url(name)
        database = await asyncio.to_thread(Database.enter, url, "gateway", Tokens("gateway"))
        config = EngineConfig(str(pocket), folder, object_store=f"file://{folder}/objects")
        engine = cluster.engine_with_engines_here(config, database, database_url=url, num_engines=2)
        try:
            await engine.start()
            yield Live(engine, database, folder)
        finally:
            await engine.stop()
            await database.close()
        assert isinstance(engine, EnginesHere)
        assert engine._folder is not None
        assert not Path(engine._folder.name).exists()  # noqa: ASYNC240  Ray's logs are gone with it


def engines(gateway: Live) -> EnginesHere:
    """The gateway's engine as what it is."""
    assert isinstance(gateway.engine, EnginesHere)
    return gateway.engine


async def from_each(gateway: Live, user_id: str) -> list[GenerateResult]:
    """The same question to a person's first engine and to the other one, greedily."""
    request = GenerateRequest(user_id, [{"role": "user", "content": UNSEEN}])
    found = []
    for known in engines(gateway).fleet.ranked(user_id):
        results = [delta.result async for delta in known.handle.generate(request) if delta.result is not None]
        found.append(results[0])
    return found


async def holder(gateway: Live, user_id: str) -> str:
    """The name of the engine that has a person."""
    lease = await gateway.database.read(lambda s: leases.of(s, fencing.person(user_id)))
    assert lease is not None
    return str(lease.owner.partition("/")[0])


async def test_a_lesson_shows_at_every_engine_bit_for_bit(gateway: Live) -> None:
    """The one that did not teach it fetches the version from the object store."""
    ana = await gateway.person()
    assert (await gateway.teach(await gateway.ask(ana, QUESTION), "no emoji please")).status == "learned"
    first, other = await from_each(gateway, ana)
    assert first.adapter_version == other.adapter_version == 1
    assert first.completion_token_ids == other.completion_token_ids
    assert await holder(gateway, ana) == engines(gateway).fleet.ranked(ana)[0].name


async def test_what_an_engine_refuses_the_gateway_refuses(gateway: Live) -> None:
    """With the engine's own error."""
    ana = await gateway.person()
    await gateway.teach(await gateway.ask(ana, QUESTION), "no emoji please")
    assert (await gateway.engine.undo(ana)).version == 0
    with pytest.raises(NothingToUndo):
        await gateway.engine.undo(ana)


async def test_an_engine_that_is_killed_loses_nothing(gateway: Live) -> None:
    """In the middle of a lesson: its person is answered at once as before, and the lesson is learned once, elsewhere.

    The wait for the end of the lease is the longest part.
    """
    ben = await gateway.person()
    await gateway.teach(await gateway.ask(ben, QUESTION), "no emoji please")
    before = (await from_each(gateway, ben))[0].completion_token_ids
    said = await gateway.say(await gateway.ask(ben, QUESTION), "too long, shorter please")
    await gateway.engine.settled()
    lost = engines(gateway).fleet.named(await holder(gateway, ben))
    assert lost is not None
    models = psutil.Process(lost.identity.pid).children(recursive=True)
    for process in models:
        process.suspend()  # the lesson cannot be over before its engine is
    learning = asyncio.create_task(gateway.engine.learn(said.id))
    await _until_training(gateway, said.id)
    os.kill(lost.identity.pid, signal.SIGKILL)
    for process in models:  # they would end by themselves, were they not suspended
        with suppress(psutil.NoSuchProcess):
            process.kill()
    answer = await gateway.result(ben, UNSEEN)
    assert (answer.adapter_version, answer.completion_token_ids) == (1, before)
    assert (await asyncio.wait_for(learning, PATIENCE_S)).status == "learned"
    history = await gateway.database.read(lambda s: versions.history(s, ben))
    assert [v.feedback_id for v in history if v.state == VersionState.ACCEPTED].count(said.id) == 1
    assert await holder(gateway, ben) != lost.name


async def test_an_engine_that_was_killed_comes_back(gateway: Live) -> None:
    """By itself, under its name; it answers as the other one does."""
    fleet = engines(gateway).fleet
    try:
        await until(lambda: len(fleet.all()) == 2)
    except TimeoutError:
        pytest.fail(f"one engine of two, and of the other: {fleet.problems}")
    first, other = await from_each(gateway, await gateway.person())
    assert first.completion_token_ids == other.completion_token_ids


async def _until_training(gateway: Live, feedback_id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await gateway.database.read(lambda s: feedback.get(s, feedback_id))).status != "training":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
