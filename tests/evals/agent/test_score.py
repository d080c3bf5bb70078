"""evals.agent.score: shares by seed beside their targets."""

from typing import Any

from evals.agent.score import LATER, AgentFigure, figures


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
    rows = {row.name: row for row in figures(records)}
    assert (rows["tasks solved"].values, rows["tasks solved"].is_met) == ((1, 1), True)
    assert (rows[LATER].median, rows[LATER].is_met) == (0.5, False)
    lost = rows["tasks lost after ten lessons"]
    assert (lost.values, lost.worst, lost.is_met) == ((0, 0.5), 0.5, False)
    assert rows["denial to the retry's call"].median == 1.5
    assert rows["lessons learned"].is_met is None


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    """And says so in the file."""
    row = AgentFigure("x", (), target=0.9)
    assert (row.median, row.worst, row.is_met) == (None, None, None)
    assert row.to_json()["median"] is None
