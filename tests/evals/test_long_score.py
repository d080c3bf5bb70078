"""The figures of the long parts, from records."""

import pytest

from evals.long_score import MAKERS, events
from evals.study import Record


def lesson(seed: int, *alerts: str) -> Record:
    """Return endurance's record of one lesson."""
    return {"part": "endurance", "seed": seed, "event": "lesson", "alerts": list(alerts)}


def test_alerts_are_counted_per_seed() -> None:
    """Two in one run and none in the other."""
    rows = MAKERS["endurance"]([lesson(0, "entropy", "drift"), lesson(0), lesson(1)])
    alerts = next(row for row in rows if "alerts" in row.name)
    assert alerts.seeds["weights"] == [2.0, 0.0]
    assert alerts.worst["weights"] == 2.0
    assert alerts.is_met(alerts.worst) is False


def test_tokens_are_a_share_of_all_notes() -> None:
    """Nineteen of twenty saved; a person without notes does not count."""
    tokens = {"part": "lasting", "event": "tokens"}
    rows = MAKERS["lasting"](
        [{**tokens, "seed": 0, "saved": 95, "said": 5}, {**tokens, "seed": 1, "saved": 0, "said": 0}]
    )
    assert rows[-1].seeds["both"] == [pytest.approx(0.95)]


def test_events_are_no_answers() -> None:
    """They are found by name."""
    records = [lesson(0), {"part": "silence", "seed": 0, "event": "quiet", "updates": 1}]
    assert events(records, "silence", "quiet") == records[1:]
    rows = MAKERS["silence"](records)
    assert rows[0].is_met(rows[0].median) is False
