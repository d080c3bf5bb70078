"""Tests that need an NVIDIA GPU: skipped elsewhere, with the reason."""

import os

import pytest
import torch

os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asked otherwise, CUDA cannot be used in a process forked from here


@pytest.fixture(scope="session", autouse=True)
def cuda() -> None:
    """Skips where torch sees no GPU."""
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU: torch.cuda.is_available() is False")
