"""A linear layer with its LoRA as one differentiable operation, in the base weights' own type.

PEFT computes the adapter in float32 beside a bfloat16 base, and copies every activation for it; on a CPU that costs as
much again as the layer. Here both products run in the type of the base, while values and gradients of A and B stay
float32, as in mixed-precision training. Invariants: the base weight gets no gradient; without an active adapter the
result is the base layer's.

    y = x W^T + s (x A^T) B^T        dB = s dy^T (x A^T)     dA = s (dy B)^T x     dx = dy W + s (dy B) A
"""

from typing import Any

import torch
from torch import Tensor, nn

from engine.training.lean_ops import once_differentiable


class _AdaptedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, lora_a: Tensor, lora_b: Tensor, base: nn.Linear, scaling: float) -> Tensor:
        a, b = lora_a.to(x.dtype), lora_b.to(x.dtype)
        flat = x.flatten(0, -2)
        shrunk = flat @ a.t() * scaling
        ctx.save_for_backward(flat, shrunk, a, b)
        ctx.base, ctx.scaling = base, scaling
        return base(x).flatten(0, -2).addmm(shrunk, b.t()).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        flat, shrunk, a, b = ctx.saved_tensors
        grad = grad_y.flatten(0, -2)
        grad_shrunk = grad @ b * ctx.scaling
        grad_a = (grad_shrunk.t() @ flat).float()
        grad_b = (grad.t() @ shrunk).float()
        grad_x = (grad @ ctx.base.weight).addmm(grad_shrunk, a) if ctx.needs_input_grad[0] else None
        return None if grad_x is None else grad_x.view(*grad_y.shape[:-1], -1), grad_a, grad_b, None, None


def install(layer: Any) -> None:
    """Make a PEFT LoRA layer over a linear layer compute in one operation. In place; harmless a second time."""
    if isinstance(layer.get_base_layer(), nn.Linear):
        layer.forward = lambda x: forward(layer, x)


def forward(layer: Any, x: Tensor) -> Tensor:
    """Return the output of a PEFT LoRA layer with its active adapter, or without one."""
    names = [] if layer.disable_adapters else [name for name in layer.active_adapters if name in layer.lora_A]
    base = layer.get_base_layer()
    if not names:
        result: Tensor = base(x)
        return result
    (name,) = names
    lora_a, lora_b = layer.lora_A[name].weight, layer.lora_B[name].weight
    adapted: Tensor = _AdaptedLinear.apply(x, lora_a, lora_b, base, layer.scaling[name])
    return adapted
