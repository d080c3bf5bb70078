"""engine.calibration.calibrator: rates are tried, one is chosen, and the gates are set around it."""

import math
from dataclasses import replace
from pathlib import Path

from engine.calibration import record
from engine.calibration.calibrator import Calibrator
from engine.calibration.record import Calibration
from engine.calibration.trials import PLACEBOS, WISHES, Trial
from engine.config import EngineConfig, LearnConfig

FIRST = 1e-3
GOOD = Trial(
    "",
    before=0.3,
    after=0.1,
    left=0.2,
    neutral=0.02,
    anchor=0.01,
    unasked=0.01,
    unasked_worst=0.1,
    value_change=0.003,
    opened=0.0,
)


class World:
    """Lessons whose result depends on the rate alone: best at twice the estimate."""

    def __init__(self) -> None:
        self.given: list[tuple[str, float]] = []

    async def give(self, feedback: str, learn: LearnConfig) -> Trial:
        """One lesson's figures."""
        self.given.append((feedback, learn.learning_rate))
        return replace(GOOD, feedback=feedback, after=0.05 + 0.05 * abs(math.log2(learn.learning_rate / (2 * FIRST))))


async def test_the_best_rate_is_kept_and_gates_are_set_around_its_lessons(tmp_path: Path) -> None:
    """Every wish is given at the chosen rate, the placebos there only; what it found is what the next start finds.

    Also where the estimate has set what a calibration depends on.
    """
    config = EngineConfig("m", tmp_path)
    estimated = {"learning_rate": FIRST, "steps": 20, "lora_rank": 8}
    estimate = Calibration("m", "f" * 16, record.settings_hash(config.learn), False, estimated)
    world, lines = World(), list[str]()
    found = await Calibrator(world, estimate.applied(config), estimate).run(lines.append)
    assert found.is_measured
    assert found.learn == estimated | {"learning_rate": 2 * FIRST}
    assert {rate for _, rate in world.given} == {FIRST / 2, FIRST, 2 * FIRST, 4 * FIRST}
    assert [text for text, rate in world.given if rate == 2 * FIRST] == [*WISHES, *PLACEBOS]
    assert found.gate["max_divergence_left"] == 0.6
    assert found.figures["rates"].keys() == {"0.0005", "0.001", "0.002", "0.004"}
    assert any("0.002" in line for line in lines)
    record.keep(found, tmp_path)
    assert record.find(config, "f" * 16) == found
