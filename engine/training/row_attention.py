"""Attention over a packed row by plain matrix products: what sequences begin with in common is attended to once.

A row is cut into pieces of queries (`RowPiece`). Those of the common beginning see what stands before them; those of a
sequence see the beginning and what stands before them in their sequence, as if the sequences stood by themselves
(`engine.training.packing`). A piece's weights fit into a core's cache, and nothing is padded; short sequences share a
piece, for each of its operations costs more time than the weights among them that are masked. In the backward pass a
key of the beginning gets the sum of what all sequences send back to it. Invariants: float32; equal to attention over
the padded sequences to rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.training.lean_ops import HeadLayout, once_differentiable

_LONGEST_PIECE = 128  # queries, of one sequence or of several


@dataclass(frozen=True)
class RowPiece:
    """N queries that are computed in one go, and the spans of the keys that any of them sees."""

    queries: slice
    keys: tuple[slice, ...]
    bias_NN: Tensor  # added to the scores of the last keys: minus infinity where a query may not look

    def seen(self, sides_KPD: Tensor) -> Tensor:
        """Return the keys and values that are seen, of those of all P tokens: axes [2 K, M, D]."""
        parts = [sides_KPD[:, part] for part in self.keys]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def send_back(self, grad_KPD: Tensor, part_KMD: Tensor) -> None:
        """Add the gradient of the keys and values that were seen. In place: `grad_KPD`."""
        start = 0
        for part in self.keys:
            stop = start + part.stop - part.start
            grad_KPD[:, part].add_(part_KMD[:, start:stop])
            start = stop


def row_pieces(num_shared: int, own: Sequence[slice]) -> list[RowPiece]:
    """Return the pieces of a row: the common beginning, then the tokens of each sequence behind it."""
    beginning = (slice(0, num_shared),) if num_shared else ()
    found = [RowPiece(cut, (slice(0, cut.stop),), _bias([cut])) for cut in _cut(slice(0, num_shared))]
    for joint in _joined(own):
        for cuts in [joint] if len(joint) > 1 else ([cut] for cut in _cut(joint[0])):
            queries = slice(cuts[0].start, cuts[-1].stop)
            found.append(RowPiece(queries, (*beginning, slice(joint[0].start, queries.stop)), _bias(cuts)))
    return found


def asked_pieces(pieces: Sequence[RowPiece], rows: Sequence[int]) -> list[RowPiece]:
    """Return the pieces from the first of these rows on in each, for a layer whose other queries nothing reads."""
    found = []
    for piece in pieces:
        start, stop = piece.queries.start, piece.queries.stop
        first = min((row for row in rows if start <= row < stop), default=stop)
        if first < stop:
            found.append(RowPiece(slice(first, stop), piece.keys, piece.bias_NN[first - start :]))
    return found


def _joined(own: Sequence[slice]) -> list[list[slice]]:
    """Return the sequences that share a piece, in their order; those without a token of their own in none."""
    groups: list[list[slice]] = []
    for span in (span for span in own if span.stop > span.start):
        if groups and span.stop - groups[-1][0].start <= _LONGEST_PIECE:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _bias(spans: Sequence[slice]) -> Tensor:
    """Return zero where a token stands in the same span as another and not before it, else minus infinity."""
    lengths = [span.stop - span.start for span in spans]
    return torch.block_diag(*(torch.ones(n, n) for n in lengths)).tril().log()


def _cut(span: slice) -> Iterator[slice]:
    """Cut a span into as few pieces as may be, of the same length but for one token."""
    length = span.stop - span.start
    count = -(-length // _LONGEST_PIECE)
    for i in range(count):
        yield slice(span.start + i * length // count, span.start + (i + 1) * length // count)


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


class _RowAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: HeadLayout, norm: HeadNorm, places: RowPlaces) -> Tensor:
        qk, v = qkv.view(len(qkv), -1, heads.size).split([heads.num_normed, heads.num_kv], dim=1)
        scale = qk.square().mean(-1, keepdim=True).add_(norm.eps).rsqrt_()
        normed = qk * scale
        turned = _rotate(normed * norm.weight, places.cos, places.sin)
        q = turned[:, : heads.num_heads].mul_(heads.size**-0.5)
        sides = torch.cat([turned[:, heads.num_heads :], v], dim=1).transpose(0, 1)
        out, weights = torch.zeros(len(qkv), heads.num_heads, heads.size), []
        for piece in places.pieces:
            keys, values = piece.seen(sides).chunk(2)
            scores = torch.bmm(_grouped(q, piece, heads), keys.transpose(1, 2))
            weights.append(_masked(scores, piece.bias_NN, heads).softmax(-1))
            _write(out, piece, torch.bmm(weights[-1], values), heads)
        ctx.heads, ctx.places = heads, places
        ctx.save_for_backward(q, sides, out, normed, scale, norm.weight, *weights)
        return out.flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> Any:
        q, sides, out, normed, scale, weight, *weights = ctx.saved_tensors
        heads, places = ctx.heads, ctx.places
        grad_out = grad_y.view(out.shape)
        dots = (grad_out * out).sum(-1, keepdim=True)
        grad_qkv = torch.zeros(len(q), heads.num_normed + heads.num_kv, heads.size)
        grad_q, grad_sides = grad_qkv[:, : heads.num_heads], grad_qkv[:, heads.num_heads :].transpose(0, 1)
        for piece, probabilities in zip(places.pieces, weights, strict=True):
            keys, values = piece.seen(sides).chunk(2)
            grad = _grouped(grad_out, piece, heads)
            grad_scores = torch.bmm(grad, values.transpose(1, 2))
            grad_scores.sub_(_grouped(dots, piece, heads)).mul_(probabilities)
            _write(grad_q, piece, torch.bmm(grad_scores, keys), heads)
            grad_keys = torch.bmm(grad_scores.transpose(1, 2), _grouped(q, piece, heads))
            grad_values = torch.bmm(probabilities.transpose(1, 2), grad)
            piece.send_back(grad_sides, torch.cat([grad_keys, grad_values]))
        grad_q.mul_(heads.size**-0.5)
        grad_qk = grad_qkv[:, : heads.num_normed]
        turned = _rotate(grad_qk, places.cos, -places.sin).mul_(weight)
        mean = (turned * normed).mean(-1, keepdim=True)
        torch.mul(turned.addcmul_(normed, mean, value=-1), scale, out=grad_qk)
        return grad_qkv.flatten(1), None, None, None


def _grouped(side_PHD: Tensor, piece: RowPiece, heads: HeadLayout) -> Tensor:
    """Return a piece's queries by the key head that they share, axes [K, H / K N, D]."""
    part = side_PHD[piece.queries]
    if heads.repeats == 1:
        return part.transpose(0, 1)
    return part.unflatten(1, (heads.num_kv, heads.repeats)).permute(1, 2, 0, 3).flatten(1, 2)


def _write(side_PHD: Tensor, piece: RowPiece, grouped: Tensor, heads: HeadLayout) -> None:
    """Write a piece's values where its queries stand; the reverse of `_grouped`. In place: `side_PHD`."""
    by_head = grouped.view(heads.num_heads, -1, heads.size)
    side_PHD[piece.queries] = by_head.transpose(0, 1)


def _masked(scores: Tensor, bias_NN: Tensor, heads: HeadLayout) -> Tensor:
    """Add the bias to the scores of the last keys, axes [K, H / K N, M]. In place."""
    by_query = scores.view(heads.num_heads, -1, scores.shape[-1])
    by_query[..., -bias_NN.shape[1] :].add_(bias_NN)
    return scores


def row_attention(qkv: Tensor, heads: HeadLayout, norm: HeadNorm, places: RowPlaces) -> Tensor:
    """Apply Qwen3's attention to a row's fused product, [P, (H + 2 K) D] -> [P, H D]: norm, rotation, softmax.

    Tokens that are in no piece attend to nothing: zero. Keeps the weights for the backward pass.
    """
    result: Tensor = _RowAttention.apply(qkv, heads, norm, places)
    return result


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate (a, b) to (a cos - b sin, b cos + a sin) for the two halves a, b of the last axis."""
    a, b = x.chunk(2, dim=-1)
    return (x * cos).addcmul_(torch.cat([b, a], dim=-1), sin)
