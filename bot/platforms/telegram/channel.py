"""Telegram: one bot, on the real python-telegram-bot, as a `bot.channel.Channel`.

Shows what it is told to show and says what arrives; decides nothing. Takes updates by its own poll loop, or by its
webhook where one is set, and confirms none that is not committed. Where Telegram cannot be reached at the start, or
goes away later, this channel waits and tries again, and nothing else of heed does.
"""

import asyncio
import html
import logging
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from telegram import (
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReplyParameters,
)
from telegram.constants import ChatAction, FileSizeLimit, InlineKeyboardButtonLimit
from telegram.error import TelegramError

from bot.backoff import backoff_s
from bot.channel import ChannelError, CommandMenu, File, Gone, Limits, NotOffered, Post, Refused, Rows, Take
from bot.config import TelegramSettings
from bot.errors import StartError
from bot.events import Author, Inbound, Place
from bot.monitoring.redaction import hide, redact
from bot.platforms.telegram.arrivals import Arrivals
from bot.platforms.telegram.client import PollClient, TelegramClient, formatted, message_id
from bot.platforms.telegram.errors import describe, is_late, is_unchanged, translate
from bot.platforms.telegram.markup import CAPTION_UNITS, TEXT_UNITS, cut, measure, plain
from bot.platforms.telegram.menu import sync
from bot.platforms.telegram.poller import WATCHDOG_S, Poller
from bot.platforms.telegram.preflight import check_webhook, identify, notices
from bot.platforms.telegram.reader import ALLOWED_UPDATES, GENERAL_TOPIC, PLATFORM, Reader
from bot.platforms.telegram.webhook import Webhook
from storage.conversations.inbox import Kept

LIMITS = Limits(
    TEXT_UNITS,
    measure,
    edit_interval_s=1.0,
    post_interval_s=1.0,
    burst=3,
    group_interval_s=3.0,  # 20 a minute in a group, edits too
    calls_per_s=30.0,
)
NOTICE_CHARS = 200  # of the answer to a press
PLACEHOLDER_CHARS = 64  # in the field where a forced reply is written
PICTURES = (".png", ".jpg", ".jpeg")
ANSWER_BY_REPLY = "(Answer by replying to this message.)"  # in a group no one's input field can be opened for certain
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

logger = logging.getLogger(__name__)


class TelegramChannel:
    """One Telegram bot. `admins` are account numbers; they get the admins' menu."""

    platform = name = PLATFORM
    limits = LIMITS
    kept_keys = Kept()  # an update's number says nothing later

    def __init__(
        self,
        settings: TelegramSettings,
        commands: Sequence[CommandMenu],
        *,
        admins: Sequence[str] = (),
        connect: Callable[[], PollClient] | None = None,
        watchdog_s: float = WATCHDOG_S,
    ) -> None:
        assert settings.token is not None  # heed makes no channel without one
        token = settings.token.get_secret_value()
        secret = settings.webhook_secret.get_secret_value() if settings.webhook_secret else ""
        hide(token, token.partition(":")[2], secret)
        self.bot_id = bot_id(token)
        self.username = ""
        self.notices: list[str] = []
        self._settings = settings
        self._commands = commands
        self._admins = admins
        self._client = TelegramClient(settings)
        self._connect = connect or (lambda: PollClient(settings))
        self._watchdog_s = watchdog_s
        self._reader = Reader(self.bot_id, [command.name for command in commands])
        self._webhook = Webhook(settings.webhook_url, secret, self._arrived) if settings.webhook_url else None
        self._arrivals: Arrivals | None = None
        self._poller: Poller | None = None
        self._problem = "not started"
        self._has_drafts = True
        self._task: asyncio.Task[None] | None = None
        self._menu: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------------------------------------- life

    async def start(self, take: Take) -> None:
        """Check the token and the webhook, set the menu, and take updates; in the background where no one
        answers.
        """
        try:
            await self._begin(take)
        except StartError:
            await self.close()
            raise
        except ChannelError as error:
            self._not_reached(error)
        self._task = asyncio.create_task(self._run(take), name="telegram")

    async def stop(self) -> None:
        """Take nothing new."""
        tasks = [task for task in (self._task, self._menu) if task is not None]
        self._task = self._menu = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._arrivals = None
        self._problem = "stopped"

    async def close(self) -> None:
        """Close what posting needs."""
        await self._client.close()

    def hears(self, server: str) -> bool:
        """Everything comes here: Telegram has no servers, and one connection."""
        return True

    def routes(self) -> list[web.RouteDef]:
        """Return what heed's HTTP server has to serve for this channel: the webhook, if one is set."""
        return self._webhook.routes() if self._webhook else []

    def health(self) -> str:
        """ "ok", or what is wrong in a few words."""
        if self._problem or self._poller is None:
            return self._problem or "ok"
        if self._poller.problem:
            return self._poller.problem
        age_s = self._poller.age_s
        return "ok" if age_s < self._watchdog_s else f"Telegram has not answered for {age_s:.0f} s"

    async def _run(self, take: Take) -> None:
        failures = 0
        while self._arrivals is None:
            failures += 1
            await asyncio.sleep(backoff_s(failures))
            try:
                await self._begin(take)
            except StartError as error:
                self._problem = str(error)
                logger.critical("telegram: %s", error)
                return
            except Exception as error:  # noqa: BLE001  the task's edge: whatever it is, it is tried again
                self._not_reached(error)
        if self._poller is not None:
            await self._poller.run()

    def _not_reached(self, error: Exception) -> None:
        self._problem = f"Telegram cannot be reached: {redact(str(error)) or type(error).__name__}"
        logger.warning("telegram: not reached, trying again: %s: %s", type(error).__name__, error)

    async def _begin(self, take: Take) -> None:
        me = await identify(self._client.bot)
        await check_webhook(self._client.bot, self._settings)
        self.username, self.notices = me.username or "", notices(me)
        for notice in self.notices:
            logger.warning("%s", notice)
        arrivals = Arrivals(self.bot_id, self.username, take)
        if self._webhook is None:
            self._poller = Poller(self._connect, arrivals.take_all, watchdog_s=self._watchdog_s)
        else:
            await self._set_webhook()
        self._arrivals = arrivals
        self._problem = ""
        self._menu = asyncio.create_task(self._set_menu(), name="telegram menu")  # no update waits for it

    async def _set_menu(self) -> None:
        try:
            await sync(self._client.bot, self._commands, self._admins)
        except TelegramError as error:  # a menu is a convenience: every command works without it
            logger.warning("telegram: the menu of commands was not set: %s", describe(error))

    async def _set_webhook(self) -> None:
        assert self._settings.webhook_secret is not None  # the settings ask for it
        secret = self._settings.webhook_secret.get_secret_value()
        try:
            await self._client.bot.set_webhook(
                self._settings.webhook_url, allowed_updates=ALLOWED_UPDATES, secret_token=secret
            )
        except TelegramError as error:
            raise translate(error) from error

    async def _arrived(self, updates: list[Any]) -> None:
        if self._arrivals is None:
            raise NotOffered("Telegram: not taking updates now")
        await self._arrivals.take_all(updates)

    # ------------------------------------------------------------------------------------------------- reading

    def read(self, payload: dict[str, Any]) -> list[Inbound]:
        """Return what a raw update says."""
        return self._reader.read(payload)

    # ------------------------------------------------------------------------------------------------- showing

    async def post(self, post: Post) -> str:
        """Show a message with its files; the id of the message that carries the buttons."""
        if not post.files:
            return await self._post_text(post)
        caption = post.text if measure(post.text) <= CAPTION_UNITS else ""
        *others, last = post.files
        for file in others:
            await self._post_file(post, file, "", ())
        if caption or not post.text:
            return await self._post_file(post, last, caption, post.rows)
        await self._post_file(post, last, "", ())
        return await self._post_text(post)

    async def _post_text(self, post: Post) -> str:
        chat_id, thread_id = address(post.place)
        markup = open_field(post) if post.wants_reply else keyboard(post.rows)
        is_for_one = post.wants_reply and not post.place.is_private
        in_words = f"{post.text}\n{ANSWER_BY_REPLY}" if is_for_one else post.text
        asked = post.asked if is_for_one else None

        async def send(chat_id: int, reply_to: int | None) -> str:
            async def show(text: str, mode: str | None) -> str:
                message = await self._client.bot.send_message(
                    chat_id,
                    f"{named(asked, mode)}{text}",
                    mode,
                    message_thread_id=sendable(thread_id),
                    reply_markup=markup,
                    reply_parameters=reply(reply_to),
                    link_preview_options=NO_PREVIEW,
                )
                return message_id(message)

            return await formatted(in_words, show)

        return await self._client.send(chat_id, number(post.reply_to), send)

    async def _post_file(self, post: Post, file: File, caption: str, rows: Rows) -> str:
        chat_id, thread_id = address(post.place)
        markup = keyboard(rows)

        async def send(chat_id: int, reply_to: int | None) -> str:
            async def show(text: str, mode: str | None) -> str:
                options: dict[str, Any] = {
                    "caption": text or None,
                    "parse_mode": mode,
                    "message_thread_id": sendable(thread_id),
                    "reply_markup": markup,
                    "reply_parameters": reply(reply_to),
                    "filename": file.name,
                }
                if is_picture(file):
                    return message_id(await self._client.bot.send_photo(chat_id, file.content, **options))
                return message_id(await self._client.bot.send_document(chat_id, file.content, **options))

            return await formatted(caption, show)

        return await self._client.send(chat_id, number(post.reply_to), send)

    async def edit(self, place: Place, message_id: str, text: str, rows: Rows = ()) -> None:
        """Change a message; that it already looks like this is success."""
        chat_id, _ = address(place)
        edited, markup = number(message_id), keyboard(rows)

        async def show(text: str, mode: str | None) -> None:
            await self._client.bot.edit_message_text(
                text, chat_id, edited, parse_mode=mode, reply_markup=markup, link_preview_options=NO_PREVIEW
            )

        try:
            await self._client.change(chat_id, lambda: formatted(text, show))
        except TelegramError as error:
            if not is_unchanged(error):
                raise translate(error) from error

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Take the buttons off a message; that there are none is success."""
        chat_id, _ = address(place)
        edited = number(message_id)
        try:
            await self._client.change(chat_id, lambda: self._client.bot.edit_message_reply_markup(chat_id, edited))
        except TelegramError as error:
            if not is_unchanged(error):
                raise translate(error) from error

    async def draft(self, place: Place, draft_id: int, text: str) -> None:
        """Show a text that is still being written; private chats only. Raises NotOffered elsewhere."""
        chat_id, thread_id = address(place)
        if chat_id < 0 or not self._has_drafts:
            raise NotOffered("Telegram: drafts are shown in private chats only")
        shown = cut(plain(text), TEXT_UNITS)
        try:
            await self._client.bot.send_message_draft(
                chat_id, draft_id, shown, message_thread_id=sendable(thread_id), parse_mode=None
            )
        except TelegramError as error:
            meant = translate(error)
            if isinstance(meant, NotOffered):
                self._has_drafts = False  # a Bot API server that is older than drafts
            if isinstance(meant, Refused):
                meant = NotOffered(str(meant))
            raise meant from error

    async def typing(self, place: Place) -> None:
        """Show "typing" for about five seconds."""
        chat_id, thread_id = address(place)
        await self._client.send(
            chat_id,
            None,
            lambda chat_id, _: self._client.bot.send_chat_action(chat_id, ChatAction.TYPING, thread_id),
        )

    async def acknowledge(self, token: str, text: str = "") -> None:
        """Answer a press; too late is success."""
        if not token:
            return
        try:
            await self._client.bot.answer_callback_query(token, plain(text)[:NOTICE_CHARS] or None)
        except TelegramError as error:
            if not is_late(error):
                raise translate(error) from error


def bot_id(token: str) -> str:
    """Return the bot's account number, the first half of its token. Raises StartError if a token has none."""
    first = token.partition(":")[0]
    if not first.isascii() or not first.isdigit():
        raise StartError("TELEGRAM_BOT_TOKEN: This is no token. @BotFather gives one such as 123456:ABC-DEF...")
    return first


def address(place: Place) -> tuple[int, int | None]:
    """Return the chat and the topic of a place. Raises Gone if it is no place of Telegram."""
    chat_id, _, thread_id = place.external_id.partition("/")
    try:
        return int(chat_id), int(thread_id) if thread_id else None
    except ValueError:
        raise Gone(f"Telegram: there is no chat {place.external_id[:64]!r}") from None


def sendable(thread_id: int | None) -> int | None:
    """Return the topic as sending wants it: the general one is not named."""
    return None if thread_id == GENERAL_TOPIC else thread_id


def number(message_id: str | None) -> int | None:
    """Return a message's id as Telegram has it. Raises Gone if it is none."""
    try:
        return None if message_id is None else int(message_id)
    except ValueError:
        raise Gone("Telegram: there is no such message") from None


def reply(message_id: int | None) -> ReplyParameters | None:
    """Return what makes a message an answer to another, if that one is still there."""
    return None if message_id is None else ReplyParameters(message_id, allow_sending_without_reply=True)


def keyboard(rows: Rows) -> InlineKeyboardMarkup | None:
    """Return the buttons under a message. Raises Refused if an action does not fit into 64 bytes."""
    for button in (button for row in rows for button in row):
        if not 1 <= len(button.action.encode()) <= InlineKeyboardButtonLimit.MAX_CALLBACK_DATA:
            raise Refused(f"Telegram: the action of the button {button.label!r} has to be 1 to 64 bytes")
    shown = [[InlineKeyboardButton(plain(button.label), callback_data=button.action) for button in row] for row in rows]
    return InlineKeyboardMarkup(shown) if shown else None


def open_field(post: Post) -> ForceReply:
    """Return what opens the field for a reply; in a group only that of the person whom the text names."""
    question = plain(post.text).partition("?")[0] + "?"
    fits = "\n" not in question and len(question) <= PLACEHOLDER_CHARS
    is_selective = not post.place.is_private
    return ForceReply(selective=is_selective, input_field_placeholder=question if fits else None)


def named(asked: Author | None, mode: str | None) -> str:
    """Return what names a person at the beginning of a text, so that Telegram tells them; empty for no one."""
    if asked is None or not asked.account.isdecimal():
        return ""
    name = asked.display_name or "You"
    return f'<a href="tg://user?id={asked.account}">{html.escape(name)}</a>: ' if mode else f"{name}: "


def is_picture(file: File) -> bool:
    """Return True if a file is shown as a picture."""
    return file.name.lower().endswith(PICTURES) and len(file.content) <= FileSizeLimit.PHOTOSIZE_UPLOAD
