"""bot.http.claas.bodies: CLaaS's training settings in heed's terms."""

from typing import Any

import pytest

from bot.http.claas.bodies import TrainingBody
from engine.config import LearnConfig


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, {}),
        ({"alpha": 0.3}, {"divergence": "jsd", "jsd_alpha": 0.3}),
        ({"alpha": 0}, {"divergence": "forward_kl"}),
        ({"alpha": 1}, {"divergence": "sampled_token"}),
        ({"is_clip": 6, "max_grad_norm": 0.5}, {"is_clip": 6, "max_grad_norm": 0.5}),
        ({"kl_reg_weight": 0.1, "steps_per_batch": 8}, {"kl_to_base_weight": 0.1, "steps": 40}),
        ({"learning_rate": 6e-5}, {"learning_rate": 0.004, "parent_rate": 0.33}),
        ({"learning_rate": 3.0}, {"learning_rate": 1.0, "parent_rate": 0.33}),
        ({"learning_rate": 3e-5, "alpha": 0.5, "is_clip": 5.0, "max_grad_norm": 1, "kl_reg_weight": 0.0,
          "teacher_top_k": 100, "steps_per_batch": 4, "feedback_repetitions": 1}, {}),
        ({"learning_rate": 6e-5, "heed": {"learning_rate": 0.03, "steps": 3}},
         {"learning_rate": 0.03, "parent_rate": 0.33, "steps": 3}),
        ({"learning_rate": 3e-5, "heed": {"learning_rate": 3e-5}}, {"learning_rate": 3e-5}),
        ({"teacher_top_k": 100, "teacher_mode": "self", "feedback_repetitions": 2}, {}),
        ({"learning_rate": None, "num_anchors": 3}, {"num_anchors": 3}),
    ],
)  # fmt: skip
def test_what_means_the_same_is_mapped(given: dict[str, Any], meant: dict[str, Any]) -> None:
    """Wishes are mapped to values that heed's learning settings accept, on the scale of its own calibration."""
    settings = TrainingBody.model_validate(given).settings(LearnConfig(learning_rate=0.002, steps=20))
    assert settings == pytest.approx(meant)
    LearnConfig().merged(settings)


def test_what_has_no_use_is_named_with_the_reason() -> None:
    """Unused settings are named with the reason, if the client sent them."""
    ignored = TrainingBody.model_validate({"teacher_top_k": 20, "alpha": 0.5}).ignored()
    assert list(ignored) == ["teacher_top_k"]
    assert "vocabulary" in ignored["teacher_top_k"]
