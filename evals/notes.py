"""The fast path: a note is in the prompt of the very next answer. Nothing is trained."""

import asyncio
from functools import partial

from engine.pocket.style import DIRECTIONS, Direction
from evals import cases
from evals.arms import NOTES
from evals.config import EvalConfig
from evals.study import Study
from evals.teacher import per_direction
from evals.verdict import follows


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar: one per direction."""
    return config.seeds * len(_directions(config))


async def run(study: Study) -> None:
    """Record very next answers: every one by a person of its own, told in words of their own."""
    for seed in range(study.config.seeds):
        for direction in _directions(study.config):
            unit = f"notes/{seed}/{direction[0]}/{direction[1]}"
            await study.once(unit, partial(_several, study, seed, direction))


async def _several(study: Study, seed: int, direction: Direction) -> None:
    numbers = range(per_direction(study.config))
    await asyncio.gather(*(_one(study, seed, direction, number) for number in numbers))
    study.advance("notes")


def _directions(config: EvalConfig) -> list[Direction]:
    return [d for d in DIRECTIONS if d[0] in config.preferences]


async def _one(study: Study, seed: int, direction: Direction, number: int) -> None:
    """Tell a wish towards the default by a person who had wished away from it: the newest note wins."""
    preference, side = direction
    question = cases.probes(seed, 1, "notes", *direction, number)[0]
    away = cases.wish_for(seed, (preference, 1), "note", number)
    wish = away if side == 1 else cases.opposite(seed, away, "note", number)
    async with study.pair("notes", seed, preference, side, number) as pair:
        for told in dict.fromkeys((away, wish)):
            await pair.noted.note(told.text)
        text = (await pair.noted.say(question)).text
    study.record(
        "notes", seed, arm=NOTES, preference=preference, side=side, wish=wish.text, question=question.text,
        text=text, holds=follows(text, wish),
    )  # fmt: skip
