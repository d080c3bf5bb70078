"""The people a benchmark talks as."""

from evals.arms import Person
from evals.client import Client
from evals.config import EvalConfig


def person(client: Client, name: str) -> Person:
    """Somebody who asks and corrects."""
    return Person(client, name, EvalConfig())
