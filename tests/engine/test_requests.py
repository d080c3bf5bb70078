"""engine.requests: the engine's requests and results."""

from dataclasses import FrozenInstanceError

import pytest

from engine.requests import GenerateRequest, LearnOutcome, Sampling


def test_a_plain_request_is_greedy_with_notes_and_adapter() -> None:
    """By default a person is answered greedily, by their own adapter, with their notes."""
    request = GenerateRequest("ana", [{"role": "user", "content": "hi"}])
    assert (request.sampling.temperature, request.notes, request.adapter, request.priority) == (
        0.0,
        "auto",
        "active",
        0,
    )


@pytest.mark.parametrize("record", [Sampling(), LearnOutcome("fb-1", "kept", 0)])
def test_records_cannot_be_changed(record: object) -> None:
    """What was handed over stays what it was."""
    with pytest.raises(FrozenInstanceError):
        record.seed = 1  # type: ignore[attr-defined]


def test_outcomes_do_not_share_their_containers() -> None:
    """Two outcomes made with defaults own a heat map and phases each."""
    first, second = LearnOutcome("fb-1", "kept", 0), LearnOutcome("fb-2", "kept", 0)
    first.heat.append(("a", 1.0))
    first.phases_ms["train"] = 1.0
    assert second.heat == []
    assert second.phases_ms == {}
