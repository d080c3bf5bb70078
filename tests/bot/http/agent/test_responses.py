"""bot.http.agent.responses: what is said of a call has the fields that clients read."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http.agent.responses import AgentEventResponse, AgentStep

STEP: dict[str, Any] = {
    "session_id": "agent-1", "status": "idle", "response": None, "call": None, "results": [], "lesson": None
}  # fmt: skip


def test_a_step_has_every_field_and_no_other() -> None:
    """Null where there is nothing."""
    read = TypeAdapter(AgentStep).validate_python
    assert read(STEP) == STEP
    for wrong in (STEP | {"status": "bored"}, STEP | {"more": 1}, {k: v for k, v in STEP.items() if k != "call"}):
        with pytest.raises(ValidationError):
            read(wrong)


def test_an_event_says_its_kind() -> None:
    """Of the kinds there are."""
    read = TypeAdapter(AgentEventResponse).validate_python
    assert read({"kind": "stopped", "data": {}})["kind"] == "stopped"
    with pytest.raises(ValidationError):
        read({"kind": "sung", "data": {}})
