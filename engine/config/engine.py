"""Every default of the engine, once, with its unit and its source.

Nothing else in `engine/` reads the environment or repeats a default. Values marked [learning 0] come from the
project's own measurements on models of this kind; the evaluation harness is what may move them.
"""

import math
import sys
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from engine.config.window import Window

Divergence = Literal["forward_kl", "reverse_kl", "jsd", "sampled_token", "hard_label"]
Schedule = Literal["constant", "linear"]
Teacher = Literal["base", "current", "ema", "trust_region", "external"]

LORA_TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
VLLM_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the ranks vLLM 0.32 can allocate slots for


class ConfigError(ValueError):
    """A setting has a value the engine cannot work with. Remedy: the message names the setting."""


def _require(is_met: bool, message: str) -> None:
    if not is_met:
        raise ConfigError(message)


def _require_range(name: str, value: float, low: float, high: float) -> None:
    _require(low <= value <= high, f"{name} is {value}: set it between {low} and {high}")


@dataclass(frozen=True)
class HostConfig:
    """How vLLM is built and watched."""

    max_model_len: int | None = None  # tokens of prompt and answer together; None: what the model was made for
    max_num_seqs: int = 16  # answers decoded at once
    max_num_batched_tokens: int = 2048  # tokens of one forward pass, prefill included
    block_size: int = 32  # tokens of one prefix-cache block; vLLM's CPU kernels want a multiple of 32
    kv_cache_bytes: int | None = None  # None: 256 MiB on a CPU, vLLM's own profile on a GPU
    max_lora_rank: int = 32  # the rank every adapter slot is padded to: the highest that is served (as in CLaaS)
    max_cpu_loras: int = 256  # adapters kept ready in host memory; below that they come from disk
    max_loras_gpu: int = 8  # adapter slots in GPU memory: 174 MB each for an 8B model at rank 32
    dtype: str = "auto"  # "auto": float32 on a CPU, the checkpoint's own type on a GPU
    gpu_memory_utilization: float = 0.85  # share of GPU memory for vLLM; the rest is the trainer's activations
    trust_remote_code: bool = False  # code shipped with a model runs only when the operator says so
    start_timeout_s: float = 600.0  # a large model may need minutes to load
    rpc_timeout_s: float = 120.0  # longest single call into the worker; a healthy one takes milliseconds
    watch_interval_s: float = 1.0  # how often the children look whether their parent still lives
    max_restarts: int = 5  # within restart_window_s; more means the model cannot run here
    restart_window_s: float = 600.0
    busy_budget_ms: float = 25.0  # longest call into the worker while somebody reads a stream; one piece may exceed it
    idle_budget_ms: float = 250.0  # the same while nobody does
    registry_size: int = 64  # adapters whose tensors the trainer keeps at hand besides vLLM's copies
    log_level: str = "WARNING"  # of vLLM and its children
    teacher_model: str = ""  # a model folder with the same tokenizer, for learn.teacher "external"; empty: none

    def __post_init__(self) -> None:
        """Refuses values vLLM would only reject after the model has been loaded."""
        _require_range("host.max_num_seqs", self.max_num_seqs, 1, 1024)
        _require_range("host.max_num_batched_tokens", self.max_num_batched_tokens, 64, 1 << 20)
        _require(self.block_size in (16, 32, 64, 128), f"host.block_size is {self.block_size}: use 16, 32, 64 or 128")
        _require(
            self.max_lora_rank in VLLM_LORA_RANKS,
            f"host.max_lora_rank is {self.max_lora_rank}: use one of {VLLM_LORA_RANKS}",
        )
        _require_range("host.max_cpu_loras", self.max_cpu_loras, self.max_num_seqs + 1, 100_000)
        _require_range("host.gpu_memory_utilization", self.gpu_memory_utilization, 0.05, 0.98)
        _require_range("host.watch_interval_s", self.watch_interval_s, 0.05, 8.0)


@dataclass(frozen=True)
class LearnConfig:
    """What one update does. One frozen record, sent to the worker as a plain dictionary."""

    steps: int = 22  # optimizer steps, the first over all samples (ADR 10)
    mini_batch_samples: int = 4  # samples of every later step (ADR 10)
    learning_rate: float = 1e-2  # AdamW on a fresh adapter of a pocket-sized model (docs/LOG.md)
    parent_rate: float = 0.33  # times learning_rate where an update goes on from a parent (docs/LOG.md)
    parent_share: float = 0.75  # of its parent's B that an update goes on from: what it broke fades, too
    schedule: Schedule = "linear"  # of the learning rate, to zero: Adam keeps moving where the gradient is mere noise
    adam_betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0  # over all LoRA gradients together
    divergence: Divergence = "forward_kl"  # the others saturate on a confident student [learning 0]
    jsd_alpha: float = 0.5  # weight of the teacher in the mixture, 0 < alpha < 1
    top_k: int | None = None  # None: full vocabulary; otherwise the student's k likeliest tokens
    has_tail: bool = True  # with top_k: one more bucket for the rest; otherwise renormalise
    is_clip: float = 2.0  # cap of the truncated importance weight (SDPO, arXiv 2601.20802)
    teacher: Teacher = "base"  # sees the standing notes instead of carrying them [learning 0]; external: another model
    reads_notes: bool = True  # whether the teacher reads the standing notes beside the new feedback
    keeps_optimizer: bool = False  # whether an update goes on with the optimizer that made its parent, while in memory
    ema_rate: float = 0.05  # per step, share of the student in the "ema" teacher
    trust_region_mix: float = 0.05  # share of the current student's logits in the "trust_region" teacher
    stop_below: float = 0.0  # nats: stop when teacher and student are that close at the stop_quantile of positions
    stop_quantile: float = 0.99  # a mean would hide the one token in thirty that the lesson is about
    anchor_weight: float = 1.5  # times each anchor sample's weight: fewer skills lost than at 1, names still learned
    kl_to_parent_weight: float = 0.0  # KL(student || parent) on correction and counterfactual samples
    kl_to_base_weight: float = 0.0  # KL(student || base) on the same
    lora_rank: int = 16
    lora_alpha: int = 32
    target_modules: tuple[str, ...] = LORA_TARGET_MODULES
    seed: int = 0  # of the fresh adapter's A matrices
    micro_batch_tokens: int = 256  # padded tokens of one forward and backward: bounds the stall other chats see
    max_sequence_tokens: int = 4096  # a longer sample is refused rather than cut
    min_divergence: float = 0.005  # nats per token; feedback that moves the teacher less teaches nothing
    rollout_temperature: float = 1.0  # on-policy means as the adapter itself would say it [learning 0]
    max_rollout_tokens: int = 128  # of one counterfactual rollout: enough for a short answer
    num_counterfactuals: int = 1  # K: the person's recent prompts answered again; the teacher's do the rest (ADR 5)
    num_teacher_rollouts: int = 12  # prompts the teacher answers itself: states the student has yet to reach (ADR 5)
    num_anchors: int = 5  # neutral prompts the student is held to the base on [learning 0]

    def __post_init__(self) -> None:
        """Refuses values that would train nothing, everything, or the wrong way."""
        _require_range("learn.steps", self.steps, 1, 1000)
        _require_range("learn.mini_batch_samples", self.mini_batch_samples, 1, 1000)
        _require(0 < self.learning_rate <= 1, f"learn.learning_rate is {self.learning_rate}: set it in (0, 1]")
        _require(len(self.adam_betas) == 2, "learn.adam_betas needs two numbers")
        _require(all(0 <= beta < 1 for beta in self.adam_betas), f"learn.adam_betas is {self.adam_betas}: use [0, 1)")
        _require_range("learn.weight_decay", self.weight_decay, 0, 1)
        _require(self.max_grad_norm > 0, "learn.max_grad_norm must be above 0")
        _require_choice("learn.schedule", self.schedule, get_args(Schedule))
        _require_choice("learn.divergence", self.divergence, get_args(Divergence))
        _require_choice("learn.teacher", self.teacher, get_args(Teacher))
        _require(0 < self.jsd_alpha < 1, f"learn.jsd_alpha is {self.jsd_alpha}: use forward_kl or reverse_kl for 0, 1")
        _require(self.top_k is None or self.top_k >= 2, "learn.top_k must be at least 2, or left out")
        _require_range("learn.is_clip", self.is_clip, 1, 20)
        _require_range("learn.stop_quantile", self.stop_quantile, 0, 1)
        _require_range("learn.ema_rate", self.ema_rate, 0, 1)
        _require_range("learn.parent_rate", self.parent_rate, 0, 1)
        _require_range("learn.parent_share", self.parent_share, 0, 1)
        _require_range("learn.trust_region_mix", self.trust_region_mix, 0, 1)
        for name in ("stop_below", "anchor_weight", "kl_to_parent_weight", "kl_to_base_weight"):
            _require(getattr(self, name) >= 0, f"learn.{name} must not be negative")
        _require_range("learn.lora_rank", self.lora_rank, 1, 512)
        _require(set(self.target_modules) <= set(LORA_TARGET_MODULES), f"learn.target_modules: {LORA_TARGET_MODULES}")
        _require_range("learn.micro_batch_tokens", self.micro_batch_tokens, 16, 1 << 20)
        _require_range("learn.max_sequence_tokens", self.max_sequence_tokens, 16, 1 << 20)
        _require_range("learn.max_rollout_tokens", self.max_rollout_tokens, 1, 1 << 14)
        _require_range("learn.rollout_temperature", self.rollout_temperature, 0, 2)
        for name in ("num_counterfactuals", "num_teacher_rollouts", "num_anchors"):
            _require_range(f"learn.{name}", getattr(self, name), 0, 1000)
        _require(0 <= self.seed < 1 << 63, "learn.seed does not fit into 63 bits")

    @property
    def is_teacher_bare(self) -> bool:
        """Whether the teacher's own answers come from the base model: an external one only scores them."""
        return self.teacher in ("base", "external")

    def learning_rate_at(self, step: int, *, has_parent: bool) -> float:
        """The learning rate of a step, counted from 0."""
        rate = self.learning_rate * (self.parent_rate if has_parent else 1)
        return rate * (1 - step / self.steps if self.schedule == "linear" else 1)

    def merged(self, overrides: dict[str, Any] | None) -> "LearnConfig":
        """A copy with request-level `overrides`; a learning rate among them is taken as it is, with a parent too.

        Raises ConfigError on an unknown or bad field.
        """
        wanted = overrides or {}
        implied = {"parent_rate": 1.0} if "learning_rate" in wanted else {}
        return LearnConfig.from_dict(self.to_dict() | implied | wanted)

    def gentler(self) -> "LearnConfig":
        """For the one more try of a candidate that was refused: half the learning rate."""
        return replace(self, learning_rate=0.5 * self.learning_rate)

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, as they cross into the worker process."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "LearnConfig":
        """The inverse of `to_dict`. Raises ConfigError on an unknown or bad field."""
        unknown = set(values) - {f.name for f in fields(cls)}
        _require(not unknown, f"unknown learning setting: {', '.join(sorted(unknown))}")
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        for key, value in plain.items():
            _require_type(f"learn.{key}", value, getattr(cls, key))
        return cls(**plain)


@dataclass(frozen=True)
class GateConfig:
    """When a candidate version is refused."""

    max_update_norm: float = 60.0  # Frobenius norm of the change of all LoRA tensors; far above a normal update
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
        """Refuses a gate that would let nothing through."""
        _require(self.max_update_norm > 0, "gate.max_update_norm must be above 0")
        _require(self.max_divergence_left > 0, "gate.max_divergence_left must be above 0")
        for name in (
            "max_anchor_divergence",
            "max_earlier_drop",
            "max_gold_drop",
            "max_drift",
            "max_watched_tokens",
            "max_unasked",
            "max_unasked_worst",
        ):
            _require(getattr(self, name) >= 0, f"gate.{name} must not be negative")
        for name in ("max_self_rouge", "min_preserved", "max_fabricated", "min_compliant"):
            _require_range(f"gate.{name}", getattr(self, name), 0, 1)
        _require_range("gate.min_entropy_ratio", self.min_entropy_ratio, 0, 1)
        _require_range("gate.num_watched", self.num_watched, 0, 64)


@dataclass(frozen=True)
class NoteConfig:
    """When a standing note leaves the prompt and when a newer one has replaced it (`engine.samples.notes`)."""

    max_notes: int = 16  # said at once, in the prompt or to the teacher: as many as the pocket model was made for
    prompt_share: float = 0.25  # of the context that they may take together; what does not fit waits, newest first
    standing_share: float = 0.1  # of the move on the corrected prompt that must show on other prompts too
    probe_rollouts: int = 4  # fresh answers a note is judged on
    long_probe_rollouts: int = 16  # and those that decide where it fails on so few
    min_gain: float = 0.5  # nats per answer; a smaller log-likelihood ratio says nothing
    max_gain: float = 5.0  # nats per answer; a larger one says no more
    held_share: float = 0.85  # of the sum of all ratios, the share that must speak for the note (docs/LOG.md)
    inert_effect: float = 0.02  # nats per token; a note that changes less beside the others is inert
    moving_effect: float = 0.05  # nats per token; a note that changes more by itself has something to say

    def __post_init__(self) -> None:
        """Refuses shares outside 0 to 1."""
        _require_range("note.max_notes", self.max_notes, 1, 1000)
        _require_range("note.prompt_share", self.prompt_share, 0, 0.5)
        _require_range("note.standing_share", self.standing_share, 0, 1)
        _require_range("note.held_share", self.held_share, 0, 1)
        _require_range("note.probe_rollouts", self.probe_rollouts, 1, 64)
        _require_range("note.long_probe_rollouts", self.long_probe_rollouts, self.probe_rollouts, 256)
        _require(self.max_gain > self.min_gain, "note.max_gain must be above note.min_gain")


@dataclass(frozen=True)
class FactConfig:
    """Notes that show only when somebody asks: their questions (`questions`, `facts`, ADR 13)."""

    num_written: int = 4  # questions the model is asked to write about a note
    num_questions: int = 8  # of those, and of those made of its words, that are kept
    min_gap: float = 0.5  # nats per token that the note must move the answer to a question; what says nothing: < .2
    max_questions: int = 80  # asked in one consolidation
    min_steps: int = 100  # of a consolidation that asks for any: one fact alone has to be told from what was not told
    num_rehearsed: int = 8  # facts that the weights hold, asked for once more in every lesson
    num_untold: int = 6  # questions for what was never told, on which the student is held to the base
    passes: float = 12.0  # over the questions of a consolidation, where other samples have `sleep.passes`

    def __post_init__(self) -> None:
        """Refuses values that would keep nothing."""
        _require_range("fact.num_written", self.num_written, 0, 64)
        _require_range("fact.num_questions", self.num_questions, 1, 64)
        _require_range("fact.min_gap", self.min_gap, 0, 100)
        _require_range("fact.max_questions", self.max_questions, 1, 10_000)
        _require_range("fact.min_steps", self.min_steps, 1, 1000)
        _require_range("fact.num_rehearsed", self.num_rehearsed, 0, 1000)
        _require_range("fact.num_untold", self.num_untold, 0, 1000)
        _require_range("fact.passes", self.passes, 0.1, 1000)


@dataclass(frozen=True)
class SleepConfig:
    """Consolidations: when one is due and what it is made of (`schedule`, `material`, ADR 12)."""

    is_nightly: bool = True  # False: on demand only
    window: str = "02:00-06:00"  # local time, HH:MM-HH:MM; may wrap midnight (mnemonic)
    min_new: int = 50  # pieces of new feedback that make one due by itself (mnemonic)
    idle_s: float = 60.0  # how long nobody must have been answered before one begins by itself
    look_every_s: float = 30.0  # how often heed looks whether one is due
    cooldown_s: float = 24 * 3600.0  # after one that failed or was refused (mnemonic)
    max_failures: int = 3  # in a row, after which none begins until the oldest of them has aged (mnemonic)
    failure_age_s: float = 7 * 24 * 3600.0  # after which a failure counts no more (mnemonic)
    num_lessons: int = 24  # corrections of one consolidation, new and earlier: places to be shared
    new_share: float = 0.7  # of the places for what is new, the rest for earlier corrections (mnemonic's 70/30)
    max_weak: int = 5  # thumbs down without a reason and dropped answers in one consolidation
    min_gap: float = 0.02  # nats per token that a weak signal must move the teacher, or it trains nothing
    full_gap: float = 0.2  # nats per token from which a weak signal has its whole weight
    weak_weight: float = 0.3  # of a correction's, at most
    max_follow_ups: int = 5  # ordinary next messages in one consolidation, of people who allow it
    follow_up_gap: float = 0.1  # nats per token below which a next message trains nothing: five times a weak signal's
    follow_up_weight: float = 0.15  # of a correction's, at most: half a thumb down's
    min_divergence: float = 0.0005  # nats per token over all samples; a tenth of a lesson's: one of many may be lost
    num_own: int = 6  # recent prompts of the person, answered again
    passes: float = 3.0  # over all samples
    max_steps: int = 400  # optimizer steps at most
    num_gold: int = 8  # approved answers that the candidate writes again before it becomes active
    max_drift: float = 1.0  # nats per token from the base on neutral prompts; above it an adapter is made from zero

    def __post_init__(self) -> None:
        """Refuses a window nobody can read and shares outside 0 to 1."""
        try:
            Window.parse(self.window)
        except ValueError as error:
            raise ConfigError(f"sleep.window is {self.window!r}: {error}") from None
        for name in ("min_new", "max_failures", "num_lessons"):
            _require_range(f"sleep.{name}", getattr(self, name), 1, 10_000)
        for name in ("max_weak", "num_own", "num_gold", "max_follow_ups"):
            _require_range(f"sleep.{name}", getattr(self, name), 0, 1000)
        for name in ("idle_s", "cooldown_s", "failure_age_s", "min_gap", "min_divergence", "follow_up_gap"):
            _require(0 <= getattr(self, name) < math.inf, f"sleep.{name} must be a number, 0 or above")
        for name in ("new_share", "weak_weight", "follow_up_weight"):
            _require_range(f"sleep.{name}", getattr(self, name), 0, 1)
        _require_range("sleep.look_every_s", self.look_every_s, 0.05, 3600)
        _require(self.max_drift > 0, "sleep.max_drift must be above 0")
        _require_range("sleep.passes", self.passes, 0.1, 100)
        _require_range("sleep.max_steps", self.max_steps, 1, 10_000)
        _require(self.full_gap > self.min_gap, "sleep.full_gap must be above sleep.min_gap")


@dataclass(frozen=True)
class CurriculumConfig:
    """Answers that were not good, written better by a teacher (`engine.consolidation.better_answers`, ADR 14)."""

    is_on: bool = True
    num_graded: int = 50  # newest answers of a person that are looked at
    max_answers: int = 20  # tried in one cycle, the worst first (mnemonic)
    cooldown_s: float = 20 * 3600.0  # between two cycles of a person; less than a day, or every other night would do
    max_failures: int = 3  # tries at one answer of which none was an answer, after which it is left alone
    gold_preserved: float = 0.9  # EPR of an approved answer from which it is gold (mnemonic)
    poor_preserved: float = 0.7  # EPR below which an answer needs improvement (mnemonic)
    min_gain: float = 0.5  # nats per answer; less says nothing about whether notes are followed (as note.min_gain)
    weight: float = 0.5  # of a correction's: nobody said that the better answer is right
    url: str = ""  # of an OpenAI-compatible endpoint, up to /v1; empty: the base model is the teacher
    model: str = ""  # its name at the endpoint
    api_key: str = field(default="", repr=False)
    timeout_s: float = 30.0  # for one answer of the endpoint
    max_tokens: int = 512  # of one answer of the endpoint
    max_reply_bytes: int = 1 << 20  # of the endpoint's whole reply

    def __post_init__(self) -> None:
        """Refuses an endpoint that cannot be asked, and shares outside 0 to 1."""
        is_address = not self.url or self.url.startswith(("http://", "https://"))
        _require(is_address, f"curriculum.url is {self.url!r}: begin it with http:// or https://, or leave it out")
        _require(not self.url or bool(self.model), "curriculum.url is set and curriculum.model is not: name the model")
        for name in ("num_graded", "max_answers", "max_failures", "max_tokens"):
            _require_range(f"curriculum.{name}", getattr(self, name), 1, 10_000)
        for name in ("gold_preserved", "poor_preserved", "weight"):
            _require_range(f"curriculum.{name}", getattr(self, name), 0, 1)
        for name in ("cooldown_s", "min_gain"):
            _require(0 <= getattr(self, name) < math.inf, f"curriculum.{name} must be a number, 0 or above")
        _require_range("curriculum.timeout_s", self.timeout_s, 0.1, 3600)
        _require_range("curriculum.max_reply_bytes", self.max_reply_bytes, 1 << 10, 1 << 30)


def _lines(drift: float, entropy: float, length: float, rouge: float) -> dict[str, tuple[float, float]]:
    """From and to for each figure of `engine.gates.drift`."""
    return {
        "drift": (0.0, drift),
        "entropy_ratio": (entropy, math.inf),
        "length_ratio": (1 / length, length),
        "self_rouge": (0.0, rouge),
    }


@dataclass(frozen=True)
class AuditConfig:
    """The drift audit (`engine.gates.drift`): over what, how often, and where its lines are."""

    num_answers: int = 100  # newest answers of a person (mnemonic)
    min_answers: int = 20  # fewer say nothing (mnemonic)
    num_rewritten: int = 12  # of their prompts, answered again by the active version and by the base model
    every_versions: int = 10  # lessons after which there is one; a consolidation is always followed by one
    warn_drift: float = 1.0  # nats per token: half of CLaaS's alarm
    critical_drift: float = 2.0  # nats per token (alarm of CLaaS)
    warn_entropy: float = 0.8  # of the base model's
    critical_entropy: float = 0.6  # (alarm of CLaaS)
    warn_length: float = 2.0  # times longer or shorter than the base model with the same notes
    critical_length: float = 4.0
    warn_rouge: float = 0.75
    critical_rouge: float = 0.85  # (alarm of CLaaS)

    def __post_init__(self) -> None:
        """Refuses critical lines before the warning ones."""
        for name in ("num_answers", "min_answers", "every_versions"):
            _require_range(f"audit.{name}", getattr(self, name), 1, 10_000)
        _require_range("audit.num_rewritten", self.num_rewritten, 0, 1000)
        for name in ("drift", "length", "rouge"):
            warn, critical = getattr(self, f"warn_{name}"), getattr(self, f"critical_{name}")
            _require(0 < warn <= critical, f"audit.critical_{name} must not be below audit.warn_{name}")
        is_ordered = 0 < self.critical_entropy <= self.warn_entropy
        _require(is_ordered, "audit.critical_entropy must not be above audit.warn_entropy")
        _require(self.warn_length >= 1, "audit.warn_length must be at least 1")

    @property
    def warn(self) -> dict[str, tuple[float, float]]:
        """The lines beyond which a figure is worth a look."""
        return _lines(self.warn_drift, self.warn_entropy, self.warn_length, self.warn_rouge)

    @property
    def critical(self) -> dict[str, tuple[float, float]]:
        """The lines beyond which an adapter should be made again."""
        return _lines(self.critical_drift, self.critical_entropy, self.critical_length, self.critical_rouge)


@dataclass(frozen=True)
class VersionConfig:
    """How many versions of a person's adapter are kept, what comes in, and how long the newest is on probation."""

    keep: int = 5  # accepted versions of one person whose files stay; the active one and the one below it among them
    max_import_bytes: int = 256 << 20  # of an adapter that comes as a file, unpacked; 87 MB for an 8B model at rank 16
    keeps_batches: bool = True  # what each version was trained on, beside its files (`engine.adapters.training_batch`)
    probation_answers: int = 10  # first answers of a version whose feedback may take its lesson back; 0: none
    probation_complaints: int = 2  # of those answers disliked without a reason, that take the lesson back

    def __post_init__(self) -> None:
        """Refuses a number that would leave nothing to go back to."""
        _require_range("versions.keep", self.keep, 2, 10_000)
        _require_range("versions.max_import_bytes", self.max_import_bytes, 1 << 10, 1 << 36)
        _require_range("versions.probation_answers", self.probation_answers, 0, 1000)
        _require_range("versions.probation_complaints", self.probation_complaints, 1, 1000)


@dataclass(frozen=True)
class EngineConfig:
    """The whole engine: which model, where its data lies, and the groups above."""

    model: str
    data_dir: Path
    host: HostConfig = field(default_factory=HostConfig)
    learn: LearnConfig = field(default_factory=LearnConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    note: NoteConfig = field(default_factory=NoteConfig)
    fact: FactConfig = field(default_factory=FactConfig)
    sleep: SleepConfig = field(default_factory=SleepConfig)
    versions: VersionConfig = field(default_factory=VersionConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    is_thinking: bool = False  # handed to the chat template of reasoning models

    def __post_init__(self) -> None:
        """Refuses combinations no single group can see."""
        _require(bool(self.model), "model is empty: give a Hugging Face name or a folder")
        _require(
            self.learn.lora_rank <= self.host.max_lora_rank,
            f"learn.lora_rank {self.learn.lora_rank} is above host.max_lora_rank {self.host.max_lora_rank}",
        )
        self.check_teacher(self.learn)

    def check_teacher(self, learn: LearnConfig) -> None:
        """Raises ConfigError where an update wants a teacher that is not loaded."""
        is_there = learn.teacher != "external" or bool(self.host.teacher_model)
        _require(is_there, 'learn.teacher is "external": set host.teacher_model to the folder of that model, too')


def _require_type(name: str, value: Any, default: Any) -> None:
    """A value must be of its default's type, also within a list; an integer also counts as a float, None as `top_k`."""
    wanted: tuple[type, ...] = (int, type(None)) if default is None else (type(default),)
    if wanted == (float,):
        wanted = (int, float)
    is_bool_for_number = isinstance(value, bool) and bool not in wanted
    _require(isinstance(value, wanted) and not is_bool_for_number, f"{name} has the wrong type: {value!r}")
    _require(float not in wanted or abs(value) <= sys.float_info.max, f"{name} must be a finite number")
    for entry in value if isinstance(value, tuple) else ():
        _require_type(name, entry, default[0])


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _require(value in choices, f"{name} is {value!r}: use one of {', '.join(choices)}")
