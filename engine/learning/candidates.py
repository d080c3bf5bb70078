"""A candidate version: trained in short calls, gated, written, published, activated.

Owns the way from samples to a new active version. Invariants: nothing is active before its gate has passed and its
files are on disk; a failure leaves the person's active version as it was; between two calls into the worker vLLM
decodes; a refused candidate is never served, and kept for inspection with its verdict.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from engine.adapter_ref import AdapterRef
from engine.adapters import training_batch
from engine.adapters.active import ActiveAdapters
from engine.adapters.store import AdapterStore
from engine.config import EngineConfig, LearnConfig
from engine.errors import EngineError, TrainerError
from engine.gates.candidate import Measurements, Verdict, judge
from engine.host.vllm_host import VllmHost
from storage.database import Database, Session
from storage.learning import versions
from storage.tables import AdapterVersion, UpdateRun

Record = dict[str, Any]
Lap = Callable[[str], None]
Examine = Callable[[AdapterRef, Verdict], Awaitable[Verdict]]
Also = Callable[[Session, Verdict, AdapterVersion], None]


@dataclass(frozen=True)
class Trained:
    """What the trainer measured on an update that ran to its end."""

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
        """From the trainer's last record."""
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
        """A copy that some figures were not measured on."""
        return replace(self, figures={k: v for k, v in self.figures.items() if k not in set(names)})


def _numbers(values: Iterable[float]) -> list[float]:
    """A curve as far as it can be drawn and stored: up to its first value that is no number."""
    return list(takewhile(math.isfinite, values))


class Candidates:
    """Makes candidates and turns the good ones into versions."""

    def __init__(
        self,
        config: EngineConfig,
        database: Database,
        host: VllmHost,
        adapters: AdapterStore,
        served: ActiveAdapters,
    ) -> None:
        """Everything is built by the engine."""
        self._config = config
        self._database = database
        self._host = host
        self._adapters = adapters
        self._served = served
        self._batch: tuple[str, bytes] = ("", b"")  # of the update that was trained last

    async def train(self, update_id: str, parent: AdapterRef, samples: list[Record], learn: LearnConfig) -> Trained:
        """Runs the update to its end, piece by piece. Raises TrainerError, EngineRestarting."""
        spec = {"update_id": update_id, "parent": parent.to_dict(), "samples": samples, "learn": learn.to_dict()}
        if self._config.versions.keeps_batches:
            self._batch = (update_id, training_batch.encode(update_id, parent.number, samples, learn))
        checked(await self._host.rpc("heed_open_update", spec))
        record: Record = {"done": False}
        while not record["done"]:
            record = checked(await self._host.rpc("heed_advance", update_id, self._budget_ms()))
            await asyncio.sleep(0)  # a decode step goes between
        return Trained.of(record)

    def _budget_ms(self) -> float:
        """How long the next call may hold up decoding: short while somebody is reading a stream."""
        host = self._config.host
        return host.busy_budget_ms if self._host.num_running else host.idle_budget_ms

    async def close(self, update_id: str) -> None:
        """Lets go of a trained candidate that is not wanted."""
        await self._host.rpc("heed_close_update", update_id)

    async def activate(
        self,
        run: UpdateRun,
        parent: int,
        trained: Trained,
        lap: Lap,
        *,
        examine: Examine | None = None,
        also: Also = lambda _s, _verdict, _version: None,
    ) -> tuple[Verdict, AdapterVersion]:
        """Gates the open candidate; an accepted one is written, published and made active.

        `examine` has the last word on one that the gates let through, while vLLM can already answer with it; `also`
        is done in the transaction that makes it active.
        """
        base_model = self._served.base_model
        version = await self._database.write(
            lambda s: versions.allocate(s, run.user_id, parent, base_model, run.feedback_id, run.id)
        )
        ref = self._adapters.ref(version)
        published = checked(await self._host.rpc("heed_publish", run.id, ref.lora_int_id, ref.name))
        await self.close(run.id)
        verdict = judge(_measurements(trained, published), self._config.gate)
        if verdict.is_accepted and examine is not None:
            verdict = await self._examined(ref, verdict, examine)
        if not verdict.is_accepted:
            await self._database.write(lambda s: versions.reject(s, run.user_id, version.number))
            await self._host.rpc("heed_drop", ref.lora_int_id)
            await self._adapters.keep_rejected(version, published["tensors"], published["config"], verdict.to_dict())
            lap("rejected")
            return verdict, version
        batch = self._batch[1] if self._batch[0] == run.id else b""
        sha256, size_bytes = await self._adapters.write(version, published["tensors"], published["config"], batch)
        await self._served.publish(ref)
        lap("publish")

        def accept(s: Session) -> None:
            versions.accept(s, run.user_id, version.number, sha256, size_bytes)
            also(s, verdict, version)

        await self._served.flip(run.user_id, self._config.versions.keep, accept)
        lap("activate")
        return verdict, version

    async def _examined(self, ref: AdapterRef, verdict: Verdict, examine: Examine) -> Verdict:
        """Lets vLLM answer with a candidate that nobody else is answered with; one that is not wanted is taken out."""
        is_wanted = False
        await self._host.add_adapter(ref)
        try:
            verdict = await examine(ref, verdict)
            is_wanted = verdict.is_accepted
        finally:
            if not is_wanted:
                with suppress(EngineError):  # a dead engine remembers nothing
                    await self._host.remove_adapter(ref)
        return verdict


def _measurements(trained: Trained, published: Record) -> Measurements:
    return Measurements(
        is_finite=published["finite"] and trained.is_finite,
        update_norm=published["update_norm"],
        steps=trained.steps,
        divergence_before=trained.divergence_before,
        divergence_after=trained.divergence_after,
        anchor_divergence=trained.anchor_divergence,
        **trained.figures,
    )


async def scored(host: VllmHost, samples: Sequence[Record], ref: AdapterRef, at_once: int = 1) -> list[Record]:
    """The scores of `engine.training.scoring`, in calls of `at_once` samples: decoding goes on in between.

    Raises EngineRestarting, TrainerError.
    """
    adapter = ref.to_dict() if ref.number else None
    scores: list[Record] = []
    while len(scores) < len(samples):
        part = list(samples[len(scores) : len(scores) + at_once])
        scores += checked(await host.rpc("heed_score", part, adapter))["scores"]
    return scores


def checked(record: Record) -> Record:
    """The trainer's record. Raises TrainerError when it reports a failure."""
    if not record["ok"]:
        raise TrainerError(record["error"])
    return record
