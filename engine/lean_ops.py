"""Differentiable operations of the lean forward, each with its hand-written way back.

Invariants: float32; frozen weights get no gradient; `lora_linear` writes the gradients of A and B straight into the
slot instead of handing them to autograd, which would copy each of them.
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
    """One linear layer inside a fused one: its LoRA tensors and where it lies."""

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
        """W + s B A, a new tensor of W's shape."""
        out = weight.clone()
        for part in self.parts:
            out[part.outputs].addmm_(part.lora_b, self.lora_a[part.ranks], alpha=self.scaling)
        return out

    def add_gradients(self, x: Tensor, grad_y: Tensor) -> None:
        """In place: dB += s dY^T (x A^T) and dA += s (dY B)^T x, part by part."""
        shrunk = x @ self.lora_a.t()
        grad_shrunk = torch.empty_like(shrunk)
        for part in self.parts:
            grad_rows = grad_y[:, part.outputs]
            part.grad_b.addmm_(grad_rows.t(), shrunk[:, part.ranks], alpha=self.scaling)
            grad_shrunk[:, part.ranks] = grad_rows @ part.lora_b
        self.grad_a.addmm_(grad_shrunk.t(), x, alpha=self.scaling)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T by oneDNN, axes [M, K] and [N, K].

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
        scale = x.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        normed = x * scale
        ctx.save_for_backward(normed, scale, weight)
        return normed * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        normed, scale, weight = ctx.saved_tensors
        grad = grad_y * weight
        mean = (grad * normed).mean(-1, keepdim=True)
        return grad.addcmul_(normed, mean, value=-1).mul_(scale), None, None


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotate(x, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        cos, sin = ctx.saved_tensors
        return _rotate(grad_y, cos, -sin), None, None


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


class _CausalAttention(torch.autograd.Function):
    """softmax(q k^T / sqrt d + causal) v with the probabilities kept: quicker than the flash kernel when short."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        scale = q.shape[-1] ** -0.5
        probabilities = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=scale).softmax(-1)
        out = probabilities @ v
        ctx.scale = scale
        ctx.save_for_backward(q, k, v, probabilities, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        q, k, v, probabilities, out = ctx.saved_tensors
        grad_v = probabilities.transpose(1, 2) @ grad
        grad_scores = grad @ v.transpose(1, 2)
        grad_scores.sub_((grad * out).sum(-1, keepdim=True)).mul_(probabilities).mul_(ctx.scale)
        return grad_scores @ k, grad_scores.transpose(1, 2) @ q, grad_v, None


def lora_linear(x: Tensor, anchor: Tensor, weight: Tensor, lora: FusedLoRA | None) -> Tensor:
    """y = x W'^T, axes [M, N], with W' = W + s B A given merged; on the way back dX = dY W' and A, B get theirs.

    `anchor` requires a gradient wherever the slot does, so that autograd comes here also where x (the embedding)
    does not. In place, on the way back: the slot's gradients.
    """
    result: Tensor = _LoRALinear.apply(x, anchor, weight, lora)
    return result


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean x^2 + eps) * w along the last axis."""
    result: Tensor = _RMSNorm.apply(x, weight, eps)
    return result


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(a, b) -> (a cos - b sin, b cos + a sin) for the two halves a, b of the last axis."""
    result: Tensor = _Rotary.apply(x, cos, sin)
    return result


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(g) u for the two halves g, u of the last axis."""
    result: Tensor = _SwiGLU.apply(gate_up)
    return result


def causal_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Attention over axes [B, L, D] with an additive bias [L, L]."""
    result: Tensor = _CausalAttention.apply(q, k, v, bias)
    return result


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([(a * cos).addcmul_(b, sin, value=-1), (b * cos).addcmul_(a, sin)], dim=-1)
