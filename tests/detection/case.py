"""Defines a case of the benchmark, and the noise that all cases share.

Noise and answers lie on the grid of 2^-20, so that the low bits of floats reveal nothing and an audit finds the defect of the
case. (The one case about low bits adds raw floats.) Pairs are the standard patterns of a generator of neighbours: one value
more or less, all of them, one against the rest, half against half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dither.audit.verdict import Target

Floats = NDArray[np.float64]
Law = Callable[[Generator, Any, int], Any]  # a list of outputs, or an array with one row for each
Size = int | tuple[int, ...]
INF = math.inf
_GRID = 2.0**20


@dataclass(frozen=True)
class Case:
    """One mechanism. `law(rng, data, n)` returns n outputs; `truth` is the least epsilon that holds on `pairs` at `delta`."""

    name: str
    law: Law
    epsilon: Fraction
    pairs: tuple[tuple[Any, Any], ...]
    truth: float
    source: str
    delta: Fraction = Fraction(0)

    @property
    def broken(self) -> bool:
        return self.truth > float(self.epsilon) * (1 + 1e-9)

    def target(self, seed: int) -> Target:
        """Returns the case as a target, with its own random stream."""
        rng = np.random.default_rng(seed)

        def batch(data: Any, size: int) -> Any:
            return self.law(rng, data, size)

        def run(data: Any) -> Any:
            return self.law(rng, data, 1)[0]

        return Target(self.name, run, self.epsilon, self.delta, self.pairs, self.source, batch)


def lap(rng: Generator, scale: float, size: Size) -> Floats:
    return np.round(rng.laplace(0.0, scale, size) * _GRID) / _GRID


def gauss(rng: Generator, sigma: float, size: Size) -> Floats:
    return np.round(rng.normal(0.0, sigma, size) * _GRID) / _GRID


def expo(rng: Generator, scale: float, size: Size) -> Floats:
    return np.floor(rng.exponential(scale, size) * _GRID) / _GRID


def geo(rng: Generator, ratio: float, size: Size) -> Floats:
    """Draws two-sided geometric noise: Pr[k] is proportional to ratio^|k|."""
    return (rng.geometric(1 - ratio, size) - rng.geometric(1 - ratio, size)).astype(np.float64)


def patterns(size: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Returns pairs of answers to `size` queries, each off by at most one: the standard patterns."""
    half = size // 2
    return (
        ((0,) * size, (1,) * size),
        ((0,) * size, (1,) + (0,) * (size - 1)),
        ((1,) + (0,) * (size - 1), (0,) + (1,) * (size - 1)),
        ((0,) * half + (1,) * (size - half), (1,) * half + (0,) * (size - half)),
        ((0,) * (size - 1) + (1,), (1,) * (size - 1) + (0,)),
    )


def values(data: Any) -> Floats:
    return np.asarray(data, dtype=np.float64)
