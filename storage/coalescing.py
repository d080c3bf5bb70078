"""One call for what many ask for at the same time: in a burst each would pay for a thread, a transaction and a wake-up.

Invariants: what is asked for within one turn of the event loop goes together, in the order of asking, and never waits
for more; each gets its own result; where the call for many fails each is asked for again by itself, so that one cannot
fail the others (a call that failed must have changed nothing); who stopped waiting before the call is left out of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Asked(Generic[Item, Result]):
    """A caller's question, and the future they wait for."""

    item: Item
    future: "asyncio.Future[Result]"


class Coalescer(Generic[Item, Result]):
    """Collects what is asked for and has `call` do it, which returns a result for each item."""

    def __init__(self, call: Callable[[list[Item]], Awaitable[Sequence[Result]]], name: str) -> None:
        self._call = call
        self._name = name
        self._asked: list[_Asked[Item, Result]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, item: Item) -> Result:
        """Return the result for one item. Raises what `call` raises for it."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(item, future))
        if len(self._asked) == 1:
            task = asyncio.create_task(self._run(), name=self._name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _run(self) -> None:
        asked, self._asked = self._asked, []
        if waiting := [one for one in asked if not one.future.done()]:
            await self._answer(waiting)

    async def _answer(self, waiting: Sequence[_Asked[Item, Result]]) -> None:
        try:
            results = await self._call([one.item for one in waiting])
        except Exception as error:  # noqa: BLE001  it goes to who asked
            if len(waiting) > 1:
                await asyncio.gather(*(self._answer([one]) for one in waiting))
            elif not waiting[0].future.done():
                waiting[0].future.set_exception(error)
        else:
            for one, result in zip(waiting, results, strict=True):
                if not one.future.done():
                    one.future.set_result(result)
