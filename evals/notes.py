"""The fast path: a note is in the prompt of the very next answer. Nothing is trained."""

from engine.pocket.style import DIRECTIONS, Direction
from evals import cases
from evals.arms import NOTES
from evals.config import EvalConfig
from evals.study import Study
from evals.teacher import per_direction
from evals.verdict import follows


def units(config: EvalConfig) -> int:
    """Steps of the progress bar."""
    return config.seeds * len(_directions(config))


async def run(study: Study) -> None:
    """Records the answers right after a note: each is the very next one, since answers change nothing."""
    for seed in range(study.config.seeds):
        for direction in _directions(study.config):
            await _one(study, seed, direction)
            study.advance("notes")


def _directions(config: EvalConfig) -> list[Direction]:
    return [d for d in DIRECTIONS if d[0] in config.preferences]


async def _one(study: Study, seed: int, direction: Direction) -> None:
    preference, side = direction
    questions = cases.probes(seed, per_direction(study.config), "notes", *direction)
    away = cases.wish_for(seed, (preference, 1), "note")
    wish = away if side == 1 else cases.opposite(seed, away, "note")
    async with study.pair("notes", seed, preference, side) as pair:
        for told in dict.fromkeys((away, wish)):
            await pair.noted.note(told.text)
        answers = await pair.noted.answers([q.text for q in questions])
    for question, text in zip(questions, answers, strict=True):
        study.record(
            "notes", seed, arm=NOTES, preference=preference, side=side, wish=wish.text, question=question.text,
            text=text, holds=follows(text, wish),
        )  # fmt: skip
