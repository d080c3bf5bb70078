"""What every HTTP handler finds in its application, by key."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from bot.core.core import Core


@dataclass(frozen=True)
class Platforms:
    """What the HTTP side knows of the chat platforms: their health, and the routes they bring (webhooks)."""

    health: Callable[[], dict[str, str]] = dict
    routes: tuple[web.RouteDef, ...] = ()


CORE = web.AppKey("core", Core)
PLATFORMS = web.AppKey("platforms", Platforms)
