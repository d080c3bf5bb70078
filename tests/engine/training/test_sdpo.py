"""engine.training.sdpo: losses that are zero at identity, never negative, of the right sign and equal to TRL's."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.training import sdpo

KINDS = ("forward_kl", "reverse_kl", "jsd")
TRL_ALPHA = {"forward_kl": 0.0, "jsd": 0.5, "reverse_kl": 1.0}


@pytest.fixture(scope="module")
def loss_utils() -> Any:
    """Return TRL's losses; importing them takes a second, so it is done here."""
    from trl.experimental.sdpo import loss_utils

    return loss_utils


def random_logits(seed: int, rows: int = 6, vocabulary: int = 40, scale: float = 4.0) -> Any:
    """Return the logits of a confident model, axes [N, V]."""
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("top_k", [None, 5])
def test_identical_distributions_have_no_divergence(kind: Any, top_k: int | None) -> None:
    """If teacher and student agree the loss is zero, and so is its gradient."""
    logits = random_logits(0).requires_grad_()
    logprobs = logits.log_softmax(-1)
    loss = sdpo.divergence(logprobs, logprobs.detach(), kind, top_k=top_k)
    loss.sum().backward()
    assert loss.abs().max() < 1e-5
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-5


@given(
    seed=st.integers(0, 10_000), kind=st.sampled_from(KINDS), top_k=st.sampled_from([None, 2, 7]), tail=st.booleans()
)
def test_no_divergence_is_negative(seed: int, kind: Any, top_k: int | None, tail: bool) -> None:
    """No divergence is negative, over the full vocabulary, with a tail bucket or renormalised."""
    student, teacher = random_logits(seed).log_softmax(-1), random_logits(seed + 1).log_softmax(-1)
    loss = sdpo.divergence(student, teacher, kind, top_k=top_k, has_tail=tail)
    assert loss.min() > -1e-5


@pytest.mark.parametrize("kind", [*KINDS, "sampled_token"])
def test_a_step_moves_the_student_towards_the_teacher(kind: str) -> None:
    """The gradient on two tokens is negative on the one that the teacher likes better than the student does."""
    logits = torch.tensor([[0.0, 0.0]], requires_grad=True)
    teacher = torch.tensor([[0.9, 0.1]]).log()
    student = logits.log_softmax(-1)
    if kind == "sampled_token":
        loss = sdpo.sampled_token(student[:, 0], teacher[:, 0])
    else:
        loss = sdpo.divergence(student, teacher, kind)  # type: ignore[arg-type]
    loss.sum().backward()
    assert logits.grad is not None
    assert logits.grad[0, 0] < 0 < logits.grad[0, 1]


def test_the_forward_kl_gradient_is_the_difference_of_the_probabilities() -> None:
    """The gradient on the student's logits is p - q."""
    logits = random_logits(1).requires_grad_()
    teacher = random_logits(2).log_softmax(-1)
    sdpo.forward_kl(logits.log_softmax(-1), teacher).sum().backward()
    assert torch.allclose(logits.grad, logits.softmax(-1) - teacher.exp(), atol=1e-5)


def test_sampled_tokens_estimate_the_reverse_kl_gradient() -> None:
    """Averaged over tokens drawn from the student, the estimator's gradient is the reverse KL's."""
    teacher = torch.tensor([[0.7, 0.2, 0.1]]).log()
    exact = torch.tensor([[0.2, 0.3, 0.5]]).log().requires_grad_()
    sdpo.reverse_kl(exact.log_softmax(-1), teacher).sum().backward()
    estimated = exact.detach().clone().requires_grad_()
    student = estimated.log_softmax(-1)
    loss = sum(
        student.detach().exp()[0, token] * sdpo.sampled_token(student[:, token], teacher[:, token]).sum()
        for token in range(3)
    )
    loss.backward()  # type: ignore[union-attr]
    assert torch.allclose(exact.grad, estimated.grad, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_reaches_the_teacher(kind: Any) -> None:
    """The teacher is detached inside every loss."""
    teacher_logits = random_logits(3).requires_grad_()
    student = random_logits(4).requires_grad_()
    sdpo.divergence(student.log_softmax(-1), teacher_logits.log_softmax(-1), kind).sum().backward()
    assert teacher_logits.grad is None or not teacher_logits.grad.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_full_vocabulary_loss_equals_trls(loss_utils: Any, kind: Any, seed: int) -> None:
    """Values and gradients agree with trl.experimental.sdpo.loss_utils on random logits."""
    ours, theirs = (random_logits(seed).requires_grad_() for _ in range(2))
    teacher = random_logits(seed + 100)
    loss = sdpo.divergence(ours.log_softmax(-1), teacher.log_softmax(-1), kind)
    reference = loss_utils.compute_full_logit_self_distillation_loss(
        theirs, teacher, distillation_alpha=TRL_ALPHA[kind]
    )
    loss.sum().backward()
    reference.sum().backward()
    assert torch.allclose(loss, reference, atol=1e-5, rtol=1e-4)
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_tail", [True, False])
def test_the_top_k_loss_equals_trls(loss_utils: Any, kind: Any, has_tail: bool) -> None:
    """Values agree with TRL's on the student's k likeliest tokens, with the tail bucket and without."""
    student, teacher = random_logits(7), random_logits(8)
    loss = sdpo.divergence(student.log_softmax(-1), teacher.log_softmax(-1), kind, top_k=10, has_tail=has_tail)
    reference = loss_utils.compute_topk_self_distillation_loss(
        student,
        teacher,
        distillation_topk=10,
        distillation_alpha=TRL_ALPHA[kind],
        distillation_add_tail=has_tail,
    )
    assert torch.allclose(loss, reference, atol=1e-4, rtol=1e-3)


def test_the_sampled_token_loss_equals_trls(loss_utils: Any) -> None:
    """The coefficient is student minus teacher, detached."""
    student, teacher = random_logits(9), random_logits(10)
    tokens = torch.randint(0, 40, (6,), generator=torch.Generator().manual_seed(0))
    ours = sdpo.sampled_token(
        sdpo.token_logprobs(student.log_softmax(-1), tokens), sdpo.token_logprobs(teacher.log_softmax(-1), tokens)
    )
    reference = loss_utils.compute_sampled_token_self_distillation_loss(
        student, teacher, tokens, distillation_alpha=1.0
    )
    assert torch.allclose(ours, reference, atol=1e-5)


def test_importance_weights_equal_trls_and_are_truncated(loss_utils: Any) -> None:
    """The weight is min(exp(log ratio clamped to +-20), clip), without a gradient."""
    trainer = torch.tensor([-1.0, -3.0, -0.5, -90.0, -0.1], requires_grad=True)
    behaviour = torch.tensor([-1.0, -1.0, -5.0, -1.0, -0.4])
    weights = sdpo.importance_weights(trainer, behaviour, 2.0)
    ones = torch.ones(5)
    reference = loss_utils.apply_importance_sampling_clipping(ones, trainer, behaviour, 2.0)
    assert not weights.requires_grad
    assert torch.allclose(weights, reference)
    assert weights.tolist() == pytest.approx([1.0, math.exp(-2), 2.0, math.exp(-20), math.exp(0.3)], rel=1e-5)


def test_the_temperature_of_sampling_is_applied_to_the_trainer_as_well() -> None:
    """Temperature 0 stands for greedy, whose log-probabilities are those of temperature 1."""
    logits = random_logits(11, rows=3)
    tempered = sdpo.at_temperature(logits.log_softmax(-1), torch.tensor([0.0, 1.0, 0.5]))
    expected = torch.stack([logits[0], logits[1], logits[2] / 0.5]).log_softmax(-1)
    assert torch.allclose(tempered, expected, atol=1e-5)


def test_mixed_logits_end_at_the_reference_and_at_the_student() -> None:
    """Mix 0 is the reference, mix 1 the student."""
    reference, student = random_logits(12), random_logits(13)
    assert torch.equal(sdpo.mix_logits(reference, student, 0.0), reference)
    assert torch.allclose(sdpo.mix_logits(reference, student, 1.0), student)


def test_top_k_on_a_vocabulary_smaller_than_k_is_the_full_vocabulary() -> None:
    """The tail bucket is then (almost) empty and changes nothing."""
    student, teacher = random_logits(14, vocabulary=4).log_softmax(-1), random_logits(15, vocabulary=4).log_softmax(-1)
    assert torch.allclose(
        sdpo.divergence(student, teacher, "forward_kl", top_k=100, has_tail=False),
        sdpo.divergence(student, teacher, "forward_kl"),
        atol=1e-5,
    )


def test_impossible_tokens_do_not_make_the_loss_infinite_or_nan() -> None:
    """A token that neither side can produce counts nothing."""
    student = torch.tensor([[0.0, -torch.inf, 0.0]]).log_softmax(-1)
    assert sdpo.forward_kl(student, student).item() == 0.0


def test_the_entropy_is_zero_if_sure_and_log_v_if_even() -> None:
    """Impossible tokens count nothing; in between it is torch's own."""
    certain = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    assert sdpo.entropy(certain).tolist() == [0.0]
    assert sdpo.entropy(torch.full((2, 4), -math.log(4))).tolist() == pytest.approx([math.log(4)] * 2)
    logits = random_logits(2)
    assert torch.allclose(
        sdpo.entropy(logits.log_softmax(-1)), torch.distributions.Categorical(logits=logits).entropy(), atol=1e-5
    )


def test_a_hard_label_is_the_cross_entropy_of_the_teachers_likeliest_token() -> None:
    """The loss is torch's cross-entropy, without a gradient to the teacher, and zero if the student is sure."""
    torch.manual_seed(0)
    student, teacher = (torch.randn(6, 11, requires_grad=True) for _ in range(2))
    loss = sdpo.hard_label(student.log_softmax(-1), teacher.log_softmax(-1))
    expected = torch.nn.functional.cross_entropy(student, teacher.argmax(-1), reduction="none")
    assert torch.allclose(loss, expected)
    loss.sum().backward()
    assert teacher.grad is None
    sure = torch.full((1, 11), -1e4).index_fill(1, torch.tensor([3]), 0.0).log_softmax(-1)
    assert float(sdpo.hard_label(sure, sure)) == 0.0


def test_guidance_goes_on_in_the_direction_of_the_lesson() -> None:
    """A scale of 1 is the teacher, 0 the base model, 2 as far again; the result is normalised and detached."""
    base, teacher = (torch.randn(5, 7).log_softmax(-1) for _ in range(2))
    teacher.requires_grad_()
    assert torch.allclose(sdpo.guided(teacher, base, 1.0), teacher, atol=1e-5)
    assert torch.allclose(sdpo.guided(teacher, base, 0.0), base, atol=1e-5)
    far = sdpo.guided(teacher, base, 2.0)
    assert torch.allclose(far, (2 * teacher - base).log_softmax(-1), atol=1e-5)
    assert torch.allclose(far.exp().sum(-1), torch.ones(5))
    assert not far.requires_grad


def test_the_surer_of_two_distributions_has_the_smaller_entropy() -> None:
    """Row by row, in nats; impossible tokens count nothing."""
    even, sure = torch.tensor([0.5, 0.5, 0.0]).log(), torch.tensor([0.9, 0.1, 0.0]).log()
    some, other = torch.stack([even, sure, even]), torch.stack([sure, even, even])
    more = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    assert sdpo.surer_by(some, other).tolist() == pytest.approx([-more, more, 0.0])


def test_the_forward_kl_in_one_operation_is_the_sum_of_its_terms() -> None:
    """Values and gradients, over a vocabulary as large as a real model's."""
    torch.manual_seed(0)
    logits = torch.randn(5, 50_000, requires_grad=True)
    teacher = torch.randn(5, 50_000).log_softmax(-1)
    student = logits.log_softmax(-1)
    found, termwise = sdpo.forward_kl(student, teacher), sdpo._kl(teacher, student)
    torch.testing.assert_close(found, termwise, rtol=1e-5, atol=1e-5)
    weights = torch.arange(5.0)
    mine, theirs = (torch.autograd.grad((kl * weights).sum(), logits, retain_graph=True) for kl in (found, termwise))
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-7)
