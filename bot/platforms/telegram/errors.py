"""Telegram's refusals and silences as the errors of `bot.channel`.

Invariant: `is_ambiguous` is False only if the request certainly never reached the server.
"""

import datetime
import re

import httpx
from telegram import error as telegram_error

from bot.channel import ChannelError, Gone, NotOffered, Refused, SlowDown, Unreachable
from bot.monitoring.redaction import redact

MAX_DESCRIPTION = 200  # of what an error says: a proxy may answer with a page
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)
_GONE = (
    "chat not found",
    "message to edit not found",
    "message to reply not found",
    "message to be replied not found",
    "message thread not found",
    "message_id_invalid",
    "topic_closed",
    "topic_deleted",
    "user is deactivated",
    "chat_write_forbidden",
    "not enough rights",
    "have no rights to send",
    "group chat was deactivated",
    "peer_id_invalid",
)
_UNPARSED = ("can't parse entities", "message text is empty", "text must be non-empty", "entity_")
_LATE = ("query is too old", "query_id_invalid", "query id is invalid")
_RETRY_AFTER = re.compile(r"retry after (\d+)", re.IGNORECASE)


def translate(error: telegram_error.TelegramError) -> ChannelError:
    """Return the error of `bot.channel` for one of the library."""
    text = describe(error)
    if isinstance(error, telegram_error.RetryAfter):
        return SlowDown(text, seconds(error))
    if isinstance(error, telegram_error.ChatMigrated | telegram_error.Forbidden):
        return Gone(text)
    if isinstance(error, telegram_error.BadRequest):
        return Gone(text) if says(error, *_GONE) else Refused(text)
    if isinstance(error, telegram_error.InvalidToken | telegram_error.EndPointNotFound):
        return NotOffered(text) if says(error, "not found") else Refused(text)
    if says(error, "too many requests"):
        wait = _RETRY_AFTER.search(text)
        return SlowDown(text, float(wait[1]) if wait else 1.0)
    if isinstance(error.__cause__, UnicodeError):
        return Refused(text)
    return Unreachable(text, is_ambiguous=not is_unsent(error))


def is_unsent(error: telegram_error.TelegramError) -> bool:
    """Return True if the request certainly never reached the server; a RuntimeError is a client that was closed."""
    return isinstance(error.__cause__, (*NEVER_SENT, RuntimeError))


def is_unparsed(error: telegram_error.TelegramError) -> bool:
    """Return True if Telegram could not read the HTML of a text (or nothing was left of it)."""
    return isinstance(error, telegram_error.BadRequest) and says(error, *_UNPARSED)


def is_unchanged(error: telegram_error.TelegramError) -> bool:
    """Return True if a message already looked like its edit."""
    return isinstance(error, telegram_error.BadRequest) and says(error, "message is not modified")


def is_late(error: telegram_error.TelegramError) -> bool:
    """Return True if a press was answered too late, or twice."""
    return isinstance(error, telegram_error.BadRequest) and says(error, *_LATE)


def is_revoked(error: telegram_error.TelegramError) -> bool:
    """Return True if the token is not valid (any more)."""
    return says(error.__cause__ if isinstance(error.__cause__, telegram_error.TelegramError) else error, "unauthorized")


def says(error: BaseException, *words: str) -> bool:
    """Return True if an error's text has one of the words."""
    text = str(error).lower()
    return any(word in text for word in words)


def seconds(error: telegram_error.RetryAfter) -> float:
    """How long Telegram asks to wait."""
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, datetime.timedelta) else float(wait)


def describe(error: BaseException) -> str:
    """Return an error in a few words, without secrets."""
    return redact(f"Telegram: {error}")[:MAX_DESCRIPTION]
