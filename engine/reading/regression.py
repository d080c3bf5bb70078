"""Multinomial logistic regression with weight decay, fitted by L-BFGS.

    minimise  -1/N sum_n log softmax(x_n W + b)[y_n] + decay |W|^2

The objective is convex and smooth, so the result depends on the data alone (Nocedal and Wright, Numerical
Optimization, algorithms 7.4 and 3.1: two-loop recursion, backtracking).
"""

from collections import deque

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
_HISTORY = 8
_SUFFICIENT = 1e-4  # of the decrease that the gradient promises
_SHORTEST = 1e-6
_STANDSTILL = 1e-5  # nats: a step that wins less is the last one
_FAINTEST = 1e-6  # of the largest eigenvalue: what is below it is rounding


def fit(features_ND: Matrix, labels_N: Labels, num_labels: int, decay: float, iterations: int = 80) -> Matrix:
    """Return the weights, axes [D + 1, K]; the last row is the bias, which does not decay."""
    problem = _Problem(features_ND, labels_N, num_labels, decay)
    weights = np.zeros((features_ND.shape[1] + 1, num_labels), np.float32)
    loss, gradient = problem.at(weights)
    steps: deque[tuple[Matrix, Matrix]] = deque(maxlen=_HISTORY)
    for _ in range(iterations):
        direction = _direction(gradient, steps)
        slope = float((direction * gradient).sum())
        length = 1.0
        while True:
            candidate = np.asarray(weights + length * direction, np.float32)
            new_loss, new_gradient = problem.at(candidate)
            if new_loss <= loss + _SUFFICIENT * length * slope:
                break
            length /= 2
            if length < _SHORTEST:
                return weights
        is_last = loss - new_loss < _STANDSTILL
        if float(((candidate - weights) * (new_gradient - gradient)).sum()) > 0:
            steps.append((candidate - weights, new_gradient - gradient))
        weights, loss, gradient = candidate, new_loss, new_gradient
        if is_last:
            break
    return weights


def compact(features_ND: Matrix) -> tuple[Matrix, Matrix]:
    """Return features with the same products in at most N columns, axes [N, R], and a map back, axes [N, R].

    Weights that are fitted on them are `features_ND.T @ (map @ weights)` on the features themselves, with the same
    decay (the representer theorem): with fewer texts than features every fit is cheaper by their ratio.
    """
    values, vectors = np.linalg.eigh(features_ND @ features_ND.T)
    is_kept = values > _FAINTEST * values[-1]
    lengths = np.sqrt(values[is_kept])
    return vectors[:, is_kept] * lengths, vectors[:, is_kept] / lengths


def scores(features_ND: Matrix, weights_DK: Matrix) -> Matrix:
    """Return x W + b, axes [N, K]."""
    return np.asarray(features_ND @ weights_DK[:-1] + weights_DK[-1], np.float32)


def softmax(scores_NK: Matrix) -> Matrix:
    """Return probabilities over the last axis."""
    powers = np.exp(scores_NK - scores_NK.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True), np.float32)


class _Problem:
    """The objective and its gradient."""

    def __init__(self, features_ND: Matrix, labels_N: Labels, num_labels: int, decay: float) -> None:
        self._features = features_ND
        self._wanted = np.eye(num_labels, dtype=np.float32)[labels_N]
        self._decay = decay

    def at(self, weights: Matrix) -> tuple[float, Matrix]:
        found = softmax(scores(self._features, weights))
        loss = -float(np.log(np.maximum((found * self._wanted).sum(1), 1e-30)).mean())
        error = (found - self._wanted) / np.float32(len(found))
        gradient = np.vstack([self._features.T @ error + 2 * self._decay * weights[:-1], error.sum(0, keepdims=True)])
        return loss + self._decay * float((weights[:-1] ** 2).sum()), np.asarray(gradient, np.float32)


def _direction(gradient: Matrix, steps: deque[tuple[Matrix, Matrix]]) -> Matrix:
    """Return the direction of descent: minus the inverse Hessian, as the last steps tell it, times the gradient."""
    if not steps:
        return -gradient
    q, shares = gradient.copy(), []
    for moved, turned in reversed(steps):
        rho = 1 / float((moved * turned).sum())
        shares.append((rho, rho * float((moved * q).sum())))
        q -= np.float32(shares[-1][1]) * turned
    moved, turned = steps[-1]
    q *= np.float32(float((moved * turned).sum()) / float((turned * turned).sum()))
    for (moved, turned), (rho, share) in zip(steps, reversed(shares), strict=True):
        q += np.float32(share - rho * float((turned * q).sum())) * moved
    return -q
