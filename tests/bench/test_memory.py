"""The part memory."""

import os
import subprocess
import sys
from collections.abc import Mapping

import psutil
import pytest

from bench import memory
from bench.config import BenchConfig
from tests.evals.fake_heed import FakeHeed, serving


class HeedHere:
    """A heed in this very process, which runs already."""

    pid = os.getpid()

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        self.url, self.settings = url, settings

    async def start(self) -> float:
        """It is there at once."""
        return 0.0

    async def stop(self) -> None:
        """It is not of this one."""


async def test_a_lesson_of_each_person_is_followed_by_a_look_at_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look before, one after each."""
    fake = FakeHeed()
    async with serving(fake) as url:
        monkeypatch.setattr(memory, "HeedServer", lambda settings: HeedHere(url, settings))
        samples = await memory.measure(BenchConfig(updates=3), lambda _: None)
    assert samples["statuses"] == ["learned"] * 3
    assert fake.scopes == ["always"] * 3
    assert len(samples["bytes"]) == 4
    assert min(samples["bytes"]) >= 1_000_000
    assert [fake.user(f"bench-memory-{number}").active for number in range(3)] == [1, 1, 1]


def test_the_largest_process_counts() -> None:
    """A child that holds more than its parent is the worker."""
    program = "import time; kept = bytearray(60_000_000); print('kept', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"kept\n"
            alone = memory.largest_bytes(child.pid)
            assert alone >= 60_000_000
            assert memory.largest_bytes(os.getpid()) >= max(alone, psutil.Process().memory_info().rss)
        finally:
            child.kill()


def test_rows_are_the_size_and_the_growth() -> None:
    """Both have a target."""
    taken = [1_900_000_000, 1_950_000_000, 2_090_000_000]
    size, growth = memory.rows({"bytes": taken, "statuses": ["learned", "kept"]})
    assert (size.median, size.is_met) == (1.9, True)
    assert growth.median == pytest.approx(1.1)
    assert growth.is_met is False
    assert "2 people (1 learned)" in growth.name
