"""The part recall."""

import pytest

from engine.pocket.bank import FRAMES, THINGS
from engine.samples.questions import framed
from evals import recall, score
from evals.config import EvalConfig
from evals.recall import told, units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("recall",), "seeds": 1}


def known(seed: int = 0) -> dict[str, tuple[str, str]]:
    """Return the facts the fake can be told: question -> note and answer."""
    return {f.question: (f.text, f"It is {f.value}.") for f in told(seed, recall.NUM_TOLD)}


@pytest.mark.parametrize(("mind", "recalled"), [("perfect", 1.0), ("deaf", 0.0)])
async def test_what_was_told_is_asked_for_without_notes(measure: Measure, mind: str, recalled: float) -> None:
    """After one consolidation: everything, or nothing where nothing was learned; with notes in the prompt all of it."""
    rows = score.figures(await measure(FakeHeed(mind, facts=known()), **ARGUMENTS), ["recall"])
    left, asked, unchanged, invented, _ = rows
    assert left.median["weights"] == recalled
    assert left.is_met(left.median) is (recalled == 1.0)
    assert asked.median["weights"] == recalled
    assert asked.median["notes"] == 1.0
    assert asked.is_met(asked.median) is (recalled == 1.0)
    assert unchanged.median["weights"] == 1.0
    assert invented.median["weights"] == invented.median["both"] == 0.0


async def test_answers_that_have_nothing_to_do_with_it_are_compared_with_the_base(measure: Measure) -> None:
    """One that says something else afterwards has changed."""
    fake = FakeHeed(facts=known())
    real = fake.answer
    fake.answer = lambda body: real(body) + ("!" if fake.user(body["user"]).consolidated else "")  # type: ignore[method-assign]
    rows = score.figures(await measure(fake, **ARGUMENTS), ["recall"])
    assert rows[2].median["weights"] == 0.0


def test_twenty_different_things_are_told() -> None:
    """Each has a question of its own that names no value, and that no consolidation asks; the same every time."""
    for seed in range(5):
        facts = told(seed, recall.NUM_TOLD)
        assert len({f.text for f in facts}) == len({f.question for f in facts}) == len({f.value for f in facts}) == 20
        for fact in facts:
            assert fact.value in fact.text
            assert fact.value not in fact.question
            assert fact.question not in framed(fact.text, FRAMES)
        assert told(seed, recall.NUM_TOLD) == facts


def test_what_is_asked_though_never_told_is_nothing_that_learning_asks_about() -> None:
    """No being of the evaluation is among the things that a consolidation calls untold, nor in a frame."""
    asked = {*recall.BEINGS, *recall.UNTOLD}
    assert not asked & {*THINGS}
    assert not {word for seed in range(5) for fact in told(seed, 20) for word in fact.text.split()} & {*recall.UNTOLD}
    assert not asked & {word for frame in FRAMES for word in frame.split()}


def test_units_count_people() -> None:
    """One person per seed."""
    assert units(EvalConfig(seeds=3)) == 3
