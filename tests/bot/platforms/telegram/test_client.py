"""bot.platforms.telegram.client: the library's bot as heed uses it."""

from collections.abc import AsyncIterator

import pytest
from telegram.error import BadRequest, TelegramError

from bot.channel import Gone
from bot.platforms.telegram.client import PollClient, TelegramClient, formatted
from tests.bot.platforms.telegram_bench import settings
from tests.contract.telegram_server import GROUP, SMALL_GROUP, Fault, TelegramServer


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A Bot API server."""
    async with TelegramServer() as server:
        server.meet(GROUP)
        server.meet(SMALL_GROUP)
        yield server


async def test_updates_come_raw(server: TelegramServer) -> None:
    """As Telegram wrote them, also those that no parser takes."""
    client = PollClient(settings(server), timeout_s=1)
    server.emit_raw({"update_id": 5, "message": {"odd": True}})
    assert await client.updates(None, ("message",)) == [{"update_id": 5, "message": {"odd": True}}]
    assert await client.updates(6, ("message",)) == []
    await client.close()


async def test_a_closed_connection_says_so(server: TelegramServer) -> None:
    """It raises, and does not wait."""
    client = PollClient(settings(server), timeout_s=1)
    await client.close()
    with pytest.raises(TelegramError):
        await client.updates(None, ())


async def test_a_moved_group_is_asked_about_once(server: TelegramServer) -> None:
    """After that, everything goes to its new chat at once."""
    server.migrate(SMALL_GROUP, GROUP)
    client = TelegramClient(settings(server))
    seen: list[tuple[int, int | None]] = []

    async def send(chat_id: int, reply_to: int | None) -> None:
        seen.append((chat_id, reply_to))
        await client.bot.send_message(chat_id, "Bees.")

    await client.send(-77, 5, send)
    await client.send(-77, 5, send)
    assert seen == [(-77, 5), (-1001, None), (-1001, None)]
    with pytest.raises(Gone):
        await client.change(-77, lambda: send(-77, None))
    await client.close()


async def test_a_fault_in_the_new_chat_is_told(server: TelegramServer) -> None:
    """As in any other."""
    server.migrate(SMALL_GROUP, GROUP)
    server.fail("sendMessage", Fault(status=400, description="Bad Request: upgraded"))
    server.blocked.add(GROUP["id"])
    client = TelegramClient(settings(server))
    client._moved[-77] = -1001

    async def send(chat_id: int, _: int | None) -> None:
        await client.bot.get_chat(chat_id)

    with pytest.raises(Exception, match="Telegram: "):
        await client.send(-77, None, send)
    await client.close()


async def test_only_unreadable_html_is_shown_plainly() -> None:
    """Any other refusal is one."""
    seen: list[str | None] = []

    async def show(_: str, mode: str | None) -> None:
        seen.append(mode)
        raise BadRequest("Bad Request: message is too long")

    with pytest.raises(BadRequest):
        await formatted("Bees.", show)
    assert seen == ["HTML"]
