"""heed's log on standard error: a line for each record, for people or, as JSON, for programs.

Owns the form. A record that is made for a call over HTTP carries that call's id, also where a task makes it that goes
on after the call. What people write and what they are answered is in no record: no one logs it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from pythonjsonlogger.json import JsonFormatter

Form = Literal["text", "json"]

QUIET_S = 60.0  # between two warnings of one kind that strangers can cause

_call_id: ContextVar[str] = ContextVar("call_id", default="")


def begin(level: str, form: Form) -> None:
    """Write records of this level and above to standard error from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[form]())
    handler.addFilter(_name_call)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(level.upper())


@contextmanager
def call(call_id: str) -> Iterator[None]:
    """For the duration of the block, records are about this call."""
    token = _call_id.set(call_id)
    try:
        yield
    finally:
        _call_id.reset(token)


class Sparing:
    """Warnings of one kind, at most one a minute: the next says how many were left out."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._next_at_s = 0.0
        self._num_left_out = 0

    def warning(self, message: str, *args: Any) -> None:
        """Log a warning, or count it."""
        now_s = self._clock()
        if now_s < self._next_at_s:
            self._num_left_out += 1
            return
        more = f" (and {self._num_left_out} more like it)" if self._num_left_out else ""
        self._logger.warning(f"{message}%s", *args, more)  # noqa: G004  the message is a constant
        self._next_at_s, self._num_left_out = now_s + QUIET_S, 0


def _name_call(record: logging.LogRecord) -> bool:
    if call_id := _call_id.get():
        record.request_id = call_id
    return True


def _text() -> logging.Formatter:
    return logging.Formatter("%(levelname)s %(name)s: %(message)s")


def _json() -> logging.Formatter:
    """One object a line: timestamp (UTC, ISO 8601), level, logger, message, request_id and exc_info where there are."""
    names = {"levelname": "level", "name": "logger"}
    return JsonFormatter("{levelname}{name}{message}", style="{", rename_fields=names, timestamp=True)


_FORMATTERS: dict[Form, Callable[[], logging.Formatter]] = {"text": _text, "json": _json}
