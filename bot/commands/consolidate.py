"""A consolidation or rebuild that a person asked for: waits for it as long as a lesson, and says what became of it."""

import asyncio
from collections.abc import Awaitable

from bot.core.core import Core
from engine.requests import ConsolidationOutcome


async def consolidate(core: Core, user_id: str) -> ConsolidationOutcome | None:
    """Return what became of it, or None if it still waits or runs after `chat.learn_timeout_s`. Raises NotReady."""
    core.gateway.require_ready()
    return await _waited(core, core.engine.consolidate(user_id))


async def rebuild(core: Core, user_id: str) -> ConsolidationOutcome | None:
    """Return an adapter made again from zero: what became of it, as of a consolidation. Raises NotReady."""
    core.gateway.require_ready()
    return await _waited(core, core.engine.rebuild(user_id))


async def _waited(core: Core, outcome: Awaitable[ConsolidationOutcome]) -> ConsolidationOutcome | None:
    try:
        async with asyncio.timeout(core.settings.chat.learn_timeout_s):
            return await outcome
    except TimeoutError:
        return None  # it goes on without the caller
