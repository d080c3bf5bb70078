"""Callers that wait for a background task's result, one future for each person."""

import asyncio
from typing import Generic, TypeVar

from engine.requests import ConsolidationOutcome

T = TypeVar("T")


class Waiters(Generic[T]):
    """Callers that wait, one future for each person: a second request waits for the same one."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[T]] = {}

    def __contains__(self, user_id: str) -> bool:
        return user_id in self._waiting

    def ask(self, user_id: str) -> "asyncio.Future[T]":
        """Return a future of the outcome. Submit the task after it."""
        if user_id not in self._waiting:
            self._waiting[user_id] = asyncio.get_running_loop().create_future()
        return self._waiting[user_id]

    def answer(self, user_id: str, outcome: T) -> None:
        """Give the outcome to the callers that wait."""
        future = self._waiting.pop(user_id, None)
        if future is not None and not future.done():
            future.set_result(outcome)

    def drop(self, user_id: str | None = None) -> None:
        """Drop the waiters of a person who is gone, or all of them."""
        for key in [key for key in self._waiting if user_id in (None, key)]:
            self._waiting.pop(key).cancel()


async def awaited(outcome: "asyncio.Future[ConsolidationOutcome]") -> ConsolidationOutcome:
    """Return the outcome of a background task. The task goes on if the caller is cancelled."""
    await asyncio.wait({outcome})
    if outcome.cancelled():
        return ConsolidationOutcome("kept", 0, "It was broken off before its end. Ask for it once more.")
    return outcome.result()
