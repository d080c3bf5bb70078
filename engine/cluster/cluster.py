"""A cluster as `bot` has it. Light to import: Ray comes with the first call, and one machine never makes one."""

from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.errors import ClusterNotInstalled

if TYPE_CHECKING:
    from engine.cluster.engine_here import EngineHere
    from engine.engine import Engine
    from storage.database import Database


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


def engine_of_gateway(config: EngineConfig, database: "Database") -> "Engine":
    """Return the engine of a gateway whose engines are started by themselves, on any machines.

    Raises ClusterNotInstalled.
    """
    ray_engines = _ray_engines()
    from engine.cluster.engines_elsewhere import EnginesElsewhere
    from engine.cluster.fleet import Fleet

    return EnginesElsewhere(config, database, Fleet(ray_engines.found, version("heed")))


def engine_here(name: str, config: EngineConfig, database_url: str) -> "EngineHere":
    """Return an engine on this machine, among those of a cluster. Raises ClusterNotInstalled."""
    _ray_engines()
    from engine.cluster.engine_here import EngineHere

    return EngineHere(name, config, database_url)


def _ray_engines() -> ModuleType:
    try:
        from engine.cluster import ray_engines
    except ImportError as error:
        raise ClusterNotInstalled("A cluster needs Ray: pip install -r requirements/cluster.txt") from error
    return ray_engines
