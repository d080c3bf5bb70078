"""One answer behind two views of its conversation, the student's and the teacher's, cut to what training reads.

The one place where a stored conversation becomes a sample. Invariants: no sample is longer than training reads; both
views lose the same turns; an answer that is too long loses its end, and never more than half of what is read is taken
from it; if nothing is left to train on, the sample has no response and its maker leaves it out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.prompts.builder import PromptBuilder
from engine.requests import ChatMessage
from engine.sample import Kind, Sample
from engine.samples.rollouts import Rollout

Messages = Sequence[ChatMessage]


@dataclass(frozen=True)
class Views:
    """One conversation as the student sees it, and as the teacher does."""

    student: Messages
    teacher: Messages


def pair(kind: Kind, rollout: Rollout, views: Views, prompts: PromptBuilder) -> Sample:
    """Return an answer behind two views; without a response if nothing fits."""
    limit, answer = prompts.max_training_tokens, rollout.response_token_ids
    found = prompts.training_prompts([views.student, views.teacher], min(len(answer), limit // 2), rollout.tools)
    if not found:
        return Sample(kind, [], [], [])
    student, teacher = found
    return Sample(kind, student, teacher, answer[: limit - max(len(student), len(teacher))])


def with_behaviour(sample: Sample, rollout: Rollout, prompts: PromptBuilder) -> Sample:
    """Return a sample with the log-probabilities it was sampled with, unless its own prompt is too long to be read."""
    count = len(sample.response_ids)
    if len(rollout.prompt_token_ids) + count > prompts.max_training_tokens:
        return sample
    return replace(sample, behaviour_logprobs=rollout.logprobs[:count], behaviour_ids=rollout.prompt_token_ids)


def usable(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that have anything to train on or to measure."""
    return [sample for sample in samples if sample.response_ids]
