"""What the engine's tests share: the pocket model's folder."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from engine.config import EngineConfig
from engine.engine import Engine
from storage.database import Database
from tests.engine.death import Death, die
from tests.engine.live import Live
from tests.engine.pocket_model import pocket_folder
from tests.tiny_model import save_tiny_model


@pytest.fixture(scope="session")
def pocket() -> Path:
    """The folder of the pocket model."""
    return pocket_folder()


@pytest.fixture(scope="session")
def pocket_tokenizer(pocket: Path) -> Any:
    """The pocket model's tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(pocket)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small products on a shared machine: a second OpenMP thread mostly waits for the first."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random model in the pocket model's shape."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny-model"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def live(pocket: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """The whole engine with the pocket model, started once: real vLLM, real training, real storage.

    Tests that use it run on the session's loop: `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
    """
    data_dir = tmp_path_factory.mktemp("live")
    database = Database.open(data_dir)
    engine = Engine(EngineConfig(model=str(pocket), data_dir=data_dir), database)
    await engine.start()
    yield Live(engine, database, data_dir)
    await engine.stop()
    await database.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def death(live: Live) -> Death:
    """The one time that the engine of `live` dies and is started again."""
    return await die(live)
