"""The part population."""

import pytest

from bench import population
from bench.config import BenchConfig
from evals.errors import ArgumentError
from tests.bench.test_memory import HeedHere
from tests.evals.fake_heed import FakeHeed, serving


async def test_everybody_has_an_adapter_and_both_groups_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person is taught, the others are given it; few people ask, then people drawn from all."""
    fake = FakeHeed()
    config = BenchConfig(people=40, streams=2, rounds=2, questions=3)
    async with serving(fake) as url:
        monkeypatch.setattr(population, "HeedServer", lambda settings: HeedHere(url, settings))
        samples = await population.measure(config, lambda _: None)
    assert {name: (user.active, user.versions[-1]) for name, user in fake.users.items()} == {
        f"bench-population-{n}": (1, fake.user("bench-population-0").versions[1]) for n in range(40)
    }
    assert (len(samples["few"]), len(samples["many"]), len(samples["bytes"])) == (2, 2, 3)
    asking = [user for user, _ in fake.asked[1:]]
    assert len(asking) == 2 * 2 * 2 * 3
    rounds = [set(asking[n : n + 6]) for n in range(0, 24, 6)]
    few = {f"bench-population-{n}" for n in range(2)}
    assert [found <= few for found in rounds] == [True, False, False, True]


def test_rows_are_the_ratio_and_the_growth() -> None:
    """Both within one run; the throughput's target is nine tenths."""
    rows = population.rows({"people": 1000, "few": [1.0, 1.0], "many": [1.1, 1.0], "bytes": [2e9, 2.1e9, 2.2e9]})
    assert [row.name.strip() for row in rows] == [
        "answers of a few people's adapters",
        "answers of 1000 people's adapters",
        "1000 people / a few",
        "worker's memory, before",
        "after all rounds / before",
    ]
    assert rows[2].median == pytest.approx(1.05)
    assert rows[2].is_met
    assert rows[4].median == pytest.approx(1.1)


def test_fewer_people_than_streams_are_refused() -> None:
    """Each stream of the few has a person."""
    with pytest.raises(ArgumentError, match="people wants"):
        BenchConfig(people=3)
