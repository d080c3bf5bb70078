"""Samples and updates on the tiny model, for the tests of the trainer's parts."""

from typing import Any

import torch

from engine.config import LearnConfig
from engine.sample import Sample
from engine.training.model import TrainingModel
from engine.training.training_update import TrainingUpdate


def token_ids(length: int, seed: int) -> list[int]:
    """Random ids of the tiny model's ordinary tokens."""
    return torch.randint(3, 400, (length,), generator=torch.Generator().manual_seed(seed)).tolist()  # type: ignore[no-any-return]


def sample(kind: Any = "correction", seed: int = 0, length: int = 12, **fields: Any) -> Sample:
    """A sample whose teacher sees ten tokens more than the student; an anchor's sees the same."""
    prompt = token_ids(9 + seed % 5, seed)
    context = [] if kind == "anchor" else token_ids(10, seed + 1000)
    defaults = {
        "student_ids": prompt,
        "teacher_ids": context + prompt,
        "response_ids": [*token_ids(length - 1, seed + 2000), 2],
    }
    return Sample(kind, **(defaults | fields))


def correction_with_company() -> list[Sample]:
    """One correction, two counterfactual rollouts, two anchors, of different lengths."""
    kinds = ["correction", "counterfactual", "counterfactual", "anchor", "anchor"]
    return [sample(kind, seed=i, length=8 + 3 * i) for i, kind in enumerate(kinds)]


def run_update(model: TrainingModel, samples: list[Sample], parent: Any = None, **learn: Any) -> TrainingUpdate:
    """An update worked off to its end."""
    run = TrainingUpdate(model, LearnConfig(**learn), samples, parent)
    while not run.is_done:
        run.advance(0.01)
    return run


def is_same(run: TrainingUpdate, before_F: torch.Tensor) -> bool:
    """Return True if an update ends at these values, in the order of a slot's, to a thousandth of how far it came.

    Adam divides a gradient by its own size, so that a value whose gradient is all but zero goes elsewhere by rounding.
    """
    return float((run.slot.flat.detach() - before_F).norm()) < 1e-3 * run.update_norm
