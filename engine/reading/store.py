"""Probes as files: one for each model, fitted here or shipped with heed, found by the model's fingerprint.

Invariants: a file that cannot be read counts as none; files are written whole or not at all.
"""

import logging
from pathlib import Path

from engine.reading.probe import MeaningProbe
from storage.files import atomic

logger = logging.getLogger(__name__)

SHIPPED = Path(__file__).with_name("shipped")
FOLDER = "calibration"  # below the data directory


def find(fingerprint: str, data_dir: Path) -> MeaningProbe | None:
    """Return the probe that was fitted here for a model, or the shipped one, or None. Blocking."""
    for folder in (data_dir / FOLDER, SHIPPED):
        path = folder / file_name(fingerprint)
        if path.is_file():
            try:
                return MeaningProbe.from_bytes(path.read_bytes())
            except (OSError, ValueError) as error:
                logger.warning("the probe %s cannot be read and is left out: %s", path.name, error)
    return None


def keep(probe: MeaningProbe, fingerprint: str, data_dir: Path) -> Path:
    """Write a model's probe into the data directory. Return its file. Blocking."""
    path = data_dir / FOLDER / file_name(fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic.write_file(path, probe.to_bytes())
    return path


def file_name(fingerprint: str) -> str:
    """Return the name of the file of a model's probe."""
    return f"{fingerprint}.reading.safetensors"
