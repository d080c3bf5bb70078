"""engine.reading.store: probes by fingerprint, made here before shipped."""

from pathlib import Path

import numpy as np
import pytest

from engine.reading import ngrams, store
from engine.reading.probe import Choice, MeaningProbe


def a_probe(accuracy: float) -> MeaningProbe:
    """Return a probe of a tiny model."""
    ones = np.ones((1, 4), np.float32)
    weights = np.zeros((4 + ngrams.WIDTH + 1, 5), np.float32)
    return MeaningProbe(Choice((2,), 1e-3, 1.0, 0.5, accuracy), ones, ones, weights)


def test_a_kept_probe_is_found_again(tmp_path: Path) -> None:
    """By its model's fingerprint only."""
    store.keep(a_probe(0.9), "abc", tmp_path)
    found = store.find("abc", tmp_path)
    assert found is not None
    assert found.choice.accuracy == 0.9
    assert store.find("def", tmp_path) is None


def test_one_that_was_fitted_here_wins_over_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a damaged one counts as none: the shipped one is taken."""
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "calibration")
    store.keep(a_probe(0.8), "abc", tmp_path)
    own = store.keep(a_probe(0.9), "abc", tmp_path / "mine")
    assert store.find("abc", tmp_path / "mine").choice.accuracy == 0.9  # type: ignore[union-attr]
    own.write_bytes(b"damaged")
    assert store.find("abc", tmp_path / "mine").choice.accuracy == 0.8  # type: ignore[union-attr]


def test_shipped_probes_are_small_and_readable() -> None:
    """Each below 200 kB."""
    for path in store.SHIPPED.glob("*.safetensors"):
        assert path.stat().st_size < 200_000
        assert MeaningProbe.from_bytes(path.read_bytes()).choice.accuracy > 0.5
