"""Adapter versions: which exist, which one a person is served.

Invariants: a number is never given out twice to a person and a `lora_int_id` never to anyone; the active version is
0 (the zero adapter) or an accepted one; a version's row is flipped only after its files are on disk, and a pruned one's
before its files are removed; in a cluster only the holder of the person's lease changes them.
"""

from collections.abc import Collection

from sqlmodel import Session, col, select

from storage import fencing
from storage.errors import PersonNotFound, VersionNotFound, VersionPruned, VersionStateError
from storage.fencing import Tokens
from storage.kinds import VersionState
from storage.tables import ADAPTERS_FOLDER, AdapterVersion, Feedback, UpdateRun, User

Lineage = list[tuple[AdapterVersion, Feedback | None, UpdateRun | None]]


def allocate(
    s: Session, user_id: str, parent: int, base_model: str, feedback_id: str | None, update_id: str | None
) -> AdapterVersion:
    """Return a new candidate with the person's next number; its path is adapters/<user_id>/<number>.

    Raises PersonNotFound, and VersionNotFound if the parent (0: the zero adapter) is not that person's.
    """
    user = _locked_user(s, user_id)
    if parent:
        get(s, user_id, parent)
    user.last_version += 1
    number = user.last_version
    version = AdapterVersion(
        user_id=user_id,
        number=number,
        parent=parent,
        path=f"{ADAPTERS_FOLDER}/{user_id}/{number}",
        base_model=base_model,
        feedback_id=feedback_id,
        update_id=update_id,
    )
    s.add(version)
    s.flush()
    return version


def accept(s: Session, user_id: str, number: int, sha256: str, size_bytes: int) -> AdapterVersion:
    """Accept a candidate whose files are on disk, and serve it from now on.

    Raises PersonNotFound, VersionNotFound, VersionStateError.
    """
    user, version = _locked_user(s, user_id), _candidate(s, user_id, number)
    version.state = VersionState.ACCEPTED
    version.sha256 = sha256
    version.size_bytes = size_bytes
    user.active_version = number
    return version


def reject(s: Session, user_id: str, number: int) -> AdapterVersion:
    """Give up a candidate; the person is served what they were before. Raises VersionNotFound, VersionStateError."""
    check_lease(s, user_id)
    version = _candidate(s, user_id, number)
    version.state = VersionState.REJECTED
    return version


def reject_open(s: Session, user_id: str, number: int) -> bool:
    """Give up a version if it is still a candidate, and say if it was; False too if its person is gone."""
    try:
        reject(s, user_id, number)
    except (VersionNotFound, VersionStateError):
        return False
    return True


def mark_damaged(s: Session, user_id: str, number: int) -> int:
    """Never serve a version again; returns the person's active version afterwards.

    If it was the active one, that is now its nearest accepted ancestor, or 0. Raises PersonNotFound, VersionNotFound.
    """
    user = _locked_user(s, user_id)
    damaged = get(s, user_id, number)
    if damaged.state != VersionState.PRUNED:  # that one has no files to be damaged
        damaged.state = VersionState.DAMAGED
    while user.active_version:
        version = get(s, user_id, user.active_version)
        if version.state == VersionState.ACCEPTED:
            break
        user.active_version = version.parent
    return user.active_version


def activate(s: Session, user_id: str, number: int) -> int:
    """Serve an accepted version, 0 for the zero adapter; returns the one that was active before.

    Raises PersonNotFound, VersionNotFound, VersionPruned, VersionStateError.
    """
    user = _locked_user(s, user_id)
    if number:
        accepted(s, user_id, number)
    before, user.active_version = user.active_version, number
    return before


def accepted(s: Session, user_id: str, number: int) -> AdapterVersion:
    """Return a version that can be served. Raises VersionNotFound, VersionPruned, VersionStateError."""
    version = get(s, user_id, number)
    if version.state == VersionState.PRUNED:
        raise VersionPruned(f"version {number} is not kept any more: newer ones took its place")
    if version.state != VersionState.ACCEPTED:
        raise VersionStateError(f"version {number} was never accepted or is damaged")
    return version


def prune(s: Session, user_id: str, keep: int, in_use: Collection[int] = (), replaced: int = 0) -> list[AdapterVersion]:
    """Give up the accepted versions beyond `keep` and the one that another replaces, and return them.

    Kept are the active one, the nearest accepted one below it, then the newest; and anything that `in_use` names by
    `lora_int_id`. Remove the files afterwards. Raises PersonNotFound.
    """
    active = _locked_user(s, user_id).active_version
    by_number = {v.number: v for v in history(s, user_id)}
    there = [n for n, v in by_number.items() if v.state == VersionState.ACCEPTED]
    accepted = [n for n in there if n != replaced]
    below = by_number[active].parent if active else 0
    while below and by_number[below].state != VersionState.ACCEPTED:
        below = by_number[below].parent
    first = [n for n in (active, below) if n]
    kept = dict.fromkeys([*first, *(n for n in accepted if n not in first)][: max(keep, len(first))])
    given_up = [by_number[n] for n in there if n not in kept and by_number[n].lora_int_id not in in_use]
    for version in given_up:
        version.state = VersionState.PRUNED
    return given_up


def get(s: Session, user_id: str, number: int) -> AdapterVersion:
    """Return a version of this person. Raises VersionNotFound."""
    query = select(AdapterVersion).where(AdapterVersion.user_id == user_id, AdapterVersion.number == number)
    version = s.exec(query).first()
    if version is None:
        raise VersionNotFound(f"no adapter version {number}")
    return version


def history(s: Session, user_id: str) -> list[AdapterVersion]:
    """All versions of this person in any state, newest first."""
    query = select(AdapterVersion).where(AdapterVersion.user_id == user_id)
    return list(s.exec(query.order_by(col(AdapterVersion.number).desc())))


def lineage(s: Session, user_id: str) -> Lineage:
    """All versions of this person, newest first, each with the feedback that taught it and the update that made it."""
    query = (
        select(AdapterVersion, Feedback, UpdateRun)
        .join(Feedback, col(Feedback.id) == col(AdapterVersion.feedback_id), isouter=True)
        .join(UpdateRun, col(UpdateRun.id) == col(AdapterVersion.update_id), isouter=True)
        .where(AdapterVersion.user_id == user_id)
    )
    return [(row[0], row[1], row[2]) for row in s.exec(query.order_by(col(AdapterVersion.number).desc()))]


def unfinished(s: Session, user_id: str | None = None) -> list[AdapterVersion]:
    """Return candidates of one person, or of everybody, oldest first: at start, their update died with heed."""
    query = select(AdapterVersion).where(AdapterVersion.state == VersionState.CANDIDATE)
    if user_id is not None:
        query = query.where(AdapterVersion.user_id == user_id)
    return list(s.exec(query.order_by(col(AdapterVersion.lora_int_id))))


def all_accepted(s: Session) -> list[AdapterVersion]:
    """Return the versions of everybody that can be served, oldest first."""
    query = select(AdapterVersion).where(AdapterVersion.state == VersionState.ACCEPTED)
    return list(s.exec(query.order_by(col(AdapterVersion.lora_int_id))))


def known_paths(s: Session) -> set[str]:
    """Return the paths that may hold files, of everybody: at start, any other adapter directory is an orphan."""
    gone = (VersionState.REJECTED, VersionState.DAMAGED, VersionState.PRUNED)
    return set(s.exec(select(AdapterVersion.path).where(col(AdapterVersion.state).not_in(gone))))


def check_lease(s: Session, user_id: str) -> None:
    """Raise LeaseLost in a process of a cluster that does not hold the person's lease; one machine has no tokens."""
    if s.info.get(fencing.KEY) is not None:  # one machine enters no module more
        fencing.check(s, fencing.person(user_id))


def has_lease(s: Session, user_id: str) -> bool:
    """Return True where `check_lease` raises nothing."""
    tokens: Tokens | None = s.info.get(fencing.KEY)
    return tokens is None or tokens.holds(s, fencing.person(user_id))


def _candidate(s: Session, user_id: str, number: int) -> AdapterVersion:
    version = get(s, user_id, number)
    if version.state != VersionState.CANDIDATE:
        raise VersionStateError(f"version {number} is {version.state}, not a candidate")
    return version


def _locked_user(s: Session, user_id: str) -> User:
    check_lease(s, user_id)
    # FOR UPDATE where the database has it: two processes on one PostgreSQL must not take the same number.
    user = s.get(User, user_id, with_for_update=True)
    if user is None:
        raise PersonNotFound(f"no person {user_id!r}")
    return user
