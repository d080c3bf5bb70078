"""evals.gates: the committed set of candidates of the pocket model, and the command."""

from typing import Any

import pytest

from engine.pocket.style import PREFERENCES
from evals.errors import ArgumentError
from evals.gates import HARMS, GatesConfig, num_candidates, read_set, whole, with_wish
from evals.gates_score import is_reported


def test_the_set_has_ten_of_each_harm_and_a_hundred_good_ones() -> None:
    """Every person's five corrections are good candidates; each harm has ten places."""
    people = read_set()
    assert sum(len(p["wishes"]) for p in people) >= 100
    harms = [h["harm"] for p in people for h in p["harmful"]]
    assert {harm: harms.count(harm) for harm in HARMS} == dict.fromkeys(HARMS, 10)
    assert len({p["seed"] for p in people}) == len(people)


def test_every_description_can_be_made() -> None:
    """Harms have a place among the corrections, forgetting has something to forget, poison is nothing wished for."""
    for person in read_set():
        wished = [preference for preference, _ in person["wishes"]]
        assert set(wished) <= set(PREFERENCES)
        for harm in person["harmful"]:
            assert 0 <= harm["lesson"] < len(wished)
            assert harm["harm"] != "forgetting" or harm["lesson"] >= 2
            assert harm.get("preference") not in wished


def test_a_newer_wish_takes_the_older_ones_place() -> None:
    """About the same preference only the last one holds, with the same name in it."""
    wishes = with_wish(1, [], ("name", 1))
    wishes = with_wish(1, wishes, ("emoji", 1))
    name = wishes[0].name
    wishes = with_wish(1, wishes, ("name", 0))
    assert [w.direction for w in wishes] == [("emoji", 1), ("name", 0)]
    assert wishes[-1].name == name


def test_every_harm_is_in_both_halves_of_the_set() -> None:
    """Otherwise one would go unreported."""
    harms = [
        (h["harm"], is_reported({"seed": p["seed"], "lesson": h["lesson"]})) for p in read_set() for h in p["harmful"]
    ]
    assert set(harms) == {(harm, half) for harm in HARMS for half in (True, False)}


@pytest.mark.parametrize(
    "change", [{"people": -1}, {"people": 1000}, {"probes": 0}, {"probes": 60, "model": "smollm2"}]
)
def test_a_bad_argument_is_refused(change: dict[str, Any]) -> None:
    """The error names the key."""
    with pytest.raises(ArgumentError, match="probes" if "probes" in change else "people"):
        GatesConfig(**change)


def test_a_walk_that_broke_off_begins_anew() -> None:
    """Of a person whose candidates are not all judged no record counts; another model has a set of its own."""
    people = GatesConfig(model="smollm2").read_set()[:2]
    first, second = ([{"seed": p["seed"], "kind": "good"}] * num_candidates(p) for p in people)
    assert whole(people, [*first, *second[1:]]) == first
    assert whole(people, [*first, *second]) == [*first, *second]
    assert GatesConfig().read_set() != people
