"""bot.http.agent.responses: what is said of a call has the fields that clients read."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http.agent.responses import AgentDetails, AgentEventResponse, AgentStep

STEP: dict[str, Any] = {
    "session_id": "agent-1", "status": "idle", "response": None, "call": None, "results": [], "lesson": None
}  # fmt: skip

DETAILS: dict[str, Any] = {
    "id": "agent-1", "session_id": "agent-1", "created_at": 0.0, "profile": "default", "workspace": "", "messages": [],
    "status": "idle", "call": None, "allowed": [], "notes": [],
}  # fmt: skip


def test_a_step_has_every_field_and_no_other() -> None:
    """Null where there is nothing."""
    read = TypeAdapter(AgentStep).validate_python
    assert read(STEP) == STEP
    for wrong in (STEP | {"status": "bored"}, STEP | {"more": 1}, {k: v for k, v in STEP.items() if k != "call"}):
        with pytest.raises(ValidationError):
            read(wrong)


def test_a_session_has_its_repository_or_null() -> None:
    """And never none of both."""
    read = TypeAdapter(AgentDetails).validate_python
    for git in (None, {"branch": "main", "changed": 1, "conflicts": ["a"]}):
        assert read(DETAILS | {"git": git})["git"] == git
    for wrong in (DETAILS, DETAILS | {"git": {"branch": "main"}}):
        with pytest.raises(ValidationError):
            read(wrong)


def test_a_call_has_its_mark() -> None:
    """A decision cannot name it otherwise."""
    read = TypeAdapter(AgentStep).validate_python
    call = {"mark": "a", "tool": "read", "arguments": {}, "about": "", "preview": "", "is_edited": False}
    assert read(STEP | {"call": call})["call"] == call
    with pytest.raises(ValidationError):
        read(STEP | {"call": {name: value for name, value in call.items() if name != "mark"}})


def test_an_event_says_its_kind() -> None:
    """Of the kinds there are."""
    read = TypeAdapter(AgentEventResponse).validate_python
    assert read({"kind": "stopped", "data": {}})["kind"] == "stopped"
    with pytest.raises(ValidationError):
        read({"kind": "sung", "data": {}})
