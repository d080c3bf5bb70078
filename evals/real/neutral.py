"""Neutral answers: what a lesson moves in answers that no wish is about, as KL(base || weights) per token.

For tokens drawn from the base model, with r = p_weights / p_base, the mean of

    r - 1 - log r

estimates KL(base || weights) without bias, is never negative, and varies less than -log r (Schulman, "Approximating KL
divergence"). Invariant: the prompts are none that a lesson holds still (the bank's anchors) or trains on.
"""

import asyncio
import math

from evals.client import Messages
from evals.real.study import RealStudy
from evals.real.world import RealWish, read_rows
from evals.study import BASE_MODEL

NEUTRAL = tuple(row["prompt"] for row in read_rows("neutral.tsv"))


async def record_drift(study: RealStudy, seed: int, wish: RealWish, person: str) -> None:
    """Record the nats per token by which a lesson moved the neutral answers."""
    kls = await asyncio.gather(*(_of_prompt(study, seed, text, person) for text in NEUTRAL))
    tokens = [nats for found in kls for nats in found]
    study.journal.record({
        "event": "drift", "seed": seed, "wish": wish.name, "nats": round(sum(tokens) / max(len(tokens), 1), 5),
        "tokens": len(tokens), "prompts": len(NEUTRAL),
    })  # fmt: skip


def kl_per_token(base: list[float], weights: list[float]) -> list[float]:
    """Return r - 1 - log r for each token, from its log-probabilities."""
    return [math.expm1(new - old) - (new - old) for old, new in zip(base, weights, strict=True)]


async def _of_prompt(study: RealStudy, seed: int, text: str, person: str) -> list[float]:
    messages: Messages = [{"role": "user", "content": text}]
    answer, base = await _base_answer(study, seed, text)
    return kl_per_token(base, await study.client.score(person, messages, answer)) if answer else []


async def _base_answer(study: RealStudy, seed: int, text: str) -> tuple[str, list[float]]:
    """Return an answer drawn from the base model, with its tokens' log-probabilities; each is drawn once."""
    if (seed, text) not in study.neutral:
        messages: Messages = [{"role": "user", "content": text}]
        answer = await study.client.drawn(study.base, messages, seed, model=BASE_MODEL)
        scores = await study.client.score(study.base, messages, answer, model=BASE_MODEL) if answer else []
        study.neutral[seed, text] = answer, scores
    return study.neutral[seed, text]
