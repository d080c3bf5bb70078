"""bot.http.claas.bodies: CLaaS's training settings in heed's terms."""

from typing import Any

import pytest

from bot.http.claas.bodies import TrainingBody
from engine.config import LearnConfig


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, {}),
        ({"alpha": 0.5}, {"divergence": "jsd", "jsd_alpha": 0.5}),
        ({"alpha": 0}, {"divergence": "forward_kl"}),
        ({"alpha": 1}, {"divergence": "sampled_token"}),
        ({"is_clip": 5, "max_grad_norm": 1.0}, {"is_clip": 5, "max_grad_norm": 1.0}),
        ({"kl_reg_weight": 0.1, "steps_per_batch": 4}, {"kl_to_base_weight": 0.1, "steps": 4}),
        ({"teacher_top_k": 100, "teacher_mode": "self", "feedback_repetitions": 2}, {}),
        ({"learning_rate": None, "num_anchors": 3}, {"num_anchors": 3}),
    ],
)
def test_what_means_the_same_is_mapped(given: dict[str, Any], meant: dict[str, Any]) -> None:
    """Settings with the same meaning are mapped to values that heed's learning settings accept."""
    settings = TrainingBody.model_validate(given).settings()
    assert settings == meant
    LearnConfig().merged(settings)


def test_what_has_no_use_is_named_with_the_reason() -> None:
    """Unused settings are named with the reason, if the client sent them."""
    ignored = TrainingBody.model_validate({"teacher_top_k": 20, "alpha": 0.5}).ignored()
    assert list(ignored) == ["teacher_top_k"]
    assert "vocabulary" in ignored["teacher_top_k"]
