"""engine.training.minibatches: the order of the samples, the positions' weights and importance weights."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import torch

from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.sample import Sample
from engine.training.minibatches import MiniBatches, StudentBatch
from tests.engine.updates_of import correction_with_company, sample

CPU = torch.device("cpu")
Step = list[StudentBatch]


def student(samples: list[Sample], **learn: Any) -> MiniBatches:
    """Return the mini-batches of these samples."""
    return MiniBatches(samples, LearnConfig(**learn), CPU)


def many() -> list[Sample]:
    """Return eight taught samples and three anchors."""
    taught = [sample("counterfactual", seed=i, length=6 + i) for i in range(8)]
    return [*taught, *(sample("anchor", seed=20 + i) for i in range(3))]


def seen_in(step: Step) -> list[int]:
    """Return the samples of one step."""
    return [i for batch in step for i in batch.batch.samples]


def steps(of: MiniBatches, count: int) -> list[Step]:
    """Return the first steps."""
    return list(islice(of.steps(), count))


def test_the_first_step_takes_every_sample() -> None:
    """The first step holds every sample, because its figures describe the version before."""
    assert sorted(seen_in(steps(student(many()), 1)[0])) == list(range(11))


def test_the_first_step_is_a_mini_batch_if_the_version_before_was_measured_ahead() -> None:
    """Then the first epoch begins with it, and takes every sample once, as all others do."""
    found = [seen_in(step) for step in steps(student(many(), mini_batch_samples=4, whole_first_step=False), 3)]
    assert all(len(mini_batch) <= 4 for mini_batch in found)
    assert Counter(i for m in found for i in m) == Counter(range(11))


def test_an_epoch_takes_every_sample_once_in_a_new_order() -> None:
    """An epoch has three mini-batches of at most four samples, and the second one cuts them differently."""
    found = [seen_in(step) for step in steps(student(many(), mini_batch_samples=4), 7)[1:]]
    first, second = found[:3], found[3:]
    assert all(len(mini_batch) <= 4 for mini_batch in found)
    assert Counter(i for m in first for i in m) == Counter(i for m in second for i in m) == Counter(range(11))
    assert [set(m) for m in first] != [set(m) for m in second]


def test_every_mini_batch_has_something_to_teach_and_its_share_of_the_anchors() -> None:
    """Every mini-batch teaches something, because a step on anchors alone would only undo."""
    for step in steps(student(many(), mini_batch_samples=4), 13)[1:]:
        kinds = Counter(many()[i].kind for i in seen_in(step))
        assert kinds["counterfactual"] >= 2
        assert kinds["anchor"] == 1


def test_one_correction_is_not_parted_from_its_anchors() -> None:
    """There are no more mini-batches than samples that teach; one without weight does not count."""
    masked = sample("counterfactual", seed=5, weight=0.0)
    samples = [sample(), masked, *(sample("anchor", seed=i) for i in range(1, 5))]
    for step in steps(student(samples, mini_batch_samples=2), 4):
        assert sorted(seen_in(step)) == list(range(6))


def test_the_same_seed_gives_the_same_order() -> None:
    """The same seed gives the same order, so an update can be run again."""
    one, same, other = ([seen_in(s) for s in steps(student(many(), seed=seed), 6)] for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_held_out_samples_are_in_no_step() -> None:
    """An earlier correction and a gold answer are in no step."""
    samples = [*correction_with_company(), sample("earlier", seed=7), sample("gold", seed=8)]
    assert all(max(seen_in(step)) < 5 for step in steps(student(samples, mini_batch_samples=2), 5))


@pytest.mark.parametrize("position", [0, 1])
def test_the_coefficients_of_every_step_sum_to_one(position: int) -> None:
    """The weights c_i / (R_i sum c) of each step add up to 1 over its positions."""
    samples = correction_with_company()
    samples[0] = replace(samples[0], weight=0.25)
    for step in (steps(student(samples, anchor_weight=2.0, mini_batch_samples=2), 3)[position],):
        assert sum(float(batch.weights_N.sum()) for batch in step) == pytest.approx(1.0)
        assert all(float(b.kl_weights_N[b.batch.owners_N >= 3].sum()) == 0 for b in step)


def test_the_first_tokens_of_an_answer_share_more_of_its_weight() -> None:
    """What a whole answer counts stays the same; one shorter than an opening is shared evenly."""
    long, short = sample(length=OPENING_TOKENS + 3), sample("counterfactual", seed=2, length=2)
    (batch,) = steps(student([long, short], opening_weight=5.0), 1)[0]
    of_long, of_short = (batch.weights_N[batch.batch.owners_N == i] for i in (0, 1))
    assert of_long.tolist() == pytest.approx([5 * float(of_long[-1])] * OPENING_TOKENS + [float(of_long[-1])] * 3)
    assert of_short.tolist() == pytest.approx([0.25, 0.25])
    assert float(of_long.sum()) == pytest.approx(0.5)


def test_the_last_token_of_an_answer_may_count_more() -> None:
    """Whether it ends there; what a whole answer counts stays the same, and one inside the opening counts once."""
    long, short = sample(length=OPENING_TOKENS + 3), sample("counterfactual", seed=2, length=2)
    (batch,) = steps(student([long, short], opening_weight=2.0, closing_weight=6.0), 1)[0]
    of_long, of_short = (batch.weights_N[batch.batch.owners_N == i] for i in (0, 1))
    assert of_long.tolist() == pytest.approx([c / 32 for c in [2.0] * OPENING_TOKENS + [1.0, 1.0, 6.0]])
    assert of_short.tolist() == pytest.approx([2 / 16, 6 / 16])


def test_weight_and_anchor_weight_set_what_a_sample_counts() -> None:
    """An anchor of weight 1/4 counts half of a correction if anchors count double."""
    samples = [sample(weight=0.25), sample("anchor", seed=1, length=20)]
    (batch,) = student(samples, anchor_weight=2.0).all
    share = float(batch.weights_N[batch.batch.owners_N == 0].sum())
    assert share == pytest.approx(0.25 / 2.25)


def test_importance_weights_of_the_first_step_hold_for_the_rest() -> None:
    """Importance weights are measured once, in the first step, and kept for later ones."""
    samples = [replace(s, behaviour_logprobs=[-1.0] * len(s.response_ids)) for s in many()]
    of = student(samples, mini_batch_samples=4)
    found = of.steps()
    for batch in next(found):
        trainer = -1.0 + 0.1 * batch.batch.owners_N
        of.weigh(batch, slice(0, len(trainer)), trainer, {})
    for batch in (b for step in islice(found, 3) for b in step):
        expected = (0.1 * batch.batch.owners_N).exp().clamp(max=2.0)
        assert torch.allclose(batch.importance_N, expected, atol=1e-5)
    assert of.importance_summary()["max"] == pytest.approx(2.0)


def test_positions_without_a_stored_log_probability_count_fully() -> None:
    """Responses without stored log-probabilities weigh 1 and are in no summary."""
    of = student([sample()])
    (batch,) = of.all
    of.weigh(batch, slice(0, 12), torch.linspace(-9, -1, 12), {})
    assert torch.equal(batch.importance_N, torch.ones(12))
    assert of.importance_summary() == {}
