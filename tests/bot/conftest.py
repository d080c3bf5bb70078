"""A whole heed without a model: the real database, gateway and HTTP application over the fake engine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.typedefs import StrOrURL

from bot.config import Settings
from bot.core.core import Core
from bot.http.openai import chat
from bot.http.server import application
from bot.monitoring.metrics import Metrics
from engine.config import EngineConfig
from storage.database import Database
from tests.bot.fake_engine import FakeEngine
from tests.storage.new_data_dir import copy_to


@dataclass
class Heed:
    """A running heed, and a client of it."""

    client: TestClient[Any, Any]
    core: Core
    engine: FakeEngine

    async def post(self, path: str, body: Any, **options: Any) -> tuple[int, dict[str, Any]]:
        """POST JSON; the status and the JSON that came back."""
        return await answered(self.client.post(path, json=body, **options))

    async def get(self, path: StrOrURL, **options: Any) -> tuple[int, dict[str, Any]]:
        """GET; the status and the JSON that came back."""
        return await answered(self.client.get(path, **options))

    async def ask(self, text: str, user: str = "", **fields: Any) -> dict[str, Any]:
        """One answer to one message."""
        body = {"messages": [{"role": "user", "content": text}], "user": user, **fields}
        status, answer = await self.post("/v1/chat/completions", body)
        assert status == 200, answer
        return answer

    async def correct(self, completion_id: str, text: str, **fields: Any) -> dict[str, Any]:
        """One correction, learned."""
        body = {"completion_id": completion_id, "kind": "correction", "text": text, **fields}
        status, answer = await self.post("/v1/feedback", body)
        assert status == 200, answer
        return answer


async def answered(call: Awaitable[ClientResponse]) -> tuple[int, dict[str, Any]]:
    """The status and JSON of a call."""
    response = await call
    return response.status, await response.json()


def text_of(answer: dict[str, Any]) -> str:
    """The text of a chat completion."""
    text: str = answer["choices"][0]["message"]["content"]
    return text


StartHeed = Callable[..., Awaitable[Heed]]


@asynccontextmanager
async def heeds(data_dir: Path) -> AsyncIterator[StartHeed]:
    """Starts a heed on the same data directory each time, with the settings given; ends them all."""
    copy_to(data_dir)
    running: list[tuple[Heed, Database]] = []

    async def start(**settings: Any) -> Heed:
        chosen = Settings(data_dir=data_dir, **settings)
        database = Database.open(chosen.data_dir, chosen.database_url)
        engine = FakeEngine(EngineConfig("fake", chosen.data_dir), database)
        await engine.start(lambda _: None)
        metrics = Metrics()
        core = Core.build(chosen, database, engine, metrics)  # type: ignore[arg-type]
        server = TestServer(application(core))
        await server.start_server()
        heed = Heed(TestClient(server), core, engine)
        running.append((heed, database))
        return heed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            chat, "PIECE_INTERVAL_S", 0.0
        )  # the fake engine writes at once; at a readable pace it is a second
        yield start
    for heed, database in running:
        await heed.core.lessons.drain()
        await heed.client.close()
        await database.close()


@pytest.fixture
async def start_heed(tmp_path: Path) -> AsyncIterator[StartHeed]:
    """Starts heeds on one data directory."""
    async with heeds(tmp_path / "data") as start:
        yield start


@pytest.fixture
async def heed(start_heed: StartHeed) -> Heed:
    """A heed with default settings."""
    return await start_heed()
