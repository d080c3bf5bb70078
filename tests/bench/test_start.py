"""The part start."""

from contextlib import AsyncExitStack

import pytest

from bench import start
from bench.config import BenchConfig
from tests.evals.fake_heed import FakeHeed, serving


class FakeServer:
    """A heed that is ready at once."""

    stopped = 0

    def __init__(self) -> None:
        self.url = ""
        self._stack = AsyncExitStack()

    async def start(self) -> float:
        """Serves the fake heed."""
        self.url = await self._stack.enter_async_context(serving(FakeHeed()))
        return 0.0

    async def stop(self) -> None:
        """Ends it."""
        FakeServer.stopped += 1
        await self._stack.aclose()


async def test_every_start_is_timed_to_its_first_answer_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two starts, two pairs of times, nothing left running."""
    monkeypatch.setattr(start, "HeedServer", FakeServer)
    samples = await start.measure(BenchConfig(starts=2), lambda _: None)
    assert FakeServer.stopped == 2
    assert [len(values) for values in samples.values()] == [2, 2]
    assert all(a > r for r, a in zip(samples["ready_s"], samples["answered_s"], strict=True))


def test_the_target_is_for_the_first_answer() -> None:
    """Ready alone is shown without one."""
    ready, answered = start.rows({"ready_s": [30.0], "answered_s": [41.0]})
    assert (ready.is_met, answered.is_met) == (None, False)
