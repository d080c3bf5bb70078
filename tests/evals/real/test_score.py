"""The figures of `heed eval real`."""

import pytest

from evals.real.score import TARGETS, ratio_of, spread, summarise


@pytest.mark.parametrize(
    ("base", "ceiling", "weights", "ratio"),
    [(0, 1, 1, 1), (0.2, 0.6, 0.4, 0.5), (0, 0.4, 0.4, None), (0.5, 0.7, 0.7, None), (0.25, 0.5, 0, -1)],
)
def test_a_ratio_counts_only_where_the_model_itself_can(
    base: float, ceiling: float, weights: float, ratio: float | None
) -> None:
    """The ceiling must be .5, and .25 above the base; unlearning is below zero."""
    assert ratio_of(base, ceiling, weights) == (None if ratio is None else pytest.approx(ratio))


def test_a_summary_counts_answers_lessons_and_drift() -> None:
    """Half adopted, one of two lessons accepted."""
    follows = {"base": [False, False], "note": [True, True], "weights": [True, False], "both": [True, True]}
    records = [
        {"event": "answer", "part": "adoption", "wish": "list", "arm": arm, "follows": one}
        for arm, found in follows.items()
        for one in found
    ]
    records += [{"event": "lesson", "wish": "list", "seconds": s, "is_accepted": s < 5} for s in (2.0, 8.0)]
    records += [{"event": "drift", "nats": nats} for nats in (0.01, 0.02, 0.06)]
    found = summarise(records)
    assert found["wishes"][0]["ratio"] == 0.5
    assert found["lesson_s"] == {"mean": 5.0, "median": 5.0, "worst": 8.0, "number": 2, "of": 2}
    assert found["accepted"] == {"all": 0.5, "followable": 0.5, "lessons": 2, "was_asked": 0}
    assert found["neutral_kl"]["worst"] == 0.06
    met = {row["name"]: row["is_met"] for row in found["targets"] if row["value"] is not None}
    assert met == {
        "adoption ratio, mean of the wishes": False, "adoption ratio, worst wish": False,
        "neutral KL per token, median lesson": True, "neutral KL per token, worst lesson": None,
        "lessons accepted, of wishes the model can follow": False, "seconds of a lesson, median": True,
    }  # fmt: skip
    assert not found["is_reached"]


def test_an_answer_that_the_first_lesson_never_moved_does_not_count() -> None:
    """A reversal of what was not adopted says nothing."""
    records = [
        {"event": "answer", "part": "reversal", "wish": "longer", "arm": arm, "follows": follows, "counts": counts}
        for arm, follows, counts in (("base", False, True), ("note", True, True), ("weights", True, True),
                                     ("base", True, False), ("note", True, False), ("weights", False, False))
    ]  # fmt: skip
    row = summarise(records)["wishes"][0]
    assert (row["ratio"], row["answers"], row["asked"]) == (1.0, 1, 2)


def test_closed_questions_are_held_against_the_base() -> None:
    """In points, the mean of the persons and the worst, beside what the notes alone cost."""
    right = {("base", 0): [True] * 4, ("weights", 0): [True] * 4, ("weights", 1): [True, True, True, False]}
    records = [
        {"event": "closed", "arm": arm, "seed": seed, "is_right": one}
        for (arm, seed), found in right.items()
        for one in found
    ]
    found = {"base": 1, "weights": 0.875, "points_lost": 12.5, "worst": 25}
    assert summarise(records)["closed"] == found
    noted = [{"event": "closed", "arm": "note", "seed": 0, "is_right": one} for one in (True, False)]
    assert summarise([*records, *noted])["closed"] == found | {"note": 0.5, "note_points_lost": 50}


def test_nothing_known_is_no_figure() -> None:
    """Never a zero, and never reached."""
    assert spread([None]) is None
    found = summarise([])
    assert [row["is_met"] for row in found["targets"]] == [None] * len(TARGETS)
    assert not found["is_reached"]
