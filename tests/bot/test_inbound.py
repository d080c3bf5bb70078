"""bot.inbound: what arrives, as frozen records."""

import dataclasses
from typing import get_args

import pytest

from bot import inbound
from bot.events import Author, Place

ANA = Author("telegram", "5", "Ana")
HOME = Place("telegram", "5")


@pytest.mark.parametrize("kind", get_args(inbound.Inbound))
def test_records_cannot_be_changed(kind: type) -> None:
    """Each is a frozen dataclass that says where it happened."""
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "place" in {entry.name for entry in dataclasses.fields(kind)}


def test_every_record_of_the_module_is_inbound() -> None:
    """Nothing is left out of the union that the desk matches."""
    own = {kind for kind in vars(inbound).values() if isinstance(kind, type) and kind.__module__ == inbound.__name__}
    assert own == set(get_args(inbound.Inbound))


def test_a_message_is_meant_for_heed_unless_it_says_otherwise() -> None:
    """In private everything is; the same message twice is equal."""
    said = inbound.MessageReceived(ANA, HOME, "1", "hello")
    assert (said.is_addressed, said.reply_to) == (True, None)
    assert said == inbound.MessageReceived(ANA, HOME, "1", "hello")
