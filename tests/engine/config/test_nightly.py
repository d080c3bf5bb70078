"""engine.config.nightly: settings of consolidations, better answers and audits that cannot work."""

from typing import Any

import pytest

from engine.config import AuditConfig, BetterAnswersConfig, ConfigError, ConsolidationConfig


@pytest.mark.parametrize(
    "values",
    [
        {"window": "2-6"},
        {"window": "02:00-02:00"},
        {"min_new": 0},
        {"max_failures": 0},
        {"num_lessons": 0},
        {"max_weak": -1},
        {"idle_s": -1.0},
        {"cooldown_s": float("nan")},
        {"failure_age_s": float("inf")},
        {"new_share": 1.1},
        {"weak_weight": -0.1},
        {"look_every_s": 0.0},
        {"passes": 0.0},
        {"max_steps": 0},
        {"max_steps": 1001},
        {"min_gap": 0.3},
        {"num_gold": -1},
    ],
)
def test_a_consolidation_that_cannot_be_is_refused_by_its_name(values: dict[str, Any]) -> None:
    """Settings with which a consolidation would never run, never end or train on nothing are refused."""
    with pytest.raises(ConfigError, match=r"^sleep\.(full_gap|" + next(iter(values)) + ")"):
        ConsolidationConfig(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"url": "teacher.example/v1", "model": "m"},
        {"model": "", "url": "https://teacher.example/v1"},
        {"max_answers": 0},
        {"max_failures": 0},
        {"num_graded": 0},
        {"weight": 1.5},
        {"gold_preserved": -0.1},
        {"cooldown_s": float("nan")},
        {"timeout_s": 0.0},
        {"max_reply_bytes": 0},
    ],
)
def test_a_teacher_that_cannot_be_asked_is_refused_by_its_name(values: dict[str, Any]) -> None:
    """An endpoint without an address or a model, and numbers that would write nothing or never end, are refused."""
    with pytest.raises(ConfigError, match=rf"curriculum\.{next(iter(values))}"):
        BetterAnswersConfig(**values)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"min_answers": 0}, "min_answers"),
        ({"every_versions": 0}, "every_versions"),
        ({"num_rewritten": -1}, "num_rewritten"),
        ({"warn_drift": 3.0}, "critical_drift"),
        ({"warn_entropy": 0.5}, "critical_entropy"),
        ({"warn_length": 0.5}, "warn_length"),
        ({"critical_rouge": 0.5}, "critical_rouge"),
    ],
)
def test_a_critical_line_before_a_warning_is_refused(values: dict[str, Any], name: str) -> None:
    """A critical limit that is reached before its warning is refused, and so is an audit of nothing."""
    with pytest.raises(ConfigError, match=rf"audit\.{name}"):
        AuditConfig(**values)


def test_a_key_is_not_shown() -> None:
    """Settings are printed when one is wrong, so the key is left out."""
    assert "secret" not in repr(BetterAnswersConfig(api_key="a secret key"))
