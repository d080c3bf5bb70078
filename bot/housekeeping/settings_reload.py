"""Settings that change while heed runs: what is edited in heed.toml holds within seconds.

Owns which settings those are (`HOT`). Invariants: a file with anything wrong in it changes nothing, and the log says
what is wrong; the environment goes on winning over the file; parts keep the sections they were given, whose values
change in place, all within one turn of the event loop; what needs a restart is named in the log and stays as it is.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from bot import config
from bot.config import Settings
from bot.errors import SettingsError

logger = logging.getLogger(__name__)

HOT = (  # a section, or one setting
    "access.messages_per_hour",
    "access.mode",
    "access.updates_per_hour",
    "chat.history_turns",
    "chat.learn_timeout_s",
    "chat.max_tokens",
    "chat.retry_temperature",
    "chat.stream_timeout_s",
    "chat.temperature",
    "chat.text_limit_chars",
    "chat.top_p",
    "http.allowed_hosts",
    "http.max_streams",
    "http.max_streams_each",
    "http.max_waiting",
    "log_level",
    "sleep",
)
LOOK_EVERY_S = 2.0


class SettingsFile:
    """Looks whether the file in use has changed, and takes over what can change now."""

    def __init__(self, settings: Settings) -> None:
        """Block for a moment. `settings`, as the file is now, change in place: give a copy that no one
        shares.
        """
        self._settings = settings
        self._seen = _stamp()

    async def look(self) -> None:
        """Once."""
        stamp = await asyncio.to_thread(_stamp)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            wanted = await asyncio.to_thread(config.load)
        except SettingsError as error:
            logger.error("settings stay as they are: %s", error)  # noqa: TRY400  the sentence says it all
            return
        self._take(wanted)

    def _take(self, wanted: Settings) -> None:
        now = dict(_named(self._settings))
        for name, value in _named(wanted):
            if value == now[name]:
                continue
            if is_hot(name):
                _put(self._settings, name, value)
                logger.warning("%s is %r from now on", name, value)
            else:
                logger.warning("%s was changed: that holds when heed is restarted", name)


def is_hot(name: str) -> bool:
    """Return True if a setting, by its dotted name, changes while heed runs."""
    return name in HOT or name.partition(".")[0] in HOT


def _stamp() -> tuple[int, ...] | None:
    try:
        found = config.config_path().stat()
    except (OSError, SettingsError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _named(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Every setting by its dotted name."""
    for section, value in settings:
        if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
            yield from ((f"{section}.{name}", inner) for name, inner in vars(value).items())
        else:
            yield section, value


def _put(settings: Settings, name: str, value: Any) -> None:
    """In place, past the refusal to change that protects sections from everybody else."""
    section, _, key = name.rpartition(".")
    owner: Any = getattr(settings, section) if section else settings
    vars(owner)[key] = value
    if name == "log_level":
        logging.getLogger().setLevel(value.upper())
