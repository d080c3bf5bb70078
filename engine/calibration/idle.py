"""Calibration while no one talks: an unknown model is measured by itself, one trial at a time.

Owns when a trial is given and the file of those that are done; `engine.calibration.calibrator` decides which are
needed. Invariants: a trial begins only while heed is idle and behind every lesson and task; one that a lesson breaks
off is given again later; what was measured is kept, also over a restart; the calibration holds from the next start.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.calibration import record
from engine.calibration.calibrator import Calibrator
from engine.calibration.record import Calibration
from engine.calibration.trials import GivesTrials, Trial
from engine.config import EngineConfig, LearnConfig
from storage.files import atomic

logger = logging.getLogger(__name__)

MAX_FAILURES = 3  # of trials, after which the next start tries again
TASK_OWNER = ""  # the scheduler's tasks are people's; this one is no person's
Progress = Callable[[str], None]
Fit = Callable[[Progress], Awaitable[object]]


class _TrialGiven(Exception):
    """One new trial was given, which is enough for now."""


class KeptTrials:
    """Trials that are given once: those that are done are read from their file, and one new one is given."""

    def __init__(self, trials: GivesTrials, path: Path) -> None:
        """Read the trials that are done. Blocking."""
        self._trials = trials
        self._path = path
        self._done = _read(path)

    @property
    def num_done(self) -> int:
        """The number of trials that are done."""
        return len(self._done)

    async def give(self, feedback: str, learn: LearnConfig) -> Trial:
        """Return a trial that is done. Otherwise give it, keep it and raise _TrialGiven."""
        key = _key(feedback, learn)
        if key in self._done:
            return self._done[key]
        self._done[key] = await self._trials.give(feedback, learn)
        await asyncio.to_thread(self._keep)
        raise _TrialGiven

    def drop(self) -> None:
        """Forget them all, once the calibration is kept. Blocking."""
        self._path.unlink(missing_ok=True)

    def _keep(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        values = {key: asdict(trial) for key, trial in self._done.items()}
        atomic.write_file(self._path, json.dumps(values, indent=1).encode())


class IdleCalibration:
    """Measures the model that runs, a trial whenever heed has been idle for a while."""

    def __init__(
        self, trials: GivesTrials, config: EngineConfig, before: Calibration, is_idle: Callable[[], bool], fit: Fit
    ) -> None:
        """`before` is the estimate, `fit` makes and keeps the probe that reads reactions. Blocking: a small file."""
        self._config = config
        self._before = before
        self._is_idle = is_idle
        self._fit = fit
        self._given = trials
        self._trials = KeptTrials(trials, record.folder_of(config.data_dir) / f"{before.file_name}.trials")
        self._is_fitted = self._trials.num_done > 0
        self._num_failures = 0
        self._is_over = before.is_measured or not config.sleep.calibrates

    @property
    def progress(self) -> str:
        """How far it is, as a sentence; empty if there is nothing to do."""
        if self._is_over:
            return ""
        num_done = self._trials.num_done
        return f"heed measures it by itself while no one talks: {num_done} trial{'s' * (num_done != 1)} so far."

    def end(self) -> None:
        """Begin nothing more."""
        self._is_over = True

    async def at_once(self, progress: Progress) -> Path:
        """Measure everything now, anew. Return the calibration's file. Call `end` before."""
        await self._fit(progress)
        return await self._kept(await Calibrator(self._given, self._config, self._before).run(progress))

    async def watch(self, submit: Callable[[str], None]) -> None:
        """Submit the next trial whenever heed is idle, until all are done or too many failed."""
        while not self._is_over:
            await asyncio.sleep(self._config.sleep.look_every_s)
            if self._is_idle() and not self._is_over:
                submit(TASK_OWNER)

    async def run(self, _owner: str) -> None:
        """Fit the probe, give one trial, or finish, unless people talk again. May be cancelled at any time."""
        if self._is_over or not self._is_idle():
            return
        try:
            await self._next_piece()
        except Exception:
            self._num_failures += 1
            self._is_over = self._num_failures >= MAX_FAILURES
            raise

    async def _next_piece(self) -> None:
        if not self._is_fitted:
            logger.info("nothing is known of this model: it is measured while no one talks")
            await self._fit(logger.info)
            self._is_fitted = True
            return
        try:
            made = await Calibrator(self._trials, self._config, self._before).run(logger.debug)
        except _TrialGiven:
            logger.info("calibration: %d trials are done", self._trials.num_done)
            return
        self.end()
        path = await self._kept(made)
        logger.info("calibrated by itself: %s holds from the next start", path.name)

    async def _kept(self, made: Calibration) -> Path:
        path = await asyncio.to_thread(record.keep, made, self._config.data_dir)
        await asyncio.to_thread(self._trials.drop)
        return path


def _key(feedback: str, learn: LearnConfig) -> str:
    settings = json.dumps([feedback, learn.to_dict()], sort_keys=True)
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, Trial]:
    """Return the trials in a file; one that cannot be read counts as none, and they are given again."""
    try:
        return {key: _trial(values) for key, values in json.loads(path.read_text(encoding="utf-8")).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        logger.warning("the trials in %s cannot be read and are given again: %s", path.name, error)
        return {}


def _trial(values: dict[str, Any]) -> Trial:
    """Return a stored trial. Raises TypeError if it is none; `norm` is an earlier name of `value_change`."""
    return Trial(**{"value_change" if name == "norm" else name: value for name, value in values.items()})
