"""The books of what was taught: every way in which they can be wrong is seen."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from storage.database import Database
from storage.files import atomic
from storage.kinds import FeedbackStatus
from storage.learning import feedback, signals, updates, versions
from storage.people import people
from storage.tables import Feedback, UpdateRun
from tests.crash import books
from tests.crash.books import Books

FILES = {CONFIG_FILE: b'{"peft_type": "LORA"}', TENSORS_FILE: save({"lora_A.weight": np.ones((2, 2), np.float32)})}


@pytest.fixture
async def data_dir(tmp_path: Path) -> Path:
    """Return the data of a person with two lessons, both taken in by a consolidation: three versions."""
    database = Database.open(tmp_path)
    user = await database.write(lambda s: people.resolve(s, "http", "ana", is_learning=True))
    for key in ("first", "second"):
        row = Feedback(idempotency_key=key, user_id=user.id, kind="correction", text="shorter")
        told, _ = await database.write(lambda s, row=row: feedback.add(s, row))  # type: ignore[misc]
        await _learned(database, tmp_path, UpdateRun(user_id=user.id, feedback_id=told.id))
        await database.write(lambda s, told=told: feedback.set_status(s, told.id, FeedbackStatus.LEARNED))  # type: ignore[misc]
    night = await _learned(database, tmp_path, UpdateRun(user_id=user.id, kind=signals.CONSOLIDATION))
    ids = [row.id for row in await database.read(lambda s: signals.fresh(s, user.id))]
    await database.write(lambda s: signals.take_in(s, user.id, night, ids, []))
    await database.close()
    return tmp_path


async def _learned(database: Database, data_dir: Path, run: UpdateRun) -> str:
    started = await database.write(lambda s: updates.start(s, run))
    parent = (await database.read(lambda s: people.get(s, run.user_id))).active_version
    made = await database.write(
        lambda s: versions.allocate(s, run.user_id, parent, "pocket", run.feedback_id, started.id)
    )
    sha256 = atomic.write_directory(data_dir / made.path, FILES)
    await database.write(lambda s: versions.accept(s, run.user_id, made.number, sha256, 1))
    await database.write(lambda s: updates.finish(s, started.id, status="accepted", version=made.number))
    return started.id


def found(data_dir: Path, *acknowledged: str) -> books.Findings:
    """Return the errors in the books when nothing new is left about Ana."""
    return books.check(books.read(data_dir, ["ana"]), acknowledged or ("first", "second"), ["ana"])


def change(data_dir: Path, statement: str) -> None:
    """One statement on the database."""
    with closing(sqlite3.connect(data_dir / "heed.db")) as database, database:
        assert database.execute(statement).rowcount > 0


def test_what_is_right_is_found_right(data_dir: Path) -> None:
    """Three versions, two lessons, one consolidation."""
    findings = found(data_dir)
    assert findings.is_right, findings
    assert findings.endings == {"learned": 2}
    assert len(books.read(data_dir, ["ana"]).folders) == 3
    assert books.read(data_dir, ["bob"]) == Books()


@pytest.mark.parametrize("harm", ["changed", "cut", "gone"])
def test_a_torn_adapter_is_seen(data_dir: Path, harm: str) -> None:
    """A changed byte, a truncated file and a missing file are all seen."""
    file = next((data_dir / "adapters").glob("*/3")) / TENSORS_FILE
    content = file.read_bytes()
    if harm == "gone":
        atomic.remove_directory(file.parent)
    else:
        file.write_bytes(content[:-1] + b"x" if harm == "changed" else content[:40])
    assert "/3 is " in found(data_dir).torn[0]


@pytest.mark.parametrize(
    ("kind", "statement", "words"),
    [
        ("torn", "UPDATE user SET active_version = 9", "served version 9"),
        ("torn", "UPDATE adapter_version SET state = 'rejected' WHERE number = 3", "version 3, which is rejected"),
        ("torn", "UPDATE adapter_version SET state = 'damaged' WHERE number = 3", "was found damaged"),
        ("lost", "DELETE FROM feedback WHERE idempotency_key = 'first'", "first was acknowledged and is gone"),
        ("lost", "UPDATE feedback SET status = 'training' WHERE seq = 1", "first is still training"),
        ("lost", "UPDATE feedback SET status = 'failed' WHERE seq = 1", "first is failed without a reason"),
        ("lost", "UPDATE adapter_version SET parent = 1 WHERE number = 3", "second is learned, and no version"),
        ("lost", "UPDATE adapter_version SET parent = 1 WHERE number = 3", "/2 was accepted, and the active"),
        ("lost", "UPDATE adapter_version SET state = 'candidate' WHERE number = 3", "was never judged"),
        ("lost", "DELETE FROM adapter_version WHERE number = 2", "/2 is nobody's"),
        ("lost", "UPDATE update_run SET status = 'running' WHERE seq = 1", "still runs"),
        ("lost", "UPDATE update_run SET status = 'failed' WHERE seq = 3", "which did not end well"),
        ("lost", "UPDATE feedback SET consolidated_by = NULL WHERE seq = 2", "no consolidation took it in"),
        ("doubled", "UPDATE adapter_version SET feedback_id = (SELECT id FROM feedback)", "taught 3 versions"),
        ("doubled", "UPDATE adapter_version SET update_id = (SELECT id FROM update_run)", "made 3 versions"),
        ("doubled", "UPDATE update_run SET feedback_id = (SELECT id FROM feedback)", "was accepted 3 times"),
        ("doubled", "UPDATE feedback SET status = 'kept', reason = 'no' WHERE seq = 1", "does not count as learned"),
        ("doubled", "UPDATE feedback SET consolidated_by = NULL", "its signals were used before"),
    ],
)  # fmt: skip
def test_whatever_is_wrong_is_seen(data_dir: Path, kind: str, statement: str, words: str) -> None:
    """Each under its name."""
    change(data_dir, statement)
    assert [line for line in getattr(found(data_dir), kind) if words in line], found(data_dir)


def test_a_key_that_nobody_acknowledged_is_not_missed(data_dir: Path) -> None:
    """Only what heed has confirmed must be there."""
    assert found(data_dir, "first").is_right
    assert found(data_dir, "first", "third").lost == ("third was acknowledged and is gone",)


def test_a_pruned_version_needs_no_files_and_still_counts(data_dir: Path) -> None:
    """It taught what the newer ones go on from."""
    change(data_dir, "UPDATE adapter_version SET state = 'pruned' WHERE number = 1")
    atomic.remove_directory(next((data_dir / "adapters").glob("*/1")))
    assert found(data_dir).is_right
