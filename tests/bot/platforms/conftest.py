"""What tests of the platforms share."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.bot.platforms.discord_bench import Bench, bench
from tests.storage.conftest import fast_folder
from tests.storage.new_data_dir import copy_to


@pytest.fixture
def short_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a platform does not take now is not waited for at a test's end."""
    monkeypatch.setattr("bot.messaging.supervisor.LAST_POSTS_S", 0.1)


@pytest.fixture
def quick_dir() -> Iterator[Path]:
    """A data directory that no disk slows down."""
    with fast_folder() as folder:
        yield copy_to(folder / "data")


@pytest.fixture
async def table(quick_dir: Path) -> AsyncIterator[Bench]:
    """A Discord channel that is connected and has looked through everything; its server has a private chat."""
    async with bench(quick_dir, is_started=False) as made:
        made.server.dm()
        await made.start()
        await made.settled()
        yield made
