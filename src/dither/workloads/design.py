"""A workload with a price: the mechanisms of its strategy, what it costs, and answers with margins.

    workload.design(epsilon=1) ─▶ Design ─▶ release(histogram) ─▶ Released: noisy answers of every question

Why it is private: the measurements are whole numbers; one unit moves those of a block by at most what blocks.py says; each
block gets noise for its share of the price, and prices add up. What follows is computed from noisy and public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import laplace, norm

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between
from dither.mechanisms.calibration import Share, rho_together
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.norms import L1, L2
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import Loss
from dither.privacy.neighbours import AddRemove, Replace
from dither.workloads.blocks import MOST_ROWS, Moves, Unit
from dither.workloads.choose import strategies
from dither.workloads.factors import Floats, Integers
from dither.workloads.price import Price
from dither.workloads.strategy import Asked, Strategy
from dither.workloads.tables import Tables
from dither.workloads.workload import Workload

Noise = Geometric | Gaussian


@dataclass(frozen=True)
class Design:
    """A strategy with noise for a price, for one unit and one relation of neighbours."""

    strategy: Strategy
    price: Price
    unit: Unit
    neighbours: AddRemove | Replace

    @property
    def workload(self) -> Workload:
        return self.strategy.workload

    @cached_property
    def noises(self) -> tuple[Noise | None, ...]:
        """The noise of each block; None for one that no unit moves."""
        replaced = isinstance(self.neighbours, Replace)
        every = [(block.size, block.moves(self.unit, replaced)) for block in self.strategy.blocks]
        if not self.price.gaussian:
            return tuple(
                Geometric(epsilon=self.price.epsilon * share, sensitivity=L1(moves.total)) if moves.total else None  # type: ignore[operator]
                for (_, moves), share in zip(every, self.strategy.shares, strict=True)
            )
        rho = self._rho(every, self.strategy.factor(self.unit, replaced, True))
        return tuple(
            Gaussian(rho=rho * share, sensitivity=L2.of_squares(moves.squares, size)) if moves.squares else None
            for (size, moves), share in zip(every, self.strategy.shares, strict=True)
        )

    def _rho(self, every: Sequence[tuple[int, Moves]], together: Fraction) -> Fraction:
        """Returns what to divide among the blocks. Given (epsilon, delta), the better of two: rho whose conversion holds, of
        which no unit pays more than the part `together`; or all blocks as one vector on their curve."""
        if self.price.rho is not None:
            return self.price.rho / together
        if self.price.epsilon is None or self.price.delta is None:
            raise TypeError("a Gaussian price is rho, or epsilon with delta")
        pairs = zip(every, self.strategy.shares, strict=True)
        vectors = tuple(Share(share, moves.squares, size) for (size, moves), share in pairs if moves.squares)
        by_curve = rho_together(self.price.epsilon, self.price.delta, vectors) if vectors else Fraction(1)
        return max(by_curve, largest_rho(self.price.epsilon, self.price.delta) / together)

    def loss(self) -> Loss:
        """Returns the price of the whole release."""
        return self.price.loss()

    @cached_property
    def variances(self) -> tuple[float, ...]:
        return tuple(0.0 if each is None else each.noise_variance for each in self.noises)

    @cached_property
    def spreads(self) -> tuple[Floats, ...]:
        """The variance of every answer, for each term."""
        return self.strategy.spreads(self.variances)

    @cached_property
    def rmse(self) -> float:
        """The root mean square error over all questions, by their weights."""
        weight = math.fsum(term.weight * term.size for term in self.workload)
        return math.sqrt(self.strategy.squared_error(self.variances) / weight)

    def margins(self, confidence: Number = "0.95") -> tuple[Floats, ...]:
        """Returns, for each term, the margin of every answer, which holds with this confidence for each answer alone."""
        if isinstance(self.strategy, Asked) and self.noises[0] is not None:  # one noise for each answer: its own law
            exact = float(self.noises[0].margin(confidence))
            return tuple(np.full(term.shape, exact) for term in self.workload)
        reach = self._quantile(confidence)
        wide = (np.sqrt(each) * reach for each in self.spreads)
        return tuple(np.ceil(each) for each in wide) if isinstance(self.strategy, Tables) else tuple(wide)  # whole numbers

    def _quantile(self, confidence: Number) -> float:
        """Returns how many standard deviations a margin is: of a sum of many noises, or of one, whichever is wider."""
        tail = float(1 - between(confidence, "confidence", 0, 1, open_low=True, open_high=True)) / 2
        many = float(norm.isf(tail))
        return many if self.price.gaussian else max(many, float(laplace.isf(tail)) / math.sqrt(2))

    def release(self, histogram: NDArray[Any]) -> Released:
        """Releases noisy answers, from the exact number of records in each cell."""
        cells = self.workload.checked(histogram)
        if cells.dtype.kind not in "iu":
            raise ArgumentError("A histogram must have whole numbers.", fix="count records: use an integer array.")
        if float(np.abs(cells.astype(float)).sum()) > MOST_ROWS:  # |-2^63| does not fit into 64 bits
            raise ArgumentError("A histogram has at most 2^40 records.", fix="count fewer.")
        exact = self.strategy.measure(cells.astype(np.int64))
        return self.released([_noisy(each, noise) for each, noise in zip(exact, self.noises, strict=True)])

    def released(self, measured: list[Any]) -> Released:
        """Returns the answers that follow from noisy measurements."""
        return Released(self, self.strategy.answers(measured, self.variances))


def _noisy(exact: Integers, noise: Noise | None) -> Integers:
    return exact if noise is None else np.asarray(noise.release(exact.reshape(-1))).reshape(exact.shape)


@dataclass(frozen=True)
class Released:
    """Noisy answers of every question, one array per term of the workload, and their margins."""

    design: Design
    answers: tuple[Floats, ...]
    changed: bool = False

    def margins(self, confidence: Number = "0.95") -> tuple[Floats, ...]:
        """Returns the margin of every answer, as least squares gave it: not for answers made non-negative."""
        return self.design.margins(confidence)

    def nonnegative(self) -> Released:
        """Returns the nearest answers that no negative counts would give, for questions that count. It is free.

        Each table of counts keeps its total and loses what is below 0. Large answers become a little smaller, so they are no
        longer right on average, and tables that were consistent with each other may no longer be.
        """
        found = []
        for term, answers in zip(self.design.workload, self.answers, strict=True):
            if not term.plain:
                raise ArgumentError(
                    "Only tables of counts can be made non-negative: thresholds and ranges overlap.",
                    fix="ask for a histogram, make it non-negative, and add it up.",
                )
            found.append(nearest_nonnegative(answers))
        return Released(self.design, tuple(found), changed=True)


def nearest_nonnegative(table: Floats) -> Floats:
    """Returns the nearest table without negative numbers that has the same total (0 if that is negative).

    >>> nearest_nonnegative(np.array([5.0, -1.0, 2.0])).tolist()
    [4.5, 0.0, 1.5]
    """
    flat = np.sort(table.reshape(-1))[::-1]
    total = max(float(flat.sum()), 0.0)
    shifts = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    shift = shifts[np.nonzero(flat > shifts)[0][-1]] if total else flat[0]
    return np.asarray(np.maximum(table - shift, 0.0))


def design(workload: Workload, price: Price, neighbours: AddRemove | Replace, unit: Unit) -> Design:
    """Returns the design with the least error for a price."""
    found = (Design(each, price, unit, neighbours) for each in strategies(workload, price.gaussian))
    return min(found, key=lambda each: each.rmse)
