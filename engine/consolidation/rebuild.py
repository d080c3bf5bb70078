"""Rebuilds of an adapter from zero: the reasons for one, and the check that the new one may replace the old one.

Owns two comparisons over answers that nothing is trained on, p0 the old version, p1 the new one, both without notes in
the prompt; q the base model that reads the standing notes; y an answer's tokens; t* the token q likes best:

    drift = mean_t KL(base || p0) on neutral prompts       above `sleep.max_drift` it is made again
    fall of an earlier correction = mean_t [m0 - m1] over t* != y, m = log p(t*) - log p(y), cut at +-3 nats
    fall of an approved answer    = mean_t [log p0(y) - log p1(y)] over t* = y

The worst falls and the new version's divergence on neutral prompts stand before the gates of every update
(`engine.gates.candidate`). Invariant: it reads and compares; it never trains, loads or saves anything.
"""

from collections.abc import Callable, Sequence
from statistics import fmean

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import GateConfig
from engine.gates.candidate import GATES, MARGIN_LIMIT, Measurements, Verdict
from engine.prompts.hindsight import Hindsight
from engine.sample import Score
from engine.samples import lessons, regression
from engine.samples.context import LearningContext
from engine.samples.regression import Watched

NUM_ANCHORS = 16  # neutral prompts that drift is measured on
_COMPARED = ("neutral", "earlier", "gold")


class RebuildCheck:
    """Compares the old version and the new one on the same answers."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts

    async def has_drifted(self, ref: AdapterRef) -> bool:
        """Return True if the version differs from the base model on neutral prompts by more than `sleep.max_drift`."""
        return ref.number > 0 and await self._drift(ref) > self._config.sleep.max_drift

    async def compared(
        self, found: Sequence[Watched], notes: Sequence[str], old: AdapterRef, new: AdapterRef, verdict: Verdict
    ) -> Verdict:
        """Return the verdict with that of the comparison; unchanged if there was no old version."""
        if not old.number:
            return verdict
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
        return with_comparison(verdict, measured, self._config.gate)

    async def _drift(self, ref: AdapterRef) -> float:
        anchors = await self._rollouts.anchors(ZERO_ADAPTER, NUM_ANCHORS)
        scores = await self._trainer.score(lessons.anchor_samples(anchors), ref)
        return fmean([score.divergence for score in scores], [len(a.response_token_ids) for a in anchors])


def margin_drop(before: Score, after: Score) -> float | None:
    """Return mean_t [m0 - m1] over t* != y, or None if there is no such t."""
    at = [i for i, is_preferred in enumerate(before.is_preferred) if not is_preferred]
    return fmean(_margin(before, i) - _margin(after, i) for i in at) if at else None


def likelihood_drop(before: Score, after: Score) -> float | None:
    """Return mean_t [log p0(y) - log p1(y)] over t* = y, or None if there is no such t."""
    at = [i for i, is_preferred in enumerate(before.is_preferred) if is_preferred]
    return fmean(before.student_logprobs[i] - after.student_logprobs[i] for i in at) if at else None


def worst(
    drop: Callable[[Score, Score], float | None],
    kinds: Sequence[str],
    kind: str,
    before: Sequence[Score],
    after: Sequence[Score],
) -> float | None:
    """Return the largest fall among the answers of one kind, or None if nothing was measured."""
    falls = [drop(b, a) for k, b, a in zip(kinds, before, after, strict=True) if k == kind]
    return max((fall for fall in falls if fall is not None), default=None)


def with_comparison(verdict: Verdict, measured: Measurements, gate: GateConfig) -> Verdict:
    """Return the verdict of the update with that of the comparison."""
    compared = {name: GATES[name] for name in _COMPARED}
    return verdict.and_checks(
        {name: is_passed(measured, gate) for name, (is_passed, _) in compared.items()},
        {name: reason for name, (_, reason) in compared.items()},
        {"earlier_drop": measured.earlier_drop, "gold_drop": measured.gold_drop},
    )


def _margin(score: Score, i: int) -> float:
    margin: float = score.preferred_logprobs[i] - score.student_logprobs[i]
    return max(-MARGIN_LIMIT, min(MARGIN_LIMIT, margin))
