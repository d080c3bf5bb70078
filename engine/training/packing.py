"""A micro-batch as one row: no padding, and what its sequences begin with in common is computed once.

Pure. Sequences follow one another behind their common beginning, which all of them may look at; each has the positions
that it had by itself, and sees itself and the beginning only. So the numbers are those of the padded rows, to rounding:
causal attention does not depend on what stands elsewhere (packing without contamination, Krell et al., arXiv
2107.02027; a shared prefix as in tree attention, Cai et al., arXiv 2401.10774). `Unpacked` says where each sequence
stands in the row, for attention, which costs less sequence by sequence: of the weights of one long row most are masked.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from engine.training.batching import Batch

_BEGINNING = -1
_WIDTH_MULTIPLE = 32  # of an unpacked row: a softmax over other widths takes twice as long on a CPU


@dataclass(frozen=True)
class Unpacked:
    """The places of B sequences of at most W tokens in a row of P, each with the common beginning before it."""

    rows_BW: Tensor  # the place in the row of each token; behind its last one a sequence goes on with that
    places_P: Tensor  # of B * W, flat, that each token of the row stands at
    num_shared: int  # tokens that all sequences begin with in common, which stand in the row once


@dataclass(frozen=True)
class Packed:
    """One row of P tokens."""

    input_ids_1P: Tensor
    position_ids_1P: Tensor
    rows_N: Tensor  # of the position that predicts each response token
    num_shared: int  # tokens of the common beginning
    own_B: list[slice]  # the places of each sequence's tokens behind it

    @cached_property
    def unpacked(self) -> Unpacked:
        """The places of the sequences."""
        device = self.input_ids_1P.device
        firsts_B = torch.tensor([own.start - self.num_shared for own in self.own_B], device=device)
        lengths_B = torch.tensor([self.num_shared + own.stop - own.start for own in self.own_B], device=device)
        width = -(-int(lengths_B.max()) // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
        column_BW = torch.arange(width, device=device).minimum(lengths_B[:, None] - 1)
        rows_BW = column_BW + torch.where(column_BW < self.num_shared, 0, firsts_B[:, None])
        places_P = self.position_ids_1P[0].clone()  # of the first sequence, of which the beginning is taken
        for number, own in enumerate(self.own_B):
            places_P[own] += number * width
        return Unpacked(rows_BW, places_P, self.num_shared)

    @property
    def may_see_11PP(self) -> Tensor:
        """True where a position may look, for models that take a mask."""
        owner_P = self.unpacked.places_P // self.unpacked.rows_BW.shape[1]
        place_P = torch.arange(len(owner_P), device=owner_P.device)
        is_seen_PP = (place_P < self.unpacked.num_shared) | (owner_P == owner_P[:, None])
        position_P = self.position_ids_1P[0]
        return (is_seen_PP & (position_P <= position_P[:, None]))[None, None]


def pack(batch: Batch) -> Packed:
    """Return a micro-batch as one row. What stands behind the last position that is asked for is left out."""
    ids_BL, device = batch.input_ids_BL, batch.input_ids_BL.device
    sequence_N, column_N = batch.rows_N // ids_BL.shape[1], batch.rows_N % ids_BL.shape[1]
    lengths = [int(column_N[sequence_N == b].max()) + 1 for b in range(len(ids_BL))]
    shared = _common(ids_BL[:, : min(lengths)])
    spans = [(_BEGINNING, 0, shared), *((b, shared, length) for b, length in enumerate(lengths))]
    ids_P = torch.cat([ids_BL[max(b, 0), first:end] for b, first, end in spans])
    position_P = torch.cat([torch.arange(first, end, device=device) for _, first, end in spans])
    ends_B = [shared + end for end in accumulate(length - shared for length in lengths)]
    own_B = [slice(end - length + shared, end) for end, length in zip(ends_B, lengths, strict=True)]
    firsts_B = torch.tensor([own.start - shared for own in own_B], device=device)
    rows_N = column_N + torch.where(column_N < shared, 0, firsts_B[sequence_N])
    return Packed(ids_P[None], position_P[None], rows_N, shared, own_B)


def padded(input_ids_BL: Tensor) -> tuple[Tensor, Unpacked]:
    """Return the positions, axes [1, P], and the places of sequences that stand one behind the other as they are."""
    places_P = torch.arange(input_ids_BL.numel(), device=input_ids_BL.device)
    unpacked = Unpacked(places_P.view(input_ids_BL.shape), places_P, 0)
    return (places_P % input_ids_BL.shape[1])[None], unpacked


def _common(ids_BL: Tensor) -> int:
    """Return how many tokens all rows begin with."""
    return int((ids_BL == ids_BL[:1]).all(0).long().cumprod(0).sum())
