"""engine.reading.regression: multinomial logistic regression against torch and against its own optimum."""

import numpy as np
import pytest
import torch

from engine.reading import regression
from engine.reading.regression import Labels, Matrix

DECAY = 1e-3


def problem(num_texts: int = 60, width: int = 8) -> tuple[Matrix, Labels]:
    """Return features of three classes that overlap."""
    random = np.random.default_rng(3)
    labels = random.integers(0, 3, num_texts)
    centres = random.normal(size=(3, width))
    return np.asarray(centres[labels] + random.normal(size=(num_texts, width)), np.float32), labels


def test_the_optimum_is_torchs() -> None:
    """The same objective, minimised by another implementation, gives the same probabilities."""
    features, labels = problem()
    weights = torch.zeros(9, 3, dtype=torch.float64, requires_grad=True)
    x, y = torch.tensor(features, dtype=torch.float64), torch.tensor(labels)
    optimizer = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        found = torch.nn.functional.cross_entropy(x @ weights[:-1] + weights[-1], y) + DECAY * (weights[:-1] ** 2).sum()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    theirs = (x @ weights[:-1] + weights[-1]).softmax(-1).detach().numpy()
    ours = regression.softmax(regression.scores(features, regression.fit(features, labels, 3, DECAY)))
    assert ours == pytest.approx(theirs, abs=0.02)


def test_fewer_columns_give_the_same_probe() -> None:
    """With more features than texts, what is fitted on the compact ones is mapped back to all of them."""
    features, labels = problem(num_texts=20, width=50)
    few, back = regression.compact(features)
    assert few.shape[1] <= 20
    assert few @ few.T == pytest.approx(features @ features.T, abs=1e-3)
    weights = regression.fit(few, labels, 3, DECAY)
    mapped = np.vstack([features.T @ (back @ weights[:-1]), weights[-1:]])
    assert regression.scores(features, mapped) == pytest.approx(regression.scores(few, weights), abs=1e-2)


def test_decay_keeps_the_weights_small() -> None:
    """More of it, and probabilities move towards even."""
    features, labels = problem()
    loose, tight = (regression.fit(features, labels, 3, decay) for decay in (1e-4, 1.0))
    assert np.abs(tight[:-1]).max() < 0.2 * np.abs(loose[:-1]).max()
