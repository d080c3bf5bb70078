"""One call for what many ask for, and each gets its own."""

import asyncio

import pytest

from storage.coalescing import Coalescer


class Doubling:
    """Doubles numbers, notes each call, refuses a call with a negative number, and waits where the gate is shut."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.has_begun = asyncio.Event()
        self.coalescer: Coalescer[int, int] = Coalescer(self._double, "doubling")

    async def _double(self, numbers: list[int]) -> list[int]:
        self.calls.append(numbers)
        self.has_begun.set()
        await self.gate.wait()
        if min(numbers) < 0:
            raise ValueError(f"{numbers}")
        return [number * 2 for number in numbers]


async def test_what_is_asked_for_at_once_is_one_call() -> None:
    """In the order of asking, and each gets its own result."""
    doubling = Doubling()
    assert await asyncio.gather(*map(doubling.coalescer.ask, [3, 1, 2])) == [6, 2, 4]
    assert doubling.calls == [[3, 1, 2]]
    assert await doubling.coalescer.ask(4) == 8
    assert doubling.calls == [[3, 1, 2], [4]]


async def test_what_comes_later_does_not_wait_for_a_call_under_way() -> None:
    """A long call holds up no request made after it began."""
    doubling = Doubling()
    doubling.gate.clear()
    slow = asyncio.create_task(doubling.coalescer.ask(1))
    await doubling.has_begun.wait()
    doubling.gate.set()
    assert await doubling.coalescer.ask(2) == 4
    assert await slow == 2
    assert doubling.calls == [[1], [2]]


async def test_one_that_fails_fails_alone() -> None:
    """Each is asked for again by itself, and gets its own result or error."""
    doubling = Doubling()
    results = await asyncio.gather(*map(doubling.coalescer.ask, [1, -2, 3, -4]), return_exceptions=True)
    assert results[::2] == [2, 6]
    assert [str(error) for error in results[1::2]] == ["[-2]", "[-4]"]
    assert doubling.calls == [[1, -2, 3, -4], [1], [-2], [3], [-4]]


async def test_who_stopped_waiting_is_left_out() -> None:
    """No call is made for a waiter who has left."""
    doubling = Doubling()
    tasks = [asyncio.create_task(doubling.coalescer.ask(number)) for number in (1, 2)]
    await asyncio.sleep(0)  # they have asked
    tasks[0].cancel()
    assert await tasks[1] == 4
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert doubling.calls == [[2]]

    alone = asyncio.create_task(doubling.coalescer.ask(3))
    await asyncio.sleep(0)
    alone.cancel()
    assert await doubling.coalescer.ask(4) == 8
    assert doubling.calls == [[2], [4]]


@pytest.mark.parametrize("number", [1, -1])
async def test_who_stops_waiting_during_the_call_disturbs_nobody(number: int) -> None:
    """A waiter who has left changes neither the results nor the errors of the others."""
    doubling = Doubling()
    doubling.gate.clear()
    gone = asyncio.create_task(doubling.coalescer.ask(number))
    stays = asyncio.create_task(doubling.coalescer.ask(5))
    await doubling.has_begun.wait()
    gone.cancel()
    doubling.gate.set()
    assert await stays == 10
