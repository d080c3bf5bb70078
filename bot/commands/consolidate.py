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


def line(outcome: ConsolidationOutcome | None) -> str:
    """One line about it."""
    if outcome is None:
        return "queued: it begins as soon as every lesson is learned"
    if outcome.status == "learned":
        earlier = f" and {outcome.num_rehearsed} earlier lessons" if outcome.num_rehearsed else ""
        earlier += f", with {outcome.num_better} answers written better" if outcome.num_better else ""
        took = f"{outcome.duration_ms / 1000:.1f} s"
        done = "made again from zero" if outcome.is_rebuild else "consolidated"
        return f"{done}: v{outcome.adapter_version} from {outcome.num_new} new signals{earlier} in {took}"
    if outcome.status == "rejected":
        return f"Not {'rebuilt' if outcome.is_rebuild else 'consolidated'}. {outcome.reason}"
    return f"nothing to change: {outcome.reason}"


async def _waited(core: Core, outcome: Awaitable[ConsolidationOutcome]) -> ConsolidationOutcome | None:
    try:
        async with asyncio.timeout(core.settings.chat.learn_timeout_s):
            return await outcome
    except TimeoutError:
        return None  # it goes on without whoever asked
