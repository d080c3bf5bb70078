"""Tests of bot.platforms.discord.reader."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.events import CommandReceived, MessageReceived
from bot.platforms.discord.events import CREATED, INTERACTION, REACTED, SEEN, UPDATED, message_row
from bot.platforms.discord.reader import read

TYPES = [CREATED, UPDATED, INTERACTION, SEEN, *REACTED.values(), "READY"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "author", "text", "kind", "name"]), inner),
    max_leaves=8,
)


@given(st.sampled_from(TYPES), JSON)
def test_nonsense_says_nothing(event: str, data: Any) -> None:
    """A payload that makes no sense is read as nothing, never as an error."""
    assert isinstance(read({"type": event, "data": data}), list)
    assert read({"data": data}) == []


@given(st.text(min_size=1).filter(lambda text: not text.startswith("/")))
def test_what_was_said_is_read_as_it_was_said(text: str) -> None:
    """Any text comes through, without the blanks around it."""
    message = {"id": "42", "channel_id": "500", "author": {"id": "111"}, "content": text}
    item = message_row(CREATED, message, "1")
    assert item is not None
    (said,) = read(item.payload)
    assert isinstance(said, MessageReceived)
    assert (said.text, said.place.is_private, said.author.display_name) == (text.strip(), True, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/note call me Ana", ("note", "call me Ana")),
        ("/NOTE\ncall me Ana\nplease", ("note", "call me Ana\nplease")),
        ("/undo", ("undo", "")),
        ("/dance now", ("dance", "now")),
        ("/etc/hosts is what?", None),
        ("//note x", None),
        ("/ note", None),
    ],
)
def test_a_command_may_be_written(text: str, expected: tuple[str, str] | None) -> None:
    """Also one that heed does not have, so that its writer is told; a path is no command."""
    message = {"id": "42", "channel_id": "500", "author": {"id": "111"}, "content": text}
    item = message_row(CREATED, message, "1")
    assert item is not None
    (record,) = read(item.payload)
    found = (record.name, record.argument) if isinstance(record, CommandReceived) else None
    assert found == expected


def test_what_is_only_accounted_for_says_nothing() -> None:
    """A key without content is read as nothing."""
    assert read({"type": SEEN, "data": {}}) == []
