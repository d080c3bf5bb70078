"""The lessons taught compared with storage and disk.

`read` looks at the database and the adapter directories of a heed that does not run; `check` is pure. It judges people
who never undo anything: every piece of feedback that taught a version of theirs still counts.
"""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.adapters.store import check_values
from engine.errors import AdapterDamaged
from storage.errors import StorageError
from storage.files import atomic
from storage.kinds import FeedbackKind, FeedbackStatus, VersionState
from storage.learning.signals import CONSOLIDATION
from storage.tables import ADAPTERS_FOLDER

Row = dict[str, Any]
OPEN = (FeedbackStatus.PENDING, FeedbackStatus.TRAINING)
SERVED = (VersionState.ACCEPTED, VersionState.PRUNED)  # what is or was a person's adapter
TAKES_IN = ("accepted", "skipped")  # how consolidations end that take signals in


@dataclass
class Books:
    """The rows of some people, and the directories with their adapters."""

    users: list[Row] = field(default_factory=list)
    feedback: list[Row] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)  # path -> SHA-256, or why it cannot be used


@dataclass(frozen=True)
class Findings:
    """The errors found, the number of pieces of acknowledged feedback, and how those ended."""

    torn: tuple[str, ...]
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    endings: dict[str, int]

    @property
    def is_right(self) -> bool:
        """Nothing torn, nothing lost, nothing trained twice."""
        return not (self.torn or self.lost or self.doubled)


def read(data_dir: Path, accounts: Collection[str]) -> Books:
    """The books of the people with these accounts. Blocking."""
    with closing(sqlite3.connect(f"file:{data_dir / 'heed.db'}?mode=ro", uri=True, timeout=20)) as database:
        database.row_factory = sqlite3.Row
        known = {row["user_id"]: row["account"] for row in database.execute("SELECT user_id, account FROM identity")}
        ids = {user_id for user_id, account in known.items() if account in accounts}

        def rows(table: str, key: str = "user_id") -> list[Row]:
            return [dict(row) for row in database.execute(f"SELECT * FROM {table}") if row[key] in ids]  # noqa: S608  ours

        books = Books(rows("user", "id"), rows("feedback"), rows("adapter_version"), rows("update_run"))
    for user in books.users:
        user["account"] = known[user["id"]]
    people = [path for path in (data_dir / ADAPTERS_FOLDER).glob("*") if path.name in ids]
    found = [path for person in people for path in person.iterdir()]
    books.folders = {str(path.relative_to(data_dir)): _sum_of(path) for path in found}
    return books


def _sum_of(folder: Path) -> str:
    try:
        files = atomic.read_directory(folder)
        check_values(files)
    except (OSError, StorageError, AdapterDamaged) as error:
        return f"unusable: {error}"
    return atomic.files_sha256(files)


def check(books: Books, acknowledged: Collection[str], emptied: Collection[str] = ()) -> Findings:
    """Holds the books against the keys that heed acknowledged.

    `emptied`: accounts of people of whom a consolidation has said that nothing new is left.
    """
    rows = {row["idempotency_key"]: row for row in books.feedback}
    lost = [f"{key} was acknowledged and is gone" for key in acknowledged if key not in rows]
    lost += [*_unfinished(books), *_unlearned(books), *_left_out(books, emptied)]
    endings = Counter(str(rows[key]["status"]) for key in acknowledged if key in rows)
    return Findings(tuple(torn(books)), tuple(lost), tuple(_doubled(books)), dict(endings))


def torn(books: Books) -> Iterator[str]:
    """Versions that are not what their rows say; right at any time, also before a restart has swept."""
    states = {(row["user_id"], row["number"]): row["state"] for row in books.versions}
    for row in books.versions:
        if row["state"] == VersionState.ACCEPTED and books.folders.get(row["path"]) != row["sha256"]:
            yield f"{row['path']} is {books.folders.get(row['path'], 'not there')}"
        if row["state"] == VersionState.DAMAGED:
            yield f"{row['path']} was found damaged"
    for user in books.users:
        active = user["active_version"]
        if active and states.get((user["id"], active)) != VersionState.ACCEPTED:
            yield f"{user['id']} is served version {active}, which is {states.get((user['id'], active))}"


def _unfinished(books: Books) -> Iterator[str]:
    for row in books.feedback:
        is_lesson = row["kind"] in (FeedbackKind.CORRECTION, FeedbackKind.IDEAL)
        has_ended = row["status"] not in OPEN
        if not has_ended:
            yield f"{row['idempotency_key']} is still {row['status']}"
        elif is_lesson and row["status"] != FeedbackStatus.LEARNED and not row["reason"]:
            yield f"{row['idempotency_key']} is {row['status']} without a reason"
    yield from (f"{run['id']} still runs" for run in books.runs if run["status"] == "running")
    yield from (f"{v['path']} was never judged" for v in books.versions if v["state"] == VersionState.CANDIDATE)
    unknown = sorted(set(books.folders) - {row["path"] for row in books.versions})
    yield from (f"{path} is nobody's" for path in unknown)


def _unlearned(books: Books) -> Iterator[str]:
    """Lessons that count as learned and that the active version does not go back to."""
    paths = {user["id"]: _path(books, user) for user in books.users}
    taught = {(v["user_id"], v["feedback_id"]) for v in books.versions if v["number"] in paths[v["user_id"]]}
    for row in books.feedback:
        if row["status"] == FeedbackStatus.LEARNED and (row["user_id"], row["id"]) not in taught:
            yield f"{row['idempotency_key']} is learned, and no version on the way to the active one was taught it"
    for version in books.versions:
        if version["state"] in SERVED and version["number"] not in paths[version["user_id"]]:
            yield f"{version['path']} was accepted, and the active version does not go back to it"


def _path(books: Books, user: Row) -> set[int]:
    """The versions from a person's active one down to the base model."""
    parents = {v["number"]: v["parent"] for v in books.versions if v["user_id"] == user["id"]}
    number, path = user["active_version"], set[int]()
    while number in parents:
        path.add(number)
        number = parents[number]
    return path


def _left_out(books: Books, emptied: Collection[str]) -> Iterator[str]:
    """Signals that were taken in by nothing, or by a consolidation that did not end well."""
    ended = {run["id"] for run in books.runs if run["kind"] == CONSOLIDATION and run["status"] in TAKES_IN}
    nothing_new = {user["id"] for user in books.users if user["account"] in emptied}
    for row in books.feedback:
        if row["consolidated_by"] is not None and row["consolidated_by"] not in ended:
            yield f"{row['idempotency_key']} was taken in by {row['consolidated_by']}, which did not end well"
        if row["consolidated_by"] is None and row["status"] == FeedbackStatus.LEARNED and row["user_id"] in nothing_new:
            yield f"{row['idempotency_key']} is learned, and no consolidation took it in"


def _doubled(books: Books) -> Iterator[str]:
    """Feedback or signals that trained more than once, or trained and count as refused."""
    learned = {row["id"] for row in books.feedback if row["status"] == FeedbackStatus.LEARNED}
    made = [v for v in books.versions if v["state"] in SERVED]
    yield from _more_than_once("feedback", [v["feedback_id"] for v in made], "taught {} versions")
    yield from _more_than_once("update", [v["update_id"] for v in made], "made {} versions")
    accepted = [run for run in books.runs if run["status"] == "accepted"]
    yield from _more_than_once("feedback", [run["feedback_id"] for run in accepted], "was accepted {} times")
    yield from _more_than_once("key", [row["idempotency_key"] for row in books.feedback], "is {} pieces of feedback")
    for version in made:
        if version["feedback_id"] is not None and version["feedback_id"] not in learned:
            yield f"{version['feedback_id']} taught {version['path']} and does not count as learned"
    taken = {row["consolidated_by"] for row in books.feedback}
    for run in accepted:
        if run["kind"] == CONSOLIDATION and run["id"] not in taken:
            yield f"consolidation {run['id']} was accepted and took nothing in: its signals were used before"


def _more_than_once(what: str, ids: Sequence[str | None], words: str) -> Iterator[str]:
    for name, count in Counter(i for i in ids if i is not None).items():
        if count > 1:
            yield f"{what} {name} {words.format(count)}"


def as_json(findings: Findings) -> Row:
    """Plain values, for a file of figures."""
    found = {name: list(getattr(findings, name)) for name in ("torn", "lost", "doubled")}
    return {"acknowledged": sum(findings.endings.values()), "endings": findings.endings, **found}
