"""storage.learning.drift_audits: when one is due, and what the last ones found."""

from sqlmodel import Session

from storage.learning import drift_audits, updates, versions
from storage.learning.signals import CONSOLIDATION
from storage.tables import UpdateRun
from tests.storage.conftest import Store


def audited(s: Session, user_id: str, version: int, level: str = "ok") -> None:
    """An audit of a version."""
    updates.start(s, UpdateRun(user_id=user_id, kind=drift_audits.KIND, status=level, parent_version=version))


def accepted(s: Session, user_id: str, kind: str = "correction") -> int:
    """One more version that is active."""
    run = updates.start(s, UpdateRun(user_id=user_id, kind=kind))
    version = versions.allocate(s, user_id, 0, "pocket", None, run.id)
    return versions.accept(s, user_id, version.number, "0" * 64, 1).number


def test_it_is_due_after_so_many_versions(store: Store, ana: str) -> None:
    """Counted from the version that the last one looked at; the base model needs none."""
    assert not store.read(lambda s: drift_audits.is_due(s, ana, 2))
    first = store.write(lambda s: accepted(s, ana))
    assert not store.read(lambda s: drift_audits.is_due(s, ana, 2))
    second = store.write(lambda s: accepted(s, ana))
    assert (first, second) == (1, 2)
    assert store.read(lambda s: drift_audits.is_due(s, ana, 2))
    store.write(lambda s: audited(s, ana, second))
    assert not store.read(lambda s: drift_audits.is_due(s, ana, 2))


def test_it_is_due_after_a_consolidation_once(store: Store, ana: str) -> None:
    """A consolidation makes an audit due at any number of versions; after the audit it is due no more."""
    number = store.write(lambda s: accepted(s, ana, CONSOLIDATION))
    assert store.read(lambda s: drift_audits.is_due(s, ana, 100))
    store.write(lambda s: audited(s, ana, number))
    assert not store.read(lambda s: drift_audits.is_due(s, ana, 100))


def test_going_back_to_the_base_model_is_no_reason(store: Store, ana: str) -> None:
    """There is nothing that could have drifted, unless many versions were left behind."""
    number = store.write(lambda s: accepted(s, ana))
    store.write(lambda s: audited(s, ana, number))
    store.write(lambda s: versions.activate(s, ana, 0))
    assert not store.read(lambda s: drift_audits.is_due(s, ana, 2))


def test_the_last_level_of_everybody_is_counted(store: Store, ana: str, ben: str) -> None:
    """Each person once, by their newest; another kind of update counts for nothing."""
    store.write(lambda s: audited(s, ana, 1, "critical"))
    store.write(lambda s: audited(s, ana, 2, "ok"))
    store.write(lambda s: audited(s, ben, 1, "warn"))
    store.write(lambda s: accepted(s, ben))
    assert store.read(drift_audits.levels) == {"ok": 1, "warn": 1}
    newest = store.read(lambda s: drift_audits.newest(s, ana))
    assert newest is not None
    assert newest.parent_version == 2
