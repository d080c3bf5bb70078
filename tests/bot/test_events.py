"""bot.events: frozen records."""

import dataclasses
from typing import get_args

import pytest

from bot import events

ANA = events.Author("telegram", "5", "Ana")
HOME = events.Place("telegram", "5")


@pytest.mark.parametrize("name", ["Author", "Place", "Message", "Reply", "Edit", "Reaction", "Press", "Command"])
def test_events_cannot_be_changed(name: str) -> None:
    """Each event is a frozen dataclass: handed on, never altered."""
    kind = getattr(events, name)
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen


def test_equal_events_are_equal() -> None:
    """Two deliveries of the same thing compare equal, so they can be recognised."""
    assert events.Reaction("c", "👍") == events.Reaction("c", "👍")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Ana", "Ana"),
        ("A\nna\x00 \u202eevil\ud800", "Ana evil"),
        ("\u200b", ""),
        ("x" * 5000, "x" * 64),
        ("\u0410\u043d\u0430 🙂", "\u0410\u043d\u0430 🙂"),
    ],
)
def test_of_a_name_only_what_is_seen_is_kept(given: str, kept: str) -> None:
    """A stranger's name forges no line, turns no text around and can be stored."""
    assert events.Author("telegram", "5", given).display_name == kept


@pytest.mark.parametrize("kind", get_args(events.Inbound))
def test_records_cannot_be_changed(kind: type) -> None:
    """Each is a frozen dataclass that says where it happened."""
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "place" in {entry.name for entry in dataclasses.fields(kind)}


def test_a_message_is_meant_for_heed_unless_it_says_otherwise() -> None:
    """In private everything is; the same message twice is equal."""
    said = events.MessageReceived(ANA, HOME, "1", "hello")
    assert (said.is_addressed, said.reply_to) == (True, None)
    assert said == events.MessageReceived(ANA, HOME, "1", "hello")
