"""evals.agent.score: shares by seed beside their targets."""

from typing import Any

from evals.agent.score import LATER, adopted, figures
from evals.agent.study import PARTS
from evals.figure import Figure


def record(part: str, seed: int, **fields: Any) -> dict[str, Any]:
    """One observation."""
    return {"rule": "heed/whole", "part": part, "seed": seed, "unit": "u", **fields}


def test_figures_have_a_value_for_each_seed() -> None:
    """Their median is judged, their worst is told."""
    records = [
        *(record("tasks", seed, is_done=ok) for seed in (0, 1) for ok in (True, True)),
        *(record("lessons", seed, is_done=ok) for seed in (0, 1) for ok in (True, seed == 0)),
        *(record("correction", seed, lesson="learned", retry_s=1.0 + seed, retry_obeys=True) for seed in (0, 1)),
        *(record("correction", 0, obeys=ok, is_done=True) for ok in (True, False)),
    ]
    rows = {row.name: row for row in figures({"heed": records, "continualcode": records[:1]}, PARTS)}
    assert (rows["tasks solved"].seeds["heed"], is_met(rows["tasks solved"])) == ([1, 1], True)
    assert (rows[LATER].median["heed"], is_met(rows[LATER])) == (0.5, False)
    lost = rows["tasks lost after ten lessons"]
    assert (lost.seeds["heed"], lost.worst["heed"], is_met(lost)) == ([0, 0.5], 0.5, False)
    assert rows["denial to the retry's call"].median["heed"] == 1.5
    assert is_met(rows["lessons learned"]) is None
    assert rows["tasks solved"].judged == ("heed",)
    assert rows["tasks solved"].median["continualcode"] == 1
    assert (adopted(records), adopted([])) == (0.5, 0.0)


def is_met(row: Figure) -> bool | None:
    """Judge a figure by its medians."""
    return row.is_met(row.median)


def test_what_was_not_measured_has_not_reached_its_target() -> None:
    """And has no value."""
    (row,) = figures({"heed": []}, ["tasks"])
    assert (row.name, row.median, row.worst, is_met(row)) == ("tasks solved", {}, {}, False)
