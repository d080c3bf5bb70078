"""A cluster as `bot` has it. Light to import: Ray comes with the first call, and one machine never makes one."""

import os
import secrets
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.errors import ClusterNotInstalled

if TYPE_CHECKING:
    from engine.engine import Engine
    from storage.database import Database

RAY_SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # its ports are on the loopback address, as on those systems
}
SECRET_SETTING = "RAY_AUTH_TOKEN"  # noqa: S105  a name; without which no process may call another one


def engine_with_engines_here(
    config: EngineConfig, database: "Database", *, database_url: str, num_engines: int
) -> "Engine":
    """Return the engine of a gateway whose engines run on this machine, from its start to its stop.

    Raises ClusterNotInstalled.
    """
    ray_engines = _ray_engines()
    from engine.cluster.engines_here import EnginesHere
    from engine.cluster.fleet import Fleet

    return EnginesHere(config, database, Fleet(ray_engines.found, version("heed")), database_url, num_engines)


def _ray_engines() -> ModuleType:
    """Import Ray, which reads its settings at that moment. The secret is a new one, unless one was given."""
    os.environ |= RAY_SETTINGS
    os.environ.setdefault(SECRET_SETTING, secrets.token_hex(32))
    try:
        from engine.cluster import ray_engines
    except ImportError as error:
        raise ClusterNotInstalled("A cluster needs Ray: pip install -r requirements/cluster.txt") from error
    return ray_engines
