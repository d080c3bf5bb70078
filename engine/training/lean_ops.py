"""Differentiable operations of the lean forward, each with its hand-written backward pass.

Invariants: float32, but for the norm, which takes any type and sums in float32; frozen weights get no gradient;
`lora_linear` writes the gradients of A and B straight into the slot instead of handing them to autograd, which would
copy each of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import function

Backward = Callable[[Any, Tensor], Any]
once_differentiable: Callable[[Backward], Backward] = function.once_differentiable  # no second derivative is needed


@dataclass
class LoRAPart:
    """One linear layer inside a fused one: its LoRA tensors and its rows."""

    outputs: slice  # rows of the fused weight
    ranks: slice  # rows of the fused A
    lora_b: Tensor
    grad_b: Tensor


@dataclass
class FusedLoRA:
    """The LoRA of one fused linear layer: A of all parts one below the other, axes [G r, K]; B per part."""

    lora_a: Tensor
    grad_a: Tensor
    parts: list[LoRAPart]
    scaling: float

    def merged(self, weight: Tensor) -> Tensor:
        """Return W + s B A as a new tensor of W's shape."""
        out = weight.clone()
        for part in self.parts:
            out[part.outputs].addmm_(part.lora_b, self.lora_a[part.ranks], alpha=self.scaling)
        return out

    def add_gradients(self, x: Tensor, grad_y: Tensor) -> None:
        """Add dB += s dY^T (x A^T) and dA += s (dY B)^T x, part by part. In place: the slot's gradients."""
        shrunk = x @ self.lora_a.t()
        grad_shrunk = torch.empty_like(shrunk)
        for part in self.parts:
            grad_rows = grad_y[:, part.outputs]
            part.grad_b.addmm_(grad_rows.t(), shrunk[:, part.ranks], alpha=self.scaling)
            grad_shrunk[:, part.ranks] = grad_rows @ part.lora_b
        self.grad_a.addmm_(grad_shrunk.t(), x, alpha=self.scaling)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W^T by oneDNN, axes [M, K] and [N, K].

    torch.nn.functional.linear takes MKL for float32, which is half as fast on processors that are not Intel's.
    """
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return result


class _LoRALinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, _anchor: Tensor, weight: Tensor, lora: FusedLoRA | None) -> Tensor:
        ctx.lora = lora
        ctx.save_for_backward(x, weight)
        return linear(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        if ctx.lora is not None:
            ctx.lora.add_gradients(x, grad_y)
        return linear(grad_y, weight.t()) if ctx.needs_input_grad[0] else None, None, None, None


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = x.float()
        scale = wide.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        normed = (wide * scale).to(x.dtype)
        ctx.save_for_backward(normed, scale, weight)
        return normed * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        normed, scale, weight = ctx.saved_tensors
        grad, wide = (grad_y * weight).float(), normed.float()
        mean = (grad * wide).mean(-1, keepdim=True)
        return grad.addcmul_(wide, mean, value=-1).mul_(scale).to(normed.dtype), None, None


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        activated = nn.functional.silu(gate)
        ctx.save_for_backward(gate_up, activated)
        return activated * up

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        gate_up, activated = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        grad_gate = torch.ops.aten.silu_backward(grad_y * up, gate)
        return torch.cat([grad_gate, grad_y * activated], dim=-1)


@dataclass(frozen=True)
class HeadLayout:
    """The heads, of `size` columns each, in a fused query-key-value product."""

    num_heads: int
    num_kv: int
    size: int

    @property
    def counts(self) -> tuple[int, int]:
        """Query heads and key heads."""
        return self.num_heads, self.num_kv

    @property
    def num_normed(self) -> int:
        """Query and key heads, which are normed and rotated."""
        return self.num_heads + self.num_kv

    @property
    def repeats(self) -> int:
        """Query heads that share a key and value head."""
        return self.num_heads // self.num_kv


def lora_linear(x: Tensor, anchor: Tensor, weight: Tensor, lora: FusedLoRA | None) -> Tensor:
    """Return y = x W'^T, axes [M, N], with W' = W + s B A given merged. Backward: dX = dY W', and A and B get theirs.

    `anchor` requires a gradient whenever the slot does, so that autograd comes here even if x (the embedding) does
    not. In place, in the backward pass: the slot's gradients.
    """
    result: Tensor = _LoRALinear.apply(x, anchor, weight, lora)
    return result


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return x / sqrt(mean x^2 + eps) * w along the last axis, in the type of x."""
    result: Tensor = _RMSNorm.apply(x, weight, eps)
    return result


def swiglu(gate_up: Tensor) -> Tensor:
    """Return silu(g) u for the two halves g, u of the last axis."""
    result: Tensor = _SwiGLU.apply(gate_up)
    return result
