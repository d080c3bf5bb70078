"""The part training: heed's step and a plain one, on the same rows."""

import pytest
import torch

from bench import training
from bench.config import BenchConfig
from engine.config import LearnConfig
from engine.pocket import WEIGHTS as POCKET_WEIGHTS
from engine.training.batching import plan_batches
from engine.training.model import load_training_model
from evals.errors import ArgumentError


async def test_the_two_take_turns() -> None:
    """One time of each in every round; with no model named it is the pocket's."""
    advanced: list[str] = []
    samples = await training.measure(BenchConfig(rounds=2), advanced.append)
    assert all(len(samples[kind]) == 2 and min(samples[kind]) > 0 for kind in ("heed_s", "plain_s"))
    assert advanced == ["training"] * 2


def test_the_ratio_is_made_round_by_round() -> None:
    """Its target is an upper limit: two thirds of the plain step's time are half as many tokens again."""
    rows = training.rows({"heed_s": [1.0, 3.0, 1.0], "plain_s": [2.0, 3.0, 4.0]})
    assert [row.median for row in rows] == [1.0, 3.0, 0.5]
    assert rows[2].target == pytest.approx(2 / 3)
    assert rows[2].is_met


def test_a_step_has_beginnings_whole_answers_and_neutral_ones() -> None:
    """Its prompts differ; so heed finds the beginning that they share, as in a lesson."""
    rows = training.step_rows(POCKET_WEIGHTS, seed=1)
    assert [len(row.response_ids) for row in rows] == [8] * 5 + [64] * 3 + [40] * 2
    assert len({tuple(row.student_ids) for row in rows}) == len(rows)


def test_the_plain_step_goes_over_the_same_rows() -> None:
    """Its loss is that of heed's forward pass: both predict the same tokens from the same positions."""
    rows = training.step_rows(POCKET_WEIGHTS, seed=2)
    (batch,) = plan_batches(rows, range(len(rows)), "student", 10_000, torch.device("cpu"))
    plain = training.plain_model(POCKET_WEIGHTS, torch.float32, LearnConfig())
    own = load_training_model(POCKET_WEIGHTS, "pocket")
    logprobs = own.logits(own.hidden(None, batch)).log_softmax(-1)
    expected = -logprobs.gather(1, batch.token_ids_N[:, None]).mean()
    loss = training.plain_loss(plain, batch)
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-4)
    loss.backward()
    assert any(p.grad is not None and float(p.grad.norm()) > 0 for p in plain.parameters())


async def test_a_model_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it named as an argument or as for heed itself, by the sentence that heed would say."""
    with pytest.raises(ArgumentError, match="There is no model folder"):
        await training.measure(BenchConfig(model="./nowhere"), lambda _: None)
    monkeypatch.setenv("HEED_MODEL", "./nowhere")
    with pytest.raises(ArgumentError, match="There is no model folder"):
        await training.measure(BenchConfig(), lambda _: None)
