"""The teacher's own skill: does the model follow feedback it reads? Nothing is trained."""

import asyncio
from collections.abc import Callable
from functools import partial

from engine.pocket.style import DIRECTIONS, Direction
from evals import cases
from evals.arms import BASE
from evals.cases import ToldWish
from evals.config import EvalConfig
from evals.study import BASE_MODEL, Study
from evals.verdict import follows

WAYS = (cases.told_next_turn, cases.told_in_hindsight)


def per_direction(config: EvalConfig) -> int:
    """Conversations per direction and way: both directions of twelve preferences make up for the fewer probes."""
    return max(1, config.probes // 4)


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar."""
    return config.seeds * len(WAYS)


async def run(study: Study) -> None:
    """Record one judged answer per conversation."""
    for seed in range(study.config.seeds):
        for make in WAYS:
            await study.once(f"teacher/{seed}/{make.__name__}", partial(_told, study, seed, make))


async def _told(study: Study, seed: int, make: Callable[[int, Direction, int], ToldWish]) -> None:
    wanted = [d for d in DIRECTIONS if d[0] in study.config.preferences]
    told = [make(seed, d, i) for d in wanted for i in range(per_direction(study.config))]
    await asyncio.gather(*(_judge(study, seed, t) for t in told))
    study.advance("teacher")


async def _judge(study: Study, seed: int, told: ToldWish) -> None:
    answer = await study.client.chat(study.base_user, told.messages, notes="off", model=BASE_MODEL)
    study.record(
        "teacher", seed, arm=BASE, way=told.way, preference=told.wish.preference, side=told.wish.direction[1],
        wish=told.wish.text, text=answer.text, holds=follows(answer.text, told.wish),
    )  # fmt: skip
