"""bot.platforms.discord.preflight: the missing switch by its name."""

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from bot.config import DiscordSettings
from bot.platforms.discord import preflight
from tests.contract.discord_server import TOKEN as GOOD
from tests.contract.discord_server import DiscordServer, Fault


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    """Discord."""
    running = DiscordServer()
    await running.start()
    yield running
    await running.stop()


def settings(server: DiscordServer) -> DiscordSettings:
    """The settings of a bot there."""
    return DiscordSettings(token=SecretStr(GOOD), api_base=server.api_base)


async def test_a_well_bot_has_no_problem(server: DiscordServer) -> None:
    """The token is taken and the intent is on; without a token nothing is asked."""
    assert await preflight.problems(settings(server)) == []
    assert await preflight.problems(DiscordSettings(api_base="http://127.0.0.1:1")) == []


async def test_a_refused_token_is_named(server: DiscordServer) -> None:
    """With where to make a new one, and without the token."""
    server.is_token_valid = False
    (problem,) = await preflight.problems(settings(server))
    assert "DISCORD_BOT_TOKEN" in problem
    assert GOOD not in problem


async def test_the_missing_intent_is_named(server: DiscordServer) -> None:
    """With the way to its switch."""
    server.sockets.has_message_content = False
    (problem,) = await preflight.problems(settings(server))
    assert "Message Content Intent" in problem


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=200, body=b"nonsense"), Fault(hangs=True)])
async def test_a_discord_that_does_not_answer_is_said(
    server: DiscordServer, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors, nonsense and silence are one line with the address."""
    monkeypatch.setattr(preflight, "TIMEOUT_S", 0.3)
    server.fail("GET", "/oauth2/applications/@me", fault)
    (problem,) = await preflight.problems(settings(server))
    assert server.api_base in problem
    assert GOOD not in problem
