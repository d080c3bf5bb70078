"""engine.training.scoring: log-probabilities without training."""

import math
from pathlib import Path

import pytest

from engine.training import batching
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.scoring import score_samples
from tests.engine.updates_of import correction_with_company, run_update, sample


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


def test_one_record_per_sample_one_value_per_response_token(model: LeanModel) -> None:
    """Scores come in the order of the samples, which may have any lengths."""
    samples = [sample(seed=i, length=20 - 4 * i) for i in range(4)]
    scores = score_samples(model, samples, None)
    assert [len(s["student_logprobs"]) for s in scores] == [20, 16, 12, 8]
    assert all(value <= 0 for s in scores for value in s["teacher_logprobs"])


def test_together_or_alone_makes_no_difference(model: LeanModel) -> None:
    """A sample scored alone and in a batch has the same score."""
    samples = correction_with_company()
    together = score_samples(model, samples, None)
    for one, score in zip(samples, together, strict=True):
        (alone,) = score_samples(model, [one], None)
        assert alone["student_logprobs"] == pytest.approx(score["student_logprobs"], abs=1e-4)


def test_the_teacher_is_the_base_and_the_student_the_adapter(model: LeanModel) -> None:
    """With the same context they differ by the adapter; a "current" teacher is the adapter too."""
    adapter = run_update(model, correction_with_company()).slot.export()
    same = sample(teacher_ids=sample().student_ids)
    (against_base,) = score_samples(model, [same], adapter)
    (against_itself,) = score_samples(model, [sample(teacher_ids=same.student_ids, teacher="current")], adapter)
    (base_alone,) = score_samples(model, [same], None)
    assert against_base["teacher_logprobs"] == pytest.approx(base_alone["student_logprobs"], abs=1e-5)
    assert against_base["divergence"] > 0.01
    assert against_itself["divergence"] == pytest.approx(0.0, abs=1e-6)


def test_entropies_are_those_of_the_distributions(model: LeanModel) -> None:
    """An entropy lies between 0 and log of the vocabulary, and is the same in the same context."""
    (score,) = score_samples(model, [sample(teacher_ids=sample().student_ids)], None)
    assert 0 < score["student_entropy"] < math.log(model.vocab_size)
    assert score["student_entropy"] == pytest.approx(score["teacher_entropy"])


def test_a_different_context_is_seen_in_the_divergence(model: LeanModel) -> None:
    """The base model scores as student and teacher with its own weights in both contexts."""
    (score,) = score_samples(model, [sample()], None)
    assert score["divergence"] > 0.01


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_scores_do_not_depend_on_the_chunks(model: LeanModel, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Every figure is the same, however few positions are projected at once, and no more of them are."""
    samples = [sample(seed=i, length=20 - 4 * i) for i in range(3)]
    whole = score_samples(model, samples, None)
    project, rows = model.logits, list[int]()
    monkeypatch.setattr(model, "logits", lambda hidden: (rows.append(len(hidden)), project(hidden))[1])
    monkeypatch.setattr(batching, "CHUNK_ELEMENTS", 2 * at_once * model.vocab_size)
    for score, expected in zip(score_samples(model, samples, None), whole, strict=True):
        assert score["is_preferred"] == expected.pop("is_preferred")
        for name, values in expected.items():
            assert score[name] == pytest.approx(values, abs=1e-5)
    assert max(rows) == at_once
