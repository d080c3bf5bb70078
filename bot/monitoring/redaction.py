"""Keeps secrets out of the log: a text given to `hide` is never part of a record, in any module that logs.

Works where records are made, so that it holds for every logger and handler, also those made later. A message, its
arguments, a traceback and a stack are all covered. `redact` does the same for a text that is shown elsewhere.
"""

import logging
import re
import traceback
from typing import Any

HIDDEN = "[hidden]"
FLOORS = {  # the least level of a library's records
    "httpx": logging.WARNING,  # they log every address, and a Telegram token is part of one
    "httpcore": logging.WARNING,
    "telegram": logging.INFO,  # below that they log every message, with what people write and their pairing codes
    "discord": logging.INFO,
}
MIN_LENGTH = 6  # shorter ones would hide ordinary words

_secrets: set[str] = set()
_pattern: re.Pattern[str] | None = None


def hide(*secrets: str) -> None:
    """Never log these from now on, and mute the libraries that log addresses and messages."""
    global _pattern
    _secrets.update(secret for secret in secrets if len(secret) >= MIN_LENGTH)
    longest_first = sorted(_secrets, key=len, reverse=True)
    _pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
    for name, level in FLOORS.items():
        logging.getLogger(name).setLevel(level)
    previous = logging.getLogRecordFactory()
    if not isinstance(previous, _Factory):
        logging.setLogRecordFactory(_Factory(previous))


def redact(text: str) -> str:
    """Return a text without what is hidden."""
    return _pattern.sub(HIDDEN, text) if _pattern else text


class _Factory:
    """Makes log records without secrets, on top of anything that made them before."""

    def __init__(self, previous: Any) -> None:
        self._previous = previous

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._previous(*args, **kwargs)
        message = _message(record)
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[0] is not None:
            text = "".join(traceback.format_exception(*record.exc_info))
            if redact(text) != text:  # a formatter takes exc_text where there is one
                record.exc_text, record.exc_info = redact(text).rstrip("\n"), None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return record


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # arguments that do not fit the format: logging reports it with both
        return f"{record.msg} {record.args}"
