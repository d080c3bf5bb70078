"""The tables: copies, required values, and a person behind every row that is about one."""

import pytest
from sqlmodel import SQLModel

from storage import tables
from storage.conversations import completions
from storage.errors import ConstraintViolated, NotStorable
from storage.kinds import FeedbackStatus
from storage.tables import Completion, Feedback, copy_of
from tests.storage import rows
from tests.storage.conftest import Store

TABLES = {table.name: table for table in SQLModel.metadata.tables.values()}
# Tables about no person, or found in another way when a person is erased.
WITHOUT_USER = {
    "user": "is the person",
    "platform_message": "through its completion",
    "inbox": "through its account",
    "access": "through its account",
    "pairing": "through its account",
    "api_key": "through its account",
    "eval_run": "about the model",
    "setting": "about the installation",
}


def test_every_table_leads_to_its_person() -> None:
    """A new table either has a user_id that refers to user, or says here why not."""
    with_user = {name for name, table in TABLES.items() if "user_id" in table.columns}
    assert set(TABLES) - with_user == set(WITHOUT_USER)
    for name in with_user:
        assert [key.target_fullname for key in TABLES[name].columns["user_id"].foreign_keys] == ["user.id"]


def test_every_order_column_is_never_reused() -> None:
    """A number that gives an order or names an adapter is not given out again after its row is deleted."""
    for table in TABLES.values():
        numbered = {"seq", "lora_int_id"} & set(table.columns.keys())
        assert bool(numbered) == bool(table.dialect_kwargs.get("sqlite_autoincrement")), table.name


def test_a_copy_has_the_values_and_its_own_life() -> None:
    """Changing the copy leaves the original, identifiers included, as it was."""
    answer = rows.completion("ana", "a llama")
    copy = copy_of(answer)
    assert copy.model_dump() == answer.model_dump()
    copy.text = "a goat"
    assert answer.text == "a llama"


@pytest.mark.parametrize("given", [{}, {"prompt_token_ids": None}])
def test_a_forgotten_required_value_is_refused(store: Store, ana: str, given: dict[str, None]) -> None:
    """A row without its token ids is refused by the database, not kept with JSON's null."""
    rest = {"messages": [], "notes": [], "completion_token_ids": [], "logprobs": [], "sampling": {}}
    incomplete = Completion(user_id=ana, **rest, **given)
    with pytest.raises(ConstraintViolated, match="prompt_token_ids"):
        store.write(lambda s: completions.add(s, incomplete))


def test_ids_say_what_they_are_and_never_repeat() -> None:
    """Ids are random, and those people see begin with their kind."""
    assert len({tables.new_id() for _ in range(1000)}) == 1000
    assert rows.completion("ana").id.startswith("cmpl-")
    assert Feedback(user_id="ana", kind="note").id.startswith("fb-")
    assert Feedback(user_id="ana", kind="note").status == FeedbackStatus.PENDING


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"x": [-float("inf")]}])
def test_json_is_strict(value: object) -> None:
    """A value that JSON cannot express is refused when it is written, not when PostgreSQL reads it."""
    with pytest.raises(NotStorable, match="JSON compliant"):
        tables.to_json(value)
