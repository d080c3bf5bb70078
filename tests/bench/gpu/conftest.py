"""What tests of `heed bench gpu` share."""

from pathlib import Path

import pytest

from tests.tiny_model import save_tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random model of the pocket model's size."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny"))
