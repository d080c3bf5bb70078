"""bench.cluster_sim: the command, its table and its file."""

import json
from pathlib import Path

import pytest

from bench.cluster_sim import SimConfig, main
from evals.errors import ArgumentError


def test_each_number_of_engines_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the table and in the file, with what was assumed."""
    assert main(["people=5000", "engines=1,2,auto", "minutes=2", "messages_a_day=50", f"out={tmp_path}"]) == 0
    told = json.loads((tmp_path / "cluster-sim.json").read_text())
    assert [row["engines"] for row in told["simulated"]] == [1, 2]
    assert told["assumed"]["messages_a_day"] == 50
    assert all(row["answers_a_second"] > 0 and row["busiest"] >= 1 for row in told["simulated"])
    assert told["simulated"][1]["month_a_person"] == pytest.approx(2 * told["simulated"][0]["month_a_person"])
    assert "A cluster, simulated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"engines": "1,many"}, "engines wants numbers"),
        ({"engines": "0"}, "engines wants numbers"),
        ({"minutes": 0.0}, "minutes wants"),
        ({"people": 0}, "people wants"),
        ({"messages_a_day": 0.0}, "messages_a_day wants"),
    ],
)
def test_nonsense_is_refused(values: dict[str, object], message: str) -> None:
    """With the argument's name."""
    with pytest.raises(ArgumentError, match=message):
        SimConfig(**values)  # type: ignore[arg-type]
