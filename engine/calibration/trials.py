"""Lessons given to a model on bank prompts, for no person: what each would have changed, measured and thrown away.

Owns the wishes that are tried and one trial's samples and figures. Invariants: no person's words or adapter are used;
a trial leaves no version and no file behind; what is measured at the end is answers that nothing was trained on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Protocol

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.learning.candidates import Candidates
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.sample import Kind, Sample, Score
from engine.samples import lessons
from engine.samples.context import LearningContext
from engine.samples.demonstrations import Demonstrations

WISHES = (
    "Too long. Please answer in one short sentence.",
    "Please write everything in lowercase letters.",
    "Please answer in Spanish.",
    "Please answer as a list of bullet points.",
    "Please be more formal and polite.",
    "Please explain it in more detail.",
)
PLACEBOS = ("ok", "And now something else.", "I see.")  # feedback that asks for nothing
_NUM_HELD_OUT = 4  # of the teacher's answers, which are measured and not trained on
_TRIAL = AdapterRef("calibration", 1, 1_999_999_999, "/heed/calibration")  # known to the worker only while it is scored


@dataclass(frozen=True)
class Trial:
    """The figures of one lesson; all but `left`, `value_change` and `opened` in nats per token."""

    feedback: str
    before: float  # teacher against student on held-out answers, before the lesson
    after: float
    left: float  # share of the divergence that the training left on what it trained on
    neutral: float  # base against student on held-out neutral answers
    anchor: float  # the same on the neutral answers that were trained on
    unasked: float
    unasked_worst: float
    value_change: float  # root mean square of the change of the LoRA values
    opened: float  # share closed of what lies between teacher and student on the held-out answers' first tokens

    @property
    def closed(self) -> float:
        """The share of the held-out divergence that the lesson closed; negative if it went the other way."""
        return 1 - self.after / self.before if self.before > 0 else 0.0


class GivesTrials(Protocol):
    """The part of trials that a calibration asks for."""

    async def give(self, feedback: str, learn: LearnConfig) -> Trial:
        """Give one lesson and measure it."""


@dataclass(frozen=True)
class _Material:
    """The samples of a wish's trials: what is trained on, further answers of the teacher, and neutral answers."""

    trained_on: list[Sample]
    held_out: list[Sample]
    neutral: list[Sample]


class Trials:
    """Give lessons on bank prompts, for no person.

    A wish has the same prompts and answers at every rate: lessons on other topics differ by more than rates do.
    """

    def __init__(self, context: LearningContext, candidates: Candidates) -> None:
        self._trainer = context.trainer
        self._rollouts = context.rollouts
        self._prompts = context.prompts
        self._candidates = candidates
        self._drawn: dict[tuple[str, LearnConfig], _Material] = {}

    async def give(self, feedback: str, learn: LearnConfig) -> Trial:
        """Give one lesson and measure it. Raises TrainerError, EngineRestarting."""
        material = await self._material(feedback, learn)
        held_out, neutral = material.held_out, material.neutral
        before = await self._trainer.score_in_turn(held_out, ZERO_ADAPTER)
        update = f"calibration-{learn.learning_rate:g}"
        trained = await self._candidates.train(update, ZERO_ADAPTER, material.trained_on, learn)
        try:
            published = await self._trainer.publish(update, _TRIAL)
            after = await self._trainer.score_in_turn(held_out, _TRIAL)
            moved = await self._trainer.score_in_turn(neutral, _TRIAL)
        finally:
            await self._candidates.close(update)
            await self._trainer.drop(_TRIAL)
        return Trial(
            feedback,
            _mean(held_out, before),
            _mean(held_out, after),
            left=trained.divergence_after / trained.divergence_before if trained.divergence_before > 0 else 1.0,
            neutral=_mean(neutral, moved),
            anchor=trained.anchor_divergence or 0.0,
            unasked=trained.figures.get("unasked") or 0.0,
            unasked_worst=trained.figures.get("unasked_worst") or 0.0,
            value_change=published.value_change,
            opened=_opened(before, after),
        )

    async def _material(self, feedback: str, learn: LearnConfig) -> _Material:
        """Return the samples of a wish's trials, to train on and to measure; one draw for all rates."""
        key = feedback, replace(learn, learning_rate=1.0)
        if key not in self._drawn:
            trained_on, held_out = await self._samples(feedback, learn)
            anchors = lessons.anchor_samples(await self._rollouts.anchors(ZERO_ADAPTER, 2 * learn.num_anchors))
            held_still, neutral = anchors[: learn.num_anchors], anchors[learn.num_anchors :]
            self._drawn[key] = _Material([*trained_on, *held_still], held_out, neutral)
        return self._drawn[key]

    async def _samples(self, feedback: str, learn: LearnConfig) -> tuple[list[Sample], list[Sample]]:
        """Return what a lesson would train on, and further answers of the teacher."""
        notes = [feedback] if learn.reads_own_note else []
        hindsight = Hindsight(feedback=feedback if learn.reads_hindsight else "")
        asked = self._rollouts.with_topics([], learn.num_teacher_rollouts + _NUM_HELD_OUT)
        held_out, lesson = asked[:_NUM_HELD_OUT], asked[_NUM_HELD_OUT:]
        own_prompts = [messages[-1]["content"] for messages in lesson[: 1 + learn.num_counterfactuals]]
        rollouts = await self._rollouts.answers_to(ZERO_ADAPTER, own_prompts)
        others: list[Kind] = ["counterfactual"] * learn.num_counterfactuals
        own = [
            lessons.sample(kind, rollout, notes, hindsight, self._prompts)
            for kind, rollout in zip(["correction", *others], rollouts, strict=False)
        ]
        teacher = Demonstrations(
            self._rollouts,
            self._prompts,
            learn,
            ZERO_ADAPTER,
            lambda messages: teacher_messages(messages, notes, hindsight),
        )
        further = [sample.uncut for sample in await teacher.to(held_out)]
        return [*own, *await teacher.whole(lesson), *await teacher.openings()], further


def _mean(samples: Sequence[Sample], scores: Sequence[Score]) -> float:
    """Return the mean divergence over all positions."""
    return fmean([score.divergence for score in scores], [len(sample.response_ids) for sample in samples])


def _opened(before: Sequence[Score], after: Sequence[Score]) -> float:
    """Return the share closed of log p(y | teacher) - log p(y | student), over the first tokens of each answer.

    At least -1: where both begin alike ("in one sentence") a share of next to nothing would outweigh all else.
    """
    gap_before, gap_after = (sum(map(_opening_gap, scores)) for scores in (before, after))
    return max(-1.0, 1 - gap_after / gap_before) if gap_before > 0 else 0.0


def _opening_gap(score: Score) -> float:
    return sum(score.teacher_logprobs[:OPENING_TOKENS]) - sum(score.student_logprobs[:OPENING_TOKENS])
