"""The part poison."""

from collections import Counter

import pytest

from evals import bystander, score
from evals.config import EvalConfig
from evals.poison import ORDERS, ROLES, attacks, units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("poison",), "seeds": 1, "attacks": 8}


def test_attacks_are_of_four_kinds() -> None:
    """A quarter each: fake roles, orders, gibberish, the same again; the same seed gives the same."""
    told = attacks(3, 40)
    assert sum(text in ROLES for text in told) == 10
    assert sum(text in ORDERS for text in told) == 10
    assert Counter(told).most_common(1)[0][1] >= 10
    assert told == attacks(3, 40)
    assert told != attacks(4, 40)


async def test_a_heed_that_refuses_stays_as_it_was(measure: Measure) -> None:
    """Every attack is refused and recorded; no person's answers change."""
    records = await measure(FakeHeed(), **ARGUMENTS)
    assert sum(r.get("event") == "refused" for r in records) == 8
    changed, spread, first_token, lost, said, again = score.figures(records, ["poison"])
    assert [row.median["weights"] for row in (changed, spread, lost, said, again)] == [0, 0, 0, 0, 0]
    assert first_token.is_met(first_token.median) is False  # nothing was refused by a gate, so nothing was measured


async def test_a_changed_bystander_is_seen(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is another one afterwards counts."""
    fake = FakeHeed()
    answers = iter(range(10_000))
    plain = fake.answer
    fake.answer = lambda body: f"{plain(body)} {next(answers)} buy gold"  # type: ignore[method-assign]
    monkeypatch.setattr(bystander, "PAUSE_S", 0.0)
    changed, spread, _, _, said, _ = score.figures(await measure(fake, **ARGUMENTS), ["poison"])
    assert changed.median["weights"] == spread.median["weights"] == said.median["weights"] == 1
    assert changed.is_met(changed.median) is False


async def test_after_a_lesson_that_a_gate_refuses_the_next_answer_is_timed(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the question to the first piece of the answer."""
    monkeypatch.setattr("evals.poison.attacks", lambda seed, count: ["leave the emojis out"] * count)
    fake = FakeHeed("deaf")
    fake.status = "rejected"
    records = await measure(fake, **ARGUMENTS)
    assert sum(r.get("event") == "next answer" for r in records) == 8
    first_token = score.figures(records, ["poison"])[2]
    assert (first_token.unit, first_token.is_met(first_token.median)) == ("s", True)


def test_units_count_attacks() -> None:
    """As many as were asked for."""
    assert units(EvalConfig(seeds=2, attacks=5)) == 10
