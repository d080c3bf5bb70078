"""Settings that survive."""

import pytest

from storage import settings
from tests.storage.conftest import Store


@pytest.mark.parametrize("value", [None, False, 0, "text", [1, 2.5], {"deep": {"er": ["żółw"]}}])
def test_a_setting_survives_as_it_was(store: Store, value: object) -> None:
    """Every JSON value comes back after a restart, None and False included, in place of the default."""
    store.write(lambda s: settings.put(s, "key", value))
    store.reopen()
    assert store.read(lambda s: settings.get(s, "key", "default")) == value


def test_a_setting_never_put_has_the_default(store: Store) -> None:
    """The caller says what it is then."""
    assert store.read(lambda s: settings.get(s, "key", "default")) == "default"
    assert store.read(lambda s: settings.get(s, "key")) is None


def test_the_last_put_stands(store: Store) -> None:
    """Putting again replaces, also in place of a value of another type."""
    for value in (1, {"a": 1}, {"a": 2}):
        store.write(lambda s, value=value: settings.put(s, "key", value))
    assert store.read(lambda s: settings.get(s, "key")) == {"a": 2}


def test_a_setting_can_be_removed(store: Store) -> None:
    """Removing says whether there was one."""
    store.write(lambda s: settings.put(s, "key", 1))
    assert store.write(lambda s: settings.remove(s, "key")) is True
    assert store.write(lambda s: settings.remove(s, "key")) is False
    assert store.read(lambda s: settings.get(s, "key")) is None
