"""engine.calibration.prior: the estimate for a model that nobody has calibrated."""

import json
from pathlib import Path

import pytest

from engine.calibration import prior, record
from engine.config import EngineConfig, LearnConfig


@pytest.mark.parametrize(
    ("family", "width", "published"),
    [("llama", 4096, 3e-4), ("qwen3", 4096, 1e-3), ("llama", 2048, 1e-3), ("llama", 8192, 3e-4), ("llama", 576, 1e-3)],
)
def test_the_first_rate_is_near_the_published_one(family: str, width: int, published: float) -> None:
    """Within a factor of three, as the rule's authors found it."""
    rate = prior.first_rate({"model_type": family, "hidden_size": width})
    assert published / 3 <= rate <= published * 3


def test_a_model_of_several_parts_is_judged_by_its_text_part() -> None:
    """As Gemma 3's configuration has it."""
    whole = {"text_config": {"model_type": "llama", "hidden_size": 576}}
    assert prior.first_rate(whole) == prior.first_rate(whole["text_config"])


@pytest.mark.parametrize("settings", [{}, {"hidden_size": 1}, {"hidden_size": 10**9}])
def test_the_rate_stays_within_bounds(settings: dict[str, int]) -> None:
    """Whatever a configuration says."""
    assert 1e-5 <= prior.first_rate(settings) <= 1e-2


def test_an_estimate_says_that_it_is_one(tmp_path: Path) -> None:
    """And can be applied."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 576}))
    made = prior.estimate(tmp_path, "m", "0" * 16, LearnConfig())
    assert not made.is_measured
    assert made.applied(EngineConfig("m", tmp_path)).learn.learning_rate == made.learn["learning_rate"]


@pytest.mark.parametrize(("width", "good", "broken"), [(576, 0.003, 0.1), (256, 0.034, 0.3)])
def test_the_bound_on_each_value_follows_the_rate(tmp_path: Path, width: int, good: float, broken: float) -> None:
    """Good lessons change a value by three to four times the rate, on models of any size."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": width}))
    made = prior.estimate(tmp_path, "m", "0" * 16, LearnConfig())
    rate = made.learn["learning_rate"]
    bound = made.gate["max_value_change"]
    assert 3.5 * rate < bound < 30 * rate
    assert bound < broken
    assert good * rate / 1e-2 < bound


OWN = {  # of weights that were trained on heed's own prompts (ADR 40)
    "guidance_scale": 1.0, "reads_hindsight": True, "facts_in_message": False,
    "replacing_share": 0.4, "lora_rank": 16, "anchor_weight": 9.0, "anchor_choice": 1,
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(record.SHIPPED.glob("*.json")), ids=lambda path: path.name)
def test_a_shipped_calibration_teaches_as_the_estimate_does(path: Path) -> None:
    """But for its rate: a calibration keeps the settings it was measured with. heed's own models have their own."""
    shipped = json.loads(path.read_text())
    taught = {name: value for name, value in shipped["learn"].items() if name != "learning_rate"}
    wanted = {"smollm2": prior.REAL_MODEL, "workshop": prior.REAL_MODEL | OWN, "pocket": taught}
    assert taught == wanted[shipped["model"]]


@pytest.mark.parametrize(("width", "shows"), [(576, False), (1024, True), (4096, True)])
def test_a_wide_model_is_shown_rewritten_answers(tmp_path: Path, width: int, *, shows: bool) -> None:
    """A narrow one takes what the example is about for the wish, and finds no fact among its notes."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": width}))
    learn = prior.estimate(tmp_path, "m", "0" * 16, LearnConfig()).learn
    assert (learn["shows_rewrites"], learn["facts_in_message"]) == (shows, not shows)
