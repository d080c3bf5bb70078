"""Calls into the trainer that runs in vLLM's worker, with typed arguments and results.

Owns the names of the trainer's methods and the form in which samples and results cross the process border. Invariant:
a call that failed in the worker raises TrainerError here; its record is never read as a result.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.errors import TrainerError
from engine.host.vllm_host import VllmHost
from engine.sample import Sample

Record = dict[str, Any]


@dataclass(frozen=True)
class SampleScore:
    """The log-probabilities of one response under both contexts, in nats (`engine.training.scoring`)."""

    student_logprobs: list[float]  # one per response token
    teacher_logprobs: list[float]
    student_entropy: float  # mean over the positions
    teacher_entropy: float
    divergence: float  # KL(teacher || student) per token
    preferred_logprobs: list[float]  # the student's, of the tokens that the teacher likes best
    is_preferred: list[bool]  # per token: the teacher likes it best

    @property
    def gain(self) -> float:
        """log p(y | teacher's prompt) - log p(y | student's prompt), in nats per answer."""
        return sum(self.teacher_logprobs) - sum(self.student_logprobs)


@dataclass(frozen=True)
class UpdateProgress:
    """What the trainer has measured on the open update so far; the last fields are filled once it is done."""

    is_done: bool
    phase: str
    steps: int
    divergence_before: float | None  # nats per token, teacher against student
    divergence_after: float | None
    anchor_divergence_after: float | None
    phases_ms: dict[str, float]
    is_finite: bool
    heat: list[list[float]] = field(default_factory=list)  # [token id, log p_teacher - log p_student]
    importance: dict[str, float] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)  # one per step
    agreement: list[float] = field(default_factory=list)  # one per step
    figures: dict[str, float | None] = field(default_factory=dict)  # `engine.training.measuring`

    @classmethod
    def of(cls, record: Record) -> "UpdateProgress":
        """Return the progress that a record of the trainer tells."""
        names = {"done": "is_done", "finite": "is_finite", "is_weights": "importance"}
        return cls(**{names.get(name, name): value for name, value in record.items()})


@dataclass(frozen=True)
class PublishedAdapter:
    """A trained candidate: what is in the registry, as PEFT files. Both are empty if it is not finite."""

    is_finite: bool
    update_norm: float
    tensors: bytes
    config: str


class TrainerClient:
    """The trainer, as heed's process sees it. Every method raises TrainerError, EngineRestarting or EngineDown."""

    def __init__(self, host: VllmHost) -> None:
        """`host` runs the worker."""
        self._host = host

    async def open_update(
        self, update_id: str, parent: AdapterRef, samples: Sequence[Sample], learn: LearnConfig
    ) -> None:
        """Start an update; one that is still open is abandoned."""
        records = [sample.to_dict() for sample in samples]
        spec = {"update_id": update_id, "parent": parent.to_dict(), "samples": records, "learn": learn.to_dict()}
        await self._call("heed_open_update", spec)

    async def advance(self, update_id: str, budget_ms: float) -> UpdateProgress:
        """Work on the open update for about `budget_ms`. Decoding waits meanwhile."""
        return UpdateProgress.of(await self._call("heed_advance", update_id, budget_ms))

    async def publish(self, update_id: str, ref: AdapterRef) -> PublishedAdapter:
        """Copy the trained values into the registry under the version's id and return them."""
        record = await self._call("heed_publish", update_id, ref.lora_int_id, ref.name)
        return PublishedAdapter(record["finite"], record["update_norm"], record["tensors"], record["config"])

    async def close_update(self, update_id: str) -> None:
        """Forget an update; an unknown one is no error."""
        await self._call("heed_close_update", update_id)

    async def score(self, samples: Sequence[Sample], ref: AdapterRef, at_once: int = 1) -> list[SampleScore]:
        """Return the scores of the samples with `ref` as the student.

        Each call into the worker takes `at_once` samples; decoding goes on in between.
        """
        scores: list[SampleScore] = []
        while len(scores) < len(samples):
            part = [sample.to_dict() for sample in samples[len(scores) : len(scores) + at_once]]
            record = await self._call("heed_score", part, ref.to_dict())
            scores += [SampleScore(**score) for score in record["scores"]]
        return scores

    async def drop(self, ref: AdapterRef) -> None:
        """Forget a version in the trainer's memory."""
        await self._call("heed_drop", ref.lora_int_id)

    async def fits(self, tensors: bytes, config: Record) -> Record:
        """Check that an adapter from elsewhere fits the model and return its configuration as heed writes it."""
        record = await self._call("heed_fits", tensors, json.dumps(config))
        fitted: Record = record["config"]
        return fitted

    async def _call(self, method: str, *args: Any) -> Record:
        return result_of(await self._host.rpc(method, *args))


def result_of(record: Record) -> Record:
    """Return the fields of a trainer's record beside `ok` and `error`. Raise TrainerError if it reports a failure."""
    if not record["ok"]:
        raise TrainerError(record["error"])
    return {name: value for name, value in record.items() if name not in ("ok", "error")}
