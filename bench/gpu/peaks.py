"""The best rates of a device: products in bfloat16 and memory, measured rather than read from a data sheet."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

TRIES = 10
_SIDES = {"cuda": 8192, "cpu": 1024}  # of the matrices
_BYTES = {"cuda": 4 << 30, "cpu": 64 << 20}  # that are copied


@dataclass(frozen=True)
class Peaks:
    """The best of several tries."""

    flops_per_s: float
    bytes_per_s: float


def measure_peaks(device: torch.device) -> Peaks:
    """Return them for a device that computes nothing else. Blocking."""
    side = _SIDES[device.type]
    left, right = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    product_s = best_s(lambda: left @ right, device)
    source = torch.zeros(_BYTES[device.type], device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    copy_s = best_s(lambda: target.copy_(source), device)
    return Peaks(2 * side**3 / product_s, 2 * source.nbytes / copy_s)  # read and written


def best_s(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of the quickest of several tries. Blocking."""
    return min(timed_s(work, device) for _ in range(TRIES))


def timed_s(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds until work is done on the device. Blocking."""
    _wait(device)
    started_s = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started_s


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
