"""heed answers every request as its OpenAPI document says; `python -m tests.contract.fuzz` asks more."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals.errors import ArgumentError
from tests.contract.fuzz import FuzzConfig, fuzz, shares, summary

CASES = 280


def test_no_answer_is_off_the_document() -> None:
    """No server error, every status and shape as it is written down, every broken call refused."""
    config = FuzzConfig(cases=CASES)
    explorer = fuzz(config)
    found = summary(config, explorer, 0.0)
    assert found["findings"] == []
    assert found["server_errors"] == 0
    assert all(tally.cases for tally in explorer.tallies.values())
    asked = explorer.tallies["POST /v1/chat/completions"].statuses
    assert asked[200] >= 5, asked  # answers were given, not refusals alone


@settings(suppress_health_check=list(HealthCheck))
@given(st.integers(1, 10_000))
def test_all_calls_get_their_share(cases: int) -> None:
    """Each at least one, together at least as many as wanted, those that do more several times as many."""
    given_out = shares(["GET /", "POST /v1/feedback"], cases)
    assert sum(given_out.values()) >= cases
    assert given_out["POST /v1/feedback"] >= given_out["GET /"] >= 1


def test_nothing_to_do_is_no_result() -> None:
    """cases=0 is refused."""
    with pytest.raises(ArgumentError):
        FuzzConfig(cases=0)
