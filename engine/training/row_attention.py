"""Qwen3's attention over a packed row: the norm of queries and keys, their rotation, and `engine.training.row_pieces`.

Invariants: float32; one operation with a backward pass of its own.
"""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from engine.training.lean_ops import HeadLayout, once_differentiable
from engine.training.row_pieces import RowPiece, attended, reading, send_back


@dataclass(frozen=True)
class RowPlaces:
    """The rotation of each token's query and key, axes [P, 1, D], and the pieces of the row.

    `cos` and `sin` repeat the angles of the first half of D in the second; `sin` is negative in the first.
    """

    cos: Tensor
    sin: Tensor
    pieces: list[RowPiece]

    @classmethod
    def of(cls, angles_P: Tensor, pieces: list[RowPiece]) -> "RowPlaces":
        """Return the places of tokens with these angles, axes [P, D / 2]."""
        cos, sin = angles_P.cos()[:, None], angles_P.sin()[:, None]
        return cls(torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1), pieces)


@dataclass(frozen=True)
class HeadNorm:
    """The RMS norm of query and key heads."""

    weight: Tensor  # [H + K, D]
    eps: float


@dataclass(frozen=True)
class _Turned:
    """The queries, scaled, and keys and values of a row's fused product, normed and rotated."""

    q_PHD: Tensor
    sides_KPD: Tensor  # keys, then values
    normed: Tensor  # queries and keys without the norm's weight
    scale: Tensor  # by which they were normed

    @classmethod
    def of(cls, qkv: Tensor, heads: HeadLayout, norm: HeadNorm, places: RowPlaces) -> "_Turned":
        qk, v = qkv.view(len(qkv), -1, heads.size).split([heads.num_normed, heads.num_kv], dim=1)
        scale = qk.square().mean(-1, keepdim=True).add_(norm.eps).rsqrt_()
        normed = qk * scale
        turned = _rotate(normed * norm.weight, places.cos, places.sin)
        q = turned[:, : heads.num_heads].mul_(heads.size**-0.5)
        return cls(q, torch.cat([turned[:, heads.num_heads :], v], dim=1).transpose(0, 1), normed, scale)


class _RowAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, heads: HeadLayout, norm: HeadNorm, places: RowPlaces, read_KPD: Tensor
    ) -> Tensor:
        row = _Turned.of(qkv, heads, norm, places)
        out, weights = attended(row.q_PHD, row.sides_KPD, read_KPD, places.pieces, heads)
        ctx.heads, ctx.places = heads, places
        ctx.save_for_backward(row.q_PHD, row.sides_KPD, read_KPD, out, row.normed, row.scale, norm.weight, *weights)
        return out.flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        q, sides, read, out, normed, scale, weight, *weights = ctx.saved_tensors
        heads, places = ctx.heads, ctx.places
        grad_qkv = torch.zeros(len(q), heads.num_normed + heads.num_kv, heads.size)
        grad_q, grad_sides = grad_qkv[:, : heads.num_heads], grad_qkv[:, heads.num_heads :].transpose(0, 1)
        seen = zip_longest(places.pieces, weights)
        send_back(grad_y.view(out.shape), out, (q, sides, read), (grad_q, grad_sides), seen, heads)
        grad_q.mul_(heads.size**-0.5)
        grad_qk = grad_qkv[:, : heads.num_normed]
        turned = _rotate(grad_qk, places.cos, -places.sin).mul_(weight)
        mean = (turned * normed).mean(-1, keepdim=True)
        torch.mul(turned.addcmul_(normed, mean, value=-1), scale, out=grad_qk)
        return grad_qkv.flatten(1), None, None, None, None


def row_attention(
    qkv: Tensor, heads: HeadLayout, norm: HeadNorm, places: RowPlaces, read_KPD: Tensor | None = None
) -> Tensor:
    """Apply Qwen3's attention to a row's fused product, [P, (H + 2 K) D] -> [P, H D]: norm, rotation, softmax.

    `read_KPD`: keys and values of prompts, axes [2 K, R, D], constants of the step. Keeps the weights for the backward
    pass.
    """
    read_KPD = qkv.new_zeros(2 * heads.num_kv, 0, heads.size) if read_KPD is None else read_KPD
    result: Tensor = _RowAttention.apply(qkv, heads, norm, places, read_KPD)
    return result


def reading_attention(qkv: Tensor, heads: HeadLayout, norm: HeadNorm, places: RowPlaces) -> tuple[Tensor, Tensor]:
    """Apply the same where nothing is learned. Return the keys and values, too, axes [2 K, P, D]."""
    row = _Turned.of(qkv, heads, norm, places)
    return reading(row.q_PHD, row.sides_KPD, places.pieces, heads).flatten(1), row.sides_KPD


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate (a, b) to (a cos - b sin, b cos + a sin) for the two halves a, b of the last axis."""
    a, b = x.chunk(2, dim=-1)
    return (x * cos).addcmul_(torch.cat([b, a], dim=-1), sin)
