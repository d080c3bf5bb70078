"""A workspace and a sandbox around it."""

from tests.bot.agent.workspaces import can_run, folder, sandbox

__all__ = ["can_run", "folder", "sandbox"]
