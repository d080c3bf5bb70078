"""A candidate version: trained in short calls, gated, written, published, activated.

Owns the way from samples to a new active version. Invariants: nothing is active before its gate has passed and its
files are on disk; a failure leaves the person's active version as it was; between two calls into the worker vLLM
decodes; a refused candidate is never served, and kept for inspection with its verdict.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine.adapter_ref import AdapterRef
from engine.adapters import training_batch
from engine.adapters.store import AdapterStore
from engine.config import LearnConfig
from engine.errors import EngineError
from engine.gates.candidate import Measurements, Verdict, judge
from engine.host.trainer_client import Published, Trained
from engine.sample import Sample
from engine.samples.context import LearningContext
from storage.database import Session
from storage.errors import StorageError
from storage.learning import versions
from storage.tables import AdapterVersion, UpdateRun

Lap = Callable[[str], None]
Examine = Callable[[AdapterRef, Verdict], Awaitable[Verdict]]
Also = Callable[[Session, Verdict, AdapterVersion], None]


def _nothing(_s: Session, _verdict: Verdict, _version: AdapterVersion) -> None:
    pass


@dataclass(frozen=True)
class Acceptance:
    """The conditions and the consequences of a candidate's becoming active."""

    examine: Examine | None = None  # has the last word on one that the gates let through, while vLLM can answer with it
    also: Also = _nothing  # is done in the transaction that makes it active
    replaced: int = 0  # the version that is given up in it


class Candidates:
    """Makes candidates and turns the good ones into versions."""

    def __init__(self, context: LearningContext, adapters: AdapterStore) -> None:
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._active = context.active
        self._adapters = adapters
        self._batch: tuple[str, bytes] = ("", b"")  # of the update that was trained last

    async def train(self, update_id: str, parent: AdapterRef, samples: Sequence[Sample], learn: LearnConfig) -> Trained:
        """Run the update to its end, piece by piece. Raises TrainerError, EngineRestarting."""
        if self._config.versions.keeps_batches:
            self._batch = (update_id, training_batch.encode(update_id, parent.number, samples, learn))
        return await self._trainer.train(update_id, parent, samples, learn, self._budget_ms)

    def _budget_ms(self) -> float:
        """Return how long the next call may hold up decoding: short while a stream is being read."""
        host = self._config.host
        return host.busy_budget_ms if self._host.num_running else host.idle_budget_ms

    async def close(self, update_id: str) -> None:
        """Forget a trained candidate that is not wanted."""
        await self._trainer.close(update_id)

    async def activate(
        self,
        run: UpdateRun,
        parent: int,
        trained: Trained,
        lap: Lap,
        acceptance: Acceptance = Acceptance(),
    ) -> tuple[Verdict, AdapterVersion]:
        """Gate the open candidate; write, publish and activate an accepted one."""
        base_model = self._active.base_model
        version = await self._database.write(
            lambda s: versions.allocate(s, run.user_id, parent, base_model, run.feedback_id, run.id)
        )
        try:
            return await self._decided(run, version, trained, lap, acceptance), version
        except BaseException:
            await self._abandon(version)
            raise

    async def _decided(
        self, run: UpdateRun, version: AdapterVersion, trained: Trained, lap: Lap, acceptance: Acceptance
    ) -> Verdict:
        """Publish and gate a candidate; make an accepted one active."""
        ref = self._adapters.ref(version)
        published = await self._trainer.publish(run.id, ref)
        await self.close(run.id)
        verdict = judge(_measurements(trained, published), self._config.gate)
        if verdict.is_accepted and acceptance.examine is not None:
            verdict = await self._examined(ref, verdict, acceptance.examine)
        if not verdict.is_accepted:
            await self._database.write(lambda s: versions.reject(s, run.user_id, version.number))
            await self._trainer.drop(ref)
            await self._adapters.keep_rejected(version, published.tensors, published.config, verdict.to_dict())
            lap("rejected")
            return verdict
        batch = self._batch[1] if self._batch[0] == run.id else b""
        sha256, size_bytes = await self._adapters.write(version, published.tensors, published.config, batch)
        await self._active.publish(ref)
        lap("publish")

        def accept(s: Session) -> None:
            versions.accept(s, run.user_id, version.number, sha256, size_bytes)
            acceptance.also(s, verdict, version)

        await self._active.flip(run.user_id, self._config.versions.keep, accept, acceptance.replaced)
        lap("activate")
        return verdict

    async def _abandon(self, version: AdapterVersion) -> None:
        """Reject a candidate whose update broke off, and drop its tensors from vLLM, worker and disk.

        One that is active by now stays: its transaction was through before.
        """
        is_open = False
        with suppress(StorageError):  # the next start gives it up
            is_open = await self._database.write(lambda s: versions.reject_open(s, version.user_id, version.number))
        if is_open:
            with suppress(EngineError):  # a dead engine remembers nothing
                await self._host.remove_adapter(self._adapters.ref(version))
            await self._adapters.remove(version)

    async def _examined(self, ref: AdapterRef, verdict: Verdict, examine: Examine) -> Verdict:
        """Let vLLM answer `examine` with the candidate, and no other request; remove it if it is not wanted."""
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


def _measurements(trained: Trained, published: Published) -> Measurements:
    return Measurements(
        is_finite=published.is_finite and trained.is_finite,
        update_norm=published.update_norm,
        value_change=published.value_change,
        steps=trained.steps,
        divergence_before=trained.divergence_before,
        divergence_after=trained.divergence_after,
        anchor_divergence=trained.anchor_divergence,
        **trained.figures,
    )


def give_up_unfinished(s: Session, user_id: str | None = None) -> None:
    """Reject the candidates whose update died with an earlier heed: nothing will ever accept them.

    Of one person, or at start of everybody whom no other process of a cluster may be teaching.
    """
    for version in versions.unfinished(s, user_id):
        if versions.has_lease(s, version.user_id):
            versions.reject(s, version.user_id, version.number)
