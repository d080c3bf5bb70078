"""The library's bot as heed uses it: without its Updater, with raw updates and timeouts of its own.

`TelegramClient` carries out one request of the Bot API at a time and raises what `bot.channel` knows; `PollClient` has
one connection of its own for getUpdates, so that it can be thrown away and made anew without touching the rest.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from telegram import Bot, Message
from telegram.constants import ParseMode
from telegram.error import ChatMigrated, TelegramError

from bot.channel import Gone
from bot.config import TelegramSettings
from bot.platforms.telegram.errors import is_unparsed, translate
from bot.platforms.telegram.markup import as_html, plain
from bot.platforms.telegram.request import Request

POLL_TIMEOUT_S = 30  # how long Telegram holds a poll that finds nothing
CONNECTIONS = 64
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 30.0  # longer than Telegram ever takes: giving up early would make a send ambiguous
UPLOAD_TIMEOUT_S = 120.0

T = TypeVar("T")


class PollClient:
    """A connection that asks for updates."""

    def __init__(self, settings: TelegramSettings, timeout_s: int = POLL_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._request = Request(connection_pool_size=2, read_timeout=ANSWER_TIMEOUT_S, pool_timeout=CONNECT_TIMEOUT_S)
        self._bot = _RawBot(
            _token(settings), base_url(settings), request=self._request, get_updates_request=self._request
        )

    async def updates(self, offset: int | None, allowed: tuple[str, ...]) -> list[Any]:
        """Return the updates that wait, as JSON; an offset confirms all before it. Raises TelegramError."""
        return await self._bot.raw_updates(offset, allowed, self._timeout_s)

    async def close(self) -> None:
        """Close the connection."""
        await self._request.shutdown()


class TelegramClient:
    """Everything but getUpdates. A group that became a supergroup is followed to its new id."""

    def __init__(self, settings: TelegramSettings) -> None:
        self.bot = Bot(
            _token(settings),
            base_url(settings),
            request=Request(
                connection_pool_size=CONNECTIONS,
                connect_timeout=CONNECT_TIMEOUT_S,
                pool_timeout=CONNECT_TIMEOUT_S,
                read_timeout=ANSWER_TIMEOUT_S,
                write_timeout=ANSWER_TIMEOUT_S,
                media_write_timeout=UPLOAD_TIMEOUT_S,
            ),
        )
        self._moved: dict[int, int] = {}

    async def send(self, chat_id: int, reply_to: int | None, send: Callable[[int, int | None], Awaitable[T]]) -> T:
        """Send something to a chat, wherever it is now. Raises ChannelError."""
        try:
            if chat_id not in self._moved:
                return await send(chat_id, reply_to)
        except ChatMigrated as error:
            self._moved[chat_id] = error.new_chat_id
        except TelegramError as error:
            raise translate(error) from error
        try:
            return await send(self._moved[chat_id], None)  # ids of messages begin anew there
        except TelegramError as error:
            raise translate(error) from error

    async def change(self, chat_id: int, change: Callable[[], Awaitable[T]]) -> T:
        """Edit a message. Raises ChannelError: Gone if its group became a supergroup."""
        if chat_id in self._moved:
            raise Gone("Telegram: the group became a supergroup, and its messages stayed behind")
        try:
            return await change()
        except ChatMigrated as error:
            self._moved[chat_id] = error.new_chat_id
            raise translate(error) from error

    async def close(self) -> None:
        """Close every connection."""
        await self.bot.request.shutdown()


async def formatted(text: str, show: Callable[[str, str | None], Awaitable[T]]) -> T:
    """Show a text as HTML, and as it was written if Telegram cannot read that. Raises TelegramError."""
    try:
        return await show(as_html(text), ParseMode.HTML)
    except TelegramError as error:
        if not is_unparsed(error):
            raise
    return await show(plain(text), None)


def message_id(message: Message) -> str:
    """Return a message's id as the core keeps it."""
    return str(message.message_id)


class _RawBot(Bot):
    """`get_updates` parses a whole batch at once: one malformed update would hold up all others for ever."""

    __slots__ = ()

    async def raw_updates(self, offset: int | None, allowed: tuple[str, ...], timeout_s: int) -> list[Any]:
        data = {"offset": offset, "timeout": timeout_s, "allowed_updates": allowed}
        found = await self._post("getUpdates", data, read_timeout=timeout_s + ANSWER_TIMEOUT_S)
        return found if isinstance(found, list) else []


def _token(settings: TelegramSettings) -> str:
    assert settings.token is not None  # a channel is made where there is one
    return settings.token.get_secret_value()


def base_url(settings: TelegramSettings) -> str:
    """Return what the library puts before a token."""
    return f"{settings.api_base}/bot"
