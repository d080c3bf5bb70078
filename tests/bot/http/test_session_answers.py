"""bot.http.session_answers: what continualcode's web calls answer with."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http import session_answers
from tests.bot.conftest import Heed

PATH = "/api/sessions"


async def test_answers_have_their_shape(heed: Heed) -> None:
    """Opened, prompted, revised, read, listed and cleared."""

    def check(shape: Any, answered: tuple[int, Any]) -> Any:
        status, answer = answered
        assert status == 200, answer
        return TypeAdapter(shape).validate_python(answer)

    session = f"{PATH}/{check(session_answers.Conversation, await heed.post(PATH, {}))['id']}"
    check(session_answers.Prompted, await heed.post(f"{session}/prompt", {"text": "bees"}))
    check(session_answers.Revised, await heed.post(f"{session}/feedback", {"kind": "revise", "text": "too long"}))
    check(session_answers.Conversation, await heed.get(session))
    check(session_answers.Sessions, await heed.get(PATH))
    check(session_answers.Cleared, await heed.post(f"{session}/clear", {}))
    check(session_answers.Profiles, await heed.get("/api/profiles"))


def test_metrics_have_known_names() -> None:
    """All or none of them, and no others."""
    assert TypeAdapter(session_answers.Metrics).validate_python({}) == {}
    with pytest.raises(ValidationError, match="reward"):
        TypeAdapter(session_answers.Metrics).validate_python({"reward": 1.0})
