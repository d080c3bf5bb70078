"""engine.training.targets: the teacher's distributions, kept per sample."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.sample import Context
from engine.training import sdpo, targets
from engine.training.batching import plan_batches
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.targets import Targets
from tests.engine.updates_of import sample


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


# Bytes kept for a log-probability, and how exact it is: as hidden states, at half and at full precision.
KEPT = pytest.mark.parametrize(("width", "error"), [(0, 1e-5), (2, 1e-2), (4, 1e-5)])


def keep(monkeypatch: pytest.MonkeyPatch, model: LeanModel, width: int, num_positions: int) -> None:
    """Let so many positions just fit in `width` bytes a value."""
    monkeypatch.setattr(targets, "KEPT_BYTES", width * num_positions * model.vocab_size)


@KEPT
def test_samples_are_given_back_in_the_order_asked(
    model: LeanModel, monkeypatch: pytest.MonkeyPatch, width: int, error: float
) -> None:
    """Log-probabilities and hidden states come back in any order of the samples."""
    samples = [sample(seed=i, length=5 + 3 * i) for i in range(3)]
    (batch,) = plan_batches(samples, range(3), "teacher", 10_000, model.device)
    keep(monkeypatch, model, width, len(batch.rows_N))
    hidden = model.hidden(None, batch)
    kept = Targets(model, num_positions=len(batch.rows_N))
    kept.put_hidden(batch, hidden)
    expected = model.logits(hidden).log_softmax(-1)
    found = kept.logprobs(kept.rows([2, 0]))
    wanted = torch.cat([expected[batch.owners_N == 2], expected[batch.owners_N == 0]])
    assert found.dtype == torch.float32
    assert torch.allclose(found, wanted, atol=error)


def test_nothing_kept_carries_a_gradient(model: LeanModel) -> None:
    """No kept value carries a gradient."""
    (batch,) = plan_batches([sample()], [0], "teacher", 10_000, model.device)
    hidden = model.hidden(None, batch).requires_grad_()
    kept = Targets(model, num_positions=10, must_be_logprobs=True)
    kept.put_hidden(batch, hidden)
    assert not kept.rows([0]).requires_grad
    kept.put_logits(batch, model.logits(hidden))
    assert not kept.rows([0]).requires_grad


@KEPT
def test_a_guided_teacher_goes_on_from_two_prompts(
    model: LeanModel, monkeypatch: pytest.MonkeyPatch, width: int, error: float
) -> None:
    """Kept in any way, guided positions have log p0 + s (log q - log p0), normalised (`sdpo.guided`).

    p0 is the model behind the plain prompt where an answer begins, and behind the student's at its last position; what
    stands between, and other samples, stay as the teacher says it. By how much guidance makes it surer is known before.
    """
    samples = [replace(sample(seed=i, length=5 + 3 * i), plain_ids=[7, 8, 9]) for i in range(3)]
    begun = [replace(one, response_ids=one.response_ids[:3]) for one in samples]
    views: tuple[Context, ...] = ("teacher", "student", "plain")
    batches = {view: plan_batches(samples, range(3), view, 10_000, model.device)[0] for view in views}
    logprobs = {view: model.logits(model.hidden(None, batch)).log_softmax(-1) for view, batch in batches.items()}
    said = [{view: logprobs[view][batches[view].owners_N == i] for view in views} for i in range(3)]
    keep(monkeypatch, model, width, len(batches["teacher"].rows_N))
    kept = Targets(model, num_positions=len(batches["teacher"].rows_N), guidance_scale=1.5)
    kept.put_hidden(batches["teacher"], model.hidden(None, batches["teacher"]))
    (ends,) = plan_batches(samples, [2, 0], "student", 10_000, model.device)
    kept.guide_last(ends, model.hidden(None, ends))
    (openings,) = plan_batches(begun, [2, 0], "plain", 10_000, model.device)
    led = [sdpo.guided(told["teacher"][:3], told["plain"][:3], 1.5) for told in said]
    surer = [sdpo.entropy(told["teacher"][:3]) - sdpo.entropy(led[i]) for i, told in enumerate(said)]
    found = kept.surer_by(openings, model.hidden(None, openings))
    assert found == pytest.approx(float(surer[2].sum() + surer[0].sum()), abs=max(20 * error, 1e-2))
    kept.guide_openings(openings, model.hidden(None, openings))
    for i, told in enumerate(said):
        wanted = told["teacher"].clone()
        if i != 1:
            wanted[:3] = led[i]
            wanted[-1] = sdpo.guided(told["teacher"][-1], told["student"][-1], 1.5)
        assert torch.allclose(kept.logprobs(kept.rows([i])), wanted, atol=max(2 * error, 1e-4))
