"""The matrices of every slot of a linear layer, as batched products read them; vLLM writes into views of them.

vLLM's own stacks have room for the greatest rank that it may be given, and B the other way round: a product of all
slots would read and multiply those zeros, and in bfloat16 rearrange the matrices for every token. Invariants: an
adapter is in a slot once; the rank is the least step that fits every adapter for which room was made.
"""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

MIN_RANK = 8
Stacks: TypeAlias = tuple[Tensor, ...]


class SlotMatrices:
    """A and B of all slots of a layer, whose parts' A stand below each other (QKV has three parts, gate and up two).

    Axes: `a_SKR` [slots, K, parts r], each `b_SrN` [slots, r, N_i].
    """

    def __init__(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> None:
        """Take the place of vLLM's empty stacks, A_i [slots, 1, rank, K] and B_i [slots, 1, N_i, rank]."""
        self.most_rank = a[0].shape[2]
        self.rank = min(MIN_RANK, self.most_rank)
        num_slots, _, _, num_inputs = a[0].shape
        self.a_SKR = a[0].new_zeros(num_slots, len(a) * self.rank, num_inputs).mT
        self.b_SrN = [part.new_zeros(num_slots, self.rank, part.shape[2]) for part in b]

    @property
    def a_stacks(self) -> Stacks:
        """A_i as vLLM writes it, axes [slots, 1, r, K]: views."""
        return tuple(part.unsqueeze(1) for part in self.a_SKR.mT.split(self.rank, 1))

    @property
    def b_stacks(self) -> Stacks:
        """B_i as vLLM writes it, axes [slots, 1, N_i, r]: views."""
        return tuple(part.mT.unsqueeze(1) for part in self.b_SrN)

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
        more = (0, 0, 0, wider - self.rank)  # rows of zeros below those of each matrix
        pad = torch.nn.functional.pad
        parts = [pad(part, more) for part in self.a_SKR.mT.split(self.rank, 1)]
        self.a_SKR, self.b_SrN = torch.cat(parts, 1).mT, [pad(part, more) for part in self.b_SrN]
        self.rank = wider
        return True
