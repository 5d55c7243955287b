"""Fits the four buffers of a running sum. Needs scipy; only used to make the table of constants.py and to check it.

    c(x) = (1 - z_1 x) ... (1 - z_4 x) / (1 - p_1 x) ... (1 - p_4 x)        p_1 > z_1 > p_2 > z_2 > ... in (0, 1)

is the first column of a triangular matrix C with equal diagonals, and b(x) = 1 / (1 - x) c(x) that of B, where B C adds up. The
noise of step t has variance v (b_0^2 + ... + b_{t-1}^2), and v grows with c_0^2 + ... + c_{n-1}^2. The product of both sums at
t = n is the square of the largest error; it is minimised. The square root, c(x) = (1 - x)^(-1/2), is the best known
(Fichtenberger, Henzinger and Upadhyay, ICML 2023); buffers come near it with constant memory (Dvijotham, McMahan, Pillutla,
Steinke and Thakurta, FOCS 2024). Both sums are geometric series, so the time does not grow with n."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BUFFERS = 4


def weights(poles: Floats, zeros: Floats) -> Floats:
    """Returns w with c_k = sum of w_i p_i^(k - 1) for k >= 1: partial fractions."""
    gaps = poles[:, None] - poles[None, :] + np.eye(len(poles))
    return np.asarray(np.prod(poles[:, None] - zeros[None, :], axis=1) / np.prod(gaps, axis=1))


def sum_of_squares(weight: Floats, base: Floats, count: float) -> float:
    """Returns the sum of (sum of weight_i base_i^k)^2 over k = 0 ... count - 1."""
    both = base[:, None] * base[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        series = np.where(both < 1, -np.expm1(count * np.log(both)) / (1 - both), count)
    return float(weight @ series @ weight)


def answer_weights(poles: Floats, zeros: Floats) -> tuple[Floats, Floats]:
    """Returns (weights, bases) with b_k = sum of weights_i bases_i^k."""
    bases = np.concatenate([[1.0], zeros])
    gaps = bases[:, None] - bases[None, :] + np.eye(len(bases))
    return np.asarray(np.prod(bases[:, None] - poles[None, :], axis=1) / np.prod(gaps, axis=1)), bases


def worst_step(poles: Floats, zeros: Floats, horizon: int) -> float:
    """Returns the standard deviation of the last step over that of one count at the same price.

    >>> poles, zeros = np.array([0.99932, 0.9908, 0.935809, 0.594199]), np.array([0.996867, 0.975578, 0.83236, 0.218835])
    >>> round(worst_step(poles, zeros, 1024), 4)
    3.273
    """
    column = 1 + sum_of_squares(weights(poles, zeros), poles, horizon - 1)
    return math.sqrt(column * sum_of_squares(*answer_weights(poles, zeros), horizon))


def square_root(horizon: int) -> float:
    """Returns the same figure for the square root.

    >>> round(square_root(1024), 5)
    3.27255
    """
    ratios = 1 - 1 / (2 * np.arange(1, horizon))
    return 1 + float(np.sum(np.cumprod(ratios) ** 2))


def fit(horizon: int) -> tuple[Floats, Floats]:
    """Returns poles and zeros with about the least error at the last step."""
    from scipy.optimize import minimize

    def read(gaps: Floats) -> tuple[Floats, Floats]:
        ends = 1 - np.exp(np.minimum(math.log(1 / (4 * horizon)) + np.cumsum(np.exp(gaps)), -1e-9))
        return ends[0::2], ends[1::2]

    def error(gaps: Floats) -> float:
        poles, zeros = read(gaps)
        if np.diff(np.sort(np.concatenate([poles, zeros]))).min() < 1e-9:
            return 1e6
        found = worst_step(poles, zeros, horizon)
        return math.log(found) if math.isfinite(found) else 1e6

    even = math.log(math.log(4 * horizon) / (2 * BUFFERS + 1))
    best, least = np.zeros(0), math.inf
    for start in (0.0, 0.5, -0.5):
        gaps = np.full(2 * BUFFERS, even)
        gaps[0] += start
        for _ in range(3):
            found = minimize(
                error, gaps, method="Nelder-Mead", options={"maxiter": 6000, "maxfev": 8000, "xatol": 1e-7, "fatol": 1e-10}
            )
            gaps = found.x
        if found.fun < least:
            best, least = found.x, float(found.fun)
    return read(best)
