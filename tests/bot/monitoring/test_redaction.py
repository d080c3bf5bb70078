"""bot.monitoring.redaction: what was hidden is in no log record."""

import io
import logging
from collections.abc import Iterator

import pytest

from bot.monitoring import redaction
from bot.monitoring.redaction import hide, redact

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger at DEBUG, and what it wrote."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    logger = logging.getLogger("redaction.test")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield logger, written
    logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is hidden during each test, and other tests' secrets stay theirs."""
    monkeypatch.setattr(redaction, "_secrets", set())
    hide(TOKEN)


def test_a_message_is_clean(log: tuple[logging.Logger, io.StringIO]) -> None:
    """Whether the secret is in the words or in an argument."""
    logger, written = log
    logger.info(f"the token is {TOKEN}")  # noqa: G004  the words themselves carry it
    logger.debug("POST https://api.telegram.org/bot%s/%s", TOKEN, "getMe")
    logger.warning("parameters %r", {"token": TOKEN})
    assert written.getvalue() == (
        "redaction.test the token is [hidden]\n"
        "redaction.test POST https://api.telegram.org/bot[hidden]/getMe\n"
        "redaction.test parameters {'token': '[hidden]'}\n"
    )


def test_a_traceback_is_clean(log: tuple[logging.Logger, io.StringIO]) -> None:
    """Also the causes of an error, and it stays a traceback."""
    logger, written = log
    try:
        try:
            int(f"the token `{TOKEN}` was rejected")
        except ValueError as error:
            raise RuntimeError("no start") from error
    except RuntimeError:
        logger.exception("failed", stack_info=True)
    assert TOKEN not in written.getvalue()
    assert (
        "ValueError: invalid literal for int() with base 10: 'the token `[hidden]` was rejected'" in written.getvalue()
    )
    assert "RuntimeError: no start" in written.getvalue()


def test_arguments_that_do_not_fit_are_clean(log: tuple[logging.Logger, io.StringIO]) -> None:
    """logging would print them as they are."""
    logger, written = log
    logger.info("only %d", TOKEN)
    assert "only %d" in written.getvalue()
    assert TOKEN not in written.getvalue()


def test_everything_else_is_left_alone(log: tuple[logging.Logger, io.StringIO]) -> None:
    """A record without a secret keeps its arguments and its error."""
    logger, _ = log
    record = logger.makeRecord("a", logging.INFO, "f", 1, "bees %s", ("ants",), (ValueError, ValueError("b"), None))
    assert record.args == ("ants",)
    assert record.exc_info is not None


def test_it_holds_for_a_text() -> None:
    """What is shown elsewhere; the longest of two secrets goes first."""
    hide("123456789:", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw")
    assert redact(f"bot{TOKEN}/getMe") == "bot[hidden]/getMe"


def test_short_words_are_no_secrets() -> None:
    """Hiding "a" would leave nothing to read."""
    hide("", "a", "bot")
    assert redact("a bot") == "a bot"


def test_libraries_that_log_addresses_are_mute(caplog: pytest.LogCaptureFixture) -> None:
    """Telegram's token is part of every address; also where everything else is logged."""
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore"):
        assert not logging.getLogger(name).isEnabledFor(logging.INFO)


def test_libraries_that_log_messages_are_mute(caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG they log every call with its text, and a pairing code is part of one."""
    caplog.set_level(logging.DEBUG)
    for name in ("telegram.Bot", "telegram.ext", "discord.gateway", "discord.http"):
        assert not logging.getLogger(name).isEnabledFor(logging.DEBUG)


def test_hiding_more_makes_no_second_factory() -> None:
    """Each record is looked at once, however many secrets there are."""
    factory = logging.getLogRecordFactory()
    hide("another secret")
    assert logging.getLogRecordFactory() is factory
