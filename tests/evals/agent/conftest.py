"""Where no sandbox can run, what needs one is skipped."""

from tests.bot.agent.workspaces import can_run

__all__ = ["can_run"]
