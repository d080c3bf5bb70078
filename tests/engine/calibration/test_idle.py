"""engine.calibration.idle: an unknown model is measured by itself, piece by piece."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.calibration import record
from engine.calibration.idle import MAX_FAILURES, IdleCalibration
from engine.calibration.record import Calibration
from engine.calibration.trials import Trials
from engine.config import ConsolidationConfig, EngineConfig
from engine.errors import TrainerError
from tests.engine.calibration.test_calibrator import FIRST, World
from tests.engine.live import Live
from tests.patience import until

MODEL = "f" * 16


class Idle:
    """A calibration in idle time over trials whose result depends on the rate alone."""

    def __init__(self, data_dir: Path, **sleep: Any) -> None:
        self.world = World()
        self.is_idle = True
        self.num_fits = 0
        self.config = EngineConfig("m", data_dir, sleep=ConsolidationConfig(**{"look_every_s": 0.05, **sleep}))
        learn = self.config.learn
        estimated = {"learning_rate": FIRST, "lora_rank": 8}
        self.estimate = Calibration("m", MODEL, record.settings_hash(learn), False, estimated)
        self.calibration = self.again(self.estimate)

    def again(self, before: Calibration) -> IdleCalibration:
        """Return what the next start would have."""
        return IdleCalibration(self.world, before.applied(self.config), before, lambda: self.is_idle, self._fit)

    async def _fit(self, progress: Callable[[str], None]) -> None:
        self.num_fits += 1
        progress("fitted")


async def test_it_measures_one_trial_at_a_time_and_keeps_the_result(tmp_path: Path) -> None:
    """Each piece is one trial; no trial is given twice; the calibration is found at the next start."""
    idle = Idle(tmp_path)
    for number in range(4):
        assert len(idle.world.given) == max(0, number - 1)
        assert f"{max(0, number - 1)} trial" in idle.calibration.progress
        await idle.calibration.run("")
    while idle.calibration.progress:
        await idle.calibration.run("")
    assert idle.num_fits == 1
    assert len(idle.world.given) == len(set(idle.world.given))
    found = record.find(idle.config, MODEL)
    assert found is not None
    assert (found.is_measured, found.learn["learning_rate"]) == (True, 2 * FIRST)
    assert [path.name for path in (tmp_path / "calibration").iterdir()] == [found.file_name]


async def test_a_restart_goes_on_with_the_trials_that_are_done(tmp_path: Path) -> None:
    """They are read from their file; one that cannot be read is given again."""
    idle = Idle(tmp_path)
    for _ in range(3):
        await idle.calibration.run("")
    later = idle.again(idle.estimate)
    assert "2 trials so far" in later.progress
    await later.run("")
    assert len(idle.world.given) == len(set(idle.world.given)) == 3
    (file,) = (tmp_path / "calibration").iterdir()
    file.write_text(file.read_text().replace("value_change", "norm"))  # as an earlier heed has stored it
    assert "3 trials so far" in idle.again(idle.estimate).progress
    file.write_text("[")
    assert "0 trials so far" in idle.again(idle.estimate).progress


async def test_nothing_is_measured_while_people_talk(tmp_path: Path) -> None:
    """Neither is a trial asked for, nor does one begin that was asked for before."""
    idle = Idle(tmp_path)
    idle.is_idle = False
    submitted = list[str]()
    watching = asyncio.create_task(idle.calibration.watch(submitted.append))
    await asyncio.sleep(0.15)
    await idle.calibration.run("")
    assert (submitted, idle.num_fits) == ([], 0)
    idle.is_idle = True
    await until(lambda: bool(submitted))
    watching.cancel()


async def test_what_is_known_or_switched_off_is_left_alone(tmp_path: Path) -> None:
    """A measured model has nothing to do, and an operator may want to choose the time."""
    for calibration in (
        Idle(tmp_path, calibrates=False).calibration,
        (idle := Idle(tmp_path)).again(replace(idle.estimate, is_measured=True)),
    ):
        assert calibration.progress == ""
        await calibration.watch(pytest.fail)  # ends at once


async def test_the_operator_may_measure_at_once(tmp_path: Path) -> None:
    """Everything anew, with a line for each trial; the trials of idle time are gone, and no other begins."""
    idle = Idle(tmp_path)
    for _ in range(3):
        await idle.calibration.run("")
    lines = list[str]()
    idle.calibration.end()
    path = await idle.calibration.at_once(lines.append)
    assert [path] == list((tmp_path / "calibration").iterdir())
    assert lines[0] == "fitted"
    assert idle.calibration.progress == ""
    num_given = len(idle.world.given)
    await idle.calibration.run("")
    assert len(idle.world.given) == num_given


async def test_a_model_that_cannot_be_measured_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few failures it waits for the next start."""
    idle = Idle(tmp_path)
    await idle.calibration.run("")

    async def fails(*_: Any) -> None:
        raise TrainerError("no room")

    monkeypatch.setattr(idle.world, "give", fails)
    for _ in range(MAX_FAILURES):
        assert idle.calibration.progress
        with pytest.raises(TrainerError):
            await idle.calibration.run("")
    assert idle.calibration.progress == ""


@pytest.mark.asyncio(loop_scope="session")
async def test_a_lesson_breaks_a_real_trial_off_and_it_is_given_again(live: Live, tmp_path: Path) -> None:
    """The real engine learns while a trial runs; afterwards the trial runs to its end, and is kept."""
    await live.alone()
    engine, config = live.engine, replace(live.engine.config, data_dir=tmp_path)
    trials = Trials(live.parts.context, live.parts.candidates)

    async def fit(_: Callable[[str], None]) -> None:
        pass

    estimate = replace(engine.calibration, is_measured=False)
    calibration = IdleCalibration(trials, config, estimate, lambda: True, fit)
    await calibration.run("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engine._scheduler._kinds, "calibrate", calibration.run)
        user_id = await live.person()
        answer = await live.ask(user_id, "Tell me about the koala")
        engine._scheduler.submit_task("", "calibrate")
        await asyncio.sleep(0.5)
        outcome = await live.teach(answer, "no emoji please")
        assert outcome.status == "learned", outcome
        await engine.settled()
    assert "1 trial so far" in calibration.progress
