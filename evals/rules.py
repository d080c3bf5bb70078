"""Learning rules of other systems as settings of heed's own trainer: their words, their number of steps, their adapter.

Owns the rules and the rates to try with each. Source: CLaaS of February 2026 (frozen base, top-100 Jensen-Shannon
renormalised without a tail, importance weights up to 5, rank 32, weight decay .01, and its evaluation's four steps on
one batch of feedback), continualcode 0.5 (one step, advantage of the sampled tokens, rank 32; under Adam its gain makes
no difference). What differs from them: the k likeliest tokens are the student's and not the teacher's, and the teacher
sees earlier turns of a conversation, which CLaaS leaves out. Invariant: a rule names every setting in which it differs
from plain training, so that neither heed's defaults nor a model's calibration add anything to it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPEN_GATES: dict[str, float] = {
    "max_value_change": 1e9, "max_divergence_left": 1e9, "min_margin_gain": -1e9, "max_anchor_divergence": 1e9,
    "max_earlier_drop": 1e9, "max_gold_drop": 1e9, "max_unasked": 1e9, "max_unasked_worst": 1e9,
    "min_entropy_ratio": 0.0, "max_self_rouge": 1.0, "max_drift": 1e9,
}  # fmt: skip
ALONE = {  # one sample, nothing held still, and the whole parent: what the other systems have in common
    "num_counterfactuals": 0, "num_teacher_rollouts": 0, "num_anchors": 0, "anchor_choice": 1, "parent_rate": 1.0,
    "parent_share": 1.0, "replacing_share": 1.0, "schedule": "constant", "min_divergence": 0.0,
    # and nothing that a model's calibration would add
    "reads_hindsight": True, "reads_own_note": False, "shows_rewrites": True, "facts_in_message": False,
    "opening_weight": 1.0, "closing_weight": 1.0, "guidance_scale": 1.0,
    "whole_first_step": True, "mini_batch_samples": 4, "max_teacher_rollouts": 0, "num_openings": 0, "work_steps": 1,
    "work_rate": 1.0, "work_first_steps": 0, "lora_rank": 16,
}  # fmt: skip
_PUBLISHED = {**ALONE, "reads_notes": False, "keeps_optimizer": True, "lora_rank": 32, "lora_alpha": 64}
_FEW_STEPS, _FEW_STEPS_REAL = (1e-2, 3e-2, 1e-1, 3e-1, 1.0), (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # rates for one to four


@dataclass(frozen=True)
class Rule:
    """One way of learning: settings of the trainer, and the learning rates to try (none: the shipped one)."""

    about: str
    learn: Mapping[str, Any] = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    real_rates: tuple[float, ...] = ()  # on a model that is not the pocket's
    is_heeds: bool = False  # it has gates, and reads what feedback means; every other teaches all of it, everywhere


def groups_of(name: str, rate: float | None) -> dict[str, dict[str, Any]]:
    """Return the settings of a heed that learns by a rule, by their group; `rate` None is the shipped one."""
    rule = RULES[name]
    learn = {**rule.learn, **({} if rate is None else {"learning_rate": rate})}
    return {"learn": learn, **({} if rule.is_heeds else {"gate": dict(OPEN_GATES)})}


def variables_of(name: str, rate: float | None) -> dict[str, str]:
    """Return the same settings as variables."""
    return {f"HEED_{group.upper()}": json.dumps(values) for group, values in groups_of(name, rate).items()}


RULES: dict[str, Rule] = {
    "heed": Rule("the shipped defaults, gates closed", is_heeds=True),
    "claas": Rule(
        "frozen base teacher, newest feedback only, top-100 JSD 0.5, four steps, the optimizer kept",
        {**_PUBLISHED, "divergence": "jsd", "jsd_alpha": 0.5, "top_k": 100, "has_tail": False, "is_clip": 5.0,
         "weight_decay": 0.01, "steps": 4, "hindsight_wording": "claas"},
        _FEW_STEPS, _FEW_STEPS_REAL,
    ),
    "continualcode": Rule(
        "current teacher, newest feedback only, sampled-token advantage, one step, the optimizer kept",
        {**_PUBLISHED, "teacher": "current", "divergence": "sampled_token", "steps": 1, "hindsight_wording": "sdpo"},
        _FEW_STEPS, _FEW_STEPS_REAL,
    ),
    "sft": Rule(
        "fine-tuning on what the teacher makes of the corrected answer, ten steps",
        {**ALONE, "divergence": "hard_label", "num_teacher_rollouts": 1, "steps": 10},
        (1e-3, 3e-3, 1e-2, 3e-2),
        (1e-4, 3e-4, 1e-3, 3e-3),
    ),
}  # fmt: skip
