"""Tests of bot.platforms.discord.events."""

from typing import Any

import pytest

from bot.platforms.discord.events import (
    CREATED,
    UPDATED,
    emoji_key,
    emoji_of,
    interaction_row,
    mark_of,
    message_row,
    reaction_row,
    shown_emoji,
)

ANA = {"id": "111", "username": "ana", "global_name": "Ana"}


def message(**fields: Any) -> dict[str, Any]:
    """A private message of Ana's."""
    return {"id": "42", "channel_id": "500", "author": ANA, "content": "hello", "type": 0} | fields


@pytest.mark.parametrize(
    "fields",
    [
        {"author": ANA | {"bot": True}},
        {"webhook_id": "9"},
        {"type": 7},  # somebody joined
        {"content": ""},  # an embed alone
        {"guild_id": "900"},  # not for heed
        {"guild_id": "900", "mentions": [{"id": "222"}]},
        {"guild_id": "900", "mention_everyone": True},
        {"guild_id": "900", "message_reference": {"message_id": "1"}, "referenced_message": None},
        {"guild_id": "900", "referenced_message": {"author": {"id": "222"}}},
    ],
)
def test_what_is_not_for_heed_makes_no_row(fields: dict[str, Any]) -> None:
    """Bots, webhooks, notices, what has neither words nor files, and bystanders are never stored."""
    assert message_row(CREATED, message(**fields), "1") is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mentions": [{"id": "1"}], "guild_id": "900"},
        {"referenced_message": {"author": {"id": "1"}}, "guild_id": "9"},
        {"content": "", "attachments": [{"id": "5"}]},
        {"content": "", "sticker_items": [{"id": "5"}]},
    ],
)
def test_what_is_for_heed_makes_a_row(fields: dict[str, Any]) -> None:
    """Private messages, mentions and replies to heed are stored under the message's id, also a picture alone."""
    item = message_row(CREATED, message(**fields), "1")
    assert item is not None
    assert (item.update_id, item.chat_key, item.account, item.bot_id) == ("m:42", "500", "111", "1")


def test_a_mention_of_heed_is_not_part_of_what_was_said() -> None:
    """The name heed is called by is taken out, other mentions stay."""
    item = message_row(CREATED, message(content="<@1> <@!1> hi <@222> "), "1")
    assert item is not None
    assert item.payload["data"]["text"] == "hi <@222>"


def test_a_forwarded_message_is_no_reply() -> None:
    """A reference may be a forward; only a reply points at an answer."""
    for kind, expected in ((0, "7"), (1, None)):
        item = message_row(CREATED, message(message_reference={"message_id": "7", "type": kind}), "1")
        assert item is not None
        assert item.payload["data"]["reply_to"] == expected


def test_an_edit_has_its_time_in_its_key() -> None:
    """The same edit told twice is one; a message without an edit's time was not edited."""
    edited = message_row(UPDATED, message(edited_timestamp="2026-01-01T00:00:00+00:00"), "1")
    assert edited is not None
    assert edited.update_id == "e:42:2026-01-01T00:00:00+00:00"
    assert message_row(UPDATED, message(edited_timestamp=None), "1") is None


def test_a_reaction_says_whose_and_which() -> None:
    """The key of a reaction has message, emoji, count and a mark of the person; a server's own emoji goes by its id."""
    reaction = {"message_id": "7", "user_id": "111", "channel_id": "500", "emoji": {"id": "55", "name": "bee"}}
    item = reaction_row("add", reaction, "1", 2)
    assert item.update_id == f"r:add:7:{mark_of('7', '111')}:55:2"
    assert "111" not in item.update_id
    assert len({mark_of("7", "111"), mark_of("7", "112"), mark_of("8", "111")}) == 3
    assert item.payload["data"]["emoji"] == ":bee:"
    assert emoji_key({"id": None, "name": "👍"}) == shown_emoji({"id": None, "name": "👍"}) == "👍"
    assert [emoji_key(emoji_of(key)) for key in ("55", "👍")] == ["55", "👍"]


@pytest.mark.parametrize(
    "components",
    [
        [{"type": 1, "components": [{"type": 4, "custom_id": "text", "value": "too long"}]}],
        [{"type": 18, "component": {"type": 4, "custom_id": "text", "value": "too long"}}],
    ],
)
def test_a_form_is_read_in_both_layouts(components: list[Any]) -> None:
    """Discord wraps a text box in a row or in a label; either way it says the same."""
    form = {
        "id": "9",
        "type": 5,
        "channel_id": "500",
        "user": ANA,
        "message": {"id": "7"},
        "data": {"custom_id": "fix", "components": components},
    }
    item = interaction_row(form, "1", "token")
    assert (item.update_id, item.payload["data"]["text"], item.payload["data"]["message_id"]) == (
        "i:9",
        "too long",
        "7",
    )
