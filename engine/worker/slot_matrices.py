"""The matrices of every slot of a linear layer, packed for batched products.

vLLM keeps room for the greatest rank that it may be given, and B the other way round; a product of all slots would
read and multiply those zeros, and in bfloat16 rearrange the matrices for every token. Invariants: they are those of
the adapters that the slots hold, each read once when a slot changes hands or vLLM has loaded it anew; a rank of which
all slots' rows are zero is left out.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

MIN_RANK = 8


class SlotMatrices:
    """A and B of all slots of a layer, whose parts' A stand below each other (QKV has three parts, gate and up two).

    Axes: `a_SKR` [slots, K, parts r], each `b_SrN` [slots, r, N_i]; r is the least that fits every adapter.
    """

    def __init__(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> None:
        """Read from vLLM's stacks, A_i [slots, 1, rank, K] and B_i [slots, 1, N_i, rank], as `follow` says."""
        self._a = [part[:, 0] for part in a]
        self._b = [part[:, 0] for part in b]
        self._ids: list[int | None] = [None] * len(self._a[0])  # of the adapters that were read, by slot
        self._make_room(min(MIN_RANK, self._room))

    def follow(self, ids: Sequence[int | None]) -> None:
        """Read the slots that hold another adapter than before. In place. `ids`: of the adapters, by slot."""
        pairs = enumerate(zip(ids, self._ids, strict=True))
        changed = [slot for slot, (lora_id, known) in pairs if lora_id is not None and lora_id != known]
        while any(bool(part[slot, self.rank :].any()) for slot in changed for part in self._a):
            self._make_room(min(2 * self.rank, self._room))
            changed = [slot for slot, lora_id in enumerate(ids) if lora_id is not None]
        for slot in changed:
            self._read(slot)
        self._ids = list(ids)

    def forget(self, lora_id: int) -> None:
        """Read this adapter anew the next time. In place."""
        self._ids = [None if known == lora_id else known for known in self._ids]

    def _read(self, slot: int) -> None:
        rank = self.rank
        for number, (a, b) in enumerate(zip(self._a, self._b, strict=True)):
            self.a_SKR[slot, :, number * rank : (number + 1) * rank] = a[slot, :rank].t()
            self.b_SrN[number][slot] = b[slot, :, :rank].t()

    @property
    def _room(self) -> int:
        return int(self._a[0].shape[1])

    def _make_room(self, rank: int) -> None:
        """Take matrices of this rank, all zero, in place of the old ones."""
        self.rank = rank
        num_slots, _, num_inputs = self._a[0].shape
        of_layer = torch.zeros(num_slots, rank * len(self._a), num_inputs, dtype=self._a[0].dtype)
        self.a_SKR = of_layer.mT
        self.b_SrN = [torch.zeros(num_slots, rank, part.shape[1], dtype=part.dtype) for part in self._b]
