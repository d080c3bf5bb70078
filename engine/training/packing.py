"""A micro-batch as two rows without padding: the prompts, which are only read, and the positions that answer them.

Pure. What a prompt's tokens make of themselves is a constant of a step: a gradient goes through the response positions
alone, as it stops at the segment before in Transformer-XL (SG in equation 3 of Dai et al., arXiv 1901.02860). Most of
a sequence is prompt, so that most of a step is a forward pass that keeps nothing (ADR 46).

In a row sequences follow one another, each with the positions that it had by itself, and see only themselves and what
their family begins with in common, which stands there once. So the numbers are those of the padded sequences, to
rounding: causal attention does not depend on what stands elsewhere (packing without contamination, Krell et al., arXiv
2107.02027; a shared prefix as in tree attention, Cai et al., arXiv 2401.10774). `Unpacked` says where each sequence
stands in the row, for attention, which costs less sequence by sequence: of the weights of one long row most are masked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from engine.training.batching import WORTH_SHARING, Batch

_WIDTH_MULTIPLE = 32  # of an unpacked row: a softmax over other widths takes twice as long on a CPU


@dataclass(frozen=True)
class Unpacked:
    """The places of B sequences of at most W tokens in a row of P, each with the common beginning before it."""

    rows_BW: Tensor  # the place in the row of each token; behind its last one a sequence goes on with that
    places_P: Tensor  # of B * W, flat, that each token of the row stands at


@dataclass(frozen=True)
class Family:
    """Sequences that stand one behind the other in a row, behind what all of them begin with."""

    shared: slice  # the places of the common beginning
    own_B: list[slice]  # the places of each sequence's tokens behind it

    def places(self, own: slice) -> Tensor:
        """Return the places of one of its sequences, axis [L]."""
        return torch.cat([torch.arange(part.start, part.stop) for part in (self.shared, own)])


@dataclass(frozen=True)
class TokenRow:
    """P tokens: family by family what its sequences begin with in common, then each one's own."""

    ids_P: Tensor
    positions_P: Tensor
    families: list[Family]

    @cached_property
    def unpacked(self) -> Unpacked:
        """The places of the sequences."""
        places_B = [family.places(own) for family in self.families for own in family.own_B]
        width = -(-max(map(len, places_B)) // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
        last_B = [int(places[-1]) if len(places) else 0 for places in places_B]
        filled = [
            nn.functional.pad(places, (0, width - len(places)), value=last)
            for places, last in zip(places_B, last_B, strict=True)
        ]
        places_P = torch.zeros_like(self.positions_P)
        for number, places in reversed(list(enumerate(places_B))):  # a beginning is taken of the first that has it
            places_P[places] = torch.arange(len(places), device=places_P.device) + number * width
        return Unpacked(torch.stack(filled).to(places_P.device), places_P)

    @property
    def own_B(self) -> list[slice]:
        """The places of each sequence's own tokens."""
        return [own for family in self.families for own in family.own_B]

    @property
    def is_alone(self) -> bool:
        """True for one sequence, which needs no mask but the causal one."""
        return len(self.own_B) == 1

    @property
    def owners_P(self) -> Tensor:
        """The number of the sequence that each token belongs to; in a beginning the family's, counted down from -1."""
        owners_P = torch.empty_like(self.positions_P)
        for number, own in enumerate(self.own_B):
            owners_P[own] = number
        for number, family in enumerate(self.families):
            owners_P[family.shared] = -1 - number
        return owners_P

    @property
    def may_see_11PP(self) -> Tensor:
        """True where a token may look, for models that take a mask."""
        return _may_see(self, [self])


@dataclass(frozen=True)
class Packed:
    """The prompts of a micro-batch, and the N positions that each predict a response token, sequence by sequence."""

    read: TokenRow
    asked: TokenRow

    @property
    def may_see_11NM(self) -> Tensor:
        """True where a response position may look, at the tokens that are read and then at response positions."""
        return _may_see(self.asked, [self.read, self.asked])


def pack(batch: Batch) -> Packed:
    """Return the rows of a micro-batch, whose response positions stand one behind the other in each sequence."""
    ids_BL, width = batch.input_ids_BL, batch.input_ids_BL.shape[1]
    lengths = batch.lengths
    asked = TokenRow(ids_BL.flatten()[batch.rows_N], batch.rows_N % width, [_apart(lengths)])
    firsts = _firsts(batch, lengths)
    return Packed(_row(ids_BL, firsts, firsts), asked)


def whole(batch: Batch) -> tuple[TokenRow, Tensor]:
    """Return a micro-batch as one row, which costs less where there is no gradient, and its response positions, [N]."""
    lengths = batch.lengths
    firsts = _firsts(batch, lengths)
    row = _row(batch.input_ids_BL, firsts, [first + n for first, n in zip(firsts, lengths, strict=True)])
    device = row.ids_P.device
    places = [torch.arange(own.stop - n, own.stop, device=device) for own, n in zip(row.own_B, lengths, strict=True)]
    return row, torch.cat(places)


def unpadded(input_ids_BL: Tensor) -> TokenRow:
    """Return sequences of one length that stand one behind the other."""
    ids_P, (size, length) = input_ids_BL.flatten(), input_ids_BL.shape
    positions_P = torch.arange(len(ids_P), device=ids_P.device) % length
    return TokenRow(ids_P, positions_P, [_apart([length] * size)])


def _apart(lengths: Sequence[int]) -> Family:
    """Return sequences that have no beginning in common."""
    return Family(slice(0, 0), _spans(0, lengths))


def _firsts(batch: Batch, lengths: Sequence[int]) -> list[int]:
    """Return the column of each sequence's first response position."""
    width = batch.input_ids_BL.shape[1]
    return [int(batch.rows_N[span.start]) % width for span in _spans(0, lengths)]


def _row(ids_BL: Tensor, firsts: Sequence[int], ends: Sequence[int]) -> TokenRow:
    """Return each sequence up to its end. What all of a family begin with before a response stands there once."""
    spans, families, place = [], [], 0
    for members in _alike(ids_BL):
        shared = min(*firsts[members], _num_common(ids_BL[members]))
        lengths = [end - shared for end in ends[members]]
        families.append(Family(slice(place, place + shared), _spans(place + shared, lengths)))
        spans += [(members.start, 0, shared)]
        spans += [(b, shared, ends[b]) for b in range(members.start, members.stop)]
        place += shared + sum(lengths)
    ids_P = torch.cat([ids_BL[b, start:stop] for b, start, stop in spans])
    positions_P = torch.cat([torch.arange(start, stop, device=ids_BL.device) for _, start, stop in spans])
    return TokenRow(ids_P, positions_P, families)


def _alike(ids_BL: Tensor) -> list[slice]:
    """Cut sequences into those that follow one another and begin alike, and those between them."""
    starts = ids_BL[:, :WORTH_SHARING]
    is_long = starts.shape[1] == WORTH_SHARING
    alike = [is_long and torch.equal(a, b) for a, b in pairwise(starts)]
    in_one = [before or behind for before, behind in pairwise([False, *alike, False])]
    cuts = [b for b, is_like in enumerate(alike, start=1) if not is_like and (in_one[b - 1] or in_one[b])]
    return [slice(start, stop) for start, stop in pairwise([0, *cuts, len(ids_BL)])]


def _may_see(asking: TokenRow, seen: Sequence[TokenRow]) -> Tensor:
    """Return True where a token of a row may look, axes [1, 1, P, M] for the M tokens of other rows.

    The first of those has the families.
    """
    owners_M, positions_M = torch.cat([row.owners_P for row in seen]), torch.cat([row.positions_P for row in seen])
    of_sequence = [-1 - number for number, family in enumerate(seen[0].families) for _ in family.own_B]
    asking_P = asking.owners_P
    family_P = torch.where(asking_P < 0, asking_P, asking_P.new_tensor(of_sequence)[asking_P.clamp(min=0)])
    is_own_PM = (owners_M == asking_P[:, None]) | (owners_M == family_P[:, None])
    return (is_own_PM & (positions_M <= asking.positions_P[:, None]))[None, None]


def _spans(start: int, lengths: Sequence[int]) -> list[slice]:
    """Return the places of sequences that stand one behind the other from `start` on."""
    ends = list(accumulate(lengths, initial=start))
    return [slice(end - length, end) for end, length in zip(ends[1:], lengths, strict=True)]


def _num_common(ids_BL: Tensor) -> int:
    """Return how many tokens all sequences begin with."""
    return int((ids_BL == ids_BL[:1]).all(0).long().cumprod(0).sum())
