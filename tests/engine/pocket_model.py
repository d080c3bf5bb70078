"""Where tests find the pocket model."""

import os
from pathlib import Path

from engine.pocket import WEIGHTS


def pocket_folder() -> Path:
    """The committed weights, or the folder HEED_TEST_MODEL names while there are none. Raises FileNotFoundError."""
    folder = WEIGHTS if (WEIGHTS / "config.json").is_file() else Path(os.environ.get("HEED_TEST_MODEL", ""))
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{WEIGHTS} holds no model: run python -m engine.pocket.train, or set HEED_TEST_MODEL")
    return folder
