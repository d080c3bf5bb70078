"""heed answers a crowd that does everything at once, once each; `python -m tests.contract.storm` asks for more."""

import random
from collections import Counter

import pytest

from evals.errors import ArgumentError
from tests.contract.storm import PLATFORMS, Damage, StormConfig, storm
from tests.contract.storm_crowd import IDEAL, answers, broken

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


def test_an_answer_of_who_was_taught_one_is_an_answer() -> None:
    """Whatever they asked; notes and confirmations that name it are none."""
    texts = [
        "You asked about q1. It is fine.",
        "Bees.",
        "Well, Bees.",
        "Noted: say it like this: Bees.",
        "you   q1\nheed  Bees.",
    ]
    assert answers(texts) == Counter({"q1": 1, IDEAL: 2})


async def test_a_storm_ends_in_time() -> None:
    """After its minutes no event is drawn any more; what was, is counted."""
    damage = await storm(StormConfig(events=100_000, minutes=0.001), "telegram")
    assert 0 < damage.events < 1000
    assert damage.is_none


def test_what_is_broken_differs() -> None:
    """One value is missing or of another kind; the original stays as it was."""
    whole = {"id": 1, "from": {"id": 2}, "text": "junk"}
    assert all(broken(whole, random.Random(seed)) != whole for seed in range(50))
    assert whole == {"id": 1, "from": {"id": 2}, "text": "junk"}


@pytest.mark.parametrize("wrong", [{"events": 0}, {"people": 0}, {"platform": "matrix"}])
def test_nothing_to_do_is_no_result(wrong: dict[str, int | str]) -> None:
    """events=0 and unknown platforms are refused."""
    with pytest.raises(ArgumentError):
        StormConfig(**wrong)  # type: ignore[arg-type]
