"""Log-probabilities of given responses under a student and a teacher context, without training.

Invariants: uses a LoRA slot of its own role, so that an open update is never disturbed; what is kept of a response is
its hidden states, and the vocabulary is projected for a few positions at a time, however long it is.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.sample import Context, Sample
from engine.training import sdpo
from engine.training.adapter_tensors import AdapterTensors
from engine.training.base_states import BaseStates, hidden_states
from engine.training.batching import row_chunks
from engine.training.lora_slot import LoraShape, LoraSlot
from engine.training.model import TrainingModel

_PER_TOKEN = ("student_logprobs", "teacher_logprobs", "preferred_logprobs", "is_preferred")


def score_samples(
    model: TrainingModel, samples: list[Sample], adapter: AdapterTensors | None, known: BaseStates | None = None
) -> list[dict[str, Any]]:
    """Score samples: the log-probabilities of each response under student and teacher, and their differences.

    A record has student_logprobs, teacher_logprobs, the divergence KL(q || p) and the entropies of both in nats per
    token, preferred_logprobs (the student's, of the tokens the teacher likes best) and is_preferred (True for the
    tokens of y that are those).

    The student is `adapter` (None: the base); the teacher is the base, or also `adapter` if the sample's
    `teacher` is "current". `known` is what the base model has read before.
    """
    states, slot = known or BaseStates(model), _slot(model, adapter)
    student = _states(states, samples, "student", range(len(samples)), slot)
    current = [i for i, s in enumerate(samples) if s.teacher == "current"]
    base = [i for i, s in enumerate(samples) if s.teacher != "current"]
    teacher = states.of(samples, "teacher", base) | _states(states, samples, "teacher", current, slot)
    return [_record(model, samples[i], student[i], teacher[i]) for i in range(len(samples))]


def _states(
    base: BaseStates, samples: list[Sample], context: Context, indices: Sequence[int], slot: LoraSlot | None
) -> dict[int, Tensor]:
    if slot is None:
        return base.of(samples, context, indices)
    return hidden_states(base.model, samples, context, indices, slot)


def _slot(model: TrainingModel, adapter: AdapterTensors | None) -> LoraSlot | None:
    if adapter is None:
        return None
    slot = model.slot(LoraShape.of(adapter.config), "score")
    slot.load(adapter)
    return slot


def _record(model: TrainingModel, sample: Sample, student_RH: Tensor, teacher_RH: Tensor) -> dict[str, Any]:
    tokens = torch.tensor(sample.response_ids, device=student_RH.device)
    chunks = [
        _figures(_logprobs(model, student_RH[rows]), _logprobs(model, teacher_RH[rows]), tokens[rows])
        for rows in row_chunks(len(tokens), model.vocab_size, num_sides=2)
    ]
    whole = {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}
    return {name: values.tolist() if name in _PER_TOKEN else float(values.mean()) for name, values in whole.items()}


def _logprobs(model: TrainingModel, hidden_NH: Tensor) -> Tensor:
    with torch.no_grad():
        return model.logits(hidden_NH).log_softmax(-1)


def _figures(student_NV: Tensor, teacher_NV: Tensor, tokens_N: Tensor) -> dict[str, Tensor]:
    """Return each figure of a record at some positions, axis [N]."""
    preferred = teacher_NV.argmax(-1)
    return {
        "student_logprobs": sdpo.token_logprobs(student_NV, tokens_N),
        "teacher_logprobs": sdpo.token_logprobs(teacher_NV, tokens_N),
        "student_entropy": sdpo.entropy(student_NV),
        "teacher_entropy": sdpo.entropy(teacher_NV),
        "divergence": sdpo.forward_kl(student_NV, teacher_NV),
        "preferred_logprobs": sdpo.token_logprobs(student_NV, preferred),
        "is_preferred": preferred == tokens_N,
    }
