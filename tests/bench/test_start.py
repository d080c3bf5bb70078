"""The part start."""

import hashlib
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import ClassVar

import pytest

from bench import start
from bench.config import BenchConfig
from engine.sources import smollm2
from tests.evals.fake_heed import FakeHeed, serving


class FakeServer:
    """A heed that is ready at once."""

    stopped = 0
    model = b""  # what it fetches into its data directory
    started: ClassVar[list[tuple[str, Path]]] = []

    def __init__(self, settings: Mapping[str, str], folder: Path) -> None:
        self.url = ""
        FakeServer.started.append((settings.get("HEED_MODEL", ""), folder))
        self._stack = AsyncExitStack()
        if self.model:
            fetched = smollm2.folder_in(folder / "data")
            fetched.mkdir(parents=True, exist_ok=True)
            (fetched / "model.safetensors").write_bytes(self.model)

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


async def test_a_named_model_is_started_again_where_it_was_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each directory serves two starts; what the first takes longer is the package and its conversion."""
    monkeypatch.setattr(start, "HeedServer", FakeServer)
    monkeypatch.setattr(FakeServer, "started", [])
    monkeypatch.setattr(FakeServer, "model", b"weights")
    samples = await start.measure(BenchConfig(starts=2, model="smollm2"), lambda _: None)
    models, folders = zip(*FakeServer.started, strict=True)
    assert set(models) == {"smollm2"}
    assert (folders[0], folders[2]) == (folders[1], folders[3])
    assert folders[0] != folders[2]
    assert samples.pop("weights_sha256") == hashlib.sha256(b"weights").hexdigest()
    assert [len(values) for values in samples.values()] == [2, 2, 2]
    prepared, started = start.rows({"ready_s": [230.0], "answered_s": [231.0], "again_s": [40.0]})
    assert (prepared.median, prepared.is_met, started.median, started.is_met) == (190.0, False, 40.0, True)


def test_the_target_is_for_the_first_answer() -> None:
    """Ready alone is shown without one."""
    ready, answered = start.rows({"ready_s": [30.0], "answered_s": [41.0]})
    assert (ready.is_met, answered.is_met) == (None, False)
