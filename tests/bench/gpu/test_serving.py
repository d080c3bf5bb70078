"""Answers with several numbers of adapters, and the memory of a GPU."""

from pathlib import Path

import pytest

from bench.gpu import serving
from bench.gpu.config import GpuBenchConfig
from bot.config import Settings
from evals.client import Client
from evals.errors import StartFailed
from tests.evals.fake_heed import FakeHeed
from tests.evals.fake_heed import serving as fake_serving

CONFIG = GpuBenchConfig(adapters=(0, 1, 3), streams=4, rounds=2)


async def test_each_number_of_adapters_is_timed_in_every_round() -> None:
    """One lesson for each person first; without adapters the base model is asked."""
    fake, advanced = FakeHeed(), []
    async with fake_serving(fake) as url, Client(url, 4, 16, "always") as client:
        found = await serving.decoding(CONFIG, client, advanced.append)
    assert {count: len(speeds) for count, speeds in found.items()} == {"0": 2, "1": 2, "3": 2}
    assert min(speed for speeds in found.values() for speed in speeds) > 0
    assert len(advanced) == 3 + 2
    assert serving.units(CONFIG) == 1 + 3 + 2


async def test_a_lesson_that_makes_no_adapter_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure would be of fewer adapters than it says."""
    fake = FakeHeed()
    fake.status = "rejected"
    async with fake_serving(fake) as url, Client(url) as client:
        with pytest.raises(StartFailed, match=r"lesson 1 made no adapter \(rejected\)"):
            await serving.decoding(CONFIG, client, lambda _: None)


def test_the_heed_that_is_measured_has_room_for_all() -> None:
    """A slot for every adapter, a place for every stream, and open gates."""
    settings = serving.settings_of(CONFIG, "/models/big")
    assert settings["HEED_MODEL"] == "/models/big"
    assert settings["HEED_HOST_MAX_LORAS_GPU"] == "3"
    assert settings["HEED_HOST_MAX_NUM_SEQS"] == settings["HEED_HTTP_MAX_STREAMS"] == "4"
    assert float(settings["HEED_GATE_MAX_VALUE_CHANGE"]) > 1e6


@pytest.mark.parametrize(("streams", "adapters"), [(64, (0, 1, 16, 64)), (256, (0, 1)), (1, (256,))])
def test_a_heed_can_be_configured_so(streams: int, adapters: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the defaults of the command to the most streams and adapters that it takes."""
    for name, value in serving.settings_of(GpuBenchConfig(streams=streams, adapters=adapters), "pocket").items():
        monkeypatch.setenv(name, value)
    host = Settings().host
    assert host.max_num_seqs == streams
    assert host.num_slots(is_cpu=True) > streams


async def test_memory_is_what_the_driver_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first card; nothing where there is no driver."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await serving.used_mib() is None
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 1234\necho 99\n")
    program.chmod(0o755)
    assert await serving.used_mib() == 1234


def test_speeds_stand_beside_the_base_models() -> None:
    """Sorted by number, each with its ratio."""
    samples = {
        "start_s": [60.0], "tokens_per_s": {"16": [90.0], "0": [100.0]},
        "memory_mib": {"started": 1000, "decoded": None},
        "gaps": {"during an update": [5.0], "after an update": [5.0], "without an update": [5.0],
                 "all gaps during an update": [5.0], "all gaps without an update": [5.0]},
    }  # fmt: skip
    found = {row.name: row.median for row in serving.rows(samples)}
    assert found["decoding, base model"] == 100.0
    assert found["decoding, 16 adapters"] == 90.0
    assert found["  by the base model's"] == 0.9
    assert found["memory in use, started"] == pytest.approx(1.048576)
    assert not any("decoded" in name for name in found)
