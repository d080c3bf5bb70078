"""Tests of bot.platforms.discord.rest; what a running channel does with errors is in test_discord."""

import pytest

from bot.channel import ChannelError, Refused, SlowDown, Unreachable
from bot.platforms.discord.rest import DiscordRest
from tests.bot.platforms.discord_bench import Bench
from tests.contract.discord_server import Fault

PATH, KEYS = "/channels/{channel_id}", {"channel_id": "500"}


async def test_before_the_first_connection_nothing_is_sent() -> None:
    """A message that waited in the outbox finds that it was certainly not sent."""
    with pytest.raises(Unreachable) as caught:
        await DiscordRest(1.0, lambda: None).call("GET", PATH, KEYS)
    assert not caught.value.is_ambiguous


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(status=400, body=b'{"code": 50035, "message": "Invalid Form Body"}'), Refused),
        (Fault(status=403, body=b'{"code": 50013, "message": "Missing Permissions"}'), Refused),
        (Fault(status=429, body=b"banned", content_type="text/html"), SlowDown),
        (Fault(status=404, body=b"<html>", content_type="text/html"), Refused),
    ],
)
async def test_each_refusal_has_its_word(table: Bench, fault: Fault, expected: type[ChannelError]) -> None:
    """Codes heed does not know are refusals; a gatekeeper's 429 asks for a long pause."""
    table.server.fail("GET", "/channels/500", fault)
    with pytest.raises(expected) as caught:
        await table.channel._gateway.rest.call("GET", PATH, KEYS)
    if isinstance(caught.value, SlowDown):
        assert caught.value.retry_after_s == 60.0


async def test_an_error_names_the_call_and_no_secret(table: Bench) -> None:
    """What is logged about a failed call is its route, not what filled it."""
    table.server.fail("GET", "/channels/.*", Fault(status=503))
    with pytest.raises(Unreachable, match=r"GET /channels/\{channel_id\}") as caught:
        await table.channel._gateway.rest.call("GET", PATH, {"channel_id": "secret"})
    assert "secret" not in str(caught.value)
