"""One mechanism of the benchmark, and the noise all of them share.

Noise lies on the grid of 2^-20, and so do the answers: low bits of floats give nothing away, and what an audit finds is
the mistake the case is about. (The one case about low bits adds raw floats.) Pairs are the standard patterns a generator
of neighbours would try: one value more or less, all of them, one against the rest, half against half.
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
    """`law(rng, data, n)` gives n outputs; `truth` is the least epsilon that holds on `pairs` at the claimed `delta`."""

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
        """The case as something to audit, with a stream of its own."""
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
    """Two-sided geometric: Pr[k] proportional to ratio^|k|."""
    return (rng.geometric(1 - ratio, size) - rng.geometric(1 - ratio, size)).astype(np.float64)


def patterns(size: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Answers of `size` queries, each off by at most one: the standard patterns, the same for every case."""
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
