"""The people a benchmark talks as, and what they wish for."""

from engine.pocket.style import PREFERENCES
from evals import cases
from evals.arms import TaughtPerson
from evals.cases import Wish
from evals.client import Client
from evals.config import EvalConfig


def person(client: Client, name: str) -> TaughtPerson:
    """Return a person who asks and corrects."""
    return TaughtPerson(client, name, EvalConfig())


def wish_in_turn(seed: int, part: str, number: int) -> Wish:
    """Return the wish of a part's lesson: one preference after the other, from the first again after the last."""
    preference = list(PREFERENCES)[number % len(PREFERENCES)]
    return cases.wish_for(seed, (preference, 1), part, number)
