"""The end of a lesson, as a client sees it: the wait for what became of a piece of feedback, and for the probes behind.

Invariant: every wait is bounded; what is still under way then is told as it stands.
"""

import asyncio
import time
from typing import Any

from evals.client import Client, Json

POLL_S = 0.5


async def ended(client: Client, person: str, outcome: dict[str, Any], longest_s: float) -> Json:
    """Return what became of a piece of feedback, once its lesson has ended or the longest wait is over."""
    url, ends_s = outcome.get("url", ""), time.perf_counter() + longest_s
    while url and outcome["status"] == "queued" and time.perf_counter() < ends_s:
        await asyncio.sleep(POLL_S)
        outcome = await client.feedback(person, url)
    return outcome


async def settled(client: Client, person: str, longest_s: float) -> list[Json]:
    """Wait until no note is being learned, for a bounded time; return the notes."""
    ends_s = time.perf_counter() + longest_s
    while True:
        notes = await client.notes(person)
        if all(note["state"] != "learning" for note in notes) or time.perf_counter() > ends_s:
            return notes
        await asyncio.sleep(POLL_S)
