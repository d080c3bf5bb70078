"""What every HTTP handler works with, under one application key."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from aiohttp import web

from bot.access.accounts import AccessPolicy
from bot.access.api_keys import Keys
from bot.access.consent import ConsentFlow
from bot.commands.spec import Core
from bot.config import Settings
from bot.core.gateway import Gateway
from bot.core.lessons import LearningService
from bot.http.admin.attempts import Attempts
from bot.http.admin.sessions import AdminSessions
from bot.monitoring.metrics import Metrics
from storage.database import Database

if TYPE_CHECKING:
    from engine.engine import Engine


@dataclass(frozen=True)
class Services:
    """The parts the composition root has built."""

    settings: Settings
    database: Database
    engine: "Engine"
    gateway: Gateway
    lessons: LearningService
    metrics: Metrics

    @cached_property
    def core(self) -> Core:
        """What commands work with; one for every platform, since access and consent remember things."""
        access = AccessPolicy(self.database, self.settings)
        consent = ConsentFlow(self.database, self.engine, self.settings)
        return Core(self.gateway, self.lessons, self.engine, self.database, self.settings, access, consent)

    @cached_property
    def keys(self) -> Keys:
        """Who may call, and how much; one, since it remembers things."""
        return Keys(self.database, self.settings.http)


@dataclass(frozen=True)
class Platforms:
    """What the HTTP side knows of the chat platforms: their health, and the routes they bring (webhooks)."""

    health: Callable[[], dict[str, str]] = dict
    routes: tuple[web.RouteDef, ...] = ()


SERVICES = web.AppKey("services", Services)
ADMIN_SESSIONS = web.AppKey("admin_sessions", AdminSessions)
ADMIN_ATTEMPTS = web.AppKey("admin_attempts", Attempts)
PLATFORMS = web.AppKey("platforms", Platforms)
