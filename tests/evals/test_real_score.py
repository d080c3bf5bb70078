"""The figures of `heed eval real`."""

import pytest

from evals.real_score import ratio_of, spread, summarise


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
    records += [{"event": "drift", "nats": nats} for nats in (0.01, 0.03)]
    found = summarise(records)
    assert found["wishes"][0]["ratio"] == 0.5
    assert found["lesson_s"] == {"mean": 5.0, "median": 5.0, "worst": 8.0, "number": 2, "of": 2}
    assert found["accepted"] == {"all": 0.5, "followable": 0.5}
    assert found["neutral_nats_lost_per_token"]["worst"] == 0.03
    assert not found["is_reached"]


def test_nothing_known_is_no_figure() -> None:
    """Never a zero."""
    assert spread([None]) is None
    assert not summarise([])["is_reached"]
