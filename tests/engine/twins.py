"""Twins: new people with the rows and files of somebody who was really taught, for what is asked after the lesson.

A lesson takes two seconds of a processor and its copy a hundredth of one.
"""

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import inspect
from sqlmodel import SQLModel, col, select

from engine.requests import LearnOutcome
from storage.database import Database, Session
from storage.tables import AdapterVersion, BetterAnswer, Completion, Feedback, Note, UpdateRun, User, new_id

TABLES: tuple[type[SQLModel], ...] = (Completion, Feedback, Note, BetterAnswer, UpdateRun, AdapterVersion)
_ID = re.compile(r"\b[0-9a-f]{32}\b")


@dataclass(frozen=True)
class Twin:
    """A person, and what everything of theirs is called that had another id in the original's life."""

    user_id: str
    _ids: dict[str, str]

    def renamed(self, text: str) -> str:
        """A text with the twin's ids in the place of the original's."""
        return _ID.sub(lambda found: self._ids.get(found[0], found[0]), text)

    def outcome(self, original: LearnOutcome) -> LearnOutcome:
        """What the lesson would have answered the twin."""
        ids = {name: getattr(original, name) for name in ("feedback_id", "note_id", "update_id")}
        return replace(original, **{name: value and self.renamed(value) for name, value in ids.items()})


async def born(database: Database, data_dir: Path, user_id: str) -> Twin:
    """A twin of a person about whom nothing is being learned or written at this moment."""
    twin, folders = await database.write(lambda s: _copied(s, user_id))
    for old, new in folders.items():
        shutil.copytree(data_dir / old, data_dir / new)
    return twin


def _copied(s: Session, user_id: str) -> tuple[Twin, dict[str, str]]:
    rows: list[SQLModel] = [s.exec(select(User).where(User.id == user_id)).one()]
    for table in TABLES:
        theirs = select(table).where(col(table.user_id) == user_id)  # type: ignore[attr-defined]
        rows += s.exec(theirs.order_by(*inspect(table).primary_key))
    ids = {old: new_id() for row in rows for old in _ID.findall(str(getattr(row, "id", "")))}
    twin = Twin(ids[user_id], ids)
    for row in rows:
        s.add(_twin_row(twin, row))
        s.flush()
    versions = [row for row in rows if isinstance(row, AdapterVersion) and row.state == "accepted"]
    return twin, {row.path: twin.renamed(row.path) for row in versions}


def _twin_row(twin: Twin, row: SQLModel) -> SQLModel:
    values = json.loads(twin.renamed(json.dumps(row.model_dump())))
    return type(row)(**{name: value for name, value in values.items() if name not in ("seq", "lora_int_id")})
