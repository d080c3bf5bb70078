"""engine.requests: the engine's requests and results."""

from engine.requests import GenerateRequest


def test_a_plain_request_is_greedy_with_notes_and_adapter() -> None:
    """By default a person is answered greedily, by their own adapter, with their notes."""
    request = GenerateRequest("ana", [{"role": "user", "content": "hi"}])
    assert (request.sampling.temperature, request.notes, request.adapter, request.priority) == (
        0.0,
        "auto",
        "active",
        0,
    )
