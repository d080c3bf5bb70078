"""A candidate version: trained in short calls, gated, written, published, activated.

Owns the way from samples to a new active version. Invariants: nothing is active before its gate has passed and its
files are on disk; a failure leaves the person's active version as it was; between two calls into the worker vLLM
decodes; a refused candidate is never served, and kept for inspection with its verdict.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile

from engine.adapter_ref import AdapterRef
from engine.adapters import training_batch
from engine.adapters.store import AdapterStore
from engine.config import LearnConfig
from engine.errors import EngineError
from engine.gates.candidate import Measurements, Verdict, judge
from engine.host.trainer_client import PublishedAdapter, UpdateProgress
from engine.sample import Sample
from engine.samples.context import LearningContext
from storage.database import Session
from storage.learning import versions
from storage.tables import AdapterVersion, UpdateRun

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
    def of(cls, last: UpdateProgress) -> "Trained":
        """Return what an update that is done has measured."""
        return cls(
            last.steps,
            last.divergence_before or 0.0,
            last.divergence_after or 0.0,
            last.anchor_divergence_after,
            last.is_finite,
            last.heat,
            last.figures,
            {"loss": _numbers(last.losses), "divergence": _numbers(last.agreement)},
        )

    def without(self, names: Iterable[str]) -> "Trained":
        """A copy that some figures were not measured on."""
        return replace(self, figures={k: v for k, v in self.figures.items() if k not in set(names)})


def _numbers(values: Iterable[float]) -> list[float]:
    """A curve as far as it can be drawn and stored: up to its first value that is no number."""
    return list(takewhile(math.isfinite, values))


class Candidates:
    """Makes candidates and turns the good ones into versions."""

    def __init__(self, context: LearningContext, adapters: AdapterStore) -> None:
        """`adapters` writes the files."""
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._active = context.active
        self._adapters = adapters
        self._batch: tuple[str, bytes] = ("", b"")  # of the update that was trained last

    async def train(self, update_id: str, parent: AdapterRef, samples: list[Sample], learn: LearnConfig) -> Trained:
        """Runs the update to its end, piece by piece. Raises TrainerError, EngineRestarting."""
        if self._config.versions.keeps_batches:
            self._batch = (update_id, training_batch.encode(update_id, parent.number, samples, learn))
        await self._trainer.open_update(update_id, parent, samples, learn)
        progress = await self._trainer.advance(update_id, self._budget_ms())
        while not progress.is_done:
            await asyncio.sleep(0)  # a decode step goes between
            progress = await self._trainer.advance(update_id, self._budget_ms())
        return Trained.of(progress)

    def _budget_ms(self) -> float:
        """How long the next call may hold up decoding: short while somebody is reading a stream."""
        host = self._config.host
        return host.busy_budget_ms if self._host.num_running else host.idle_budget_ms

    async def close(self, update_id: str) -> None:
        """Lets go of a trained candidate that is not wanted."""
        await self._trainer.close_update(update_id)

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
        base_model = self._active.base_model
        version = await self._database.write(
            lambda s: versions.allocate(s, run.user_id, parent, base_model, run.feedback_id, run.id)
        )
        ref = self._adapters.ref(version)
        published = await self._trainer.publish(run.id, ref)
        await self.close(run.id)
        verdict = judge(_measurements(trained, published), self._config.gate)
        if verdict.is_accepted and examine is not None:
            verdict = await self._examined(ref, verdict, examine)
        if not verdict.is_accepted:
            await self._database.write(lambda s: versions.reject(s, run.user_id, version.number))
            await self._trainer.drop(ref)
            await self._adapters.keep_rejected(version, published.tensors, published.config, verdict.to_dict())
            lap("rejected")
            return verdict, version
        batch = self._batch[1] if self._batch[0] == run.id else b""
        sha256, size_bytes = await self._adapters.write(version, published.tensors, published.config, batch)
        await self._active.publish(ref)
        lap("publish")

        def accept(s: Session) -> None:
            versions.accept(s, run.user_id, version.number, sha256, size_bytes)
            also(s, verdict, version)

        await self._active.flip(run.user_id, self._config.versions.keep, accept)
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


def _measurements(trained: Trained, published: PublishedAdapter) -> Measurements:
    return Measurements(
        is_finite=published.is_finite and trained.is_finite,
        update_norm=published.update_norm,
        steps=trained.steps,
        divergence_before=trained.divergence_before,
        divergence_after=trained.divergence_after,
        anchor_divergence=trained.anchor_divergence,
        **trained.figures,
    )
