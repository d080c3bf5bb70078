"""The parts behind every surface: one person's message, lesson or command goes through these, wherever it comes from.

Built once for each heed: access, consent and API keys remember things, so there must not be two of any.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.access.accounts import AccessPolicy
from bot.access.api_keys import Keys
from bot.access.consent import ConsentFlow
from bot.config import Settings
from bot.core.gateway import Gateway
from bot.core.lessons import LearningService
from bot.monitoring.metrics import Metrics
from storage.database import Database

if TYPE_CHECKING:
    from engine.engine import Engine


@dataclass(frozen=True)
class Core:
    """The services of one running heed."""

    settings: Settings
    database: Database
    engine: "Engine"
    metrics: Metrics
    gateway: Gateway
    lessons: LearningService
    access: AccessPolicy
    consent: ConsentFlow
    keys: Keys

    @classmethod
    def build(cls, settings: Settings, database: Database, engine: "Engine", metrics: Metrics) -> "Core":
        """Build every service over an open database and an engine that may still be starting."""
        gateway = Gateway(engine, database, settings, metrics)
        return cls(
            settings,
            database,
            engine,
            metrics,
            gateway,
            LearningService(gateway, engine, database, settings, metrics),
            AccessPolicy(database, settings),
            ConsentFlow(database, engine, settings),
            Keys(database, settings.http),
        )
