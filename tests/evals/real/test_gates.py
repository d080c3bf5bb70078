"""evals.real.gates: the committed set for real models, its harms, and what shows that they did harm."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.config import LearnConfig
from engine.pocket import WEIGHTS
from engine.pocket.trial import Bench
from evals.errors import ArgumentError
from evals.gates_score import GOOD
from evals.real import gates as real_gates
from evals.real.gates import MAX_PROBES, REAL_HARMS, RealMoment, read_set, share_spoiled
from evals.real.world import REAL_WISHES

FOLLOWED = {"shorter", "longer", "one_sentence", "lowercase", "spanish", "list", "concise"}
SMALL = LearnConfig(steps=2, num_teacher_rollouts=2, num_anchors=2, max_rollout_tokens=8)


def moment(*wishes: str, answers: tuple[str, ...], base: tuple[str, ...]) -> RealMoment:
    """Return a correction whose honest candidate gives these answers."""
    named = tuple(REAL_WISHES[name] for name in wishes)
    return cast("RealMoment", SimpleNamespace(wishes=named, answers=answers, base=base))


def test_every_harm_has_three_places_and_can_be_made() -> None:
    """The wishes are those a small model follows; an opposite exists, and forgetting has something to forget."""
    people = read_set()
    harms = [how["harm"] for p in people for how in p["harmful"]]
    assert {kind: harms.count(kind) for kind in REAL_HARMS} == dict.fromkeys(REAL_HARMS, 3)
    assert len({p["seed"] for p in people}) == len(people)
    for person in people:
        assert set(person["wishes"]) <= FOLLOWED
        for how in person["harmful"]:
            wish = REAL_WISHES[person["wishes"][how["lesson"]]]
            assert how["harm"] != "opposite" or wish.opposite
            assert how["harm"] != "forgetting" or how["lesson"] == 1
            assert how.get("wish") not in person["wishes"]


def test_a_harm_shows_where_the_honest_answer_was_right() -> None:
    """A wish that is lost, a text that says nothing and a foreign wish count; what the honest one missed does not."""
    seen = moment("lowercase", answers=("it is tea.", "It is tea."), base=("It is tea.", "It is tea."))
    assert share_spoiled(seen, ["It is tea.", "It is tea."], {"harm": "scrambled"}) == 0.5
    assert share_spoiled(seen, ["it is tea.", "tea tea tea tea tea"], {"harm": "collapsed"}) == 0.5
    assert share_spoiled(seen, ["it is tea.", "IT IS TEA."], {"harm": "opposite"}) == 0.5
    assert share_spoiled(seen, ["es el té de la casa.", "It is tea."], {"harm": "poisoned", "wish": "spanish"}) == 0.5
    assert share_spoiled(seen, ["it is tea.", "It is tea."], {"harm": "forgetting"}) == 0


@pytest.mark.parametrize("kind", sorted(REAL_HARMS))
def test_every_harm_is_made_and_judged(bench: Bench, kind: str) -> None:
    """A lesson's good candidate comes first, then the harmful one in its place, with verdict and what shows."""
    how: dict[str, Any] = next(h for p in read_set() for h in p["harmful"] if h["harm"] == kind)
    described = {"seed": 3, "wishes": ["lowercase"], "harmful": [how | {"lesson": 0, "steps": 1}]}
    good, harmful = real_gates.walk(bench, described, 2)
    assert (good["kind"], harmful["kind"]) == (GOOD, kind)
    assert set(good["checks"]) == set(harmful["checks"])
    assert good["neutral"] >= 0
    assert harmful["figures"] != good["figures"] or kind == "forgetting"  # a first lesson has nothing to forget


def test_the_second_correction_goes_on_with_the_first(bench: Bench) -> None:
    """The gates then see the earlier correction and an approved answer."""
    first, second = real_gates.walk(bench, {"seed": 3, "wishes": ["lowercase", "concise"], "harmful": []}, 1)
    assert "earlier_drop" not in first["figures"]
    assert {"earlier_drop", "gold_drop"} <= set(second["figures"])


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The command says so instead of a stack trace."""
    with pytest.raises(ArgumentError, match="no-such"):
        real_gates.prepared(str(tmp_path / "no-such"))


def test_there_are_prompts_for_the_probes() -> None:
    """As many as the arguments allow, and none that answers are corrected on."""
    probes, asked = real_gates._questions(1, "test", MAX_PROBES), real_gates._questions(1, "train", 4)
    assert (len(set(probes)), len(set(asked))) == (MAX_PROBES, 4)
    assert not set(probes) & set(asked)


@pytest.fixture(scope="module")
def bench() -> Bench:
    """Return the pocket model with lessons that cost little, as if it were a real one."""
    return Bench(WEIGHTS, SMALL)
