"""A client of a running heed."""

from collections.abc import AsyncIterator

import pytest

from bot.cli.client import HeedClient
from tests.bot.conftest import Heed


@pytest.fixture
async def client(heed: Heed) -> AsyncIterator[HeedClient]:
    """Ana's client of a running heed."""
    await heed.client.start_server()
    async with HeedClient(str(heed.client.make_url("/")), "ana") as client:
        yield client
