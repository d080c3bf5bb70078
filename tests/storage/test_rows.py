"""storage.rows: copies with a life of their own, ids that never repeat, strict JSON."""

import pytest

from storage.errors import NotStorable
from storage.rows import copy_of, new_id, now_s, to_json
from tests.storage import rows


def test_a_copy_has_the_values_and_its_own_life() -> None:
    """Changing the copy leaves the original, identifiers included, as it was."""
    answer = rows.completion("ana", "a llama")
    copy = copy_of(answer)
    assert copy.model_dump() == answer.model_dump()
    copy.text = "a goat"
    assert answer.text == "a llama"


def test_ids_never_repeat_and_times_are_now() -> None:
    """Ids are random; times are seconds since the epoch."""
    assert len({new_id() for _ in range(1000)}) == 1000
    assert 1.7e9 < now_s() <= now_s()


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"x": [-float("inf")]}])
def test_json_is_strict(value: object) -> None:
    """A value that JSON cannot express is refused when it is written, not when PostgreSQL reads it."""
    with pytest.raises(NotStorable, match="JSON compliant"):
        to_json(value)
