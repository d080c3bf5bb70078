"""engine.config.learning: overrides of a request, learning rates, and refusals that name the setting."""

from dataclasses import replace
from typing import Any

import pytest

from engine.config import ConfigError, LearnConfig, VersionConfig
from engine.config.learning import FIRST_BATCH, MAX_STEPS


def test_the_learning_settings_survive_the_way_into_the_worker() -> None:
    """`to_dict` holds plain values only, and `from_dict` gives back the same record."""
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
    """The learning rate of every step is multiplied by parent_rate."""
    learn = LearnConfig(learning_rate=0.1, parent_rate=0.5, steps=2)
    assert [learn.learning_rate_at(step, has_parent=False) for step in (0, 1)] == [0.1, 0.05]
    assert [learn.learning_rate_at(step, has_parent=True) for step in (0, 1)] == [0.05, 0.025]


def test_a_lesson_about_an_agents_work_takes_more_steps_than_one_about_a_chat_and_a_smaller_rate_later() -> None:
    """As many answers of the teacher, and the first lesson's rate; never more steps than one update may have."""
    chat = LearnConfig(steps=20, num_teacher_rollouts=12, work_steps=3, parent_rate=0.5, work_rate=0.6)
    work = chat.at_work()
    assert (work.steps, work.num_teacher_rollouts) == (60, 12)
    assert work.learning_rate_at(0, has_parent=False) == chat.learning_rate_at(0, has_parent=False)
    assert work.parent_rate == pytest.approx(0.3)
    assert replace(chat, steps=MAX_STEPS).at_work().steps == MAX_STEPS
    first = work.first_at_work()
    assert first.steps == work.work_first_steps < chat.steps
    assert first.parent_rate == pytest.approx(chat.parent_rate)
    sizes = [replace(work, mini_batch_samples=size).first_at_work().mini_batch_samples for size in (8, 2)]
    assert sizes == [FIRST_BATCH, 2]


def test_no_override_changes_nothing() -> None:
    """Without overrides, None or an empty dictionary, the settings stay the defaults."""
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
        {"anchor_choice": 0},
        {"num_counterfactuals": -1},
        {"max_rollout_tokens": 0},
        {"rollout_quantile": 1.5},
        {"longest_rollout_tokens": 0},
        {"lesson_rollout_tokens": 0},
        {"rollout_temperature": -1.0},
        {"top_k": "all"},
        {"is_clip": 0.5},
        {"max_grad_norm": 0.0},
        {"anchor_weight": -1.0},
        {"adam_betas": [0.9]},
        {"target_modules": ["lm_head"]},
        {"micro_batch_tokens": 1},
        {"no_such_setting": 1},
        {"reads_hindsight": False, "reads_own_note": False},
    ],
)
def test_a_learning_setting_that_cannot_work_is_refused_by_name(values: dict[str, Any]) -> None:
    """The message names the setting, so that the sender can correct it."""
    with pytest.raises(ConfigError, match=next(iter(values))):
        LearnConfig.from_dict(LearnConfig().to_dict() | values)


@pytest.mark.parametrize("name", ["rollout_quantile", "rollout_temperature", "longest_rollout_tokens"])
def test_a_request_cannot_set_what_its_update_shares_with_others(name: str) -> None:
    """It is refused by name, also with the value that holds."""
    with pytest.raises(ConfigError, match=f"{name} holds for every update"):
        LearnConfig().merged({name: getattr(LearnConfig(), name)})


@pytest.mark.parametrize(
    "values",
    [{"keep": 1}, {"keep": 0}, {"probation_answers": -1}, {"probation_complaints": 0}, {"max_import_bytes": 0}],
)
def test_something_is_always_left_to_go_back_to(values: dict[str, int]) -> None:
    """At least the active version and the one below it are kept."""
    with pytest.raises(ConfigError, match=rf"versions\.{next(iter(values))}"):
        VersionConfig(**values)
    assert VersionConfig().keep == 5
