"""The part claas: a lesson by heed, and CLaaS's step repeated until it has taught as much."""

import math
from itertools import islice, pairwise
from typing import Any

import pytest

from bench import claas
from bench.config import BenchConfig


def found(seconds: float, left: float = 0.2, **more: Any) -> dict[str, Any]:
    """Return what became of the repeated step at one rate."""
    return {"rate": 0.1, "seconds": seconds, "left": left, "moved": 0.3, "steps": 4, "is_there": False, **more}


async def test_both_start_from_the_base_model_and_are_measured_where_neither_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pocket model learns a wish; a rate at which nothing moves spends its time and never gets there."""
    monkeypatch.setattr(claas, "RATES", (1e-9,))
    monkeypatch.setattr(claas, "LONGEST", 0.1)
    advanced: list[str] = []
    samples = await claas.measure(BenchConfig(rounds=1, seed=4), advanced.append)
    (record,) = samples["corrections"]
    heed, (repeated,) = record["heed"], record["claas"]
    assert 0 <= heed["left"] < 0.5 * record["before"]
    assert heed["steps"] > 1
    assert repeated["left"] == pytest.approx(record["before"], rel=1e-3)
    assert not repeated["is_there"]
    assert repeated["seconds"] >= 0.1 * heed["seconds"]
    assert advanced == ["claas"]


def test_a_rate_that_gets_there_first_counts() -> None:
    """Where none does, the one that came nearest, and the ratio is an upper limit."""
    corrections = [
        {"before": 1.0, "heed": found(1.0), "claas": [found(8.0, 0.1, is_there=True), found(4.0, 0.1, is_there=True)]},
        {"before": 0.5, "heed": found(1.0), "claas": [found(2.0, 0.4), found(2.5, 0.3)]},
        {"before": 1.0, "heed": found(1.0), "claas": [found(0.0, math.inf), found(3.0, 0.5)]},
    ]
    rows = {row.name.strip(): row for row in claas.rows({"corrections": corrections})}
    assert rows["CLaaS's step repeated, as far in 1 of 3"].median == 3.0
    assert rows["seconds to the same divergence, heed / CLaaS"].median == pytest.approx(1 / 3)
    assert rows["seconds to the same divergence, heed / CLaaS"].is_met


def test_it_is_looked_ever_less_often() -> None:
    """Each step at first, and at least one more each time."""
    looks = [*islice(claas._looks(), 12)]
    assert looks[:4] == [1, 2, 3, 4]
    assert all(later > before for before, later in pairwise(looks))
    assert looks[-1] > 2 * len(looks)


def test_a_real_model_has_wishes_of_its_own() -> None:
    """In turn."""
    assert [claas._real_wish(number).name for number in range(4)] == ["shorter", "one_sentence", "concise", "shorter"]
