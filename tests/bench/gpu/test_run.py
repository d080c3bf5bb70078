"""The command `heed bench gpu`, as a whole."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from bench import run as bench_run
from bench.gpu import peaks, run
from bench.gpu.config import GpuBenchConfig


async def test_a_lesson_is_measured_where_there_is_no_vllm(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be is said; rows, samples and how they were made are written."""
    monkeypatch.setattr(peaks, "_SIDES", {"cpu": 64})
    monkeypatch.setattr(peaks, "_BYTES", {"cpu": 1 << 16})
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda _name: None)
    config = GpuBenchConfig(model=str(tiny), device="cpu", lessons=1, out=str(tmp_path))
    assert await run.run_gpu_bench(config, Console(width=150)) == 0
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert written["device"] == "CPU"
    assert [row.to_json() for row in run.rows_of(written["samples"])] == written["rows"]
    assert {"commit", "machine", "config"} <= set(written)
    said = capsys.readouterr().out
    assert run.NO_VLLM in said
    assert "a lesson's update" in said


def test_without_a_gpu_it_says_how_to_try_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the exit code of what could not be measured; it is reached through `heed bench`."""
    monkeypatch.setattr(run.torch.cuda, "is_available", lambda: False)
    assert bench_run.main(["gpu", f"out={tmp_path}"]) == 2
    assert "device=cpu" in capsys.readouterr().err


def test_help_lists_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its default and what it means."""
    assert bench_run.main(["gpu", "help"]) == 0
    assert "adapters=0,1,16,64" in capsys.readouterr().out


def test_the_bar_knows_how_much_there_is() -> None:
    """Of the parts that are measured."""
    config = GpuBenchConfig(lessons=4, adapters=(0, 2), rounds=3)
    assert run.units(config, ["lesson"]) == 5
    assert run.units(config, ["lesson", "serving"]) == 5 + 1 + 2 + 3


def test_random_weights_are_written_where_a_server_can_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    """A named model is left where it is."""
    monkeypatch.setattr(run, "save_random", lambda _config, folder, _device: folder)
    assert run.prepared(GpuBenchConfig(device="cpu"), tmp_path) == tmp_path / "model"
    assert run.prepared(GpuBenchConfig(model=str(tiny), device="cpu"), tmp_path) == tiny
