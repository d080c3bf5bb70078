"""The matrices of every slot of a linear layer, as products read them; vLLM writes into views of them.

vLLM's own stacks have room for the greatest rank that it may be given, and each matrix the other way round: a product
of one row would read and multiply those zeros, and not read its matrix in one go. Invariants: an adapter is in a slot
once; the rank is the least step that fits every adapter for which room was made.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

MIN_RANK = 8
Stacks: TypeAlias = tuple[Tensor, ...]


class SlotMatrices:
    """A and B of all slots of a layer, whose parts stand beside each other (QKV has three parts, gate and up two).

    Axes: `a_SKR` [slots, K, parts r], `b_SrN` [slots, r, N]; N = sum of the parts' N_i.
    """

    def __init__(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> None:
        """Take the place of vLLM's empty stacks, A_i [slots, 1, rank, K] and B_i [slots, 1, N_i, rank]."""
        self.most_rank = a[0].shape[2]
        self.rank = min(MIN_RANK, self.most_rank)
        self.widths = [part.shape[2] for part in b]
        self.piece_width = math.gcd(*self.widths)  # of the pieces that B's rows are read in
        pieces = torch.tensor([width // self.piece_width for width in self.widths])
        self.num_pieces = int(pieces.sum())
        self.parts_of_pieces = torch.arange(len(b)).repeat_interleave(pieces)
        num_slots, _, _, num_inputs = a[0].shape
        self._take(
            a[0].new_zeros(num_slots, num_inputs, len(a) * self.rank),
            b[0].new_zeros(num_slots, self.rank, sum(self.widths)),
        )

    def _take(self, a_SKR: Tensor, b_SrN: Tensor) -> None:
        """Take these matrices, and as views of them the rows that are added up, of all slots below each other.

        Axes: `a_rows` [slots K, parts r], `b_pieces` [slots r pieces, a piece's width].
        """
        self.a_SKR, self.b_SrN = a_SKR, b_SrN
        self.a_rows = a_SKR.view(-1, a_SKR.shape[2])
        self.b_pieces = b_SrN.view(-1, self.piece_width)

    @property
    def a_stacks(self) -> Stacks:
        """A_i as vLLM writes it, axes [slots, 1, r, K]: views."""
        return tuple(part.mT.unsqueeze(1) for part in self.a_SKR.split(self.rank, 2))

    @property
    def b_stacks(self) -> Stacks:
        """B_i as vLLM writes it, axes [slots, 1, N_i, r]: views."""
        return tuple(part.mT.unsqueeze(1) for part in self.b_SrN.split(self.widths, 2))

    @property
    def address(self) -> int:
        """The address of the first part's A, which tells one layer's stacks from another's."""
        return int(self.a_SKR.data_ptr())

    def make_room(self, rank: int) -> bool:
        """Have room for adapters of this rank, or of the most that vLLM may be given; the stacks are others then.

        Return False if there was room.
        """
        wider = self.rank
        while wider < min(rank, self.most_rank):
            wider = min(2 * wider, self.most_rank)
        if wider == self.rank:
            return False
        pad, more = torch.nn.functional.pad, wider - self.rank
        a_SKR = torch.cat([pad(part, (0, more)) for part in self.a_SKR.split(self.rank, 2)], 2)
        self._take(a_SKR, pad(self.b_SrN, (0, 0, 0, more)))  # rows of zeros below those of each slot
        self.rank = wider
        return True
