"""engine.host.gpu_plan: what fits on a card, and the table of it."""

import re
from pathlib import Path

import pytest

from engine.calibration.prior import REAL_MODEL
from engine.config import EngineConfig, HostConfig, LearnConfig
from engine.errors import EngineStartError
from engine.host.architectures import Trainability
from engine.host.gpu_plan import gpu_plan, require_room, with_room
from engine.host.model_shape import ModelShape
from engine.host.sizing import LEAST_OF_GPU, MOST_OF_GPU

OPERATING = Path(__file__).resolve().parents[3] / "docs" / "OPERATING.md"
CONFIG = EngineConfig("m", Path("/data"), learn=LearnConfig().merged(REAL_MODEL))
GIB = 1 << 30


def qwen3(hidden: int, intermediate: int, layers: int, heads: int, *, is_tied: bool) -> ModelShape:
    """The shape of a model of the family: heads of 128, 8 of keys."""
    return ModelShape(layers, hidden, intermediate, heads, 8, 128, 151_936, 40_960, is_tied)


SHAPES = {
    "Qwen3-1.7B": qwen3(2048, 6144, 28, 16, is_tied=True),
    "Qwen3-4B": qwen3(2560, 9728, 36, 32, is_tied=True),
    "Qwen3-8B": qwen3(4096, 12_288, 36, 32, is_tied=False),
}


def row_of(model: str, card: int) -> str:
    """A line of the table."""
    shape = SHAPES[model]
    plan = gpu_plan(shape, CONFIG, card * GIB)
    sizes = " | ".join(f"{size / GIB:.1f}" for size in (plan.weights, plan.adapters, plan.training, plan.cache))
    return f"| {model} | {card} | {sizes} | {round(plan.cache_tokens(shape), -3):,} |"


def test_the_table_is_computed() -> None:
    """Every line in docs/OPERATING.md is this function's, for lessons with samples of 4,096 tokens."""
    assert CONFIG.learn.max_sequence_tokens == 4096
    told = re.findall(r"^\| Qwen3.*\|$", OPERATING.read_text(encoding="utf-8"), re.MULTILINE)
    pairs = (("Qwen3-1.7B", 16), ("Qwen3-4B", 24), ("Qwen3-8B", 48), ("Qwen3-8B", 80))
    assert told == [row_of(*pair) for pair in pairs]


@pytest.mark.parametrize(("model", "card"), [("Qwen3-4B", 24), ("Qwen3-8B", 80)])
def test_a_card_has_room_for_its_model(model: str, card: int) -> None:
    """With the longest samples and, beside them, several whole conversations of as many tokens."""
    plan = gpu_plan(SHAPES[model], CONFIG, card * GIB)
    require_room(plan, SHAPES[model])
    assert plan.weights + plan.adapters + plan.training < plan.total
    assert plan.cache_tokens(SHAPES[model]) >= 4 * 4096
    assert LEAST_OF_GPU < plan.share <= MOST_OF_GPU


def test_a_card_that_is_too_small_is_refused_with_what_to_set() -> None:
    """Before vLLM is started, and with the sizes."""
    shape = SHAPES["Qwen3-8B"]
    plan = gpu_plan(shape, CONFIG, 16 * GIB)
    with pytest.raises(EngineStartError, match=r"GPU has 16384 MB.*15622 MB for its weights.*HEED_MODEL.*MAX_SEQUENCE"):
        require_room(plan, shape)


def test_a_model_without_room_to_learn_is_served() -> None:
    """With the reason for people and the remedy for the operator; one that has room, or none at all, stays as it is."""
    qwen, shape = Trainability("Qwen3"), SHAPES["Qwen3-8B"]
    stored = shape.num_weights * 2
    found = with_room(qwen, shape, CONFIG, 22 * GIB, stored)
    assert not found.can_learn
    assert re.search(r"no room to train this model: \d+ MB are missing", found.reason)
    assert "HEED_LEARN_MAX_SEQUENCE_TOKENS" in found.remedy
    for card in (16, 24, 80):
        assert with_room(qwen, shape, CONFIG, card * GIB, stored) == qwen


def test_weights_that_are_stored_quantised_stay_small() -> None:
    """A model that does not learn needs nothing for it, and its files say what its weights take."""
    shape = SHAPES["Qwen3-8B"]
    stored = shape.num_weights * 2 // 4
    plan = gpu_plan(shape, CONFIG, 16 * GIB, stored, learns=False)
    assert (plan.training, plan.adapters, plan.weights) == (0, 0, stored)
    require_room(plan, shape)


def test_what_the_operator_sets_is_kept() -> None:
    """The share of the card, whatever learning needs."""
    config = EngineConfig("m", Path("/data"), host=HostConfig(gpu_memory_utilization=0.9), learn=CONFIG.learn)
    assert gpu_plan(SHAPES["Qwen3-4B"], config, 24 * GIB).share == 0.9
