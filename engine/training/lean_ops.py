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

    def by_head(self, x: Tensor, shape: torch.Size) -> Tensor:
        """Reorder [B L, heads D] to [heads, B, L, D], contiguous: each group of heads is one block of memory."""
        return x.view(*shape, -1, self.size).permute(2, 0, 1, 3).contiguous()

    def by_token(self, x: Tensor) -> Tensor:
        """Reorder [heads, B, L, D] to [B L, heads D]."""
        return x.permute(1, 2, 0, 3).reshape(x.shape[1] * x.shape[2], -1)


@dataclass(frozen=True)
class PositionTables:
    """cos and sin of the rotary embedding, axes [L, D / 2], and the causal bias [L, L]."""

    cos: Tensor
    sin: Tensor
    bias: Tensor


@dataclass(frozen=True)
class HeadNorm:
    """The RMS norm of query and key heads."""

    weight: Tensor  # [H + K, 1, 1, D]
    eps: float


class _NormedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, shape: torch.Size, heads: HeadLayout, norm: HeadNorm, tables: PositionTables
    ) -> Tensor:
        by_head = heads.by_head(qkv, shape)
        qk, v = by_head[: heads.num_normed], by_head[heads.num_normed :]
        scale = qk.square().mean(-1, keepdim=True).add_(norm.eps).rsqrt_()
        normed = qk * scale
        rotated = _rotate(normed * norm.weight, tables.cos, tables.sin)
        q, k, v = _batches(rotated, v, heads)
        factor = heads.size**-0.5
        probabilities = torch.baddbmm(tables.bias, q, k.transpose(1, 2), alpha=factor).softmax(-1)
        out = probabilities @ v
        ctx.heads, ctx.shape, ctx.tables, ctx.factor = heads, shape, tables, factor
        ctx.save_for_backward(q, k, v, probabilities, out, normed, scale, norm.weight)
        return heads.by_token(out.view(heads.num_heads, *shape, heads.size))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        q, k, v, probabilities, out, normed, scale, weight = ctx.saved_tensors
        heads: HeadLayout = ctx.heads
        grad_out = heads.by_head(grad_y, ctx.shape).flatten(0, 1)
        grad_scores = grad_out @ v.transpose(1, 2)
        grad_scores.sub_((grad_out * out).sum(-1, keepdim=True)).mul_(probabilities).mul_(ctx.factor)
        grads = [grad_scores @ k, grad_scores.transpose(1, 2) @ q, probabilities.transpose(1, 2) @ grad_out]
        grad_q, grad_k, grad_v = (grad.view(heads.num_heads, *ctx.shape, heads.size) for grad in grads)
        grad_k, grad_v = _shared(grad_k, heads), _shared(grad_v, heads)
        grad_qk = _rotate(torch.cat([grad_q, grad_k]), ctx.tables.cos, -ctx.tables.sin).mul_(weight)
        mean = (grad_qk * normed).mean(-1, keepdim=True)
        grad_qk.addcmul_(normed, mean, value=-1).mul_(scale)
        return heads.by_token(torch.cat([grad_qk, grad_v])), None, None, None, None


def _batches(rotated: Tensor, v: Tensor, heads: HeadLayout) -> tuple[Tensor, Tensor, Tensor]:
    """Return query, key and value with one batch entry per query head and sequence: axes [H B, L, D]."""
    q, k = rotated[: heads.num_heads], rotated[heads.num_heads :]
    if heads.repeats > 1:
        k, v = (part.repeat_interleave(heads.repeats, dim=0) for part in (k, v))
    return q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)


def _shared(grad: Tensor, heads: HeadLayout) -> Tensor:
    """Sum the gradients of all query heads of a group into those of their one key or value head."""
    return grad if heads.repeats == 1 else grad.unflatten(0, (heads.num_kv, heads.repeats)).sum(1)


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


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate (a, b) to (a cos - b sin, b cos + a sin) for the two halves a, b of the last axis."""
    result: Tensor = _Rotary.apply(x, cos, sin)
    return result


def swiglu(gate_up: Tensor) -> Tensor:
    """Return silu(g) u for the two halves g, u of the last axis."""
    result: Tensor = _SwiGLU.apply(gate_up)
    return result


def normed_attention(
    qkv: Tensor, shape: torch.Size, heads: HeadLayout, norm: HeadNorm, tables: PositionTables
) -> Tensor:
    """Apply Qwen3's attention to a fused product, [B L, (H + 2 K) D] -> [B L, H D]: norm, rotation, softmax.

    Keeps the probabilities, [H B, L, L], for the backward pass: quicker than a flash kernel for short sequences.
    """
    result: Tensor = _NormedAttention.apply(qkv, shape, heads, norm, tables)
    return result


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([(a * cos).addcmul_(b, sin, value=-1), (b * cos).addcmul_(a, sin)], dim=-1)
