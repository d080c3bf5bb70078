"""A check that bubblewrap runs here."""

from tests.bot.agent.workspaces import can_run

__all__ = ["can_run"]
