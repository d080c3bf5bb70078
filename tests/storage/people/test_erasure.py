"""Erasure leaves not one byte of a person's words in any file of the database."""

from pathlib import Path

import pytest

from storage.errors import DatabaseBusy
from storage.people import erasure, people
from storage.sql import sqlite
from storage.sql.sqlite import SqliteFile
from tests.storage.conftest import Store
from tests.storage.people.test_people import fill

pytestmark = pytest.mark.sqlite_only

CANARY = "xylophone-canary-7261"
OTHER = "ordinary-words-of-ben"


def copies(data_dir: Path, word: str) -> dict[str, int]:
    """How often a word stands in each file below the data directory."""
    counts = {path.name: path.read_bytes().count(word.encode()) for path in data_dir.rglob("*") if path.is_file()}
    return {name: count for name, count in counts.items() if count}


def test_no_byte_of_a_forgotten_person_is_left(store: Store, ana: str, ben: str) -> None:
    """The canary stands in the database and in the log before, and nowhere after; other people's words stay."""
    for _ in range(3):
        store.write(lambda s: fill(s, ben, "ben", OTHER + "x" * 3000))
        store.write(lambda s: fill(s, ana, "ana", (CANARY + " ") * 200))
        store.runner.run(store.database.checkpoint())
        store.write(lambda s: people.set_persona(s, ana, CANARY * 300))
    SqliteFile(store.data_dir / "heed.db").backup("0000-before-0001")
    before = copies(store.data_dir, CANARY)
    assert set(before) == {"heed.db", "heed.db-wal", "heed-0000-before-0001.db"}
    assert store.runner.run(erasure.forget_person(store.database, ana)) is True
    assert copies(store.data_dir, CANARY) == {}
    assert copies(store.data_dir, OTHER)
    assert store.read(lambda s: people.get(s, ben).id) == ben


def test_an_erasure_cut_short_is_finished_by_asking_again(
    store: Store, ana: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a reader blocked the log, a second call removes the words left there."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    store.reopen()
    store.write(lambda s: people.set_persona(s, ana, CANARY * 300))
    readers = SqliteFile(store.data_dir / "heed.db").reader_engine(1)
    with readers.connect() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM user").scalar()
        with pytest.raises(DatabaseBusy):
            store.runner.run(erasure.forget_person(store.database, ana))
    assert copies(store.data_dir, CANARY)
    assert store.runner.run(erasure.forget_person(store.database, ana)) is False
    assert copies(store.data_dir, CANARY) == {}
    readers.dispose()
