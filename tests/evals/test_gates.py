"""evals.gates: the committed set of candidates, and what is made of the verdicts."""

import io
from typing import Any

import pytest
from rich.console import Console

from engine.gates.candidate import GATES
from engine.pocket.style import PREFERENCES
from evals.errors import ArgumentError
from evals.gates import GOOD, HARMS, GatesConfig, in_halves, is_reported, read_set, summarise, table, with_wish


def record(kind: str, *, accepted: bool, seed: int = 0, spoiled: float = 1.0) -> dict[str, Any]:
    """A judged candidate; a refused one failed the gate "asked"."""
    checks = dict.fromkeys(GATES, True) | {"asked": accepted}
    return {"seed": seed, "lesson": 0, "kind": kind, "spoiled": spoiled, "accepted": accepted, "checks": checks}


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


@pytest.mark.parametrize(("let_through", "stopped", "is_reached"), [(98, 10, True), (97, 10, False), (100, 9, False)])
def test_both_targets_must_be_reached(let_through: int, stopped: int, is_reached: bool) -> None:
    """98 % of the good ones and every harmful one."""
    good = [record(GOOD, accepted=i < let_through, seed=i) for i in range(100)]
    bad = [record("poisoned", accepted=i >= stopped, seed=i) for i in range(10)]
    summary = summarise([*good, *bad])
    assert summary["is_reached"] is is_reached
    assert summary["let_through"] == let_through / 100
    assert summary["stopped"] == stopped / 10


def test_the_summary_names_what_was_judged_wrongly_and_by_which_gate() -> None:
    """A person and a lesson per mistake, gates counted, and harms that did no harm."""
    summary = summarise(
        [
            record(GOOD, accepted=False, seed=3),
            record("collapsed", accepted=True, seed=5, spoiled=0.0),
            record("collapsed", accepted=False, seed=7),
        ]
    )
    assert summary["kinds"][GOOD]["wrong"] == [[3, 0]]
    assert summary["kinds"]["collapsed"]["wrong"] == [[5, 0]]
    assert summary["kinds"]["collapsed"]["without_effect"] == 1
    assert summary["kinds"]["collapsed"]["by_gate"] == {"asked": 1}


def test_what_sets_a_bound_does_not_judge_it() -> None:
    """Each lesson is in one half, with the harms in its place; the halves hold as many good candidates."""
    records = [record(GOOD, accepted=True, seed=seed) | {"lesson": n} for seed in range(20) for n in range(5)]
    records[0] |= {"accepted": False, "figures": {"norm": 3.0, "note": "x"}}
    records.append(record("nan", accepted=False, seed=0))
    assert not is_reported(records[0])
    summary = in_halves(records)
    assert (summary["kinds"][GOOD]["number"], summary["set_on"]["kinds"][GOOD]["number"]) == (50, 50)
    assert (summary["let_through"], summary["set_on"]["let_through"]) == (1.0, 0.98)
    assert (summary["kinds"]["nan"]["number"], summary["set_on"]["kinds"]["nan"]["number"]) == (0, 1)
    assert summary["set_on"]["figures"] == {"norm": [3.0, 3.0]}


def test_every_harm_is_in_both_halves_of_the_set() -> None:
    """Otherwise one would go unreported."""
    harms = [
        (h["harm"], is_reported({"seed": p["seed"], "lesson": h["lesson"]})) for p in read_set() for h in p["harmful"]
    ]
    assert set(harms) == {(harm, half) for harm in HARMS for half in (True, False)}


def test_the_table_shows_every_kind_and_both_shares() -> None:
    """A reader sees what was wanted beside what was reached."""
    out = io.StringIO()
    Console(file=out, width=150).print(table(summarise([record(GOOD, accepted=True), record("nan", accepted=False)])))
    assert all(kind in out.getvalue() for kind in (GOOD, *HARMS))
    assert "harmful stopped 100.0 % (100 wanted), good let through 100.0 % (98 wanted)" in out.getvalue()


@pytest.mark.parametrize("change", [{"people": 0}, {"people": 1000}, {"probes": 0}])
def test_a_bad_argument_is_refused(change: dict[str, int]) -> None:
    """The error names the key."""
    with pytest.raises(ArgumentError, match=next(iter(change))):
        GatesConfig(**change)
