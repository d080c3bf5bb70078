"""The calibration of a running model: a few rates are tried, the best is kept, and the gates are set around it."""

from collections.abc import Callable
from dataclasses import replace

from engine.calibration import choices, record
from engine.calibration.record import Calibration
from engine.calibration.trials import PLACEBOS, WISHES, Trial, Trials
from engine.config import EngineConfig

Progress = Callable[[str], None]
RATE_FACTORS = (0.5, 1.0, 2.0)  # of the estimated rate
_NUM_TRIED = 3  # wishes at every rate; the others at the chosen one only


class Calibrator:
    """Calibrates the model that runs."""

    def __init__(self, trials: Trials, config: EngineConfig, before: Calibration) -> None:
        """`before` is the estimate, or the calibration that is replaced."""
        self._trials = trials
        self._learn = config.learn
        self._before = before

    async def run(self, progress: Progress) -> Calibration:
        """Measure and return the calibration; keeps nothing. Raises TrainerError, EngineRestarting."""
        first = self._before.learn.get("learning_rate", self._learn.learning_rate)
        tried: dict[float, list[Trial]] = {float(f"{first * factor:.2g}"): [] for factor in RATE_FACTORS}
        for rate, trials in tried.items():
            for wish in WISHES[:_NUM_TRIED]:
                trials.append(await self._trials.give(wish, replace(self._learn, learning_rate=rate)))
                progress(f"rate {rate:g}, {wish!r}: {trials[-1].closed:.0%} learned, neutral {trials[-1].neutral:.3f}")
        rate = choices.best_rate(tried)
        progress(f"the rate is {rate:g}")
        learn = replace(self._learn, learning_rate=rate)
        good = [*tried[rate], *[await self._trials.give(wish, learn) for wish in WISHES[_NUM_TRIED:]]]
        placebo = [await self._trials.give(text, learn) for text in PLACEBOS]
        return replace(
            self._before,
            measured_with=record.settings_hash(self._learn),
            is_measured=True,
            learn=self._before.learn | {"learning_rate": rate},
            gate=choices.bounds(good),
            figures=choices.summary(tried, good, placebo),
        )
