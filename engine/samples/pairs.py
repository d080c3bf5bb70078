"""One answer behind two views of its conversation, the student's and the teacher's, cut to what training reads.

The one place where a stored conversation becomes a sample. Invariants: no sample is longer than training reads; both
views lose the same turns; an answer that is too long loses its end, and never more than half of what is read is taken
from it; thoughts before an answer stand in both prompts, so that nothing is trained or measured on them; if nothing is
left to train on, the sample has no response and its maker leaves it out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.prompts.builder import PromptBuilder
from engine.requests import ChatMessage
from engine.sample import Kind, Sample
from engine.samples.rollouts import Rollout

_TAIL = 2  # tokens at the end of a prompt that tell if thoughts are to follow

Messages = Sequence[ChatMessage]


@dataclass(frozen=True)
class Views:
    """One conversation as the student sees it, and as the teacher does.

    `plain`: with notes that ask for nothing, for a teacher that is guided away from it (`engine.training.sdpo.guided`).
    """

    student: Messages
    teacher: Messages
    plain: Messages | None = None


def pair(kind: Kind, rollout: Rollout, views: Views, prompts: PromptBuilder) -> Sample:
    """Return an answer behind two views; without a response if nothing fits."""
    limit, answer = prompts.max_training_tokens, rollout.response_token_ids
    shown = [view for view in (views.student, views.teacher, views.plain) if view is not None]
    found = prompts.training_prompts(shown, min(len(answer), limit // 2))
    if not found:
        return Sample(kind, [], [], [])
    count = _num_thoughts(rollout, found[0], prompts)
    own_tail = rollout.prompt_token_ids[-_TAIL:]
    is_alike = own_tail in ([], found[0][-_TAIL:])  # thoughts stand where they stood, or nowhere
    thoughts = answer[:count][-(limit // 4) :] if is_alike else []
    student, teacher, *plain = ([*prompt, *thoughts] for prompt in found)
    read = answer[count:][: limit - max(map(len, (student, teacher, *plain)))]
    return Sample(kind, student, teacher, read, plain_ids=next(iter(plain), None))


def with_behaviour(sample: Sample, rollout: Rollout, prompts: PromptBuilder) -> Sample:
    """Return a sample with the log-probabilities it was sampled with.

    Without them if they are not the model's own, or if its own prompt is too long to be read.
    """
    if not rollout.is_plain:
        return sample
    first = _num_thoughts(rollout, sample.student_ids, prompts)
    end = first + len(sample.response_ids)
    if len(rollout.prompt_token_ids) + end > prompts.max_training_tokens:
        return sample
    read = [*rollout.prompt_token_ids, *rollout.response_token_ids[:first]]
    return replace(sample, behaviour_logprobs=rollout.logprobs[first:end], behaviour_ids=read)


def _num_thoughts(rollout: Rollout, prompt: list[int], prompts: PromptBuilder) -> int:
    is_open = prompts.opens_thoughts(rollout.prompt_token_ids or prompt)
    return prompts.num_thought_tokens(rollout.response_token_ids, is_open=is_open)


def usable(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that have anything to train on or to measure."""
    return [sample for sample in samples if sample.response_ids]
