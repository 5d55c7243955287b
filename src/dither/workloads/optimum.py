"""The best Gaussian strategy for a small domain, with a bound that shows how good it is.

    minimise tr(G X^-1)    over positive X with no diagonal entry above 1        G = W'W

X = A'A for the strategy A: its columns have squares of at most 1, and least squares from A·x with noise of variance v has the
summed squared error v tr(G X^-1). Fixed point: v <- diag((V^1/2 G V^1/2)^1/2) with V = diag(v); then
X = V^-1/2 (V^1/2 G V^1/2)^1/2 V^-1/2, scaled to a largest diagonal entry of 1.

Why the bound holds: for any v > 0 with sum 1, tr(V X) <= 1 for every allowed X, and the least tr(G X^-1) under that single
condition is (tr (V^1/2 G V^1/2)^1/2)^2. So every run ends with its own ratio to the optimum, whatever it started from.
Reference: McKenna, Miklau, Hay and Machanavajjhala, PVLDB 2018; Denisov et al., NeurIPS 2022 (the fixed point).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from dither.workloads.factors import Floats

STEPS = 200
GOAL = 1.0005  # the ratio of squared errors at which to stop
_LITTLE = 1e-4


@dataclass(frozen=True)
class Optimum:
    """A matrix X, its error tr(G X^-1), and a lower bound on that of any other."""

    matrix: Floats
    error: float
    bound: float

    @property
    def ratio(self) -> float:
        """How many times the least possible root mean square error this one is, at most."""
        return float(np.sqrt(self.error / self.bound))


def optimum(gram: Floats, goal: float = GOAL, steps: int = STEPS) -> Optimum:
    """Returns the best strategy's X for squared errors weighed by `gram`.

    >>> found = optimum(np.tril(np.ones((8, 8))).T @ np.tril(np.ones((8, 8))))
    >>> found.ratio < 1.0005
    True
    """
    asked, gram = gram, _positive(gram)
    weights, bound = np.sqrt(np.diagonal(gram)), 0.0
    for _ in range(steps):
        root = np.sqrt(weights)
        values, vectors = eigh(root[:, None] * gram * root[None, :], overwrite_a=True, check_finite=False)
        scale = np.sqrt(np.maximum(values, values[-1] * 1e-14))
        bound = max(bound, float(scale.sum() ** 2 / weights.sum()))
        diagonal = np.einsum("ij,j,ij->i", vectors, scale, vectors)
        # tr(G X^-1) for X = V^-1/2 R V^-1/2 is tr(V^1/2 G V^1/2 R^-1) = tr R, times the largest entry it is scaled by
        error = float(scale.sum() * (diagonal / weights).max())
        if error <= goal * bound:
            break
        weights = diagonal
    found = (vectors * scale) @ vectors.T / (root[:, None] * root[None, :])
    if gram is not asked:
        bound = _bound(asked, root)
    return Optimum(found / (diagonal / root**2).max(), error, bound)


def _bound(gram: Floats, root: Floats) -> float:
    values = eigh(root[:, None] * gram * root[None, :], eigvals_only=True)
    return float(np.sqrt(np.maximum(values, 0)).sum() ** 2 / (root**2).sum())


def _positive(gram: Floats) -> Floats:
    """Returns G with a little added where questions do not cover all cells: X must stay invertible, also when rounded."""
    values = eigh(gram, eigvals_only=True)
    if values[0] > values[-1] * 1e-9:
        return gram
    return np.asarray(gram + np.eye(len(gram)) * (_LITTLE * np.trace(gram) / len(gram)))
