"""bot.events: frozen records."""

import dataclasses

import pytest

from bot import events


@pytest.mark.parametrize("name", ["Author", "Place", "Message", "Reply", "Edit", "Reaction", "Press", "Command"])
def test_events_cannot_be_changed(name: str) -> None:
    """Each event is a frozen dataclass: handed on, never altered."""
    kind = getattr(events, name)
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen


def test_equal_events_are_equal() -> None:
    """Two deliveries of the same thing compare equal, so they can be recognised."""
    assert events.Reaction("c", "👍") == events.Reaction("c", "👍")
