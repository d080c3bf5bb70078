"""The engine's settings: good defaults, and refusals that name the setting."""

from pathlib import Path
from typing import Any

import pytest

from engine.config.engine import (
    AuditConfig,
    ConfigError,
    CurriculumConfig,
    EngineConfig,
    GateConfig,
    HostConfig,
    LearnConfig,
    SleepConfig,
    VersionConfig,
)


def test_the_learning_settings_survive_the_way_into_the_worker() -> None:
    """to_dict holds plain values only and from_dict gives back the same record."""
    learn = LearnConfig(top_k=20, divergence="jsd", seed=7)
    plain = learn.to_dict()
    assert all(isinstance(v, int | float | str | bool | list | type(None)) for v in plain.values())
    assert LearnConfig.from_dict(plain) == learn


def test_the_learning_rate_of_the_request_wins() -> None:
    """A request-level override replaces the default and nothing else."""
    merged = LearnConfig().merged({"learning_rate": 1e-4})
    assert merged.learning_rate == 1e-4
    assert merged.learning_rate_at(0, has_parent=True) == 1e-4
    assert merged.steps == LearnConfig().steps
    assert merged.merged({"steps": 3}).parent_rate == 1.0


def test_an_update_with_a_parent_takes_a_smaller_rate() -> None:
    """Times parent_rate, in every step."""
    learn = LearnConfig(learning_rate=0.1, parent_rate=0.5, steps=2)
    assert [learn.learning_rate_at(step, has_parent=False) for step in (0, 1)] == [0.1, 0.05]
    assert [learn.learning_rate_at(step, has_parent=True) for step in (0, 1)] == [0.05, 0.025]


def test_no_override_changes_nothing() -> None:
    """None and {} are the defaults."""
    assert LearnConfig().merged(None) == LearnConfig().merged({}) == LearnConfig()


@pytest.mark.parametrize(
    "values",
    [
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"learning_rate": "fast"},
        {"learning_rate": True},
        {"steps": 0},
        {"steps": 2.5},
        {"divergence": "euclid"},
        {"teacher": "me"},
        {"jsd_alpha": 1.0},
        {"top_k": 1},
        {"adam_betas": ["a", "b"]},
        {"adam_betas": [0.9, 1.0]},
        {"target_modules": [["q_proj"]]},
        {"seed": 1 << 63},
        {"max_grad_norm": 10**400},
        {"num_anchors": 10**9},
        {"num_counterfactuals": -1},
        {"max_rollout_tokens": 0},
        {"rollout_temperature": -1.0},
        {"top_k": "all"},
        {"is_clip": 0.5},
        {"max_grad_norm": 0.0},
        {"anchor_weight": -1.0},
        {"adam_betas": [0.9]},
        {"target_modules": ["lm_head"]},
        {"micro_batch_tokens": 1},
        {"no_such_setting": 1},
    ],
)
def test_a_learning_setting_that_cannot_work_is_refused_by_name(values: dict[str, Any]) -> None:
    """The message names the setting, so that the sender can correct it."""
    with pytest.raises(ConfigError, match=next(iter(values))):
        LearnConfig().merged(values)


@pytest.mark.parametrize(
    "values",
    [
        {"max_num_seqs": 0},
        {"block_size": 24},
        {"max_lora_rank": 24},
        {"max_cpu_loras": 4},
        {"gpu_memory_utilization": 1.5},
        {"watch_interval_s": 60.0},
    ],
)
def test_a_host_setting_that_vllm_would_refuse_is_refused_before_it_starts(values: dict[str, Any]) -> None:
    """Loading a large model only to be told would cost minutes."""
    with pytest.raises(ConfigError, match=next(iter(values))):
        HostConfig(**values)


def test_a_rank_above_the_slots_is_refused() -> None:
    """vLLM pads slots to max_lora_rank; a larger adapter could be trained but never served."""
    with pytest.raises(ConfigError, match="lora_rank"):
        EngineConfig(model="m", data_dir=Path(), learn=LearnConfig(lora_rank=64))


def test_an_engine_without_a_model_is_refused() -> None:
    """An empty name would otherwise become the current folder."""
    with pytest.raises(ConfigError, match="model"):
        EngineConfig(model="", data_dir=Path())


def test_an_external_teacher_needs_its_folder() -> None:
    """Whether the settings or a request ask for it."""
    with pytest.raises(ConfigError, match=r"host\.teacher_model"):
        EngineConfig(model="m", data_dir=Path(), learn=LearnConfig(teacher="external"))
    without = EngineConfig(model="m", data_dir=Path())
    with pytest.raises(ConfigError, match=r"host\.teacher_model"):
        without.check_teacher(LearnConfig().merged({"teacher": "external"}))
    EngineConfig(model="m", data_dir=Path(), host=HostConfig(teacher_model="t"), learn=LearnConfig(teacher="external"))


def test_the_defaults_are_valid() -> None:
    """Every group accepts its own defaults."""
    assert EngineConfig(model="m", data_dir=Path()).gate == GateConfig()


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
        {"min_gap": 0.3},
        {"num_gold": -1},
    ],
)
def test_a_consolidation_that_cannot_be_is_refused_by_its_name(values: dict[str, Any]) -> None:
    """Nothing that would never run, or never end, or train on nothing."""
    with pytest.raises(ConfigError, match=r"^sleep\.(full_gap|" + next(iter(values)) + ")"):
        SleepConfig(**values)


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
    """And numbers that would write nothing, or never end."""
    with pytest.raises(ConfigError, match=rf"curriculum\.{next(iter(values))}"):
        CurriculumConfig(**values)


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
    """And an audit of nothing."""
    with pytest.raises(ConfigError, match=rf"audit\.{name}"):
        AuditConfig(**values)


def test_a_key_is_not_shown() -> None:
    """Settings are printed where something is wrong with them."""
    assert "secret" not in repr(CurriculumConfig(api_key="a secret key"))


@pytest.mark.parametrize(
    "values",
    [{"keep": 1}, {"keep": 0}, {"probation_answers": -1}, {"probation_complaints": 0}, {"max_import_bytes": 0}],
)
def test_something_is_always_left_to_go_back_to(values: dict[str, int]) -> None:
    """The active version and the one below it are the least that is kept."""
    with pytest.raises(ConfigError, match=rf"versions\.{next(iter(values))}"):
        VersionConfig(**values)
    assert VersionConfig().keep == 5
