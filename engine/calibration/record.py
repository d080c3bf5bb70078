"""The calibration of one model: the learning and gate settings that were measured on it, and the figures behind them.

Owns the file format and where the files are. A calibration belongs to a model's fingerprint and to the settings it was
measured with (adapter shape, loss, teacher), as the operator gave them: with others it does not hold. It may choose
some of them itself, as the rank. Invariants: what an operator has set himself is never replaced; a file that cannot be
read counts as none; files are written whole or not at all.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.config import ConfigError, EngineConfig, LearnConfig
from storage.files import atomic

logger = logging.getLogger(__name__)

SHIPPED = Path(__file__).parent / "shipped"
MEASURED_WITH = ("lora_rank", "lora_alpha", "target_modules", "divergence", "teacher", "schedule")
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Calibration:
    """Settings of learning and of its gates for one model; `is_measured` is False if they are only estimated."""

    model: str
    fingerprint: str
    measured_with: str  # hash of the given settings that it depends on
    is_measured: bool
    learn: dict[str, Any] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)  # what was measured, for people to read

    def applied(self, config: EngineConfig) -> EngineConfig:
        """Return the configuration with these settings where the operator has chosen none."""
        return replace(
            config,
            learn=replace(config.learn, **_not_chosen(self.learn, "learn", config)),
            gate=replace(config.gate, **_not_chosen(self.gate, "gate", config)),
            is_calibrated=self.is_measured,
        )

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return file_name(self.fingerprint, self.measured_with)


def file_name(fingerprint: str, measured_with: str) -> str:
    """Return the name of the file of a model's calibration with some settings."""
    return f"{fingerprint}-{measured_with}.json"


def settings_hash(learn: LearnConfig) -> str:
    """Return 8 hex digits over the given settings that a calibration depends on."""
    values = {name: learn.to_dict()[name] for name in MEASURED_WITH}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def find(config: EngineConfig, fingerprint: str) -> Calibration | None:
    """Return the calibration made here, or the shipped one, or None. Blocking."""
    name = file_name(fingerprint, settings_hash(config.learn))
    for folder in (folder_of(config.data_dir), SHIPPED):
        found = _read(folder / name)
        if found is not None:
            return found
    return None


def keep(calibration: Calibration, data_dir: Path) -> Path:
    """Write a calibration into the data directory. Return its file. Blocking."""
    path = folder_of(data_dir) / calibration.file_name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic.write_file(path, text_of(calibration).encode())
    return path


def text_of(calibration: Calibration) -> str:
    """Return the content of a calibration's file."""
    return json.dumps(asdict(calibration), indent=1, sort_keys=True) + "\n"


def folder_of(data_dir: Path) -> Path:
    """Return the folder of the calibrations made here."""
    return data_dir / "calibration"


def _read(path: Path) -> Calibration | None:
    if not path.is_file():
        return None
    try:
        return Calibration(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, ConfigError) as error:
        logger.warning("the calibration %s cannot be read and is left out: %s", path.name, error)
        return None


def _not_chosen(values: Settings, group: str, config: EngineConfig) -> dict[str, Any]:
    free = {name: value for name, value in values.items() if f"{group}.{name}" not in config.chosen_settings}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in free.items()}
