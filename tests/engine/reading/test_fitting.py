"""engine.reading.fitting: the probe that a calibration leaves behind."""

from pathlib import Path

import numpy as np
import pytest

from engine.reading import fitting, ngrams, store
from engine.reading.probe import Choice, MeaningProbe
from engine.reading.reactions import LabelledReaction
from engine.reading.reader import ReactionReader


class Fitted(ReactionReader):
    """A reader whose probe comes out with an accuracy."""

    def __init__(self, accuracy: float) -> None:
        ones, weights = np.ones((1, 4), np.float32), np.zeros((4 + ngrams.WIDTH + 1, 5), np.float32)
        self.probe = MeaningProbe(Choice((2,), 1e-3, 1.0, 0.5, accuracy), ones, ones, weights)

    async def fit(self, reactions: list[LabelledReaction]) -> MeaningProbe:  # type: ignore[override]
        assert len(reactions) > 480
        assert self.probe is not None
        return self.probe


@pytest.mark.parametrize(("accuracy", "says"), [(0.9, "90%"), (0.5, "decides alone")])
async def test_a_fitted_probe_is_kept_and_told_of(tmp_path: Path, accuracy: float, says: str) -> None:
    """Whether it is used or not: the next start finds it under the model's fingerprint."""
    told: list[str] = []
    path = await fitting.fit_and_keep(Fitted(accuracy), "abc", tmp_path, told.append)
    assert path.is_file()
    assert store.find("abc", tmp_path) is not None
    assert says in told[0]
