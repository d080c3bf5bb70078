"""The keys under which every HTTP handler finds the core and the platforms in its application."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from bot.core.core import Core


@dataclass(frozen=True)
class Platforms:
    """The chat platforms as the HTTP side sees them: their health, and the routes they bring (webhooks)."""

    health: Callable[[], dict[str, str]] = dict
    routes: tuple[web.RouteDef, ...] = ()


CORE = web.AppKey("core", Core)
PLATFORMS = web.AppKey("platforms", Platforms)
