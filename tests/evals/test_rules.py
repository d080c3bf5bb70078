"""Other systems' learning rules as settings of the trainer."""

import json
from typing import get_args

import pytest

from engine.calibration.record import SHIPPED
from engine.config import GateConfig, HostConfig, LearnConfig
from engine.config.learning import Wording
from engine.gates.candidate import Measurements, judge
from engine.prompts.hindsight import WORDINGS
from evals.rules import OPEN_GATES, RULES


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_a_setting_the_trainer_takes(name: str) -> None:
    """At each of its rates."""
    for rate in RULES[name].rates or (LearnConfig.learning_rate,):
        learn = LearnConfig.from_dict(LearnConfig().to_dict() | dict(RULES[name].learn) | {"learning_rate": rate})
        assert learn.learning_rate == rate


def test_other_rules_have_their_own_words_and_nothing_of_heeds_calibration() -> None:
    """Neither heed's form of the feedback, nor weights that a calibration adds where no one has set any."""
    measured = json.loads(
        next(path for path in SHIPPED.glob("*.json") if "smollm2" in path.read_text().lower()).read_text()
    )
    for name, wording in (("claas", "claas"), ("continualcode", "sdpo"), ("sft", "heed")):
        learn = LearnConfig().merged(dict(RULES[name].learn))
        assert (learn.hindsight_wording, learn.reads_hindsight, learn.reads_own_note) == (wording, True, False)
        left = set(measured["learn"]) - set(RULES[name].learn)
        assert left <= {"learning_rate", "steps", "teacher_temperature", "max_rollout_tokens", "anchor_weight",
                        "micro_batch_tokens"}  # fmt: skip
    assert set(get_args(Wording)) == set(WORDINGS)


def test_the_open_gates_let_everything_finite_through() -> None:
    """A lesson that taught nothing, went too far and says the same everywhere is accepted, and refused by default."""
    worst = Measurements(
        True, 1e6, 1, divergence_before=1.0, divergence_after=2.0, anchor_divergence=99.0, margin_before=1.0,
        margin_after=-9.0, earlier_drop=6.0, gold_drop=50.0, unasked=9.0, unasked_worst=9.0, entropy_ratio=0.0,
        self_rouge=1.0, drift=50.0,
    )  # fmt: skip
    assert judge(worst, GateConfig(**OPEN_GATES)).is_accepted  # type: ignore[arg-type]
    assert sum(not passed for passed in judge(worst, GateConfig()).checks.values()) >= 9


def test_published_rules_are_run_as_they_were_published() -> None:
    """Steps, adapter and loss of each; what heed adds to a lesson is off."""
    claas, coding = (LearnConfig().merged(dict(RULES[name].learn)) for name in ("claas", "continualcode"))
    assert (claas.steps, claas.teacher, claas.divergence, claas.jsd_alpha) == (4, "base", "jsd", 0.5)
    assert (claas.top_k, claas.has_tail, claas.is_clip, claas.weight_decay) == (100, False, 5.0, 0.01)
    assert (coding.steps, coding.teacher, coding.divergence) == (1, "current", "sampled_token")
    for learn in (claas, coding):
        assert (learn.lora_rank, learn.lora_alpha, learn.keeps_optimizer, learn.reads_notes) == (32, 64, True, False)
        assert learn.num_anchors == learn.num_counterfactuals == learn.num_teacher_rollouts == 0
        assert HostConfig().max_lora_rank >= learn.lora_rank  # every slot of the server takes it
    assert [name for name, rule in RULES.items() if rule.is_heeds] == ["heed"]
