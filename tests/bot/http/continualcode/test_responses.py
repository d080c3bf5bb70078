"""bot.http.continualcode.responses: the answers to continualcode's web calls."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http.continualcode import responses
from tests.bot.conftest import Heed

PATH = "/api/sessions"


async def test_answers_have_their_shape(heed: Heed) -> None:
    """The answers of all calls have their declared shapes."""

    def check(shape: Any, answered: tuple[int, Any]) -> Any:
        status, answer = answered
        assert status == 200, answer
        return TypeAdapter(shape).validate_python(answer)

    session = f"{PATH}/{check(responses.SessionDetails, await heed.post(PATH, {}))['id']}"
    check(responses.Prompted, await heed.post(f"{session}/prompt", {"text": "bees"}))
    check(responses.Revised, await heed.post(f"{session}/feedback", {"kind": "revise", "text": "too long"}))
    check(responses.SessionDetails, await heed.get(session))
    check(responses.SessionList, await heed.get(PATH))
    check(responses.Cleared, await heed.post(f"{session}/clear", {}))
    check(responses.Profiles, await heed.get("/api/profiles"))


def test_metrics_have_known_names() -> None:
    """Metrics have only known names, and may be empty."""
    assert TypeAdapter(responses.LessonMetrics).validate_python({}) == {}
    with pytest.raises(ValidationError, match="reward"):
        TypeAdapter(responses.LessonMetrics).validate_python({"reward": 1.0})
