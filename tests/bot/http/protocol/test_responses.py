"""bot.http.protocol.responses: the shapes refuse what they do not declare."""

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http.protocol import responses

LESSON = {"feedback_id": "fb-1", "status": "kept", "adapter_version": 0}


def test_what_may_be_missing_may_be_missing() -> None:
    """A lesson without a note is valid."""
    assert TypeAdapter(responses.LessonResponse).validate_python(LESSON) == LESSON


@pytest.mark.parametrize("wrong", [{"status": "lost"}, {"surprise": 1}, {"note": None}])
def test_nothing_else_stands_in_an_answer(wrong: dict[str, object]) -> None:
    """An unknown status, an undeclared field and a null are refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(responses.LessonResponse).validate_python(LESSON | wrong)


def test_an_export_may_have_more_tables() -> None:
    """An export may have more tables than the declared ones."""
    tables = {name: [] for name in ("completions", "feedback", "notes", "adapter_versions", "updates", "more")}
    held = {"exported_at": 1.0, "user": {}, **tables}
    assert TypeAdapter(responses.PersonalData).json_schema().get("additionalProperties", True) is True
    TypeAdapter(responses.PersonalData).validate_python(held)
