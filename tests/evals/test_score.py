"""From records to figures."""

from typing import Any

import pytest

from evals import score
from evals.figure import Figure, figure, per_seed


def answer(part: str, seed: int, arm: str = "weights", **fields: Any) -> dict[str, Any]:
    """One judged answer."""
    return {"part": part, "seed": seed, "arm": arm, **fields}


def lesson(status: str = "learned", seconds: float = 1.0, is_settled: bool = True) -> dict[str, Any]:
    """One correction."""
    return {
        "part": "adoption", "seed": 0, "event": "lesson", "status": status, "seconds": seconds,
        "is_settled": is_settled, "preference": "emoji", "history": 0,
    }  # fmt: skip


def test_a_figure_is_the_median_of_the_seeds_with_the_worst_beside_it() -> None:
    """The worst of a share is its least, the worst of a loss its most."""
    share = figure("held", {"weights": [0.9, 1.0, 0.5]})
    loss = figure("lost", {"weights": [0.9, 1.0, 0.5]}, is_at_least=False)
    assert (share.median, share.worst) == ({"weights": 0.9}, {"weights": 0.5})
    assert (loss.median, loss.worst) == ({"weights": 0.9}, {"weights": 1.0})


@pytest.mark.parametrize(
    ("values", "is_met"),
    [({"weights": 0.95}, True), ({"weights": 0.94}, False), ({"weights": 0.99, "both": 0.0}, True), ({}, False)],
)
def test_a_target_is_for_the_judged_arms(values: dict[str, float], is_met: bool) -> None:
    """Arms that are not judged do not matter; a judged arm without a value has not reached it."""
    assert Figure("held", {}, {}, target=0.95, judged=("weights",)).is_met(values) is is_met


def test_a_limit_is_reached_from_below() -> None:
    """A figure that should be small is met at its target."""
    limit = Figure("lost", {}, {}, target=2.0, is_at_least=False, judged=("weights",))
    assert (limit.is_met({"weights": 2.0}), limit.is_met({"weights": 2.1})) == (True, False)


def test_a_figure_without_a_target_is_neither_met_nor_missed() -> None:
    """Some rows are there to be read."""
    assert Figure("mean", {"weights": 0.1}, {}).is_met({"weights": 0.1}) is None


def test_the_mean_is_taken_within_a_seed_before_the_median_between_them() -> None:
    """A seed with more answers does not weigh more."""
    records = [answer("notes", 0, holds=True)] * 9 + [answer("notes", 1, holds=False)]
    assert per_seed(records, lambda r: r["holds"]) == {"weights": [1.0, 0.0]}


def test_what_shows_nothing_does_not_count() -> None:
    """None is left out, not taken for zero."""
    records = [answer("adoption", 0, facts_lost=None), answer("adoption", 0, facts_lost=True)]
    assert per_seed(records, lambda r: r["facts_lost"]) == {"weights": [1.0]}


def adopted(preference: str, seed: int, holds: bool) -> list[dict[str, Any]]:
    """One probe in each arm."""
    fields: dict[str, Any] = {"preference": preference, "history": 0, "holds": holds, "changed": [], "compared": 10}
    return [answer("adoption", seed, arm, **fields, facts_lost=False) for arm in ("notes", "weights", "both")]


def test_preferences_are_counted_by_their_median_and_by_their_worst_seed() -> None:
    """One preference holds in all three seeds, the other in two of them."""
    records = [lesson()]
    for seed in range(3):
        records += adopted("emoji", seed, True) + adopted("units", seed, seed != 1)
    _, count, least = score.figures(records, ["adoption"])
    assert (count.median["weights"], count.worst["weights"], count.target) == (2, 1, 2)
    assert (least.median["weights"], least.worst["weights"]) == (1, 0)


def test_changed_preferences_are_counted_over_all_that_were_compared() -> None:
    """Two of ten in one answer and none in another is one in ten."""
    fields: dict[str, Any] = {"preference": "emoji", "history": 0, "holds": True, "compared": 10, "facts_lost": False}
    records = [answer("adoption", 0, **fields, changed=["a", "b"]), answer("adoption", 0, **fields, changed=[])]
    changed, facts, either = score.figures(records, ["collateral"])
    assert (changed.median["weights"], facts.median["weights"], either.median["weights"]) == (0.1, 0.0, 0.5)


def test_the_worst_of_a_sequence_is_its_least_held_preference() -> None:
    """Per seed, over all the answers a preference was part of."""
    fields: dict[str, Any] = {"changed": [], "compared": 6, "facts_lost": False}
    records = [
        answer("retention", 0, held={"emoji": True, "units": False}, **fields),
        answer("retention", 0, held={"emoji": True, "units": True}, **fields),
    ]
    rows = {row.name: row.median.get("weights") for row in score.figures(records, ["retention"])}
    assert rows["six in a row: held at the end"] == 0.75
    assert rows["six in a row: the worst of them"] == 0.5
    assert rows["six in a row: all in one answer"] == 0.5
    held = score.columns(records)[0]
    assert held.title == "one of six, at the end"
    assert {name: row.median["weights"] for name, row in held.rows.items()} == {"emoji": 1.0, "units": 0.5}


def test_skills_lost_are_points_against_the_base_model() -> None:
    """Half of the answers wrong after is fifty points; families never rehearsed have a row of their own."""
    records = [
        answer("skills", 0, arm, skill=skill, is_right=arm == "base" or skill == "add")
        for arm in ("base", "notes", "weights", "both")
        for skill in ("add", "bigger")
    ]
    _, lost, absent = score.figures(records, ["skills"])
    assert (lost.median["weights"], absent.median["weights"]) == (50.0, 100.0)
    assert [row.name for row in score.skills_by_family(records)] == ["add", "bigger"]


def test_only_answers_that_had_gone_away_can_come_back() -> None:
    """An answer the first correction had not reached says nothing about the second."""
    assert score.is_back({"was_away": True, "is_back": True}) == 1.0
    assert score.is_back({"was_away": True, "is_back": False}) == 0.0
    assert score.is_back({"was_away": False, "is_back": True}) is None


def test_each_preference_has_its_columns() -> None:
    """Only the ways that were measured are there; a preference with nothing to show in an arm is left out of JSON."""
    records = [*adopted("emoji", 0, True), answer("reversal", 0, preference="units", was_away=False, is_back=True)]
    columns = {column.title: column.to_json() for column in score.columns(records)}
    assert list(columns) == ["one correction, 0 earlier", "facts lost", "opposite correction"]
    assert columns["one correction, 0 earlier"]["preferences"] == {"emoji": {"median": 1.0, "worst": 1.0}}
    assert columns["opposite correction"] == {"title": "opposite correction", "arm": "weights", "preferences": {}}


def test_lessons_are_counted_by_what_became_of_them() -> None:
    """Corrections that taught nothing, and those that never settled, are in the summary."""
    summary = score.lessons([lesson(), lesson("kept", 3.0), lesson(is_settled=False), answer("notes", 0, holds=True)])
    assert summary == {"corrections": 3, "status": {"learned": 2, "kept": 1}, "unsettled": 1, "median_s": 1.0}
    assert score.lessons([])["median_s"] is None


def test_a_figure_as_json_says_whether_it_was_reached() -> None:
    """By the median seed and by the worst one."""
    data = figure("held", {"weights": [1.0, 0.5]}, target=0.7, judged=("weights",)).to_json()
    assert (data["is_met"], data["is_met_by_worst"], data["seeds"]) == (True, False, {"weights": [1.0, 0.5]})
