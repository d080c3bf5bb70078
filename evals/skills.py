"""Questions that have nothing to do with style, asked of the base model and of a person who taught something."""

from collections.abc import Awaitable, Callable, Sequence

from evals.arms import BASE, Texts
from evals.cases import Exercise
from evals.study import Study
from evals.verdict import is_right


async def record(
    study: Study,
    part: str,
    seed: int,
    asked: Sequence[Exercise],
    answers: Callable[[list[str]], Awaitable[Texts]],
    **fields: object,
) -> None:
    """Record one judged answer per exercise and arm; `answers` asks anyone who taught."""
    texts = [exercise.text for exercise in asked]
    for arm, given in {BASE: await study.before(texts), **await answers(texts)}.items():
        for exercise, text in zip(asked, given, strict=True):
            study.record(
                part, seed, arm=arm, skill=exercise.skill, question=exercise.text, expected=exercise.expected,
                text=text, is_right=is_right(text, exercise), **fields,
            )  # fmt: skip
