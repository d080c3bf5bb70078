"""The people a benchmark talks as, and what they wish for."""

from collections.abc import Callable, Sequence

from bench.config import BenchConfig
from engine.pocket.style import PREFERENCES
from evals import cases
from evals.arms import TaughtPerson
from evals.cases import Wish
from evals.client import Client
from evals.config import EvalConfig

LESSON = "question"  # leaves answers about as long as they were


def person(client: Client, name: str) -> TaughtPerson:
    """Return a person who asks and corrects."""
    return TaughtPerson(client, name, EvalConfig())


def wish_in_turn(seed: int, part: str, number: int) -> Wish:
    """Return the wish of a part's lesson: one preference after the other, from the first again after the last."""
    preference = list(PREFERENCES)[number % len(PREFERENCES)]
    return cases.wish_for(seed, (preference, 1), part, number)


async def share_a_lesson(
    config: BenchConfig, client: Client, names: Sequence[str], advance: Callable[[], None]
) -> None:
    """Teach the first person and give all others the adapter, so that each has files and a slot of their own."""
    first, *others = names
    wish = cases.wish_for(config.seed, (LESSON, 1), "shared")
    lesson = await person(client, first).correct(cases.corrected(config.seed, 1, "shared")[0], wish.text)
    package = await client.exported(first, lesson.version)
    advance()
    for name in others:
        await client.adopt(name, package)
        advance()
