"""A heed whose operator allows a workspace."""

from pathlib import Path

import pytest

from tests.bot.agent.workspaces import USER, can_run, folder, sandbox
from tests.bot.conftest import Heed, StartHeed

__all__ = ["can_run", "folder", "sandbox"]


@pytest.fixture
async def allowed(start_heed: StartHeed, folder: Path, can_run: None) -> Heed:
    """Everyone on HTTP may work in it."""
    agent = {"folders": (folder,), "account": USER, "scratch": folder.parent / "scratch", "allow": ("http:*",)}
    return await start_heed(agent=agent)
