"""CUDA graphs of a model's passes: what thousands of kernels cost to launch is paid once for each shape.

A pass whose inputs have a shape that was seen before is recorded, and from then on replayed with new values. Its first
time computes it launch by launch, which prepares the libraries for that shape and costs nothing where it never comes
again; one that cannot be recorded, for want of memory, say, is always computed so. Invariants: a recorded pass reads
what it was not given (weights, a slot's values) where it stood when it was recorded; all recordings share their memory,
so that a pass is sent back before another one begins.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.training.lean_ops import once_differentiable

MOST_GRAPHS = 64  # of one model; each of some thousand nodes
MOST_SHAPES = 1024  # remembered as seen once

Compute = Callable[..., Tensor]
logger = logging.getLogger(__name__)


class Recording:
    """Kernels as they were launched once, in memory that they keep."""

    def __init__(self, work: Callable[[], Any], pool: Any) -> None:
        """Record what is launched; nothing of it is computed before it is replayed."""
        self._graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        try:
            with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
                self.result = work()
        except RuntimeError:
            torch.cuda.set_stream(stream)  # it is left on the capture's if that does not end well
            raise

    def replay(self) -> None:
        """Compute `result` again, of what stands in the inputs now."""
        self._graph.replay()


Record = Callable[[Callable[[], Any], Any], Recording]


class RecordedLook:
    """A pass that nothing is sent back through, recorded with its inputs."""

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], pool: Any, record: Record) -> None:
        """Record it with copies of these inputs, whose places stay."""
        self._inputs = [value.clone() for value in inputs]
        self._forward = record(lambda: compute(*self._inputs), pool)

    def begin(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return what the pass computes of these inputs."""
        for place, value in zip(self._inputs, inputs, strict=True):
            place.copy_(value)
        self._forward.replay()
        result: Tensor = self._forward.result
        return result.detach().clone()


class RecordedStep(RecordedLook):
    """A pass with its backward pass, which adds to the gradients that it was recorded with."""

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], pool: Any, record: Record) -> None:
        """Record both."""
        super().__init__(compute, inputs, pool, record)
        self._grad = torch.zeros_like(self._forward.result)
        self._backward = record(lambda: self._forward.result.backward(self._grad), pool)

    def send_back(self, grad: Tensor) -> None:
        """Send back the gradient of what was computed last. In place: the gradients of what it was computed with."""
        self._grad.copy_(grad)
        self._backward.replay()


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _anchor: Tensor, step: RecordedStep, *inputs: Tensor) -> Tensor:
        ctx.step = step
        return step.begin(inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        ctx.step.send_back(grad)
        return (None,) * len(ctx.needs_input_grad)


class Graphs:
    """The recorded passes of one model, those that were used last."""

    def __init__(self, record: Record = Recording, pool: Any = None) -> None:
        """Begin with none. `record` makes a recording; `pool`: the memory that all of them share."""
        self._record = record
        self._pool = pool
        self._known: OrderedDict[Hashable, RecordedLook] = OrderedDict()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._refused: set[Hashable] = set()

    @classmethod
    def of_gpu(cls) -> "Graphs":
        """Return those of the current CUDA device, in memory of their own."""
        return cls(Recording, torch.cuda.graph_pool_handle())

    def run(self, name: Hashable, compute: Compute, inputs: Sequence[Tensor], anchor: Tensor) -> Tensor:
        """Return what `compute` makes of the inputs. `name`: what it depends on besides their shapes.

        Where gradients are enabled, one goes back to what it was computed with, and `anchor` requires one.
        """
        teaches = torch.is_grad_enabled()
        key = (name, teaches, *(value.shape for value in inputs))
        if key not in self._known and (not self._was_seen(key) or not self._can_record(key, compute, inputs)):
            return compute(*inputs)
        self._known.move_to_end(key)
        found = self._known[key]
        if len(self._known) > MOST_GRAPHS:
            self._known.popitem(last=False)
        return found.begin(inputs) if not isinstance(found, RecordedStep) else _Replayed.apply(anchor, found, *inputs)

    def _can_record(self, key: Hashable, compute: Compute, inputs: Sequence[Tensor]) -> bool:
        """Return True if a pass is recorded from now on."""
        kind = RecordedStep if torch.is_grad_enabled() else RecordedLook
        try:
            if key not in self._refused:
                self._known[key] = kind(compute, inputs, self._pool, self._record)
        except RuntimeError:
            logger.warning("a pass of shape %s cannot be recorded as a CUDA graph", key, exc_info=True)
            self._refused = {key, *([] if len(self._refused) >= MOST_SHAPES else self._refused)}
        return key in self._known

    def _was_seen(self, key: Hashable) -> bool:
        """Return True if a shape comes again; remember it if not."""
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > MOST_SHAPES:
            self._seen.popitem(last=False)
        return False
