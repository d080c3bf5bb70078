"""The losses of self-distillation (SDPO, arXiv 2601.20802), as pure functions on tensors.

Notation: p is the student's next-token distribution, q the teacher's; the teacher saw more (notes, feedback) and is
always detached. Every function takes log-probabilities over the vocabulary, float32, axes [N, V] (N response
positions of any number of samples, V the vocabulary or the kept part of it), and returns nats per position, axis [N].
Every divergence is zero if p = q and never negative; minimising it moves the student towards the teacher.
Invariants: no function reads a global, changes an argument, or lets a gradient reach the teacher.
"""

from typing import Any

import torch
from torch import Tensor

from engine.config import Divergence
from engine.training.lean_ops import once_differentiable

LOG_RATIO_LIMIT = 20.0  # nats; the reference code and CLaaS clamp the exponent here
MASS_LIMIT = -1e-7  # log of the largest mass top-k may hold, so that the tail bucket stays finite


def forward_kl(student_logprobs_NV: Tensor, teacher_logprobs_NV: Tensor) -> Tensor:
    """Return KL(q || p) = sum_v q(v) (log q(v) - log p(v)): the mean-seeking direction.

    Its gradient on the student's logits is p - q, which does not vanish if a confident student is wrong. Every lesson
    computes it at each position and step over the whole vocabulary, so it is one operation of few passes.
    """
    result: Tensor = _ForwardKL.apply(student_logprobs_NV, teacher_logprobs_NV.detach())
    return result


class _ForwardKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, student_NV: Tensor, teacher_NV: Tensor) -> Tensor:
        teacher_probabilities = teacher_NV.exp()
        ctx.save_for_backward(teacher_probabilities)
        difference = (teacher_NV - student_NV).unsqueeze(-1)
        divergence_N = torch.matmul(teacher_probabilities.unsqueeze(-2), difference)[..., 0, 0]
        if bool(divergence_N.isfinite().all()):
            return divergence_N
        return _kl(teacher_NV, student_NV)  # somewhere 0 was multiplied by the log of 0

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_N: Tensor) -> Any:
        (teacher_probabilities,) = ctx.saved_tensors
        return teacher_probabilities * -grad_N.unsqueeze(-1), None


def reverse_kl(student_logprobs_NV: Tensor, teacher_logprobs_NV: Tensor) -> Tensor:
    """Return KL(p || q) = sum_v p(v) (log p(v) - log q(v)): SDPO's own direction (arXiv 2601.20802, section 3)."""
    return _kl(student_logprobs_NV, teacher_logprobs_NV.detach())


def jensen_shannon(student_logprobs_NV: Tensor, teacher_logprobs_NV: Tensor, alpha: float) -> Tensor:
    """Return a KL(q || m) + (1 - a) KL(p || m) with m = a q + (1 - a) p, 0 < a < 1 (GKD, arXiv 2306.13649).

    Its size vanishes towards a = 0 and a = 1 (the KLs are its limits after dividing by a (1 - a)): name those.
    """
    teacher = teacher_logprobs_NV.detach()
    weight = torch.tensor(alpha, dtype=teacher.dtype, device=teacher.device)
    mixture = torch.logaddexp(student_logprobs_NV + torch.log1p(-weight), teacher + torch.log(weight))
    return alpha * _kl(teacher, mixture) + (1 - alpha) * _kl(student_logprobs_NV, mixture)


def sampled_token(student_logprobs_N: Tensor, teacher_logprobs_N: Tensor) -> Tensor:
    """Return (log p(y) - log q(y)), detached, times log p(y): the one-sample estimator of the reverse KL's gradient.

    Arguments are the log-probabilities of the sampled token y, axis [N]. As a loss the coefficient is student
    minus teacher; as an advantage it would be teacher minus student. Its value is not a divergence, its gradient is.
    """
    coefficient = (student_logprobs_N - teacher_logprobs_N).detach()
    return coefficient * student_logprobs_N


def top_k_logprobs(
    student_logprobs_NV: Tensor, teacher_logprobs_NV: Tensor, k: int, *, has_tail: bool
) -> tuple[Tensor, Tensor]:
    """Return both distributions on the student's k likeliest tokens: axes [N, k + 1] with a tail bucket, else [N, k].

    The tail bucket holds 1 - (kept mass); without it both are renormalised to the kept tokens.
    """
    k = min(k, student_logprobs_NV.shape[-1])
    student, kept = student_logprobs_NV.topk(k, dim=-1)
    teacher = teacher_logprobs_NV.detach().gather(-1, kept)
    if has_tail:
        return _with_tail(student), _with_tail(teacher)
    return student.log_softmax(-1), teacher.log_softmax(-1)


def importance_weights(trainer_logprobs_N: Tensor, behaviour_logprobs_N: Tensor, clip: float) -> Tensor:
    """Return min(exp(log p_trainer(y) - log p_vllm(y)), clip), detached: truncated importance sampling.

    Both are log-probabilities of the stored tokens given the stored prompt, axis [N]; the exponent is clamped to
    +-20 nats first (reference code of arXiv 2601.20802).
    """
    log_ratio = (trainer_logprobs_N - behaviour_logprobs_N).detach().clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    return log_ratio.exp().clamp(max=clip)


def divergence(
    student_logprobs_NV: Tensor,
    teacher_logprobs_NV: Tensor,
    kind: Divergence,
    *,
    jsd_alpha: float = 0.5,
    top_k: int | None = None,
    has_tail: bool = True,
) -> Tensor:
    """Return the configured divergence, axis [N].

    `sampled_token` is reported as the reverse KL that it estimates, `hard_label` as the forward KL it sharpens.
    """
    if top_k is not None:
        student_logprobs_NV, teacher_logprobs_NV = top_k_logprobs(
            student_logprobs_NV, teacher_logprobs_NV, top_k, has_tail=has_tail
        )
    if kind in ("forward_kl", "hard_label"):
        return forward_kl(student_logprobs_NV, teacher_logprobs_NV)
    if kind == "jsd":
        return jensen_shannon(student_logprobs_NV, teacher_logprobs_NV, jsd_alpha)
    return reverse_kl(student_logprobs_NV, teacher_logprobs_NV)


def hard_label(student_logprobs_NV: Tensor, teacher_logprobs_NV: Tensor) -> Tensor:
    """Return -log p_student(argmax p_teacher), axis [N]: supervised fine-tuning on the teacher's choice."""
    return -token_logprobs(student_logprobs_NV, teacher_logprobs_NV.detach().argmax(-1))


def token_logprobs(logprobs_NV: Tensor, token_ids_N: Tensor) -> Tensor:
    """Return log p of one token per position, axis [N]."""
    return logprobs_NV.gather(-1, token_ids_N.unsqueeze(-1)).squeeze(-1)


def entropy(logprobs_NV: Tensor) -> Tensor:
    """Return H = -sum_v p(v) log p(v), axis [N]; an impossible token counts zero."""
    return torch.special.entr(logprobs_NV.exp()).sum(-1)


def at_temperature(logprobs_NV: Tensor, temperature_N: Tensor) -> Tensor:
    """Divide the logits by a temperature per position and return log-probabilities; 0 is greedy and counts as 1."""
    divisor = torch.where(temperature_N > 0, temperature_N, torch.ones_like(temperature_N))
    if bool((divisor == 1).all()):
        return logprobs_NV
    return (logprobs_NV / divisor.unsqueeze(-1)).log_softmax(-1)


def mix_logits(reference_logits_NV: Tensor, student_logits_NV: Tensor, mix: float) -> Tensor:
    """Return (1 - mix) reference + mix student, on logits, detached: the trust-region teacher (arXiv 2601.20802)."""
    return torch.lerp(reference_logits_NV.detach(), student_logits_NV.detach(), mix)


def surer_by(some_logprobs_NV: Tensor, other_logprobs_NV: Tensor) -> Tensor:
    """Return by how many nats the first of two distributions has the smaller entropy, axes [N]."""
    return entropy(other_logprobs_NV) - entropy(some_logprobs_NV)


def guided(teacher_logprobs_NV: Tensor, base_logprobs_NV: Tensor, scale: float) -> Tensor:
    """Return log softmax(log p0 + s (log q - log p0)), axes [N, V], detached; s = 1 is the teacher itself.

    Classifier-free guidance (arXiv 2306.17806, equation 7): the teacher q goes on in the direction in which the lesson
    has moved it away from the base model p0, which has not seen it or has seen a note that asks for nothing.
    """
    return torch.lerp(base_logprobs_NV.detach(), teacher_logprobs_NV.detach(), scale).log_softmax(-1)


def _kl(p_logprobs: Tensor, q_logprobs: Tensor) -> Tensor:
    """Return KL(p || q) along the last axis; terms with p = 0 count zero, even if both logs are -inf."""
    terms = p_logprobs.exp() * (p_logprobs - q_logprobs)
    return torch.where(p_logprobs == -torch.inf, torch.zeros_like(terms), terms).sum(-1)


def _with_tail(logprobs_NK: Tensor) -> Tensor:
    mass = logprobs_NK.logsumexp(-1, keepdim=True).clamp(max=MASS_LIMIT)
    return torch.cat([logprobs_NK, torch.log(-torch.expm1(mass))], dim=-1)
