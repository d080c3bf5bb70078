"""Every default of the engine, once, with its unit and its source.

Nothing else in `engine/` reads the environment or repeats a default. Values marked [learning 0] come from the
project's own measurements on models of this kind; the evaluation harness is what may move them.
"""

import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

Divergence = Literal["forward_kl", "reverse_kl", "jsd", "sampled_token"]
Schedule = Literal["constant", "linear"]
Teacher = Literal["base", "current", "ema", "trust_region"]

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
    max_lora_rank: int = 16  # the rank every adapter slot is padded to
    max_cpu_loras: int = 256  # adapters kept ready in host memory; below that they come from disk
    max_loras_gpu: int = 8  # adapter slots in GPU memory: 87 MB each for an 8B model at rank 16
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

    steps: int = 10  # optimizer steps, each over all samples (docs/LOG.md)
    learning_rate: float = 1.3e-2  # AdamW on a fresh adapter of a pocket-sized model (docs/LOG.md)
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
    teacher: Teacher = "base"  # "base" sees the standing notes instead of carrying them [learning 0]
    ema_rate: float = 0.05  # per step, share of the student in the "ema" teacher
    trust_region_mix: float = 0.05  # share of the current student's logits in the "trust_region" teacher
    stop_below: float = 0.0  # nats: stop when teacher and student are that close at the stop_quantile of positions
    stop_quantile: float = 0.99  # a mean would hide the one token in thirty that the lesson is about
    anchor_weight: float = 1.0  # times each anchor sample's weight
    kl_to_parent_weight: float = 0.0  # KL(student || parent) on correction and counterfactual samples
    kl_to_base_weight: float = 0.0  # KL(student || base) on the same
    lora_rank: int = 16
    lora_alpha: int = 32
    target_modules: tuple[str, ...] = LORA_TARGET_MODULES
    seed: int = 0  # of the fresh adapter's A matrices
    micro_batch_tokens: int = 256  # padded tokens of one forward and backward: bounds the stall other chats see
    idle_batch_tokens: int = 512  # the same where nobody reads a stream as the update begins: a tenth faster
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
        _require(0 < self.learning_rate <= 1, f"learn.learning_rate is {self.learning_rate}: set it in (0, 1]")
        _require(len(self.adam_betas) == 2, "learn.adam_betas needs two numbers")
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
        _require_range("learn.idle_batch_tokens", self.idle_batch_tokens, 16, 1 << 20)

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
    min_divergence_drop: float = 0.0  # nats per token the update must have won
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
    """When a standing note leaves the prompt and when a newer one has replaced it (`engine.notes`)."""

    max_notes: int = 16  # said at once, in the prompt or to the teacher: as many as the pocket model was made for
    prompt_share: float = 0.25  # of the context that they may take together; what does not fit waits, newest first
    standing_share: float = 0.1  # of the move on the corrected prompt that must show on other prompts too
    probe_rollouts: int = 4  # fresh answers a note is judged on
    min_gain: float = 0.5  # nats per answer; a smaller log-likelihood ratio says nothing
    held_share: float = 0.99  # of the answers on which a note shows, the share that must follow it
    inert_effect: float = 0.02  # nats per token; a note that changes less beside the others is inert
    moving_effect: float = 0.05  # nats per token; a note that changes more by itself has something to say

    def __post_init__(self) -> None:
        """Refuses shares outside 0 to 1."""
        _require_range("note.max_notes", self.max_notes, 1, 1000)
        _require_range("note.prompt_share", self.prompt_share, 0, 0.5)
        _require_range("note.standing_share", self.standing_share, 0, 1)
        _require_range("note.held_share", self.held_share, 0, 1)
        _require_range("note.probe_rollouts", self.probe_rollouts, 1, 64)


@dataclass(frozen=True)
class EngineConfig:
    """The whole engine: which model, where its data lies, and the three groups above."""

    model: str
    data_dir: Path
    host: HostConfig = field(default_factory=HostConfig)
    learn: LearnConfig = field(default_factory=LearnConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    note: NoteConfig = field(default_factory=NoteConfig)
    is_thinking: bool = False  # handed to the chat template of reasoning models

    def __post_init__(self) -> None:
        """Refuses combinations no single group can see."""
        _require(bool(self.model), "model is empty: give a Hugging Face name or a folder")
        _require(
            self.learn.lora_rank <= self.host.max_lora_rank,
            f"learn.lora_rank {self.learn.lora_rank} is above host.max_lora_rank {self.host.max_lora_rank}",
        )


def _require_type(name: str, value: Any, default: Any) -> None:
    """A value must be of its default's type; an integer also counts as a float, and `top_k` may be left out."""
    wanted: tuple[type, ...] = (int, type(None)) if default is None else (type(default),)
    if wanted == (float,):
        wanted = (int, float)
    is_bool_for_number = isinstance(value, bool) and bool not in wanted
    _require(isinstance(value, wanted) and not is_bool_for_number, f"{name} has the wrong type: {value!r}")
    _require(not isinstance(value, float) or math.isfinite(value), f"{name} must be a finite number")


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _require(value in choices, f"{name} is {value!r}: use one of {', '.join(choices)}")
