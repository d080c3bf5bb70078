"""Slash commands on Discord: their registration, a check if it changed, and completions of their arguments.

Discord limits how often commands may be set, so they are compared first and set only if they differ.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from bot.channel import ChannelError, CommandMenu
from bot.platforms.discord.events import Json
from bot.platforms.discord.rest import DiscordRest

CHAT_INPUT, STRING = 1, 3
MAX_DESCRIPTION, MAX_CHOICES, MAX_CHOICE = 100, 25, 100
ADMINS_ONLY = "0"  # only a server's admins see it, until they allow others

logger = logging.getLogger(__name__)


def definition(menu: CommandMenu) -> Json:
    """Return a command as Discord's API takes it."""
    option = {
        "type": STRING,
        "name": "text",
        "description": (menu.argument_hint or "text")[:MAX_DESCRIPTION],
        "required": False,
        "autocomplete": bool(menu.choices),
    }
    return {
        "type": CHAT_INPUT,
        "name": menu.name,
        "description": (menu.summary or menu.name)[:MAX_DESCRIPTION],
        "default_member_permissions": ADMINS_ONLY if menu.is_admin else None,
        "options": [option] if menu.argument_hint or menu.choices else [],
    }


def is_same(wanted: Iterable[Json], known: Iterable[Json]) -> bool:
    """Return True if Discord knows exactly these commands; what it adds of its own does not count."""
    return _by_name(wanted) == _by_name(known)


def completions(menus: Sequence[CommandMenu], said: Json) -> list[Json]:
    """Return what to propose while a command's argument is typed: those that begin so first, then those that contain
    it.
    """
    menu = next((menu for menu in menus if menu.name == said.get("name")), None)
    if menu is None:
        return []
    typed = " ".join(str(option.get("value", "")) for option in said.get("options") or ()).strip().lower()
    fitting = [choice for choice in menu.choices if typed in choice.lower()]
    fitting.sort(key=lambda choice: not choice.lower().startswith(typed))
    return [{"name": choice[:MAX_CHOICE], "value": choice[:MAX_CHOICE]} for choice in fitting[:MAX_CHOICES]]


def _by_name(commands: Iterable[Json]) -> list[tuple[Any, ...]]:
    return sorted(_facts(command) for command in commands)


def _facts(command: Json) -> tuple[Any, ...]:
    options = tuple(
        (o["type"], o["name"], o["description"], bool(o.get("required")), bool(o.get("autocomplete")))
        for o in command.get("options") or ()
    )
    permissions = command.get("default_member_permissions")
    kind = command.get("type", CHAT_INPUT)
    return command["name"], kind, command.get("description", ""), str(permissions), options


class CommandSync:
    """Tells Discord the commands of one bot, once per run and only if they changed."""

    def __init__(self, rest: DiscordRest, menus: Sequence[CommandMenu]) -> None:
        self._rest = rest
        self._wanted = [definition(menu) for menu in menus]
        self._is_done = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, application_id: str) -> None:
        """Compare and set in the background; return at once if this run did it before."""
        if not self._is_done and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(application_id), name="discord commands")

    async def stop(self) -> None:
        """End it if it still runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, application_id: str) -> None:
        path, keys = "/applications/{application_id}/commands", {"application_id": application_id}
        try:
            known = await self._rest.call("GET", path, keys)
            if not is_same(self._wanted, known):
                await self._rest.call("PUT", path, keys, body=self._wanted)
            self._is_done = True
        except ChannelError as error:
            logger.warning("the commands could not be set on Discord: %s", error)
