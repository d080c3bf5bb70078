"""What a device does at best."""

import pytest
import torch

from bench.gpu import peaks

CPU = torch.device("cpu")


def test_products_and_copies_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both in their own unit."""
    monkeypatch.setattr(peaks, "_SIDES", {"cpu": 64})
    monkeypatch.setattr(peaks, "_BYTES", {"cpu": 1 << 16})
    found = peaks.measure_peaks(CPU)
    assert found.flops_per_s > 0
    assert found.bytes_per_s > 0


def test_the_quickest_try_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow one is the machine's, not the device's."""
    times = iter([0.0, 5.0, 10.0, 11.0, 20.0, 23.0])
    monkeypatch.setattr(peaks, "TRIES", 3)
    monkeypatch.setattr(peaks.time, "perf_counter", lambda: next(times))
    assert peaks.best_s(lambda: None, CPU) == 1.0
