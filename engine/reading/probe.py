"""The probe: a linear reading of what a person meant, from a model's own hidden states and the letters of the text.

Logistic regression on the standardised states of the reaction at one or more depths (`engine.training.pooling`) and on
its hashed n-grams. Depth and decay are chosen by cross-validation in which texts of nearly the same wording stay
together; so are the temperature of the probabilities and the margin from which a reading counts as sure. Invariant: a
probe belongs to one model (`engine.host.model_files.fingerprint`) and is never used with another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from engine.reading import ngrams, regression
from engine.reading.regression import Labels, Matrix
from storage.kinds import Meaning

DEPTHS = (0.3, 0.4, 0.5, 0.6, 0.7)  # that are looked at: what a text means is told in the middle of a model
MEANINGS = tuple(Meaning)
SURE_ACCURACY = 0.97  # of what is read surely
LEAST_ACCURACY = 0.82  # in cross-validation over all languages, of a probe that is used
_DECAYS = (1e-4, 3e-4, 1e-3)
_FOLDS = 5
_SCALE = 6.0  # of each block of features: a typical vector's length
_FURTHEST = 6.0  # standard deviations
_WIDEST = 8192  # states of all depths together: a wider probe's file is too large
_LARGEST = 127  # of a stored weight's steps: one byte each
_TEMPERATURES = np.geomspace(0.25, 4.0, 33)


@dataclass(frozen=True)
class ReactionReading:
    """The meaning that a reaction was taken for."""

    label: Meaning
    margin: float  # between the two likeliest meanings, 0 to 1
    probabilities: dict[Meaning, float]
    is_sure: bool


@dataclass(frozen=True)
class Choice:
    """The choices of cross-validation."""

    depths: tuple[int, ...]  # indices into DEPTHS
    decay: float
    temperature: float
    threshold: float  # margins below it are unsure
    accuracy: float  # of all texts, held out fold by fold


@dataclass(frozen=True)
class MeaningProbe:
    """A fitted probe."""

    choice: Choice
    centre: Matrix  # of the states, axes [depths, 2 H]
    spread: Matrix
    weights: Matrix  # [features + 1, meanings]

    @property
    def is_usable(self) -> bool:
        """True if it reads well enough to decide anything: a model that knows one world only has no such probe."""
        return self.choice.accuracy >= LEAST_ACCURACY

    @classmethod
    def fit(cls, states_NDH: Matrix, texts: Sequence[str], meanings: Sequence[Meaning]) -> "MeaningProbe":
        """Fit a probe to labelled texts. `states_NDH` are those at DEPTHS. Blocking: a minute of one core."""
        labels = np.array([MEANINGS.index(meaning) for meaning in meanings])
        letters = ngrams.vectors(texts)
        choice = _chosen(states_NDH, letters, labels, _folds(ngrams.wordings(texts)))
        return _fitted(states_NDH, letters, labels, choice)

    def read(self, states_NDH: Matrix, texts: Sequence[str]) -> list[ReactionReading]:
        """Return the readings of texts; `states_NDH` are those at DEPTHS."""
        found = self._scores(states_NDH, ngrams.vectors(texts)) / self.choice.temperature
        return [self._reading(probabilities) for probabilities in regression.softmax(found)]

    def to_bytes(self) -> bytes:
        """Return the probe as a safetensors file; each meaning's weights are whole multiples of its own step."""
        c = self.choice
        numbers = [c.decay, c.temperature, c.threshold, c.accuracy]
        steps = np.abs(self.weights[:-1]).max(0) / np.float32(_LARGEST) + np.float32(1e-12)
        return save_tensors(
            {
                "centre": self.centre,
                "spread": self.spread,
                "weights": np.rint(self.weights[:-1] / steps).astype(np.int8),
                "steps": steps,
                "bias": self.weights[-1:],
                "depths": np.array(c.depths, np.int64),
                "choice": np.array(numbers, np.float64),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "MeaningProbe":
        """Return the probe of a file. Raises ValueError if it is none, or of another heed."""
        try:
            found = load_tensors(data)
            choice = Choice(tuple(int(i) for i in found["depths"]), *(float(v) for v in found["choice"]))
            weights = np.vstack([found["weights"] * found["steps"], found["bias"]]).astype(np.float32)
            probe = cls(choice, found["centre"], found["spread"], weights)
        except Exception as error:
            raise ValueError(f"this is no probe: {error}") from error
        rows = len(choice.depths) * probe.centre.shape[1] + ngrams.WIDTH + 1
        if probe.weights.shape != (rows, len(MEANINGS)):
            raise ValueError(f"the probe has weights of {probe.weights.shape}, not {(rows, len(MEANINGS))}")
        return probe

    def _scores(self, states_NDH: Matrix, letters: Matrix) -> Matrix:
        features = _features(states_NDH[:, list(self.choice.depths)], letters, self.centre, self.spread)
        return regression.scores(features, self.weights)

    def _reading(self, probabilities: Matrix) -> ReactionReading:
        named = {meaning: float(p) for meaning, p in zip(MEANINGS, probabilities, strict=True)}
        second, first = sorted(named, key=named.__getitem__)[-2:]
        margin = named[first] - named[second]
        return ReactionReading(first, margin, named, margin >= self.choice.threshold)


def _features(states_NDH: Matrix, letters: Matrix, centre: Matrix, spread: Matrix) -> Matrix:
    """Return the standardised states and the n-grams, each block about as long as _SCALE."""
    standard = np.clip((states_NDH - centre) / spread, -_FURTHEST, _FURTHEST).reshape(len(letters), -1)
    return np.hstack([standard * np.float32(_SCALE / standard.shape[1] ** 0.5), letters * np.float32(_SCALE)])


def _fitted(states_NDH: Matrix, letters: Matrix, labels: Labels, choice: Choice) -> MeaningProbe:
    own = states_NDH[:, list(choice.depths)]
    centre, spread = _normal(own)
    features = _features(own, letters, centre, spread)
    few, back = regression.compact(features)
    weights = regression.fit(few, labels, len(MEANINGS), choice.decay)
    return MeaningProbe(choice, centre, spread, np.vstack([features.T @ (back @ weights[:-1]), weights[-1:]]))


def _normal(states_NDH: Matrix) -> tuple[Matrix, Matrix]:
    return states_NDH.mean(0), states_NDH.std(0) + np.float32(1e-4)


def _folds(groups: Sequence[int]) -> Labels:
    """Return the fold of each text; texts of one group are in one fold."""
    different = sorted(set(groups))
    order = np.random.default_rng(0).permutation(len(different))
    fold_of = {group: int(order[i]) % _FOLDS for i, group in enumerate(different)}
    return np.array([fold_of[group] for group in groups])


def _chosen(states_NDH: Matrix, letters: Matrix, labels: Labels, folds: Labels) -> Choice:
    """Choose depths and decay by the likelihood of held-out texts; then temperature and threshold on the same."""
    found = {
        (depths, decay): _held_out(few, labels, folds, decay)
        for depths in _depths(states_NDH)
        for few in [_compact(states_NDH[:, list(depths)], letters)]
        for decay in _DECAYS
    }
    surprise = {key: min((_surprise(s, labels, float(t)), float(t)) for t in _TEMPERATURES) for key, s in found.items()}
    depths, decay = best = min(surprise, key=surprise.__getitem__)
    temperature = surprise[best][1]
    probabilities = regression.softmax(found[best] / np.float32(temperature))
    accuracy = float((probabilities.argmax(1) == labels).mean())
    return Choice(depths, decay, temperature, _threshold(probabilities, labels), accuracy)


def _depths(states_NDH: Matrix) -> list[tuple[int, ...]]:
    """Return what is tried: each depth by itself, and all of them together if the probe stays small."""
    _, num_depths, width = states_NDH.shape
    each: list[tuple[int, ...]] = [(i,) for i in range(num_depths)]
    return [*each, tuple(range(num_depths))] if num_depths * width <= _WIDEST else each


def _compact(states_NDH: Matrix, letters: Matrix) -> Matrix:
    return regression.compact(_features(states_NDH, letters, *_normal(states_NDH)))[0]


def _held_out(few: Matrix, labels: Labels, folds: Labels, decay: float) -> Matrix:
    """Return the scores of every text by weights that were fitted without its fold."""
    found = np.zeros((len(labels), len(MEANINGS)), np.float32)
    for fold in range(_FOLDS):
        own = folds == fold
        weights = regression.fit(few[~own], labels[~own], len(MEANINGS), decay)
        found[own] = regression.scores(few[own], weights)
    return found


def _surprise(scores_NK: Matrix, labels: Labels, temperature: float) -> float:
    """Return the mean negative log-likelihood of the labels, in nats."""
    probabilities = regression.softmax(scores_NK / np.float32(temperature))
    return -float(np.log(np.maximum(probabilities[np.arange(len(labels)), labels], 1e-30)).mean())


def _threshold(probabilities: Matrix, labels: Labels) -> float:
    """Return the lowest margin from which SURE_ACCURACY of the readings are right; above 1 if there is none."""
    ordered = np.sort(probabilities, 1)
    margins = ordered[:, -1] - ordered[:, -2]
    order = np.argsort(-margins)
    is_right = (probabilities.argmax(1) == labels)[order]
    share = np.cumsum(is_right) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(share >= SURE_ACCURACY)
    return float(margins[order[good[-1]]]) if len(good) else 2.0
