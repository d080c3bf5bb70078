"""engine.cluster.placement: only those move who have to, and each engine has its share."""

from collections import Counter

import pytest

from engine.cluster.placement import ranked

PEOPLE = [f"person-{n}" for n in range(4000)]


def _placed(weights: dict[str, float]) -> dict[str, str]:
    return {user_id: ranked(user_id, weights)[0] for user_id in PEOPLE}


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_one_that_comes_takes_its_share_and_moves_nobody_else(count: int) -> None:
    """At most 1/n + 5 % of people move, all of them to the new engine."""
    weights = {f"engine-{n}": 1.0 for n in range(count)}
    before, after = _placed(weights), _placed(weights | {"new": 1.0})
    moved = [user_id for user_id in PEOPLE if before[user_id] != after[user_id]]
    assert {after[user_id] for user_id in moved} == {"new"}
    assert len(moved) <= (1 / (count + 1) + 0.05) * len(PEOPLE)


def test_one_that_goes_leaves_its_people_to_their_second() -> None:
    """Everybody else stays, and those who move go where the ranking said that they would."""
    weights = {f"engine-{n}": 1.0 for n in range(4)}
    before, after = _placed(weights), _placed({name: 1.0 for name in weights if name != "engine-2"})
    for user_id in PEOPLE:
        first, second, *_ = ranked(user_id, weights)
        assert after[user_id] == (second if first == "engine-2" else before[user_id])


def test_people_are_shared_by_weight() -> None:
    """An engine of twice the weight has twice the people, give or take a twentieth of all; one of none has nobody."""
    counts = Counter(_placed({"large": 2.0, "small": 1.0, "drained": 0.0}).values())
    assert counts["large"] / len(PEOPLE) == pytest.approx(2 / 3, abs=0.05)
    assert counts["drained"] == 0


def test_without_engines_there_is_no_place() -> None:
    """An empty cluster has none to offer."""
    assert ranked("person-1", {}) == []
