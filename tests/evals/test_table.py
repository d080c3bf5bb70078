"""The tables of an evaluation."""

from io import StringIO

from rich.console import Console
from rich.table import Table

from evals import score, table
from evals.figure import Figure, figure
from tests.evals.test_score import adopted

HELD = figure("held", {"weights": [0.96, 1.0, 0.5]}, target=0.95, judged=("weights",))


def shown(what: Table) -> str:
    """The table as text."""
    stream = StringIO()
    Console(file=stream, width=200).print(what)
    return stream.getvalue()


def test_a_row_shows_median_worst_target_and_verdict() -> None:
    """A target reached by the median only is marked so."""
    text = shown(table.figures([HELD], 3))
    for piece in ("median of 3 seeds", "held", ">= 95 %", "96.0 (50.0)", "yes, worst no"):
        assert piece in text


def test_a_missed_target_is_marked() -> None:
    """In the last column and in the colour of the value."""
    row = figure("held", {"weights": [0.5]}, target=0.95, judged=("weights",))
    assert table.verdict(row).plain == "missed"
    assert "bold red" in str(table.cell(row, "weights").spans)


def test_every_unit_prints_its_own_way() -> None:
    """Shares in per cent, points with one digit, counts whole, nothing as a dash."""
    assert [table.number(v, u) for v, u in ((0.5, "%"), (2.0, "points"), (10.0, "of 12"), (None, "%"))] == [
        "50.0",
        "2.0",
        "10",
        "-",
    ]
    limit = Figure("lost", {}, {}, target=2.0, is_at_least=False, unit="points")
    assert (table.target(limit), table.target(Figure("mean", {}, {}))) == ("<= 2 points", "")


def test_an_arm_without_a_value_is_a_dash() -> None:
    """The base model has no column of its own in most rows."""
    assert table.cell(HELD, "base").plain == "-"


def test_preferences_and_skills_are_left_out_where_they_were_not_measured() -> None:
    """No empty tables."""
    assert table.preferences([]) is None
    assert table.skills([]) is None


def test_preferences_stand_one_by_one() -> None:
    """One row per preference and one column per way it was measured."""
    records = [*adopted("emoji", 0, True), *adopted("units", 0, False)]
    text = shown(table.preferences(score.columns(records)) or Table())
    assert "one correction, 0 earlier" in text
    assert "(weights only)" in text
    assert "4 earlier" not in text
    assert "100.0 (100.0)" in text
    assert "0.0 (0.0)" in text


def test_skills_stand_by_family() -> None:
    """One row per family, one column per arm."""
    records = [{"part": "skills", "seed": 0, "arm": "base", "skill": "add", "is_right": True}]
    assert "100.0 (100.0)" in shown(table.skills(records) or Table())


def test_the_line_about_corrections_names_what_went_wrong() -> None:
    """Statuses, seconds and what did not settle."""
    summary = {"corrections": 3, "status": {"learned": 2, "kept": 1}, "unsettled": 1, "median_s": 1.234}
    assert table.lessons(summary) == (
        "3 corrections: 1 kept, 2 learned, 1.23 s each (median); 1 did not settle in time"
    )
    assert table.lessons({"corrections": 0, "status": {}, "unsettled": 0, "median_s": None}) == "0 corrections"
