"""Fresh ids and times for rows, strict JSON, and copies that no session knows."""

import json
import time
import uuid
from typing import Any, TypeVar

from sqlalchemy.orm.attributes import manager_of_class
from sqlmodel import SQLModel

from storage.errors import NotStorable

Row = TypeVar("Row", bound=SQLModel)


def copy_of(row: Row) -> Row:
    """Return a new row with the same values, known to no session.

    Repositories store such a copy and leave the row they are given alone: after a write that failed at its commit
    SQLAlchemy takes that row for stored, and adding it again would store nothing.
    """
    copy: Row = manager_of_class(type(row)).new_instance()  # without the checks that `row` has been through
    vars(copy).update({name: value for name, value in vars(row).items() if name in type(row).model_fields})
    return copy


def to_json(value: Any) -> str:
    """Strict JSON for the JSON columns. Raises NotStorable for NaN and infinities, which PostgreSQL does not take."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise NotStorable(str(error)) from error


def new_id() -> str:
    """Return a fresh random identifier, 32 hex digits."""
    return uuid.uuid4().hex


def now_s() -> float:
    """Seconds since the epoch, for display."""
    return time.time()
