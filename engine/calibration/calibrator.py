"""The calibration of a running model: a few rates are tried, the best is kept, and the gates are set around it."""

from collections.abc import Callable
from dataclasses import replace

from engine.calibration import choices
from engine.calibration.record import Calibration
from engine.calibration.trials import PLACEBOS, WISHES, GivesTrials, Trial
from engine.config import EngineConfig

Progress = Callable[[str], None]
FIRST_FACTORS = (0.5, 1.0)  # of the estimated rate
MAX_RATES = 4
_NUM_TRIED = 3  # wishes at every rate; the others at the chosen one only


class Calibrator:
    """Calibrates the model that runs."""

    def __init__(self, trials: GivesTrials, config: EngineConfig, before: Calibration) -> None:
        """`before` is the estimate, or the calibration that is replaced."""
        self._trials = trials
        self._learn = config.learn
        self._before = before

    async def run(self, progress: Progress) -> Calibration:
        """Measure and return the calibration; keeps nothing. Raises TrainerError, EngineRestarting."""
        first = self._before.learn.get("learning_rate", self._learn.learning_rate)
        tried = {rate: await self._at(rate, progress) for rate in (_rounded(first * f) for f in FIRST_FACTORS)}
        while len(tried) < MAX_RATES and (further := choices.beyond(tried)) is not None:
            rate = _rounded(further)
            tried[rate] = await self._at(rate, progress)
        rate = choices.best_rate(tried)
        progress(f"the rate is {rate:g}")
        learn = replace(self._learn, learning_rate=rate)
        good = [*tried[rate], *[await self._trials.give(wish, learn) for wish in WISHES[_NUM_TRIED:]]]
        placebo = [await self._trials.give(text, learn) for text in PLACEBOS]
        return replace(
            self._before,
            is_measured=True,
            learn=self._before.learn | {"learning_rate": rate},
            gate=choices.bounds(good),
            figures=choices.summary(tried, good, placebo),
        )

    async def _at(self, rate: float, progress: Progress) -> list[Trial]:
        """Give some of the wishes at one rate."""
        trials = []
        for wish in WISHES[:_NUM_TRIED]:
            trials.append(await self._trials.give(wish, replace(self._learn, learning_rate=rate)))
            progress(f"rate {rate:g}, {wish!r}: {choices.told(trials[-1])}")
        return trials


def _rounded(rate: float) -> float:
    return float(f"{rate:.2g}")
