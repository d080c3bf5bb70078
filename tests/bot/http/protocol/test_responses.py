"""bot.http.protocol.responses: shapes that hold what is put into them to their word."""

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http.protocol import responses

LESSON = {"feedback_id": "fb-1", "status": "kept", "adapter_version": 0}


def test_what_may_be_missing_may_be_missing() -> None:
    """A lesson without a note is one."""
    assert TypeAdapter(responses.LessonResponse).validate_python(LESSON) == LESSON


@pytest.mark.parametrize("wrong", [{"status": "lost"}, {"surprise": 1}, {"note": None}])
def test_nothing_else_stands_in_an_answer(wrong: dict[str, object]) -> None:
    """No unknown status, no field without a name, no null where there is nothing."""
    with pytest.raises(ValidationError):
        TypeAdapter(responses.LessonResponse).validate_python(LESSON | wrong)


def test_holdings_may_have_more_tables() -> None:
    """Everything that is held about a person is told, whatever tables there are."""
    tables = {name: [] for name in ("completions", "feedback", "notes", "adapter_versions", "updates", "more")}
    held = {"exported_at": 1.0, "user": {}, **tables}
    assert TypeAdapter(responses.PersonalData).json_schema().get("additionalProperties", True) is True
    TypeAdapter(responses.PersonalData).validate_python(held)
