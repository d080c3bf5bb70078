"""Tests of bot.platforms.discord.client."""

import discord
import pytest

from bot.platforms.discord.client import RawEventClient, intents
from bot.platforms.discord.shard import Shard


def test_only_what_heed_needs_is_asked_for() -> None:
    """Messages with their text, reactions and the list of servers; nothing about people's presence or membership."""
    assert {name for name, is_wanted in intents() if is_wanted} == {
        "guilds",
        "guild_messages",
        "dm_messages",
        "guild_reactions",
        "dm_reactions",
        "message_content",
    }


async def test_caches_are_small_and_nobody_is_pinged() -> None:
    """A long-running bot keeps no members and few messages, and its default is to mention nobody."""
    client = RawEventClient(lambda *_: None, Shard(), guild_wait_s=0.0, identify_pause_s=0.0)
    state = client._connection
    assert (state.max_messages, state._chunk_guilds) == (100, False)
    assert state.member_cache_flags == discord.MemberCacheFlags.none()
    assert client.allowed_mentions is not None
    assert client.allowed_mentions.to_dict() == {"parse": []}


async def test_a_listener_that_fails_is_counted_and_the_event_still_parsed() -> None:
    """One side's trouble with an event is not the other's; without a session there is nothing to go on with."""

    def listen(event: str, data: object) -> None:
        raise ValueError(event)

    client = RawEventClient(listen, Shard(), guild_wait_s=0.0, identify_pause_s=0.0)
    client._connection.parsers["RESUMED"]({})
    assert client.num_malformed == 1
    with pytest.raises(ValueError, match="READY"):
        client._connection.parsers["READY"]({})
