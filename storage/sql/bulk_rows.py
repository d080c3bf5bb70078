"""Whole rows stored by one statement each, for rows that every message needs: a tenth of the ORM's time.

What was changed in the session before is flushed first, so that a row may refer to it. A row that is in the session
already is not told of what is stored here: these functions are for rows no one has loaded.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

from storage.tables import Row, copy_of

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def add(s: Session, row: Row) -> Row:
    """Insert a row of a table with a `seq`; the stored row. `row` is not touched. Raises where its id is taken."""
    seq = _execute(s, _insert(_table(row), _dialect(s)), row).scalar()
    return _numbered(row, seq)


def add_new(s: Session, row: Row) -> Row | None:
    """As add; None where its id or key is taken."""
    seq = _execute(s, _insert_new(_table(row), _dialect(s)), row).scalar()
    return None if seq is None else _numbered(row, seq)


def put(s: Session, row: SQLModel) -> None:
    """Insert a row, or give the one with its primary key its values."""
    _execute(s, _replacing(_table(row), _dialect(s)), row)


def put_where(s: Session, row: Row, key: str, values: Sequence[str], states: Sequence[str]) -> Row | None:
    """Insert a row, or give the one with its `key` these of its `values` where its state is one of `states`.

    The stored row as far as it was given, None where the one there is in another state. `row` is not touched.
    """
    statement = _put_where(_table(row), _dialect(s), key, tuple(values), tuple(states))
    seq = _execute(s, statement, row).scalar()
    return None if seq is None else _numbered(row, seq)


def change(s: Session, statement: Any, values: dict[str, Any]) -> int:
    """Run a prepared UPDATE with its bound values; how many rows it changed."""
    s.flush()
    return int(s.connection().execute(statement, values).rowcount)


def _execute(s: Session, statement: Any, row: SQLModel) -> Any:
    s.flush()
    columns = _table(row).c
    values = {name: value for name, value in vars(row).items() if name in columns}
    if values.get("seq", 0) is None:
        del values["seq"]  # the database numbers
    return s.connection().execute(statement, values)


def _numbered(row: Row, seq: int) -> Row:
    stored = copy_of(row)
    stored.seq = seq
    return stored


@cache
def _insert(table: Table, dialect: str) -> Any:
    return _INSERTS[dialect](table).returning(table.c.seq)


@cache
def _insert_new(table: Table, dialect: str) -> Any:
    return _INSERTS[dialect](table).on_conflict_do_nothing().returning(table.c.seq)


@cache
def _replacing(table: Table, dialect: str) -> Any:
    insert = _INSERTS[dialect](table)
    keys = [column.name for column in table.primary_key]
    values = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=values)


@cache
def _put_where(table: Table, dialect: str, key: str, values: tuple[str, ...], states: tuple[str, ...]) -> Any:
    insert = _INSERTS[dialect](table)
    return insert.on_conflict_do_update(
        index_elements=[key],
        set_={name: insert.excluded[name] for name in values},
        where=table.c.state.in_(states),
    ).returning(table.c.seq)


def _table(row: SQLModel) -> Table:
    table: Table = type(row).__table__  # type: ignore[attr-defined]
    return table


def _dialect(s: Session) -> str:
    return s.connection().dialect.name
