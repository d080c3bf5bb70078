"""engine.reading.probe: fitted on texts whose meaning their states tell, read, stored."""

from dataclasses import replace

import numpy as np
import pytest

from engine.reading import probe
from engine.reading.probe import DEPTHS, MEANINGS, MeaningProbe
from engine.reading.regression import Matrix
from storage.kinds import Meaning

TELLING = 2  # index of the depth that tells the meaning
WIDTH = 12


def texts_and_states(seed: int, noise: float) -> tuple[list[str], list[Meaning], Matrix]:
    """Return texts that say nothing themselves, with states that tell their meanings at one depth only."""
    random = np.random.default_rng(seed)
    labels = np.arange(150) % len(MEANINGS)
    states = random.normal(size=(150, len(DEPTHS), WIDTH))
    states[:, TELLING] = noise * states[:, TELLING] + 4 * np.eye(len(MEANINGS), WIDTH)[labels]
    texts = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), 12)) for _ in labels]
    return texts, [MEANINGS[i] for i in labels], np.asarray(states, np.float32)


@pytest.fixture(scope="module")
def fitted() -> MeaningProbe:
    """A probe fitted on noisy states."""
    texts, meanings, states = texts_and_states(0, noise=1.0)
    return MeaningProbe.fit(states, texts, meanings)


def test_new_texts_are_read_by_the_depth_that_tells(fitted: MeaningProbe) -> None:
    """Cross-validation finds that depth, and texts that it never saw are read rightly."""
    assert TELLING in fitted.choice.depths
    texts, meanings, states = texts_and_states(1, noise=1.0)
    found = fitted.read(states, texts)
    assert sum(reading.label == meaning for reading, meaning in zip(found, meanings, strict=True)) >= 0.9 * len(texts)
    assert fitted.choice.accuracy >= 0.9


def test_a_reading_has_its_margin_and_every_probability(fitted: MeaningProbe) -> None:
    """The margin is the distance between the two likeliest."""
    texts, _, states = texts_and_states(1, noise=1.0)
    for reading in fitted.read(states[:20], texts[:20]):
        first, second, *_ = sorted(reading.probabilities.values(), reverse=True)
        assert sum(reading.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert reading.margin == pytest.approx(first - second)
        assert reading.is_sure is (reading.margin >= fitted.choice.threshold)


def test_what_is_read_surely_is_right() -> None:
    """Where states tell little, less is read surely, and of that at least 97 % was right on held-out folds."""
    texts, meanings, states = texts_and_states(0, noise=3.0)
    vague = MeaningProbe.fit(states, texts, meanings)
    other_texts, other_meanings, other_states = texts_and_states(1, noise=3.0)
    found = vague.read(other_states, other_texts)
    sure = [r.label == m for r, m in zip(found, other_meanings, strict=True) if r.is_sure]
    assert vague.choice.threshold > 0
    assert len(sure) < len(found)
    assert not sure or sum(sure) / len(sure) >= 0.85


def test_a_threshold_is_the_lowest_that_keeps_its_promise() -> None:
    """One wrong reading of low margin is left out; if even the surest is wrong, nothing is sure."""
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], np.float32)
    assert probe._threshold(probabilities, np.array([0, 0, 1])) == pytest.approx(0.6)
    assert probe._threshold(probabilities, np.array([1, 1, 1])) > 1


def test_a_probe_survives_its_file(fitted: MeaningProbe) -> None:
    """Its file is small, and what it reads is the same to rounding."""
    texts, _, states = texts_and_states(1, noise=1.0)
    data = fitted.to_bytes()
    again = MeaningProbe.from_bytes(data)
    assert len(data) < 200_000
    assert again.choice == fitted.choice
    for one, other in zip(fitted.read(states, texts), again.read(states, texts), strict=True):
        assert other.margin == pytest.approx(one.margin, abs=0.02)


def test_a_file_that_is_no_probe_is_refused(fitted: MeaningProbe) -> None:
    """Also one whose weights have another shape than its states."""
    with pytest.raises(ValueError, match="this is no probe"):
        MeaningProbe.from_bytes(b"nothing")
    with pytest.raises(ValueError, match="weights"):
        MeaningProbe.from_bytes(replace(fitted, weights=fitted.weights[1:]).to_bytes())
