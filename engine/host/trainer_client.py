"""The trainer as heed's own process sees it: one typed method for each call into the worker.

Owns the names of those calls and the records that come back. Invariants: between two calls vLLM decodes; a failure that
the worker reports is raised here as TrainerError, for every call but `close` and `drop`.
"""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.errors import EngineRestarting, LearningImpossible, TrainerError
from engine.host.vllm_host import VllmHost
from engine.sample import Passage, Sample, Score

POLL_S = 0.02  # between the first two looks at what is computed beside decoding; each next one is half as long again
LONGEST_POLL_S = 0.1
Record = dict[str, Any]
States = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Trained:
    """The trainer's measurements of an update that ran to its end."""

    steps: int = 0
    divergence_before: float = 0.0  # nats per token, teacher against student
    divergence_after: float = 0.0
    anchor_divergence: float | None = None
    is_finite: bool = True
    heat: list[list[float]] = field(default_factory=list)  # [token id, log p_teacher - log p_student]
    figures: dict[str, float | None] = field(default_factory=dict)  # `engine.training.measuring`
    curves: dict[str, list[float]] = field(default_factory=dict)  # one value per step

    @classmethod
    def of(cls, record: Record) -> "Trained":
        """Return the measurements of the trainer's last record."""
        return cls(
            record["steps"],
            record["divergence_before"],
            record["divergence_after"],
            record["anchor_divergence_after"],
            record["finite"],
            record["heat"],
            record["figures"],
            {name: _numbers(record[key]) for name, key in (("loss", "losses"), ("divergence", "agreement"))},
        )

    def without(self, names: Iterable[str]) -> "Trained":
        """Return a copy without some of the figures."""
        return replace(self, figures={k: v for k, v in self.figures.items() if k not in set(names)})


@dataclass(frozen=True)
class Published:
    """A trained candidate as PEFT files; they are empty if it is not finite."""

    is_finite: bool
    update_norm: float  # Frobenius norm of the change of all LoRA values
    value_change: float  # root mean square of the same
    tensors: bytes
    config: str


class TrainerClient:
    """Calls the trainer in vLLM's worker.

    Every method raises TrainerError, EngineRestarting, EngineDown, or LearningImpossible if there is no trainer.
    """

    def __init__(self, host: VllmHost) -> None:
        self._host = host
        self.trained_share = 0.0  # of the steps of the update that is trained now

    async def train(
        self,
        update_id: str,
        parent: AdapterRef,
        samples: Sequence[Sample],
        learn: LearnConfig,
        budget_ms: Callable[[], float],
    ) -> Trained:
        """Run an update to its end, piece by piece; `budget_ms` says how long the next call may hold up decoding."""
        spec = {
            "update_id": update_id,
            "parent": parent.to_dict(),
            "samples": [sample.to_dict() for sample in samples],
            "learn": learn.to_dict(),
        }
        self.trained_share = 0.0
        await self._compute("heed_open_update", spec)
        record: Record = {"done": False}
        try:
            while not record["done"]:
                record = await self._compute("heed_advance", update_id, budget_ms())
                self.trained_share = record["steps"] / max(learn.steps, 1)
                await asyncio.sleep(0)  # a decode step goes between
        finally:
            self.trained_share = 0.0
        return Trained.of(record)

    async def publish(self, update_id: str, ref: AdapterRef) -> Published:
        """Keep the open update's adapter in the worker as `ref`, and return its files."""
        record = await self._compute("heed_publish", update_id, ref.lora_int_id, ref.name)
        norms = record["update_norm"], record["value_change"]
        return Published(record["finite"], *norms, record["tensors"], record["config"])

    async def close(self, update_id: str) -> None:
        """Forget an update. A failure to forget is none: the next update replaces it."""
        await self._host.rpc("heed_close_update", update_id)

    async def drop(self, ref: AdapterRef) -> None:
        """Forget a published version that is not wanted. A failure to forget is none."""
        await self._host.rpc("heed_drop", ref.lora_int_id)

    async def score(self, samples: Sequence[Sample], ref: AdapterRef, at_once: int = 1) -> list[Score]:
        """Score samples with `ref` as the student, in calls of `at_once` of them: decoding goes on in between."""
        adapter = ref.to_dict() if ref.number else None
        scores: list[Score] = []
        while len(scores) < len(samples):
            part = [sample.to_dict() for sample in samples[len(scores) : len(scores) + at_once]]
            scores += [Score(**score) for score in (await self._compute("heed_score", part, adapter))["scores"]]
        return scores

    async def score_in_turn(self, samples: Sequence[Sample], ref: AdapterRef) -> list[Score]:
        """Score samples in one call, or one by one while a stream is being read."""
        return await self.score(samples, ref, 1 if self._host.num_running else max(1, len(samples)))

    async def divergences(self, samples: Sequence[Sample], ref: AdapterRef) -> dict[int, float]:
        """Return how far apart the views of each sample are, nats per token, by number; what does not fit is left out.

        Scored as `score_in_turn` does; a sample without a response is one that did not fit.
        """
        fitting = {number: sample for number, sample in enumerate(samples) if sample.response_ids}
        scores = await self.score_in_turn([*fitting.values()], ref)
        return {number: score.divergence for number, score in zip(fitting, scores, strict=True)}

    async def first_tokens(
        self, prompts: Sequence[tuple[list[int], list[int]]], learn: LearnConfig, at_once: int = 8
    ) -> list[int]:
        """Return the first token of the guided teacher's answer to each pair of prompts, its own and the plain one.

        With `guides_unsure` false the teacher is guided only if that makes it surer in the mean of them (ADR 24). In
        calls of `at_once` pairs: decoding goes on in between.
        """
        settings = learn.guidance_scale, learn.teacher_temperature
        found: list[tuple[int, int, float]] = []  # guided, its own, by how much that makes it surer
        while len(found) < len(prompts):
            part = list(prompts[len(found) : len(found) + at_once])
            found += (await self._compute("heed_first_tokens", part, *settings, learn.seed + len(found)))["tokens"]
        is_guided = learn.guides_unsure or sum(surer_by for _, _, surer_by in found) > 0
        return [guided if is_guided else own for guided, own, _ in found]

    async def states(self, passages: Sequence[Passage], depths: Sequence[float], at_once: int = 16) -> States:
        """Return the base model's pooled states, axes [N, depths, 2 H], in calls of `at_once`: decoding goes on."""
        parts: list[States] = []
        for first in range(0, len(passages), at_once):
            part = [asdict(passage) for passage in passages[first : first + at_once]]
            record = await self._compute("heed_states", part, list(depths))
            parts.append(np.frombuffer(record["states"], dtype=np.float32).reshape(record["axes"]))
        return np.concatenate(parts)

    async def fitted_config(self, tensors: bytes, config: Record) -> Record:
        """Return the configuration of an adapter from elsewhere as heed writes it, if the adapter fits the model."""
        fitted: Record = (await self._call("heed_fits", tensors, json.dumps(config)))["config"]
        return fitted

    async def _compute(self, method: str, *args: Any) -> Record:
        """Call a method that computes: at once, or beside decoding, where it is asked after until it has ended."""
        record = await self._call("heed_compute", method, list(args), self._host.num_running > 0)
        pause_s = POLL_S
        while "job" in record:
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, LONGEST_POLL_S)
            record = await self._call("heed_result", record["job"], self._host.num_running > 0)
        return record

    async def _call(self, method: str, *args: Any) -> Record:
        if not self._host.trainability.can_learn:
            raise LearningImpossible(self._host.trainability.reason)
        record = await self._host.rpc(method, *args)
        if not record["ok"]:
            raise EngineRestarting(record["error"]) if record.get("is_lost") else TrainerError(record["error"])
        return record


def finite_or_none(value: float) -> float | None:
    """Return a measured value, or None if it is not finite: JSON has no such number."""
    return value if math.isfinite(value) else None


def _numbers(values: Iterable[float]) -> list[float]:
    """Return a curve as far as it can be drawn and stored: up to its first value that is no number."""
    return list(takewhile(math.isfinite, values))
