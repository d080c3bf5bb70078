"""engine.training.targets: the teacher's distributions, kept per sample."""

from pathlib import Path

import pytest
import torch

from engine.config.learning import OPENING_TOKENS
from engine.training import targets
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
def test_a_guided_teacher_goes_on_from_the_base_model(
    model: LeanModel, monkeypatch: pytest.MonkeyPatch, width: int, error: float
) -> None:
    """Kept in any way, guided samples have log p0 + s (log q - log p0), normalised, at both ends of their answers.

    Other samples, and what stands between the ends, stay as the teacher says it.
    """
    samples = [sample(seed=i, length=5 + 3 * i) for i in range(3)]
    seen, plain = (plan_batches(samples, range(3), view, 10_000, model.device)[0] for view in ("teacher", "student"))
    keep(monkeypatch, model, width, len(seen.rows_N))
    kept = Targets(model, num_positions=len(seen.rows_N), guidance_scale=1.5)
    teacher = model.hidden(None, seen)
    kept.put_hidden(seen, teacher)
    (guided,) = plan_batches(samples, [2, 0], "student", 10_000, model.device)
    kept.guide(guided, model.hidden(None, guided))
    told = model.logits(teacher).log_softmax(-1)
    base = model.logits(model.hidden(None, plain)).log_softmax(-1)
    for i in range(3):
        q, p0 = told[seen.owners_N == i], base[plain.owners_N == i]
        is_end = torch.tensor([i != 1 and (t < OPENING_TOKENS or t == len(q) - 1) for t in range(len(q))])
        wanted = torch.where(is_end[:, None], (p0 + 1.5 * (q - p0)).log_softmax(-1), q)
        assert torch.allclose(kept.logprobs(kept.rows([i])), wanted, atol=max(2 * error, 1e-4))
