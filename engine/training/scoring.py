"""Log-probabilities of given responses under a student and a teacher context, without training.

Invariant: uses a LoRA slot of its own role, so that an open update is never disturbed.
"""

from typing import Any

import torch

from engine.sample import Context, Sample
from engine.training import sdpo
from engine.training.adapter_tensors import AdapterTensors
from engine.training.batching import plan_batches
from engine.training.lora_slot import LoraShape, LoraSlot
from engine.training.model import TrainingModel

MICRO_BATCH_TOKENS = 1024  # no gradients are kept, so a piece may be larger than in training


def score_samples(model: TrainingModel, samples: list[Sample], adapter: AdapterTensors | None) -> list[dict[str, Any]]:
    """Score samples: the log-probabilities of each response under student and teacher, and their differences.

    A record has student_logprobs, teacher_logprobs, the divergence KL(q || p) and the entropies of both in nats per
    token, preferred_logprobs (the student's, of the tokens the teacher likes best) and is_preferred (True for the
    tokens of y that are those).

    The student is `adapter` (None: the base); the teacher is the base, or also `adapter` if the sample's
    `teacher` is "current".
    """
    slot = _slot(model, adapter)
    student = _logprobs(model, samples, "student", range(len(samples)), slot)
    current = [i for i, s in enumerate(samples) if s.teacher == "current"]
    base = [i for i, s in enumerate(samples) if s.teacher != "current"]
    teacher = _logprobs(model, samples, "teacher", base, None) | _logprobs(model, samples, "teacher", current, slot)
    return [_record(samples[i], student[i], teacher[i]) for i in range(len(samples))]


def _slot(model: TrainingModel, adapter: AdapterTensors | None) -> LoraSlot | None:
    if adapter is None:
        return None
    slot = model.slot(LoraShape.of(adapter.config), "score")
    slot.load(adapter)
    return slot


def _logprobs(
    model: TrainingModel, samples: list[Sample], context: Context, indices: Any, slot: LoraSlot | None
) -> dict[int, torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    for batch in plan_batches(samples, indices, context, MICRO_BATCH_TOKENS, model.device):
        with torch.no_grad():
            logprobs = model.logits(model.hidden(slot, batch)).log_softmax(-1)
        found |= {i: logprobs[batch.owners_N == i] for i in batch.samples}
    return found


def _record(sample: Sample, student: torch.Tensor, teacher: torch.Tensor) -> dict[str, Any]:
    tokens = torch.tensor(sample.response_ids, device=student.device)
    preferred = teacher.argmax(-1)
    return {
        "student_logprobs": sdpo.token_logprobs(student, tokens).tolist(),
        "teacher_logprobs": sdpo.token_logprobs(teacher, tokens).tolist(),
        "student_entropy": _entropy(student),
        "teacher_entropy": _entropy(teacher),
        "divergence": float(sdpo.forward_kl(student, teacher).mean()),
        "preferred_logprobs": sdpo.token_logprobs(student, preferred).tolist(),
        "is_preferred": (preferred == tokens).tolist(),
    }


def _entropy(logprobs_RV: torch.Tensor) -> float:
    """Return the mean over the positions of -sum_v p(v) log p(v); an impossible token counts zero."""
    terms = logprobs_RV.exp() * logprobs_RV
    return -float(torch.where(logprobs_RV == -torch.inf, torch.zeros_like(terms), terms).sum(-1).mean())
