"""Tests of bot.platforms.discord.messages; how they look on the server is in test_discord."""

from bot.channel import Button
from bot.platforms.discord.messages import LIMITS, content


def test_the_limits_are_discords() -> None:
    """2000 characters, an edit a second, and a nonce that tells a repetition."""
    assert LIMITS.text_units == 2000
    assert LIMITS.measure("a😀") == 2
    assert LIMITS.edit_interval_s >= 1.0
    assert LIMITS.has_nonces
    assert not LIMITS.has_edits_forever


def test_nobody_is_ever_mentioned() -> None:
    """Whatever a text says, Discord is told to notify nobody, not even the one who is answered."""
    body = content("@everyone <@111>", ((Button("x", "up"),),))
    assert body["allowed_mentions"] == {"parse": [], "replied_user": False}
    assert body["components"][0]["components"][0]["custom_id"] == "up"
    assert content("plain")["components"] == []
