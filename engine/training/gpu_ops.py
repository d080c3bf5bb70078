"""Differentiable operations of the forward for GPUs, each by as few kernels as PyTorch has for it.

On a GPU a step's operations are short, and what counts is how many there are. Invariants: frozen weights get no
gradient; those of A and B are added to the slot's own, in float32.
"""

from typing import Any

import torch
from torch import Tensor, nn

from engine.training.lean_ops import once_differentiable
from engine.training.llama_ops import StackedLoRA


class _LinearOnto(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, residual: Tensor, x: Tensor, _anchor: Tensor, weight: Tensor, lora: StackedLoRA | None
    ) -> Tensor:
        y = torch.addmm(residual, x, weight.t())
        shrunk = None if lora is None else lora.add_to(y, x)
        ctx.lora = lora
        ctx.save_for_backward(x, weight, shrunk)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        x, weight, shrunk = ctx.saved_tensors
        grad_x = grad_y @ weight
        if ctx.lora is not None:
            ctx.lora.send_back(grad_y, x, shrunk, grad_x)
        return grad_y, grad_x, None, None, None


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turned(x, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        cos, sin = ctx.saved_tensors
        return _turned(grad_y, cos, -sin), None, None


def linear_onto(residual: Tensor, x: Tensor, anchor: Tensor, weight: Tensor, lora: StackedLoRA | None) -> Tensor:
    """Return r + x W^T + s (x A^T) B^T, axes [P, N], [P, K] -> [P, N]; `anchor` as in `llama_ops.stacked_linear`.

    In place, in the backward pass: the slot's gradients.
    """
    result: Tensor = _LinearOnto.apply(residual, x, anchor, weight, lora)
    return result


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the halves (a, b) of the last axis to (a cos - b sin, b cos + a sin).

    Axes: [P, T, D]; cos and sin [P, 1, D], `sin` negative in its first half.
    """
    result: Tensor = _Rotary.apply(x, cos, sin)
    return result


def norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Return x / sqrt(mean x^2 + eps) * w along the last axis, in the type of x."""
    return nn.functional.rms_norm(x, x.shape[-1:], weight, eps)


def attention(q_PHD: Tensor, k_MKD: Tensor, v_MKD: Tensor, mask_PM: Tensor) -> Tensor:
    """Return what each query attends to where `mask_PM` is True, axes [P, H D]."""
    q, k, v = (side.transpose(0, 1)[None] for side in (q_PHD, k_MKD, v_MKD))
    seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask_PM[None, None], enable_gqa=True)
    return seen[0].transpose(0, 1).flatten(1)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)
