"""Fixtures of the evaluation's tests: measuring a fake heed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evals.config import EvalConfig
from evals.journal import Journal, Record
from evals.run import evaluate
from tests.evals.fake_heed import FakeHeed, serving

Measure = Callable[..., Awaitable[list[Record]]]


@pytest.fixture
def measure() -> Measure:
    """Measures a fake heed with the given arguments; returns the records."""

    async def measured(fake: FakeHeed, **arguments: Any) -> list[Record]:
        config = EvalConfig(**{"seeds": 2, "probes": 4, "skills": 10, **arguments})
        async with serving(fake) as url:
            await evaluate(config, url, lambda _part: None, journal := Journal())
        return journal.records

    return measured
