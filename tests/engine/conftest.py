"""What the engine's tests share: the pocket model's folder."""

from pathlib import Path
from typing import Any

import pytest

from tests.engine.pocket_model import pocket_folder


@pytest.fixture(scope="session")
def pocket() -> Path:
    """The folder of the pocket model."""
    return pocket_folder()


@pytest.fixture(scope="session")
def pocket_tokenizer(pocket: Path) -> Any:
    """The pocket model's tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(pocket)
