"""Differentiable operations of the forward for Llama's family, in the base weights' own type.

A hand-written backward pass each: fewer passes over memory than autograd makes of the same formulas, which is what
counts where the products themselves are quick. Invariants: frozen weights get no gradient; the gradients of A and B
are added to the slot's own, in float32; sums over a row are taken in float32.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.lean_ops import HeadLayout, once_differentiable
from engine.training.packing import Unpacked
from engine.training.short_attention import LONGEST_ROW


@dataclass(frozen=True)
class AdaptedPart:
    """One linear layer inside a fused one: views of the slot's values and gradients, float32."""

    outputs: slice  # rows of the fused weight
    ranks: slice  # rows of the stacked A
    lora_a: Tensor
    lora_b: Tensor
    grad_a: Tensor
    grad_b: Tensor


class StackedLoRA:
    """The LoRA of one fused linear layer in the base's type: A stacked and scaled, B block by block."""

    def __init__(self, weight: Tensor, parts: list[AdaptedPart], scaling: float) -> None:
        rank = sum(len(part.lora_a) for part in parts)
        self.a = weight.new_zeros(rank, weight.shape[1])  # s A, axes [G r, K]
        self.b = weight.new_zeros(len(weight), rank)  # zero outside its blocks, axes [N, G r]
        self._parts = parts
        self._scaling = scaling

    def refresh(self) -> None:
        """Take over the slot's values. In place."""
        for part in self._parts:
            self.a[part.ranks] = part.lora_a * self._scaling
            self.b[part.outputs, part.ranks] = part.lora_b

    def add_gradients(self, grad_a: Tensor, grad_b: Tensor) -> None:
        """Add the gradients of `a` and `b` to the slot's. In place."""
        for part in self._parts:
            part.grad_a.add_(grad_a[part.ranks], alpha=self._scaling)
            part.grad_b.add_(grad_b[part.outputs, part.ranks])


class _StackedLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, _anchor: Tensor, weight: Tensor, bias: Tensor | None, lora: StackedLoRA | None
    ) -> Tensor:
        y = nn.functional.linear(x, weight, bias)
        shrunk = None
        if lora is not None:
            shrunk = x @ lora.a.t()
            y.addmm_(shrunk, lora.b.t())
        ctx.lora = lora
        ctx.save_for_backward(x, weight, shrunk)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        x, weight, shrunk = ctx.saved_tensors
        grad_x = grad_y @ weight if ctx.needs_input_grad[0] else None
        if ctx.lora is not None:
            grad_shrunk = grad_y @ ctx.lora.b
            ctx.lora.add_gradients(grad_shrunk.t() @ x, grad_y.t() @ shrunk)
            if grad_x is not None:
                grad_x.addmm_(grad_shrunk, ctx.lora.a)
        return grad_x, None, None, None, None


class _PackedRotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, cos: Tensor, sin: Tensor, heads: HeadLayout) -> Tensor:
        ctx.heads = heads
        ctx.save_for_backward(cos, sin)
        return _rotated(qkv, cos, sin, heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        cos, sin = ctx.saved_tensors
        return _rotated(grad, cos, -sin, ctx.heads), None, None, None


class _GatedUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        activated = nn.functional.silu(gate)
        ctx.save_for_backward(gate, up, activated)
        return activated * up

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        gate, up, activated = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grad_y * up, gate), grad_y * activated


class Places:
    """The places of a packed row's tokens when it is unpacked, head by head; made once per forward pass.

    Unpacked: queries [B, K, G, W], keys [B, K, W], values [B, K, W], one behind the other, each a row of D numbers.
    """

    def __init__(self, unpacked: Unpacked, heads: HeadLayout, dtype: torch.dtype) -> None:
        rows_BW, places_P = unpacked.rows_BW, unpacked.places_P
        self.num_rows, self.width = rows_BW.shape
        self.heads = heads
        self.shared = unpacked.num_shared
        device = rows_BW.device
        query_H = torch.arange(heads.num_heads, device=device)
        other_K = torch.arange(heads.num_kv, device=device) + heads.num_heads
        total = heads.num_heads + 2 * heads.num_kv
        self.num_queries, self.num_keys = (rows_BW.numel() * count for count in heads.counts)
        self.unpack = torch.cat([
            _by_head(rows_BW * total, index) for index in (query_H, other_K, other_K + heads.num_kv)
        ])  # fmt: skip
        self.ask = _by_head(rows_BW * heads.num_heads, query_H)
        row_P, column_P = places_P // self.width, places_P % self.width
        queries_PH = (row_P[:, None] * heads.num_heads + query_H) * self.width + column_P[:, None]
        keys_PK = (row_P[:, None] * heads.num_kv + query_H[: heads.num_kv]) * self.width + column_P[:, None]
        keys_PK = keys_PK + self.num_queries
        values_PK = keys_PK + self.num_keys
        self.repack = queries_PH.flatten()
        self.gather = torch.cat([queries_PH, keys_PK, values_PK], dim=1).flatten()
        is_own_BW = places_P[rows_BW] == torch.arange(rows_BW.numel(), device=device).view_as(rows_BW)
        owned = is_own_BW[:, None].expand(-1, heads.num_heads, -1)
        self.owned = owned.reshape(-1, 1).to(dtype)  # 1 where a query's answer is taken, else 0

    @cached_property
    def bias(self) -> Tensor:
        """Minus infinity where a query's position may not look, axes [G W, W]: made for rows that are short."""
        bias = torch.full((self.width, self.width), -torch.inf, device=self.owned.device, dtype=self.owned.dtype)
        return bias.triu(1).repeat(self.heads.repeats, 1)


def _by_head(firsts_BW: Tensor, heads_H: Tensor) -> Tensor:
    """Return the numbers of rows in the order [B, H, W], flat."""
    return (firsts_BW[:, None] + heads_H[None, :, None]).flatten()


class _Unpack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, places: Places) -> Tensor:
        ctx.places, ctx.shape = places, qkv.shape
        return qkv.view(-1, places.heads.size).index_select(0, places.unpack)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        places: Places = ctx.places
        heads, shared = places.heads, places.shared
        packed = grad.index_select(0, places.gather).view(ctx.shape[0], -1, heads.size)
        if shared and places.num_rows > 1:  # keys and values that every sequence has looked at
            seen = grad[places.num_queries :].view(2, places.num_rows, heads.num_kv, places.width, heads.size)
            others = seen[:, 1:, :, :shared].sum(1)
            packed[:shared, heads.num_heads :] += others.permute(2, 0, 1, 3).flatten(1, 2)
        return packed.view(ctx.shape), None


class _Repack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, out: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return out.index_select(0, places.repack).view(-1, places.heads.num_heads * places.heads.size)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        places: Places = ctx.places
        return grad.reshape(-1, places.heads.size).index_select(0, places.ask).mul_(places.owned), None


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        ctx.factor = 1 / math.sqrt(q.shape[-1])
        weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=ctx.factor).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        q, k, v, weights = ctx.saved_tensors
        grad_weights = grad @ v.transpose(1, 2)
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        grad_q, grad_k = grad_scores @ k, grad_scores.transpose(1, 2) @ q
        return grad_q.mul_(ctx.factor), grad_k.mul_(ctx.factor), weights.transpose(1, 2) @ grad, None


def stacked_linear(x: Tensor, anchor: Tensor, weight: Tensor, bias: Tensor | None, lora: StackedLoRA | None) -> Tensor:
    """Return x W^T + b + s (x A^T) B^T, axes [P, K] -> [P, N].

    `anchor` requires a gradient whenever the slot does, so that autograd comes here even if x does not. In place, in
    the backward pass: the slot's gradients.
    """
    result: Tensor = _StackedLinear.apply(x, anchor, weight, bias, lora)
    return result


def packed_rotary(qkv: Tensor, cos: Tensor, sin: Tensor, heads: HeadLayout) -> Tensor:
    """Rotate the halves (a, b) of queries and keys to (a cos - b sin, b cos + a sin).

    Axes: [P, T D] for T heads of queries, keys and values; cos and sin [P, 1, D / 2].
    """
    result: Tensor = _PackedRotary.apply(qkv, cos, sin, heads)
    return result


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """Return silu(g) u."""
    result: Tensor = _GatedUnit.apply(gate, up)
    return result


def attention(qkv: Tensor, places: Places) -> Tensor:
    """Return what each token of a packed row attends to in its own sequence, axes [P, T D] -> [P, H D]."""
    heads, width = places.heads, places.width
    unpacked = _Unpack.apply(qkv, places)
    sides = unpacked.split([places.num_queries, places.num_keys, places.num_keys])
    if width <= LONGEST_ROW:
        q, k, v = (side.view(places.num_rows * heads.num_kv, -1, heads.size) for side in sides)
        out = _ShortAttention.apply(q, k, v, places.bias)
    else:
        q, k, v = (side.view(places.num_rows, -1, width, heads.size) for side in sides)
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads.repeats > 1)
    result: Tensor = _Repack.apply(out.reshape(-1, heads.size), places)
    return result


def _rotated(qkv: Tensor, cos: Tensor, sin: Tensor, heads: HeadLayout) -> Tensor:
    out = torch.empty_like(qkv)
    before, after = (side.view(len(qkv), -1, 2, heads.size // 2) for side in (qkv, out))
    (a, b), (new_a, new_b) = (side[:, : heads.num_normed].unbind(2) for side in (before, after))
    torch.mul(a, cos, out=new_a).addcmul_(b, sin, value=-1)
    torch.mul(b, cos, out=new_b).addcmul_(a, sin)
    after[:, heads.num_normed :] = before[:, heads.num_normed :]
    return out
