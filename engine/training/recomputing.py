"""Activation checkpointing: layers that are computed again in the backward pass, where keeping all would be too much.

Invariant: values and gradients are the same either way; the layers here have no dropout.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from engine.training.step_memory import KEPT_ON_CPU, KEPT_SHARE, StepMemory


def kept_bytes(device: torch.device) -> int:
    """Return how many bytes of activations a step may keep on a device."""
    if device.type != "cuda":
        return KEPT_ON_CPU
    return int(KEPT_SHARE * torch.cuda.get_device_properties(device).total_memory)


class Recomputing:
    """The steps of one model whose layers are computed again."""

    def __init__(self, memory: StepMemory, limit: int) -> None:
        """`limit`: bytes that a step may keep."""
        self._memory = memory
        self._limit = limit
        self.is_on = False  # in the step that is being computed

    def wrap(self, layers: Iterable[nn.Module]) -> None:
        """Compute these layers by `run`. In place: their forwards."""
        for layer in layers:
            layer.forward = partial(self.run, layer.forward)

    @contextmanager
    def step_of(self, num_tokens: int) -> Iterator[None]:
        """Compute layers again in the backward pass of what is computed inside, if so many tokens ask for it."""
        self.is_on = self._memory.kept(num_tokens) > self._limit
        try:
            yield
        finally:
            self.is_on = False

    def run(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what a layer's forward computes; keep nothing of it but its input if this step asks for it."""
        if self.is_on and torch.is_grad_enabled():
            return checkpoint(forward, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)
        return forward(*args, **kwargs)
