"""engine.worker.imports: no garbage is collected meanwhile, and afterwards it is again."""

import gc

import pytest

from engine.worker.imports import uncollected


def test_the_collector_rests_meanwhile() -> None:
    """It goes on behind an error, too."""
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()
