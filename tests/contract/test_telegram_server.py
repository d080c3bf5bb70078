"""tests.contract.telegram_server: that it behaves as the Bot API does, seen by the library itself."""

import asyncio
import logging
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter, TimedOut

from tests.contract.telegram_server import ANA, GROUP, TOKEN, Fault, TelegramServer, private
from tests.patience import until

pytestmark = pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")  # PTB's own use of retry_after

HOME = private(ANA)


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A server that Ana wrote to."""
    async with TelegramServer() as server:
        server.meet(HOME)
        yield server


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[Bot]:
    """The library's bot on it."""
    async with Bot(TOKEN, f"{server.url}/bot") as bot:
        yield bot


async def test_a_caller_who_gives_up_while_sending_is_no_error(
    server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is done, and nothing is logged as an error: a storm reads the same log for errors of heed."""
    at = urlsplit(server.url)
    _, writer = await asyncio.open_connection(at.hostname, at.port)
    form = "--b\r\nContent-Disposition: form-data; name=chat_id\r\n\r\n10"
    head = f"POST /bot{TOKEN}/sendMessage HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    writer.write(f"{head}Content-Type: multipart/form-data; boundary=b\r\n\r\n{form}".encode())
    await writer.drain()
    await until(lambda: server.num_open == 1)
    writer.close()
    await writer.wait_closed()
    await until(lambda: server.num_open == 0)
    assert server.calls == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_it_is_the_bot_of_its_token(server: TelegramServer, bot: Bot) -> None:
    """401 to another token, 404 to what is none."""
    assert bot.username == "heed_bot"
    for token, words in ((TOKEN[:-1] + "x", "Unauthorized"), ("1:x", "Not Found")):
        other = Bot(token, f"{server.url}/bot")
        with pytest.raises(InvalidToken, match=words):
            await other.get_me()
        await other.request.shutdown()


async def test_a_poll_waits(server: TelegramServer, bot: Bot) -> None:
    """Until there is something, or its time is over."""
    polling = asyncio.create_task(bot.get_updates(timeout=20))
    await server.polled.wait()
    assert not polling.done()
    server.say("bees?")
    (update,) = await polling
    assert update.message is not None
    assert update.message.text == "bees?"
    assert await bot.get_updates(update.update_id + 1, timeout=0) == ()


async def test_an_offset_confirms(server: TelegramServer, bot: Bot) -> None:
    """Until then the same comes again, oldest first."""
    for text in ("a", "b", "c"):
        server.say(text)
    first = await bot.get_updates()
    assert [update.update_id for update in await bot.get_updates()] == [update.update_id for update in first]
    assert len(await bot.get_updates(limit=2)) == 2
    assert len(await bot.get_updates(first[1].update_id)) == 2
    assert [update.update_id for update in await bot.get_updates(-1)] == [first[2].update_id]
    assert server.redeliver() == 2


async def test_a_second_poller_ends_the_first(server: TelegramServer, bot: Bot) -> None:
    """With a 409; so does a webhook."""
    first = asyncio.create_task(bot.get_updates(timeout=20))
    await server.polled.wait()
    async with Bot(TOKEN, f"{server.url}/bot") as second:
        other = asyncio.create_task(second.get_updates(timeout=20))
        with pytest.raises(Conflict, match="terminated by other getUpdates"):
            await first
        server.say("bees?")
        assert len(await other) == 1
    await bot.set_webhook("https://heed.example")
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates()
    with pytest.raises(BadRequest, match="an https url"):
        await bot.set_webhook("http://heed.example")


async def test_only_what_is_allowed_is_kept(server: TelegramServer, bot: Bot) -> None:
    """Reactions have to be asked for; the list is remembered."""
    server.react(HOME, 1, ["👍"])
    assert await bot.get_updates() == ()
    await bot.get_updates(allowed_updates=["message_reaction"])
    server.react(HOME, 1, ["👍"])
    server.say("bees?")
    assert len(await bot.get_updates()) == 1


async def test_texts_are_checked(bot: Bot) -> None:
    """Empty, too long, unreadable."""
    for text, mode, words in (
        (" ", None, "text is empty"),
        ("🐝" * 2049, None, "too long"),
        ("<b>", "HTML", "parse entities"),
    ):
        with pytest.raises(BadRequest, match=words):
            await bot.send_message(111, text, mode)
    assert (await bot.send_message(111, "<b>🐝</b>" * 2048, "HTML")).text == "🐝" * 2048


async def test_edits_are_checked(server: TelegramServer, bot: Bot) -> None:
    """An edit that changes nothing, of a missing message or of another sender's message is refused."""
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data="x")]])
    shown = await bot.send_message(111, "Bees.")
    await bot.edit_message_text("Bees.", 111, shown.message_id, reply_markup=keyboard)
    with pytest.raises(BadRequest, match="not modified"):
        await bot.edit_message_text("Bees.", 111, shown.message_id, reply_markup=keyboard)
    with pytest.raises(BadRequest, match="to edit not found"):
        await bot.edit_message_text("Bees.", 111, 99)
    said = server.say("bees?")
    with pytest.raises(BadRequest, match="can't be edited"):
        await bot.edit_message_text("Bees.", 111, said["message_id"])
    await bot.delete_message(111, shown.message_id)
    assert server.texts(HOME) == []


async def test_people_who_are_not_there(server: TelegramServer, bot: Bot) -> None:
    """Unknown, or they blocked the bot."""
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(5, "Bees.")
    server.blocked.add(111)
    with pytest.raises(Forbidden, match="blocked by the user"):
        await bot.send_message(111, "Bees.")


async def test_faults_come_in_order(server: TelegramServer, bot: Bot) -> None:
    """One a request; `is_done` says whether the server did it all the same."""
    cut = Fault(cuts=True, is_done=True)
    server.fail("sendMessage", Fault(retry_after=5), cut, Fault(status=500, description="no"), Fault(hangs=True))
    with pytest.raises(RetryAfter):
        await bot.send_message(111, "a")
    with pytest.raises(NetworkError, match=r"RemoteProtocolError|ReadError"):
        await bot.send_message(111, "b")
    with pytest.raises(NetworkError, match="no"):
        await bot.send_message(111, "c")
    with pytest.raises(TimedOut):
        await bot.send_message(111, "d", read_timeout=0.1)
    await bot.send_message(111, "e")
    assert server.texts(HOME) == ["b", "e"]


async def test_ids_begin_anew_in_each_chat(server: TelegramServer) -> None:
    """As in supergroups: a number alone says nothing."""
    assert server.say("a")["message_id"] == server.say("b", chat=GROUP)["message_id"] == 1
