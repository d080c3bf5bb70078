"""bot.platforms.telegram.preflight: what has to be right about a bot, for a start and for `heed doctor`."""

from collections.abc import AsyncIterator

import pytest

from bot.platforms.telegram.preflight import NO_GROUPS, PRIVACY_MODE, problems
from tests.bot.platforms.telegram_bench import SECRET, WEBHOOK, settings
from tests.contract.telegram_server import TOKEN, Fault, TelegramServer


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A Bot API server."""
    async with TelegramServer() as server:
        yield server


async def test_a_bot_that_is_well(server: TelegramServer) -> None:
    """Nothing to do, and nothing is changed by looking."""
    assert await problems(settings(server)) == []
    assert {call.method for call in server.calls} == {"getMe", "getWebhookInfo"}


async def test_switches_that_are_off_are_named(server: TelegramServer) -> None:
    """By the words of @BotFather."""
    server.me |= {"can_read_all_group_messages": False, "can_join_groups": False}
    assert await problems(settings(server)) == [PRIVACY_MODE, NO_GROUPS]
    assert "/setprivacy" in PRIVACY_MODE
    assert "/setjoingroups" in NO_GROUPS


@pytest.mark.parametrize("token", [TOKEN[:-1] + "x", "1:short"])
async def test_a_wrong_token(server: TelegramServer, token: str) -> None:
    """Telegram says 401 to one that is revoked and 404 to one that is none."""
    (problem,) = await problems(settings(server, token=token))
    assert "TELEGRAM_BOT_TOKEN" in problem
    assert token not in problem


async def test_a_webhook_of_another_program(server: TelegramServer) -> None:
    """Its address and how to be rid of it, without the token; heed's own webhook takes its place."""
    server.webhook = {"url": "https://elsewhere.example/hook"}
    (problem,) = await problems(settings(server))
    assert "https://elsewhere.example/hook" in problem
    assert "deleteWebhook" in problem
    assert TOKEN not in problem
    assert await problems(settings(server, webhook_url=WEBHOOK, webhook_secret=SECRET)) == []


async def test_a_webhook_that_leads_nowhere(server: TelegramServer) -> None:
    """What waits, and what Telegram says of the address, as long as something waits."""
    at_heed = settings(server, webhook_url=WEBHOOK, webhook_secret=SECRET)
    server.webhook = {"url": WEBHOOK}
    server.webhook_gateway = server.url  # answers 404
    server.say("bees?")
    await server.until(lambda: server.push_error)
    (problem,) = await problems(at_heed)
    assert problem.startswith(f"Telegram: 1 updates wait, since {WEBHOOK} did not take the last one")
    assert "HEED_TELEGRAM_WEBHOOK_SECRET" in problem
    server._pending.clear()
    assert await problems(at_heed) == []


@pytest.mark.parametrize("method", ["getMe", "getWebhookInfo"])
async def test_a_telegram_that_does_not_answer(server: TelegramServer, method: str) -> None:
    """It is told, not raised."""
    server.fail(method, Fault(status=502, body=b"<html>"))
    (problem,) = await problems(settings(server))
    assert "Bad Gateway" in problem
