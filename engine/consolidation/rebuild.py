"""When an adapter has to be made again from zero, and whether what was made may replace it.

Owns two comparisons over answers that nothing is trained on, p0 the old version, p1 the new one, both without notes in
the prompt; q the base model that reads the standing notes; y an answer's tokens; t* the token q likes best:

    drift = mean_t KL(base || p0) on neutral prompts       above `sleep.max_drift` it is made again
    fall of an earlier correction = mean_t [m0 - m1] where t* != y, m = log p(t*) - log p(y), cut at +-3 nats
    fall of an approved answer    = mean_t [log p0(y) - log p1(y)] where t* = y

The worst falls and the new version's divergence on neutral prompts stand before the gates of every update
(`engine.gates.candidate`). Invariant: it reads and compares; it never trains, loads or saves anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import EngineConfig
from engine.gates.candidate import GATES, Measurements, Verdict
from engine.host.trainer_client import SampleScore, TrainerClient
from engine.host.vllm_host import VllmHost
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight
from engine.samples import lessons, regression
from engine.samples.rollouts import RolloutStore
from engine.training.measuring import MARGIN_LIMIT
from storage.database import Database

NUM_ANCHORS = 16  # neutral prompts that drift is measured on
_COMPARED = ("neutral", "earlier", "gold")


class RebuildCheck:
    """Reads the old version and the new one on the same answers."""

    def __init__(
        self, config: EngineConfig, database: Database, host: VllmHost, prompts: PromptBuilder, rollouts: RolloutStore
    ) -> None:
        """Everything is built by the engine."""
        self._config = config
        self._database = database
        self._trainer = TrainerClient(host)
        self._prompts = prompts
        self._rollouts = rollouts

    async def has_drifted(self, ref: AdapterRef) -> bool:
        """Whether the version says something else than the base model where nobody asked it to."""
        return ref.number > 0 and await self._drift(ref) > self._config.sleep.max_drift

    async def compared(
        self, user_id: str, notes: Sequence[str], old: AdapterRef, new: AdapterRef, verdict: Verdict
    ) -> Verdict:
        """The verdict of the other gates with that of the comparison; unchanged where there was no old version."""
        if not old.number:
            return verdict
        found = await self._database.read(lambda s: regression.find(s, user_id, self._config.gate))
        samples = regression.regression_samples(found, notes, Hindsight(), self._prompts)
        before, after = await self._trainer.score(samples, old), await self._trainer.score(samples, new)
        kinds = [sample.kind for sample in samples]
        measured = Measurements(
            is_finite=True,
            update_norm=0.0,
            steps=0,
            anchor_divergence=await self._drift(new),
            earlier_drop=worst(margin_drop, kinds, "earlier", before, after),
            gold_drop=worst(likelihood_drop, kinds, "gold", before, after),
        )
        return joined(verdict, measured, self._config)

    async def _drift(self, ref: AdapterRef) -> float:
        anchors = await self._rollouts.anchors(ZERO_ADAPTER, NUM_ANCHORS)
        scores = await self._trainer.score(lessons.anchor_samples(anchors), ref)
        return fmean([score.divergence for score in scores], [len(a.response_token_ids) for a in anchors])


def margin_drop(before: SampleScore, after: SampleScore) -> float | None:
    """mean_t [m0 - m1] where t* != y; None where that is nowhere."""
    at = [i for i, is_preferred in enumerate(before.is_preferred) if not is_preferred]
    return fmean(_margin(before, i) - _margin(after, i) for i in at) if at else None


def likelihood_drop(before: SampleScore, after: SampleScore) -> float | None:
    """mean_t [log p0(y) - log p1(y)] where t* = y; None where that is nowhere."""
    at = [i for i, is_preferred in enumerate(before.is_preferred) if is_preferred]
    return fmean(before.student_logprobs[i] - after.student_logprobs[i] for i in at) if at else None


def worst(
    drop: Callable[[SampleScore, SampleScore], float | None],
    kinds: Sequence[str],
    kind: str,
    before: Sequence[SampleScore],
    after: Sequence[SampleScore],
) -> float | None:
    """The largest fall among the answers of one kind; None where nothing was measured."""
    falls = [drop(b, a) for k, b, a in zip(kinds, before, after, strict=True) if k == kind]
    return max((fall for fall in falls if fall is not None), default=None)


def joined(verdict: Verdict, measured: Measurements, config: EngineConfig) -> Verdict:
    """One verdict out of that of the update and the comparison, the first failing gate named."""
    checks = {name: GATES[name][0](measured, config.gate) for name in _COMPARED}
    failed = next((name for name, is_passed in checks.items() if not is_passed), None)
    figures = {"earlier_drop": measured.earlier_drop, "gold_drop": measured.gold_drop}
    return replace(
        verdict,
        is_accepted=verdict.is_accepted and failed is None,
        reason=verdict.reason or (GATES[failed][1] if failed else ""),
        checks=dict(verdict.checks) | checks,
        figures=dict(verdict.figures) | {name: value for name, value in figures.items() if value is not None},
    )


def _margin(score: SampleScore, i: int) -> float:
    margin = score.preferred_logprobs[i] - score.student_logprobs[i]
    return max(-MARGIN_LIMIT, min(MARGIN_LIMIT, margin))
