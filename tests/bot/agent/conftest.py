"""A workspace and a sandbox around it, and a core without HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bot.agent.rig import AgentRig, agents_of
from tests.bot.agent.workspaces import can_run, folder, sandbox
from tests.storage.new_data_dir import copy_to

__all__ = ["can_run", "folder", "sandbox"]


@pytest.fixture
async def rigged(tmp_path: Path, folder: Path, can_run: None) -> AsyncIterator[AgentRig]:
    """The agents of a heed whose operator allows the workspace."""
    copy_to(tmp_path / "data")
    async with agents_of(tmp_path / "data", folder) as made:
        yield made
