"""The people a benchmark talks as."""

from evals.arms import TaughtPerson
from evals.client import Client
from evals.config import EvalConfig


def person(client: Client, name: str) -> TaughtPerson:
    """Return a person who asks and corrects."""
    return TaughtPerson(client, name, EvalConfig())
