"""The base model's hidden states where it answers, kept for those that were read last.

The base model never changes, and lesson after lesson is weighed on the same conversations: tasks of the bank, topics,
answers that a candidate and its parent are compared on. Invariants: what is kept is bounded in bytes; it is found by a
digest of the tokens, so that no text is kept.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from engine.sample import Context, Sample
from engine.training.batching import plan_batches
from engine.training.lora_slot import LoraSlot
from engine.training.model import TrainingModel

KEPT_BYTES = 32 * 1024**2
MICRO_BATCH_TOKENS = 1024  # no gradients are kept, so a piece may be larger than in training


class BaseStates:
    """Reads with the base model, each sequence once as long as there is room."""

    def __init__(self, model: TrainingModel) -> None:
        """Begin with nothing read."""
        self.model = model
        self._kept: OrderedDict[bytes, Tensor] = OrderedDict()  # axes [R, H]
        self.num_bytes = 0

    def of(self, samples: Sequence[Sample], context: Context, indices: Iterable[int]) -> dict[int, Tensor]:
        """Return the last hidden states at the response positions of some samples by their number, axes [R, H]."""
        keys = {i: _digest(samples[i].prompt(context), samples[i].response_ids) for i in indices}
        self._read(samples, context, {key: i for i, key in keys.items() if key not in self._kept})
        for key in keys.values():
            self._kept.move_to_end(key)
        found = {i: self._kept[key] for i, key in keys.items()}
        while self.num_bytes > KEPT_BYTES:
            self.num_bytes -= self._kept.popitem(last=False)[1].nbytes
        return found

    def _read(self, samples: Sequence[Sample], context: Context, unread: Mapping[bytes, int]) -> None:
        found = hidden_states(self.model, samples, context, [*unread.values()], None)
        for key, i in unread.items():
            self._kept[key] = found[i].clone()  # not a view of a whole micro-batch
            self.num_bytes += self._kept[key].nbytes


def hidden_states(
    model: TrainingModel, samples: Sequence[Sample], context: Context, indices: Iterable[int], slot: LoraSlot | None
) -> dict[int, Tensor]:
    """Return the last hidden states at the response positions of each sample, axes [R, H]."""
    found: dict[int, Tensor] = {}
    for batch in plan_batches(samples, indices, context, MICRO_BATCH_TOKENS, model.device):
        with torch.no_grad():
            hidden = model.hidden(slot, batch)
        found |= {i: hidden[batch.owners_N == i] for i in batch.samples}
    return found


def _digest(*token_ids: Sequence[int]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for ids in token_ids:
        found.update(np.asarray([len(ids), *ids], np.int32).tobytes())
    return found.digest()
