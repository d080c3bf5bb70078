"""heed answers a crowd that does everything at once, once each; `python -m tests.contract.storm` asks for more."""

import random
from collections import Counter

import pytest

from evals.errors import ArgumentError
from tests.contract.storm import PLATFORMS, Damage, StormConfig, storm
from tests.contract.storm_crowd import broken

pytestmark = pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")  # the library's own use of retry_after

EVENTS = 150


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_a_storm_loses_and_doubles_nothing(platform: str) -> None:
    """Malformed, repeated, reordered and hostile events, and then every command of every person."""
    damage = await storm(StormConfig(events=EVENTS), platform)
    assert (damage.lost, damage.doubled, damage.errors) == ([], [], [])
    assert damage.questions > EVENTS / 4
    assert damage.commands > 50


def test_damage_is_seen() -> None:
    """What is missing and what is there too often are told apart."""
    damage = Damage()
    damage.compare("answer", Counter(["a", "b"]), Counter(["b", "b"]))
    assert (damage.lost, damage.doubled, damage.is_none) == (["answer: a"], ["answer: b"], False)


def test_what_is_broken_differs() -> None:
    """One value is missing or of another kind; the original stays as it was."""
    whole = {"id": 1, "from": {"id": 2}, "text": "junk"}
    assert all(broken(whole, random.Random(seed)) != whole for seed in range(50))
    assert whole == {"id": 1, "from": {"id": 2}, "text": "junk"}


@pytest.mark.parametrize("wrong", [{"events": 0}, {"platform": "matrix"}])
def test_nothing_to_do_is_no_result(wrong: dict[str, int | str]) -> None:
    """events=0 and unknown platforms are refused."""
    with pytest.raises(ArgumentError):
        StormConfig(**wrong)  # type: ignore[arg-type]
