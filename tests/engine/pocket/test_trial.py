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
    trial.train(bench, None, samples[:3], steps=1)  # of another candidate, with the same slot
    run.measure_at(values)
    assert trial.verdict(run, GateConfig()).figures == pytest.approx(own.figures, rel=1e-3, abs=1e-4)


def test_a_broken_value_is_refused(bench: Bench, samples: list[Sample]) -> None:
    """A single NaN in the values is refused."""
    run = trial.train(bench, None, samples, steps=1)
    broken = trial.broken(trial.values_of(run), 0.5, float("nan"))
    assert int(torch.isnan(broken).sum()) == 1
    run.measure_at(broken)
    judged = trial.verdict(run, GateConfig())
    assert judged.checks["finite"] is False
    assert "anchor_divergence" not in judged.figures


def test_a_change_can_be_multiplied_or_put_elsewhere(bench: Bench, samples: list[Sample]) -> None:
    """Three times the change is three times as large; moved elsewhere it is as large, and not the same."""
    run = trial.train(bench, None, samples, steps=2)
    values, change = trial.values_of(run), run.value_change
    run.measure_at(run.moved_by(values, 3.0))
    assert run.value_change == pytest.approx(3 * change, rel=1e-4)
    elsewhere = run.moved_elsewhere(values, seed=1)
    assert not torch.allclose(elsewhere, values)
    run.measure_at(elsewhere)
    assert run.value_change == pytest.approx(change, rel=1e-4)


def test_the_wrong_sign_leads_away_from_the_teacher(bench: Bench, samples: list[Sample]) -> None:
    """Going up the loss leaves a larger divergence than there was, and is refused."""
    judged = trial.verdict(trial.ascend(bench, None, samples, steps=3), GateConfig())
    assert judged.figures["divergence_after"] > judged.figures["divergence_before"]
    assert judged.checks["learned"] is False


def test_another_model_brings_its_settings(pocket: Path) -> None:
    """Steps, lengths and the data type are those given, and the base model answers a question once."""
    bench = Bench(pocket, LearnConfig(max_rollout_tokens=3, num_teacher_rollouts=2, steps=1), dtype="bfloat16")
    samples = trial.lesson(bench, TrialPerson(), SAID)
    assert max(len(s.response_ids) for s in samples) == 3
    run = trial.train(bench, None, samples)
    assert run.measured.steps == 1
    (first,) = bench.base_answers([[{"role": "user", "content": QUESTION}]])
    assert bench.base_answers([[{"role": "user", "content": QUESTION}]])[0] is first
    assert bench.divergence(run.slot.export(), [QUESTION]) > 0


def test_supervised_steps_make_an_answer_likelier(bench: Bench) -> None:
    """After a few supervised steps the model gives the answer, and without the adapter it does not."""
    values = trial.fit(bench, None, [(QUESTION, "yes yes yes")], steps=8, rate=5e-3)
    adapter = trial.adapter_of(bench, None, values)
    assert bench.texts(adapter, [QUESTION]) == ["yes yes yes"]
    assert bench.texts(None, [QUESTION]) != ["yes yes yes"]
