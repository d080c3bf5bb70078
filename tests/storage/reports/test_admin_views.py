"""Views of a person's words by the operator are recorded."""

from storage.people import people
from storage.reports import admin_views
from tests.storage.conftest import Store


def test_looks_are_kept_by_person_newest_first(store: Store, ana: str, ben: str) -> None:
    """And go with the person."""
    store.write(lambda s: [admin_views.note(s, user, "updates", f"upd-{n}") for n, user in enumerate((ana, ben, ana))])
    assert [row.about for row in store.read(lambda s: admin_views.recent(s, ana, 9))] == ["upd-2", "upd-0"]
    assert len(store.read(lambda s: admin_views.recent(s, ana, 1))) == 1
    store.write(lambda s: people.forget(s, ana))
    assert store.read(lambda s: admin_views.recent(s, ana, 9)) == []
    assert len(store.read(lambda s: admin_views.recent(s, ben, 9))) == 1
