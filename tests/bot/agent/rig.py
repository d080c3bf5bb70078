"""The agents of a heed without HTTP, over the fake engine; another can follow on the same data, as after a restart."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.agent.live_session import LiveSession
from bot.agent.service import AgentService
from bot.config import Settings
from bot.core.core import Core
from bot.events import Author
from bot.monitoring.metrics import Metrics
from engine.config import EngineConfig
from storage.database import Database
from tests.bot.agent.minds import piece
from tests.bot.agent.workspaces import USER
from tests.bot.fake_engine import FakeEngine

LOCAL = Author("http", "local", "local")
BEN = Author("http", "ben", "Ben")


@dataclass
class AgentRig:
    """One running core with its agents."""

    core: Core
    engine: FakeEngine
    agents: AgentService
    folder: Path

    async def person(self, author: Author = LOCAL) -> str:
        """A person's id."""
        return await self.core.gateway.person(author)

    async def begun(self, workspace: str = "work") -> LiveSession:
        """A new session of the local person."""
        user_id = await self.person()
        row = await self.agents.begin(user_id, workspace)
        return (await self.agents.find(user_id, row.id))[1]

    def will_call(self, tool: str, **arguments: Any) -> None:
        """From now on every answer calls this."""
        self.engine.calls = [piece(tool, json.dumps(arguments))]

    def will_say(self) -> None:
        """From now on no answer calls anything."""
        self.engine.calls = []


@asynccontextmanager
async def agents_of(
    data_dir: Path, folder: Path, make_engine: Callable[[EngineConfig, Database], FakeEngine] = FakeEngine, **agent: Any
) -> AsyncIterator[AgentRig]:
    """A core on a data directory whose agents may work in a folder, until the block ends."""
    chosen = {"folders": (folder,), "account": USER, "scratch": folder.parent / "scratch"} | agent
    settings = Settings(data_dir=data_dir, agent=chosen)  # type: ignore[arg-type]
    database = Database.open(data_dir)
    engine: Any = make_engine(EngineConfig("fake", data_dir), database)
    await engine.start(lambda _: None)
    core = Core.build(settings, database, engine, Metrics())
    agents = AgentService(core)
    try:
        yield AgentRig(core, engine, agents, folder)
    finally:
        await agents.close()
        await core.lessons.drain()
        await database.close()
