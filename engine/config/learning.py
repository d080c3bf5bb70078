"""Settings of learning: rate, steps, losses, gates, notes, kept versions. Every default once, with its source.

Values marked [learning 0] come from the project's own measurements on models of this kind; the evaluation harness is
what may move them.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from engine.config.checks import require, require_choice, require_range, require_type

Divergence = Literal["forward_kl", "reverse_kl", "jsd", "sampled_token", "hard_label"]
Schedule = Literal["constant", "linear"]
Wording = Literal["heed", "sdpo", "claas", "user_interactions"]  # of hindsight, as published
Teacher = Literal["base", "current", "ema", "trust_region", "external"]

OPENING_TOKENS = 4
FIRST_ANCHORS = 2  # of a lesson's first version: a few steps on one call go nowhere far
FIRST_BATCH = 4  # samples a step of it: half of what others take, in half the time
_COUNTS = ("num_counterfactuals", "num_teacher_rollouts", "max_teacher_rollouts", "num_openings", "num_anchors")
_SHARES = (
    "stop_quantile", "ema_rate", "parent_rate", "parent_share", "replacing_share", "trust_region_mix",
    "rollout_quantile",
)  # fmt: skip
MAX_STEPS = 1000  # of one update
MIN_RATE = 1e-3  # a share that is divided by
_OF_ALL = ("rollout_quantile", "rollout_temperature", "longest_rollout_tokens")  # updates: they share their rollouts
LORA_TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
FUSED_MODULES = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}  # as in Phi-3


def with_fused(modules: Iterable[str]) -> list[str]:
    """Return the names of linear layers, and of the one that some architectures have in place of several of them."""
    wanted = list(modules)
    return wanted + [name for name, parts in FUSED_MODULES.items() if set(parts) & set(wanted)]


@dataclass(frozen=True)
class LearnConfig:
    """The settings of one update, sent to the worker as a plain dictionary."""

    steps: int = 22  # optimizer steps
    whole_first_step: bool = True  # the first over all samples, which measures the version before in passing (ADR 10)
    mini_batch_samples: int = 4  # samples of every other step (ADR 10)
    learning_rate: float = 1e-2  # AdamW on a fresh adapter of a pocket-sized model (docs/LOG.md)
    parent_rate: float = 0.33  # times learning_rate if an update goes on from a parent (docs/LOG.md)
    parent_share: float = 0.75  # of its parent's B that an update goes on from: its damage fades, too
    replacing_share: float = (
        0.75  # the same where a wish takes the place of an older one (`engine.adapters.superseding`)
    )
    schedule: Schedule = "linear"  # of the learning rate, to zero: Adam keeps moving on a gradient of mere noise
    adam_betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0  # over all LoRA gradients together
    divergence: Divergence = "forward_kl"  # the others saturate on a confident student [learning 0]
    jsd_alpha: float = 0.5  # weight of the teacher in the mixture, 0 < alpha < 1
    top_k: int | None = None  # None: full vocabulary; otherwise the student's k likeliest tokens
    has_tail: bool = True  # with top_k: one more bucket for the rest; otherwise renormalise
    is_clip: float = 2.0  # cap of the truncated importance weight (SDPO, arXiv 2601.20802)
    teacher: Teacher = "base"  # sees the standing notes instead of carrying them [learning 0]; external: another model
    reads_notes: bool = True  # the teacher reads the standing notes beside the new feedback
    reads_own_note: bool = True  # and the feedback itself as a note, too: both forms are followed better than either
    reads_hindsight: bool = True  # and behind the question, even if it reads it as a note; rewritten answers always are
    hindsight_wording: Wording = "heed"  # the words around the feedback behind the question
    shows_rewrites: bool = True  # as examples to other prompts; false: those get forms, also of wishes, in plain words
    facts_in_message: bool = False  # what a question calls up stands before it, in its message; false: twice as a note
    keeps_optimizer: bool = False  # an update goes on with the optimizer that made its parent, while it is in memory
    ema_rate: float = 0.05  # per step, share of the student in the "ema" teacher
    trust_region_mix: float = 0.05  # share of the current student's logits in the "trust_region" teacher
    guidance_scale: float = (
        1.0  # of the base teacher at an answer's ends: how far to go where it was moved to; 1: no further
    )
    guides_unsure: bool = True  # it also if that makes the beginnings of answers less sure; see `replacing`
    stop_below: float = 0.0  # nats: stop when teacher and student are that close at the stop_quantile of positions
    stop_quantile: float = 0.99  # a mean would hide the one token in thirty that the lesson is about
    opening_weight: float = 1.0  # times the weight of an answer's first OPENING_TOKENS, which decide the rest
    closing_weight: float = 1.0  # the same for its last token: whether an answer stops is one choice among many
    anchor_weight: float = 1.5  # times each anchor sample's weight: fewer skills lost than at 1, names still learned
    kl_to_parent_weight: float = 0.0  # KL(student || parent) on correction and counterfactual samples
    kl_to_base_weight: float = 0.0  # KL(student || base) on the same
    lora_rank: int = 16
    lora_alpha: int = 32
    target_modules: tuple[str, ...] = LORA_TARGET_MODULES
    seed: int = 0  # of the fresh adapter's A matrices
    micro_batch_tokens: int = 256  # of one forward and backward, a shared beginning left out: bounds others' stall
    max_sequence_tokens: int = 4096  # of prompt and answer; longer conversations lose their oldest turns
    min_divergence: float = 0.005  # nats per token; feedback that moves the teacher less teaches nothing
    rollout_temperature: float = 1.0  # on-policy means as the adapter itself would say it [learning 0]
    teacher_temperature: float = 1.0  # of the teacher's own answers
    max_rollout_tokens: int = (
        128  # of one rollout: enough for a short answer; people with longer answers get longer ones
    )
    rollout_quantile: float = 0.8  # of the lengths of the person's answers: a rollout may be as long as these
    longest_rollout_tokens: int = 512  # that one rollout grows to, however long the person's answers are
    lesson_rollout_tokens: int = 4096  # that all rollouts of a lesson may grow to together: what bounds its time
    num_counterfactuals: int = 1  # K: the person's recent prompts answered again; the teacher's do the rest (ADR 5)
    num_teacher_rollouts: int = 12  # prompts the teacher answers itself: states the student has yet to reach (ADR 5)
    max_teacher_rollouts: int = 0  # up to as many if they are short, for as much work as max_rollout_tokens each
    num_openings: int = 0  # further prompts of which it only begins the answer: there a wish is followed or not
    work_steps: int = 3  # times the steps of a lesson about a chat, where it is about an agent's work (docs/LOG.md)
    work_rate: float = 0.6  # times parent_rate there: at the whole rate every third lesson moves what it is not about
    work_first_steps: int = 18  # of a first version there, with which the denied call is tried again; 0: none
    num_anchors: int = 5  # neutral prompts the student is held to the base on [learning 0]
    anchor_choice: int = 1  # times as many are drawn, and those taken that the person's wishes change least

    def __post_init__(self) -> None:
        """Refuse values that would train nothing, everything, or the wrong way."""
        require_range("learn.steps", self.steps, 1, MAX_STEPS)
        require_range("learn.mini_batch_samples", self.mini_batch_samples, 1, 1000)
        require(0 < self.learning_rate <= 1, f"learn.learning_rate is {self.learning_rate}: set it in (0, 1]")
        require(len(self.adam_betas) == 2, "learn.adam_betas needs two numbers")
        require(all(0 <= beta < 1 for beta in self.adam_betas), f"learn.adam_betas is {self.adam_betas}: use [0, 1)")
        require_range("learn.weight_decay", self.weight_decay, 0, 1)
        require(self.max_grad_norm > 0, "learn.max_grad_norm must be above 0")
        require_choice("learn.schedule", self.schedule, get_args(Schedule))
        require_choice("learn.divergence", self.divergence, get_args(Divergence))
        require_choice("learn.teacher", self.teacher, get_args(Teacher))
        require_choice("learn.hindsight_wording", self.hindsight_wording, get_args(Wording))
        is_read = self.reads_own_note or self.reads_hindsight
        require(is_read, "learn.reads_own_note and learn.reads_hindsight are false: the teacher knows no lesson")
        require(0 < self.jsd_alpha < 1, f"learn.jsd_alpha is {self.jsd_alpha}: use forward_kl or reverse_kl for 0, 1")
        require(self.top_k is None or self.top_k >= 2, "learn.top_k must be at least 2, or left out")
        require_range("learn.is_clip", self.is_clip, 1, 20)
        for name in _SHARES:
            require_range(f"learn.{name}", getattr(self, name), 0, 1)
        require_range("learn.work_steps", self.work_steps, 1, 100)
        require_range("learn.work_first_steps", self.work_first_steps, 0, 100)
        require_range("learn.guidance_scale", self.guidance_scale, 1, 5)
        require_range("learn.opening_weight", self.opening_weight, 1, 100)
        require_range("learn.closing_weight", self.closing_weight, 1, 100)
        for name in ("stop_below", "anchor_weight", "kl_to_parent_weight", "kl_to_base_weight"):
            require(getattr(self, name) >= 0, f"learn.{name} must not be negative")
        require_range("learn.lora_rank", self.lora_rank, 1, 512)
        require(set(self.target_modules) <= set(LORA_TARGET_MODULES), f"learn.target_modules: {LORA_TARGET_MODULES}")
        require_range("learn.micro_batch_tokens", self.micro_batch_tokens, 16, 1 << 20)
        require_range("learn.max_sequence_tokens", self.max_sequence_tokens, 16, 1 << 20)
        require_range("learn.max_rollout_tokens", self.max_rollout_tokens, 1, 1 << 14)
        for name in ("longest_rollout_tokens", "lesson_rollout_tokens"):
            require_range(f"learn.{name}", getattr(self, name), 1, 1 << 20)
        require_range("learn.rollout_temperature", self.rollout_temperature, 0, 2)
        require_range("learn.teacher_temperature", self.teacher_temperature, 0, 2)
        require_range("learn.anchor_choice", self.anchor_choice, 1, 100)
        for name in _COUNTS:
            require_range(f"learn.{name}", getattr(self, name), 0, 1000)
        require(0 <= self.seed < 1 << 63, "learn.seed does not fit into 63 bits")

    @property
    def is_teacher_bare(self) -> bool:
        """Return True if the base model writes the teacher's own answers; an external teacher only scores them."""
        return self.teacher in ("base", "external")

    def learning_rate_at(self, step: int, *, has_parent: bool) -> float:
        """Return the learning rate of a step; steps count from 0."""
        rate = self.learning_rate * (self.parent_rate if has_parent else 1)
        return rate * (1 - step / self.steps if self.schedule == "linear" else 1)

    def merged(self, overrides: dict[str, Any] | None) -> "LearnConfig":
        """Return a copy with a request's `overrides`. A learning rate among them holds for a parent, too.

        Raises ConfigError on an unknown or bad field.
        """
        wanted = overrides or {}
        for name in _OF_ALL:
            require(name not in wanted, f"learn.{name} holds for every update, so a request cannot set it")
        implied = {"parent_rate": 1.0} if "learning_rate" in wanted else {}
        return LearnConfig.from_dict(self.to_dict() | implied | wanted)

    def gentler(self) -> "LearnConfig":
        """Return a copy with half the learning rate, for the second try after a refused candidate."""
        return replace(self, learning_rate=0.5 * self.learning_rate)

    def replacing(self) -> "LearnConfig":
        """Return a copy for a lesson whose wish takes the place of an older one, which is mostly its opposite.

        Less of what the older one left is gone on from, and the teacher is guided only if that makes it surer: the
        opposite is near to what the base model does by itself, and away from there lies what hardly anything says.
        """
        return replace(self, parent_share=self.replacing_share, guides_unsure=False)

    def at_work(self) -> "LearnConfig":
        """Return a copy for a lesson about an agent's work: a wish there is one call among many, and harder to hold."""
        steps = min(MAX_STEPS, self.work_steps * self.steps)
        return replace(self, steps=steps, parent_rate=self.work_rate * self.parent_rate)

    def first_at_work(self) -> "LearnConfig":
        """Return a copy, of one `at_work`, for a lesson's first version: few small steps, at the whole rate."""
        return replace(
            self,
            steps=self.work_first_steps,
            parent_rate=min(1.0, self.parent_rate / max(self.work_rate, MIN_RATE)),
            num_anchors=min(self.num_anchors, FIRST_ANCHORS),
            mini_batch_samples=min(self.mini_batch_samples, FIRST_BATCH),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as they cross into the worker process."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "LearnConfig":
        """Build the record from the values of `to_dict`. Raises ConfigError on an unknown or bad field."""
        unknown = set(values) - {f.name for f in fields(cls)}
        require(not unknown, f"unknown learning setting: {', '.join(sorted(unknown))}")
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        for key, value in plain.items():
            require_type(f"learn.{key}", value, getattr(cls, key))
        return cls(**plain)


@dataclass(frozen=True)
class GateConfig:
    """The limits beyond which a candidate version is refused."""

    max_value_change: float = 0.12  # root mean square over all LoRA values; far above a normal update of any size
    max_update_norm: float | None = None  # the older bound, on the whole Frobenius norm: in its place if it is set
    max_divergence_left: float = 0.15  # of the divergence before; a good lesson leaves less than a tenth (docs/LOG.md)
    min_margin_gain: float = 0.0  # nats per token the corrected answer's margin must have won
    max_anchor_divergence: float = 0.5  # nats per token between base and candidate on neutral prompts
    max_earlier_drop: float = 2.0  # nats per token that an earlier correction's margin may lose, of 6 at most
    max_gold_drop: float = 0.5  # nats per token that a gold answer may lose
    max_unasked: float = 0.05  # nats per token away from the teacher, over all answers
    max_unasked_worst: float = 0.2  # the same in any one answer
    min_entropy_ratio: float = 0.6  # candidate against teacher (alarm of CLaaS)
    max_self_rouge: float = 0.85  # ROUGE-L F1 between answers to different prompts (alarm of CLaaS)
    max_drift: float = 2.0  # nats per token on the base model's answers (alarm of CLaaS)
    min_preserved: float = 0.90  # EPR: share of a gold answer's entities kept, on average (mnemonic)
    max_fabricated: float = 0.05  # FR: share of entities that the gold answer does not have, on average (mnemonic)
    min_compliant: float = 0.95  # SC: share of answers in their gold answer's form (mnemonic)
    num_watched: int = 4  # earlier corrections and gold answers looked at in one update, gold ones at most half
    max_watched_tokens: int = 512  # of prompt and answer of each; a longer one is not looked at

    def __post_init__(self) -> None:
        """Refuse a gate that would let nothing through."""
        require(self.max_value_change > 0, "gate.max_value_change must be above 0")
        is_norm = self.max_update_norm is None or self.max_update_norm > 0
        require(is_norm, "gate.max_update_norm must be above 0; better leave it out and set gate.max_value_change")
        require(self.max_divergence_left > 0, "gate.max_divergence_left must be above 0")
        for name in (
            "max_anchor_divergence",
            "max_earlier_drop",
            "max_gold_drop",
            "max_drift",
            "max_watched_tokens",
            "max_unasked",
            "max_unasked_worst",
        ):
            require(getattr(self, name) >= 0, f"gate.{name} must not be negative")
        for name in ("max_self_rouge", "min_preserved", "max_fabricated", "min_compliant"):
            require_range(f"gate.{name}", getattr(self, name), 0, 1)
        require_range("gate.min_entropy_ratio", self.min_entropy_ratio, 0, 1)
        require_range("gate.num_watched", self.num_watched, 0, 64)


@dataclass(frozen=True)
class NoteConfig:
    """When a standing note leaves the prompt and when a newer one has replaced it (`engine.samples.notes`)."""

    max_notes: int = 16  # said at once, in the prompt or to the teacher: as many as the pocket model was made for
    prompt_share: float = 0.25  # of the context that they may take together; the rest waits, newest first
    standing_share: float = 0.1  # of the move on the corrected prompt that must show on other prompts too
    probe_prompts: int = 4  # greedy answers a wish is judged on; a fact on those to all its questions
    placebo_factor: float = 2.0  # times what a placebo note moves: less is what any words do
    min_gain: float = 0.5  # nats per answer; a smaller log-likelihood ratio says nothing
    max_gain: float = 5.0  # nats per answer; a larger one says no more
    held_share: float = 0.85  # of the sum of all ratios, the share that must speak for the note (docs/LOG.md)
    inert_effect: float = 0.02  # nats per token; a note that changes less is inert even if a placebo changes nothing
    moving_effect: float = 0.05  # nats per token; a note that changes more by itself has something to say

    def __post_init__(self) -> None:
        """Refuses shares outside 0 to 1."""
        require_range("note.max_notes", self.max_notes, 1, 1000)
        require_range("note.prompt_share", self.prompt_share, 0, 0.5)
        require_range("note.standing_share", self.standing_share, 0, 1)
        require_range("note.held_share", self.held_share, 0, 1)
        require_range("note.probe_prompts", self.probe_prompts, 1, 64)
        require_range("note.placebo_factor", self.placebo_factor, 1, 100)
        require(self.max_gain > self.min_gain, "note.max_gain must be above note.min_gain")


@dataclass(frozen=True)
class FactConfig:
    """Notes that show only when a question asks for them (`engine.samples.questions`, ADR 13)."""

    num_written: int = 4  # questions the model is asked to write about a note
    num_questions: int = 12  # of those, and of those made of its words, that are kept; every third for its probe alone
    min_gap: float = 0.5  # nats per token that the note must move the answer to a question; an empty note: < .2
    max_questions: int = 120  # asked in one consolidation
    min_steps: int = 100  # of a consolidation that asks for any: one fact must be told from untold ones
    num_rehearsed: int = 8  # facts that the weights hold, asked for once more in every lesson
    num_untold: int = 6  # questions about untold facts, on which the student is held to the base; no fewer than
    untold_share: float = 0.75  # of the questions about told ones
    num_untold_asked: int = 40  # questions about untold facts that a candidate is asked before it may answer
    max_made_up: float = 0.05  # of these, the share that it may answer with what was told of something else
    num_told_asked: int = 40  # questions about facts that a candidate is asked, each with its note in view
    min_told: float = 0.8  # of those that the base model answers from the note, the share that it must answer so, too
    passes: float = 12.0  # over the questions of a consolidation; other samples have `sleep.passes`

    def __post_init__(self) -> None:
        """Refuse values that would keep nothing."""
        require_range("fact.num_written", self.num_written, 0, 64)
        require_range("fact.num_questions", self.num_questions, 1, 64)
        require_range("fact.min_gap", self.min_gap, 0, 100)
        require_range("fact.max_questions", self.max_questions, 1, 10_000)
        require_range("fact.min_steps", self.min_steps, 1, 1000)
        require_range("fact.num_rehearsed", self.num_rehearsed, 0, 1000)
        require_range("fact.num_untold", self.num_untold, 0, 1000)
        require_range("fact.num_untold_asked", self.num_untold_asked, 0, 1000)
        require_range("fact.max_made_up", self.max_made_up, 0, 1)
        require_range("fact.num_told_asked", self.num_told_asked, 0, 1000)
        require_range("fact.min_told", self.min_told, 0, 1)
        require_range("fact.untold_share", self.untold_share, 0, 10)
        require_range("fact.passes", self.passes, 0.1, 1000)


@dataclass(frozen=True)
class VersionConfig:
    """How many versions of a person's adapter are kept, what comes in, and how long the newest is on probation."""

    keep: int = 5  # accepted versions of one person whose files stay; the active one and the one below it among them
    max_import_bytes: int = 256 << 20  # of an adapter that comes as a file, unpacked; 175 MB for an 8B model at rank 16
    keeps_batches: bool = True  # each version's training batch, beside its files (`engine.adapters.training_batch`)
    probation_answers: int = 10  # first answers of a version whose feedback may take its lesson back; 0: none
    probation_complaints: int = 2  # of those answers disliked without a reason, that take the lesson back

    def __post_init__(self) -> None:
        """Refuse a number that would leave no version to go back to."""
        require_range("versions.keep", self.keep, 2, 10_000)
        require_range("versions.max_import_bytes", self.max_import_bytes, 1 << 10, 1 << 36)
        require_range("versions.probation_answers", self.probation_answers, 0, 1000)
        require_range("versions.probation_complaints", self.probation_complaints, 1, 1000)
