"""bot.platforms.telegram.errors: what refusals and silences mean."""

import httpx
import pytest
from telegram import error as telegram_error

from bot.channel import ChannelError, Gone, NotOffered, Refused, SlowDown, Unreachable
from bot.platforms.telegram.errors import is_late, is_revoked, is_unchanged, is_unparsed, translate

pytestmark = pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")  # PTB's own use of retry_after


def caused(cause: Exception, error: telegram_error.TelegramError | None = None) -> telegram_error.TelegramError:
    """A library error as PTB raises it over another."""
    found = error or telegram_error.NetworkError(f"httpx.{type(cause).__name__}: {cause}")
    found.__cause__ = cause
    return found


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (telegram_error.Forbidden("Forbidden: bot was blocked by the user"), Gone),
        (telegram_error.Forbidden("Forbidden: bot was kicked from the supergroup chat"), Gone),
        (telegram_error.BadRequest("Bad Request: chat not found"), Gone),
        (telegram_error.BadRequest("Bad Request: message to edit not found"), Gone),
        (telegram_error.BadRequest("Bad Request: message thread not found"), Gone),
        (telegram_error.BadRequest("Bad Request: TOPIC_CLOSED"), Gone),
        (telegram_error.BadRequest("Bad Request: not enough rights to send text messages to the chat"), Gone),
        (telegram_error.ChatMigrated(-1001), Gone),
        (telegram_error.BadRequest("Bad Request: message is too long"), Refused),
        (telegram_error.BadRequest("Bad Request: message can't be edited"), Refused),
        (telegram_error.InvalidToken("Unauthorized"), Refused),
        (telegram_error.InvalidToken("Not Found"), NotOffered),
        (caused(UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates")), Refused),
    ],
)
def test_refusals(error: telegram_error.TelegramError, meant: type[ChannelError]) -> None:
    """Which of them are about somebody who is gone, and which about what was sent."""
    assert type(translate(error)) is meant


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (telegram_error.NetworkError("Too Many Requests: retry after 12"), 12.0),
        (telegram_error.NetworkError("Too Many Requests (429)"), 1.0),
    ],
)
def test_too_many_requests(error: telegram_error.TelegramError, seconds: float) -> None:
    """As long as Telegram says, also where it does not say it in a field."""
    meant = translate(error)
    assert isinstance(meant, SlowDown)
    assert meant.retry_after_s == seconds


def test_a_wait_in_a_field() -> None:
    """Where Telegram puts it."""
    meant = translate(telegram_error.RetryAfter(7))
    assert isinstance(meant, SlowDown)
    assert meant.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("error", "is_ambiguous"),
    [
        (caused(httpx.ConnectError("refused")), False),
        (caused(httpx.ConnectTimeout("slow"), telegram_error.TimedOut()), False),
        (caused(httpx.PoolTimeout("full"), telegram_error.TimedOut()), False),
        (caused(RuntimeError("This HTTPXRequest is not initialized!")), False),
        (caused(httpx.ReadTimeout("slow"), telegram_error.TimedOut()), True),
        (caused(httpx.WriteTimeout("slow"), telegram_error.TimedOut()), True),
        (caused(httpx.ReadError("reset")), True),
        (caused(httpx.RemoteProtocolError("cut")), True),
        (telegram_error.NetworkError("Bad Gateway (502)"), True),
        (telegram_error.NetworkError("Internal Server Error"), True),
        (telegram_error.TelegramError("the answer is not JSON"), True),
    ],
)
def test_silence(error: telegram_error.TelegramError, is_ambiguous: bool) -> None:
    """Once a request is on its way, Telegram may have done it."""
    meant = translate(error)
    assert isinstance(meant, Unreachable)
    assert meant.is_ambiguous is is_ambiguous


def test_what_is_no_failure() -> None:
    """Unchanged messages, late presses, unreadable HTML: each has its own way on."""
    unchanged = telegram_error.BadRequest("Bad Request: message is not modified: specified new message content and ...")
    late = telegram_error.BadRequest(
        "Bad Request: query is too old and response timeout expired or query ID is invalid"
    )
    unparsed = telegram_error.BadRequest(
        'Bad Request: can\'t parse entities: unsupported start tag "p" at byte offset 2'
    )
    assert is_unchanged(unchanged)
    assert is_late(late)
    assert is_unparsed(unparsed)
    assert not any(check(unchanged) for check in (is_late, is_unparsed))


def test_a_revoked_token() -> None:
    """Telegram says "Unauthorized"; a server that lost its way says "Not Found"."""
    assert is_revoked(telegram_error.InvalidToken("Unauthorized"))
    assert is_revoked(
        caused(telegram_error.InvalidToken("Unauthorized"), telegram_error.EndPointNotFound("getUpdates"))
    )
    assert not is_revoked(telegram_error.InvalidToken("Not Found"))
