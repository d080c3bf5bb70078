"""Differentiable operations of the forward for Llama's family, in the base weights' own type.

A hand-written backward pass each: fewer passes over memory than autograd makes of the same formulas, which is what
counts where the products themselves are quick. Invariants: frozen weights get no gradient; the gradients of A and B
are added to the slot's own, in float32; sums over a row are taken in float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.lean_ops import HeadLayout, once_differentiable
from engine.training.row_pieces import RowPiece, attended, reading, send_back


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
        self.scaling = scaling

    @property
    def copies(self) -> list[tuple[Tensor, Tensor]]:
        """The place here of each of the slot's values, and the value; A is not scaled yet."""
        places = [(self.a[part.ranks], part.lora_a) for part in self._parts]
        return places + [(self.b[part.outputs, part.ranks], part.lora_b) for part in self._parts]

    def add_to(self, y: Tensor, x: Tensor) -> Tensor:
        """Add s (x A^T) B^T to a layer's output, axes [P, N]. In place. Return s x A^T, axes [P, G r]."""
        shrunk = x @ self.a.t()
        y.addmm_(shrunk, self.b.t())
        return shrunk

    def send_back(self, grad_y: Tensor, x: Tensor, shrunk: Tensor, grad_x: Tensor | None) -> None:
        """Add the gradients of A and B to the slot's, and this part of the input's to `grad_x`. In place."""
        grad_shrunk = grad_y @ self.b
        self.add_gradients(grad_shrunk.t() @ x, grad_y.t() @ shrunk)
        if grad_x is not None:
            grad_x.addmm_(grad_shrunk, self.a)

    def add_gradients(self, grad_a: Tensor, grad_b: Tensor) -> None:
        """Add the gradients of `a` and `b` to the slot's. In place."""
        for part in self._parts:
            part.grad_a.add_(grad_a[part.ranks], alpha=self.scaling)
            part.grad_b.add_(grad_b[part.outputs, part.ranks])


def refresh(loras: Sequence[StackedLoRA]) -> None:
    """Take over the slot's values into all of a model's adapters, in a few launches. In place."""
    copies = [pair for lora in loras for pair in lora.copies]
    with torch.no_grad():
        torch._foreach_copy_([place for place, _ in copies], [value for _, value in copies])
        torch._foreach_mul_([lora.a for lora in loras], [lora.scaling for lora in loras])


class _StackedLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, _anchor: Tensor, weight: Tensor, bias: Tensor | None, lora: StackedLoRA | None
    ) -> Tensor:
        y = nn.functional.linear(x, weight, bias)
        shrunk = None if lora is None else lora.add_to(y, x)
        ctx.lora = lora
        ctx.save_for_backward(x, weight, shrunk)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        x, weight, shrunk = ctx.saved_tensors
        grad_x = grad_y @ weight if ctx.needs_input_grad[0] else None
        if ctx.lora is not None:
            ctx.lora.send_back(grad_y, x, shrunk, grad_x)
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


class _PieceAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: HeadLayout, pieces: list[RowPiece], read_KPD: Tensor) -> Tensor:
        q, sides = queries_and_sides(qkv, heads)
        out, weights = attended(q, sides, read_KPD, pieces, heads)
        ctx.heads, ctx.pieces = heads, pieces
        ctx.save_for_backward(q, sides, read_KPD, out, *weights)
        return out.flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        q, sides, read, out, *weights = ctx.saved_tensors
        heads: HeadLayout = ctx.heads
        grad = out.new_zeros(len(q), heads.num_normed + heads.num_kv, heads.size)
        grads = grad[:, : heads.num_heads], grad[:, heads.num_heads :].transpose(0, 1)
        seen = zip_longest(ctx.pieces, weights)
        send_back(grad_y.view(out.shape), out, (q, sides, read), grads, seen, heads)
        grads[0].mul_(heads.size**-0.5)
        return grad.flatten(1), None, None, None


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


def queries_and_sides(qkv: Tensor, heads: HeadLayout) -> tuple[Tensor, Tensor]:
    """Return a row's queries, scaled, axes [P, H, D], and its keys, then values, axes [2 K, P, D]."""
    by_head = qkv.view(len(qkv), -1, heads.size)
    return by_head[:, : heads.num_heads] * heads.size**-0.5, by_head[:, heads.num_heads :].transpose(0, 1)


def attention(qkv: Tensor, heads: HeadLayout, pieces: list[RowPiece], read_KPD: Tensor | None = None) -> Tensor:
    """Return what each token of a packed row attends to in its own sequence, axes [P, T D] -> [P, H D].

    `read_KPD`: keys and values of prompts, axes [2 K, R, D], constants of the step.
    """
    read_KPD = qkv.new_zeros(2 * heads.num_kv, 0, heads.size) if read_KPD is None else read_KPD
    result: Tensor = _PieceAttention.apply(qkv, heads, pieces, read_KPD)
    return result


def reading_attention(qkv: Tensor, heads: HeadLayout, pieces: list[RowPiece]) -> tuple[Tensor, Tensor]:
    """Do the same where nothing is learned. Return the keys and values, too, axes [2 K, P, D]."""
    q, sides = queries_and_sides(qkv, heads)
    return reading(q, sides, pieces, heads).flatten(1), sides


def _rotated(qkv: Tensor, cos: Tensor, sin: Tensor, heads: HeadLayout) -> Tensor:
    out = torch.empty_like(qkv)
    before, after = (side.view(len(qkv), -1, 2, heads.size // 2) for side in (qkv, out))
    (a, b), (new_a, new_b) = (side[:, : heads.num_normed].unbind(2) for side in (before, after))
    torch.mul(a, cos, out=new_a).addcmul_(b, sin, value=-1)
    torch.mul(b, cos, out=new_b).addcmul_(a, sin)
    after[:, heads.num_normed :] = before[:, heads.num_normed :]
    return out
