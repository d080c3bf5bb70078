"""The whole configuration of a measured heed: defaults, heed.toml, environment and the model's calibration.

Invariants: as heed itself would start the model, with the same reading of the same settings; no secret and no folder of
this machine is told; what cannot be found out is None.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bot import config as settings
from bot.app import engine_config
from bot.errors import BotError
from engine.calibration import prior
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.host.model_files import fingerprint

_GROUPS = ("host", "learn", "gate", "note", "fact", "sleep", "audit", "versions")  # `curriculum` has a key


def of_heed(model: str, folder: Path, data: Path, **groups: dict[str, Any]) -> dict[str, Any] | None:
    """Return the configuration of a heed that is started with a model, whose files lie in `folder`. Blocking.

    `model` is as in HEED_MODEL, empty for what is set; `data` is heed's data directory; `groups` are settings that it
    is given besides, by their group.
    """
    named: dict[str, Any] = {"model": model} if model else {}
    try:
        given = engine_config(settings.load(data_dir=data, **named, **groups))
        return told(calibrated(given, folder))
    except (BotError, EngineError, OSError):
        return None


def calibrated(given: EngineConfig, folder: Path) -> EngineConfig:
    """Return the configuration with what was measured on the model in a folder, or estimated of it. Blocking."""
    return prior.found_or_estimated(given, folder, fingerprint(folder)).applied(given)


def told(config: EngineConfig) -> dict[str, Any]:
    """Return plain values, for a result file."""
    groups = {name: asdict(getattr(config, name)) for name in _GROUPS}
    return groups | {
        "is_thinking": config.is_thinking,
        "is_calibrated": config.is_calibrated,
        "chosen": sorted(config.chosen_settings),  # by the operator, and so not by the calibration
    }
