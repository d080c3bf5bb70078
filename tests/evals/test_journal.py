"""steps.jsonl, and going on where a run broke off."""

import json
from pathlib import Path

import pytest

from evals.config import EvalConfig
from evals.errors import ArgumentError
from evals.journal import Journal, begun, measured, unfinished

MEASURES = {"seeds": 2, "only": ("notes",)}


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """The file of a run that broke off in its second unit."""
    path = tmp_path / "steps.jsonl"
    journal = Journal()
    journal.write_to(path, MEASURES)
    journal.record({"part": "notes", "seed": 0})
    journal.finish("notes/0", 3)
    journal.record({"part": "notes", "seed": 1, "text": "half of it"})
    journal.close()
    return path


def test_what_is_done_is_kept_and_what_broke_off_is_not(steps: Path) -> None:
    """The same people are met again."""
    found = unfinished(steps, MEASURES)
    assert found is not None
    assert (found.is_resumed, found.done, found.records) == (True, {"notes/0": 3}, [{"part": "notes", "seed": 0}])
    assert found.run_id == json.loads(steps.read_text().splitlines()[0])["run"]["id"]


def test_a_run_can_break_off_twice(steps: Path) -> None:
    """The second run's records stand behind the first one's."""
    second = unfinished(steps, MEASURES)
    assert second is not None
    second.write_to(steps, MEASURES)
    second.record({"part": "notes", "seed": 1})
    second.finish("notes/1", 1)
    second.record({"part": "notes", "seed": 2})
    second.close()
    third = unfinished(steps, MEASURES)
    assert third is not None
    assert third.done == {"notes/0": 3, "notes/1": 1}
    assert [record["seed"] for record in third.records] == [0, 1]


def test_nothing_is_left_of_a_run_that_ended_or_never_was(steps: Path) -> None:
    """The next one begins anew."""
    journal = Journal()
    journal.write_to(steps, MEASURES)
    journal.end()
    journal.close()
    assert unfinished(steps, MEASURES) is None
    assert unfinished(steps.with_name("other"), MEASURES) is None
    assert not Journal().is_resumed


def test_a_line_that_was_cut_off_is_left_away(steps: Path) -> None:
    """A kill may come in the middle of a line."""
    steps.write_text(steps.read_text() + '{"part": "no')
    found = unfinished(steps, MEASURES)
    assert found is not None
    assert len(found.records) == 1


def test_a_run_with_other_arguments_is_not_overwritten(steps: Path) -> None:
    """The error names the difference and the ways out."""
    with pytest.raises(ArgumentError, match=r"other arguments \(seeds=2\).*fresh=true"):
        unfinished(steps, MEASURES | {"seeds": 3})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(lambda lines: ["no json", *lines], "line 1"), (lambda lines: lines[1:], "not of this heed")],
)
def test_a_file_that_is_none_of_ours_is_named(steps: Path, spoil: object, message: str) -> None:
    """Unreadable is not empty."""
    assert callable(spoil)
    steps.write_text("\n".join(spoil(steps.read_text().splitlines())))
    with pytest.raises(ArgumentError, match=message):
        unfinished(steps, MEASURES)


def test_what_no_figure_depends_on_may_change(tmp_path: Path) -> None:
    """A run goes on with another number of questions at once, and not where its heed's data are gone."""
    steps, data = tmp_path / "steps.jsonl", tmp_path / "heed"
    first = begun(EvalConfig(), steps, data)
    data.mkdir()
    first.finish("notes/0", 1)
    first.close()
    changed = EvalConfig(parallel=2, settle_s=5)
    assert measured(changed) == measured(EvalConfig())
    again = begun(changed, steps, data)
    assert (again.is_resumed, again.done) == (True, {"notes/0": 1})
    again.close()
    data.rmdir()
    assert not begun(changed, steps, data).is_resumed


def test_fresh_forgets_what_is_left(steps: Path, tmp_path: Path) -> None:
    """Also where it belongs to other settings."""
    assert not begun(EvalConfig(fresh=True), steps, tmp_path / "heed").is_resumed
