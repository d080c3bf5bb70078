"""CLaaS's own metrics of a running heed, over HTTP: before and after one correction, per preference and seed.

Owns the asking and the figures of each seed; what is asked stands in evals/claas_scenes.py, the definitions in
evals/claas_metrics.py. CLaaS follows a preference through twenty steps; here it is one correction, as everywhere in
`heed eval compare`. Invariant: weights alone are measured, notes off, against the base model.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evals import claas_metrics
from evals.arms import BASE, WEIGHTS
from evals.claas_metrics import NUM_SAMPLES, NUM_TOPS, SAMPLE_TEMPERATURE
from evals.claas_scenes import ClaasScene, ExamplePair, GeneralQuestion, pocket_scenes, real_scenes
from evals.client import Client, Messages
from evals.figure import Figure, Series, figure
from evals.lesson_end import ended, settled
from evals.study import BASE_MODEL, Advance, rehearsed_prompts

PREFERENCES_A_SEED = 3
SETTLE_S = 900.0  # the longest wait for a lesson


@dataclass(frozen=True)
class Look:
    """The metrics of one preference, by the weights of one person or by the base model."""

    margin: float  # nats
    compliance: float
    general: float
    entropy: float  # nats
    self_rouge: float


@dataclass(frozen=True)
class WeightsChange:
    """One preference of one seed: the base model, and the weights after one correction."""

    seed: int
    preference: str
    before: Look
    after: Look


Value = Callable[[WeightsChange], float | None]


class ClaasProbe:
    """The metrics of the heed that a client talks to."""

    def __init__(self, client: Client, run_id: str, advance: Advance) -> None:
        """`run_id` keeps the persons apart from those of everything else that is measured on this heed."""
        self._client = client
        self._run_id = run_id
        self._advance = advance

    async def measure(self, scenes: Callable[[int], Sequence[ClaasScene]], seeds: int) -> list[WeightsChange]:
        """Measure every preference of every seed."""
        return [await self._change(seed, scene) for seed in range(seeds) for scene in scenes(seed)]

    async def _change(self, seed: int, scene: ClaasScene) -> WeightsChange:
        person = f"claas-{self._run_id}-{scene.preference}-{seed}"
        before = await self._look(f"{person}-base", scene, seed, BASE_MODEL)
        answer = await self._client.chat(person, scene.corrected)
        outcome = await self._client.correct(person, answer.completion_id, scene.words)
        await ended(self._client, person, outcome, SETTLE_S)
        await settled(self._client, person, SETTLE_S)
        after = await self._look(person, scene, seed, "heed")
        self._advance("claas")
        return WeightsChange(seed, scene.preference, before, after)

    async def _look(self, person: str, scene: ClaasScene, seed: int, model: str) -> Look:
        pairs = await asyncio.gather(*(self._pair(person, pair, model) for pair in scene.pairs))
        answers = await asyncio.gather(*(self._answer(person, probe, model) for probe in scene.probes))
        general = await asyncio.gather(*(self._scored(person, question, model) for question in scene.general))
        tops = await self._client.likeliest(person, scene.fixed, NUM_TOPS, model=model)
        draws = range(seed * NUM_SAMPLES, (seed + 1) * NUM_SAMPLES)
        samples = await asyncio.gather(*(self._drawn(person, scene.fixed, draw, model) for draw in draws))
        return Look(
            margin=claas_metrics.margin(pairs),
            compliance=sum(map(scene.compliance, answers)) / len(answers),
            general=sum(general),
            entropy=claas_metrics.entropy(tops),
            self_rouge=claas_metrics.self_rouge(samples),
        )

    async def _pair(self, person: str, pair: ExamplePair, model: str) -> tuple[list[float], list[float]]:
        good = await self._client.score(person, pair.messages, pair.good, model=model)
        return good, await self._client.score(person, pair.messages, pair.bad, model=model)

    async def _answer(self, person: str, messages: Messages, model: str) -> str:
        return (await self._client.chat(person, messages, notes="off", model=model)).text

    async def _scored(self, person: str, question: GeneralQuestion, model: str) -> float:
        text = await self._answer(person, question.messages, model)
        return question.weight * await asyncio.to_thread(question.score, text)

    async def _drawn(self, person: str, messages: Messages, draw: int, model: str) -> str:
        return await self._client.drawn(person, messages, draw, model=model, temperature=SAMPLE_TEMPERATURE)


def scenes_of(model: str, *, is_real: bool) -> Callable[[int], Sequence[ClaasScene]]:
    """Return the scenes of each seed for a model that is named as in HEED_MODEL."""
    if is_real:
        return real_scenes
    rehearsed = rehearsed_prompts(model)
    return lambda seed: pocket_scenes(seed, rehearsed)


def figures(changes: Sequence[WeightsChange]) -> list[Figure]:
    """Return CLaaS's metrics: one value per seed, the mean over its preferences, and its bounds as targets."""
    preferences = dict.fromkeys(change.preference for change in changes)
    each = {name: [change for change in changes if change.preference == name] for name in preferences}
    return [
        _figure("margin won", changes, _margin_won, target=claas_metrics.MIN_MARGIN, unit="nats"),
        *(_figure(f"margin won, {name}", found, _margin_won, unit="nats") for name, found in each.items()),
        _compliance("compliance", changes, target=claas_metrics.MIN_COMPLIANCE),
        *(_compliance(f"compliance, {name}", found) for name, found in each.items()),
        _figure("capability ratio", changes, _capability, target=claas_metrics.MIN_CAPABILITY, unit="ratio"),
        _figure("entropy ratio", changes, _entropy, target=claas_metrics.MIN_ENTROPY_RATIO, unit="ratio"),
        _self_rouge(changes),
    ]


def _margin_won(change: WeightsChange) -> float:
    return change.after.margin - change.before.margin


def _capability(change: WeightsChange) -> float | None:
    return claas_metrics.ratio(change.after.general, change.before.general)


def _entropy(change: WeightsChange) -> float | None:
    return claas_metrics.ratio(change.after.entropy, change.before.entropy)


def _compliance(name: str, changes: Sequence[WeightsChange], **fields: Any) -> Figure:
    series = {BASE: _per_seed(changes, lambda c: c.before.compliance)}
    return _with(name, series | {WEIGHTS: _per_seed(changes, lambda c: c.after.compliance)}, **fields)


def _self_rouge(changes: Sequence[WeightsChange]) -> Figure:
    series = {
        BASE: _per_seed(changes, lambda c: c.before.self_rouge),
        WEIGHTS: _per_seed(changes, lambda c: c.after.self_rouge),
    }
    return _with("self-ROUGE-L", series, target=claas_metrics.MAX_SELF_ROUGE, is_at_least=False, unit="ratio")


def _figure(
    name: str, changes: Sequence[WeightsChange], value: Callable[[WeightsChange], float | None], **fields: Any
) -> Figure:
    return _with(name, {WEIGHTS: _per_seed(changes, value)}, **fields)


def _with(name: str, series: Series, **fields: Any) -> Figure:
    judged = {"judged": (WEIGHTS,)} if "target" in fields else {}
    return figure(f"CLaaS: {name}", series, **judged, **fields)


def _per_seed(changes: Sequence[WeightsChange], value: Value) -> list[float]:
    """Return the mean over a seed's preferences, for each seed; what is not known does not count."""
    seeds = dict.fromkeys(change.seed for change in changes)
    found = [[value(change) for change in changes if change.seed == seed] for seed in seeds]
    known = [[number for number in numbers if number is not None] for numbers in found]
    return [sum(numbers) / len(numbers) for numbers in known if numbers]
