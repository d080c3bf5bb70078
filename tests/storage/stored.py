"""Reads that only tests need: the ids of all people, and the checksum of a directory."""

from pathlib import Path

from sqlmodel import Session, col, select

from storage.files import atomic
from storage.tables import User


def all_ids(s: Session) -> list[str]:
    """Return the ids of all people, oldest first."""
    return list(s.exec(select(User.id).order_by(col(User.created_at), col(User.id))))


def directory_sha256(path: Path) -> str:
    """Return the SHA-256 of a directory's names and contents, as write_directory returned it."""
    return atomic.files_sha256(atomic.read_directory(path))
