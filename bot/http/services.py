"""What every HTTP handler works with, under one application key."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from bot.commands import Core
from bot.config import Settings
from bot.gateway import Gateway
from bot.lessons import Lessons
from bot.metrics import Metrics
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
    lessons: Lessons
    metrics: Metrics

    @property
    def core(self) -> Core:
        """What commands work with."""
        return Core(self.gateway, self.lessons, self.engine, self.database)


SERVICES = web.AppKey("services", Services)
