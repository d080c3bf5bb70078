"""Tests that need an NVIDIA GPU: skipped elsewhere, with the reason."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def cuda() -> None:
    """Skips where torch sees no GPU."""
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU: torch.cuda.is_available() is False")
