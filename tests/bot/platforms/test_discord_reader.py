"""Tests of bot.platforms.discord_reader."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.inbound import Said
from bot.platforms.discord_events import CREATED, INTERACTION, REACTED, SEEN, UPDATED, message_row
from bot.platforms.discord_reader import read

TYPES = [CREATED, UPDATED, INTERACTION, SEEN, *REACTED.values(), "READY"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "author", "text", "kind", "name"]), inner),
    max_leaves=8,
)


@given(st.sampled_from(TYPES), JSON)
def test_nonsense_says_nothing(event: str, data: Any) -> None:
    """A payload that makes no sense is read as nothing, never as an error."""
    assert isinstance(read({"type": event, "data": data}, {"help"}), list)
    assert read({"data": data}, set()) == []


@given(st.text(min_size=1).filter(lambda text: not text.startswith("/")))
def test_what_was_said_is_read_as_it_was_said(text: str) -> None:
    """Any text comes through, without the blanks around it."""
    message = {"id": "42", "channel_id": "500", "author": {"id": "111"}, "content": text}
    item = message_row(CREATED, message, "1")
    assert item is not None
    (said,) = read(item.payload, {"help"})
    assert isinstance(said, Said)
    assert (said.text, said.place.is_private, said.author.display_name) == (text.strip(), True, "")


def test_what_is_only_accounted_for_says_nothing() -> None:
    """A key without content is read as nothing."""
    assert read({"type": SEEN, "data": {}}, set()) == []
