"""engine.pocket.trial: candidates without a server, on the pocket model."""

from pathlib import Path

import pytest
import torch

from engine.config import GateConfig, LearnConfig
from engine.pocket import trial
from engine.pocket.trial import Bench, Correction, TrialPerson
from engine.sample import Sample

QUESTION = "Tell me about the koala"
LEARN = LearnConfig()
SAID = Correction(QUESTION, "no emoji please", seed=1)


@pytest.fixture(scope="module")
def bench(pocket: Path) -> Bench:
    """The pocket model."""
    return Bench(pocket)


@pytest.fixture(scope="module")
def samples(bench: Bench) -> list[Sample]:
    """Return the update of a first correction."""
    return trial.lesson(bench, TrialPerson(), SAID)


def test_a_lesson_has_what_the_learner_gives_an_update(bench: Bench, samples: list[Sample]) -> None:
    """The samples are a correction, rollouts, anchors and later regression samples, the same each time."""
    kinds = [s.kind for s in samples]
    assert kinds.count("correction") == 1
    assert kinds.count("counterfactual") == LEARN.num_counterfactuals + LEARN.num_teacher_rollouts
    assert kinds.count("anchor") == LEARN.num_anchors
    assert trial.lesson(bench, TrialPerson(), SAID) == samples
    (answer,) = bench.answers(None, [[{"role": "user", "content": "What is paella?"}]])
    later = trial.lesson(bench, TrialPerson(corrected=[answer], gold=[answer]), SAID)
    assert [s.kind for s in later if s.is_held_out] == ["earlier", "gold"]


def test_measuring_what_was_trained_gives_the_same_figures(bench: Bench, samples: list[Sample]) -> None:
    """The gates judge a candidate from elsewhere as they would have judged it at the end of its own update."""
    run = trial.train(bench, None, samples, steps=2)
    own, values = trial.verdict(run, GateConfig()), trial.values_of(run)
    again = trial.verdict(trial.measure(bench, None, samples, values), GateConfig())
    assert again.figures == pytest.approx(own.figures, rel=1e-3, abs=1e-4)


def test_a_broken_value_is_refused(bench: Bench, samples: list[Sample]) -> None:
    """A single NaN in the values is refused."""
    values = trial.values_of(trial.train(bench, None, samples, steps=1))
    broken = trial.broken(values, 0.5, float("nan"))
    assert int(torch.isnan(broken).sum()) == 1
    judged = trial.verdict(trial.measure(bench, None, samples, broken), GateConfig())
    assert judged.checks["finite"] is False


def test_supervised_steps_make_an_answer_likelier(bench: Bench) -> None:
    """After a few supervised steps the model gives the answer, and without the adapter it does not."""
    values = trial.fit(bench, None, [(QUESTION, "yes yes yes")], steps=8, rate=5e-3)
    adapter = trial.adapter_of(bench, None, values)
    assert bench.texts(adapter, [QUESTION]) == ["yes yes yes"]
    assert bench.texts(None, [QUESTION]) != ["yes yes yes"]
