"""Moments of one column or of two, from one joint release, and the intervals of what is computed from them.

With x on its grid as q = 0..R and u = q/R, the cells of degree d are the Bernstein polynomials

    b_i(u) = C(d, i) u^i (1 - u)^(d - i)        i = 0..d        never negative, and their sum is 1

and for two columns the products b_i(u) b_j(v). One row adds 1 in all, so the cells together cost as much as one count, whatever
the degree; A and B of sums.py are those of degree 1. Every polynomial up to the degree is a weighted sum of cells. With
z = 2u - 1, which is centred on the middle of the bounds, the weights of every z^k lie between -1 and 1, so the noise of each
moment is at most that of a count with as many cells.

Whole numbers. R^d b_i(u) is a whole number, computed in doubles without rounding because R^d stays below 2^53. If R^d (or
R^d S^e for two columns) has more than about 2^21 steps, cells are rounded to steps of a power of two: k cells then add up to
at most k/2 more than one row. Rows count in which no column is NULL.

Intervals (`solve`). What is asked is t = N / D, where N and D are weighted sums of cells whose weights depend on t and on
unknown numbers such as the true mean. For the true ones N - t D is noise alone, with a known reach, as for a quotient
(margins.py). The unknown numbers lie in intervals that get a small part of 1 - confidence (union bound). A value t is cut off
if it is impossible for all of them. Both sides of N - t D > m(t) are as for a quotient: linear and convex in t. So if t and the
end of the limits are impossible, so is everything between. N and D are chosen so that their derivative by each unknown number
is 0 at the truth: then the unknown numbers widen the interval in the second order only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.planning import margins, sensitivity
from dither.planning.margins import Floats
from dither.planning.releases.base import Coarse, Collection, Noise, Release, not_null
from dither.query.functions.base import Facts
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.resolve.shapes import constant
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

_STEPS, _FEWEST = 1 << 21, 1 << 16
_HALVINGS, _CLOSE = 44, 1e-3
PARTS = 64  # an unknown number gets this part of 1 - confidence


@dataclass(frozen=True)
class Moments(Release):
    """The cells of one column, or of two; `degrees` has one entry for each column."""

    grids: tuple[Quantised, ...]
    degrees: tuple[int, ...]
    max_rows: int
    nullable: tuple[Expression, ...]  # rows count in which none of them is NULL

    @property
    def empty_value(self) -> tuple[int, ...]:
        return (0,) * self.cells

    @property
    def cells(self) -> int:
        return math.prod(degree + 1 for degree in self.degrees)

    @property
    def _whole(self) -> int:
        """What a row adds to all cells together before they are rounded."""
        return math.prod(grid.steps**degree for grid, degree in zip(self.grids, self.degrees, strict=True))

    @cached_property
    def step(self) -> int:
        """The step to which cells are rounded: a power of two, 1 if they are not."""
        most = max(_STEPS >> (self.max_rows - 1).bit_length(), _FEWEST)
        return 1 << max(0, (-(-self._whole // most) - 1).bit_length())

    @property
    def scale(self) -> float:
        """What a row adds to all cells together, in steps."""
        return self._whole / self.step

    @property
    def row(self) -> int:
        rounded = 0 if self.step == 1 else self.cells
        return (2 * self._whole + self.step * rounded) // (2 * self.step)

    @cached_property
    def measure(self) -> Sums:
        most = (2 * self._whole + self.step) // (2 * self.step)
        places = [_place(grid) for grid in self.grids]
        factors = [
            [_bernstein(place, grid.steps, degree, i) for i in range(degree + 1)]
            for place, grid, degree in zip(places, self.grids, self.degrees, strict=True)
        ]
        products = factors[0] if len(factors) == 1 else [Call("mul", (a, b)) for a in factors[0] for b in factors[1]]
        grids = [Quantised(each, Fraction(0), Fraction(self.step), most) for each in products]
        known = [not_null(each) for each in self.nullable]
        where = Call("and", tuple(known)) if len(known) > 1 else known[0] if known else None
        return Sums(tuple(Cell(grid, linear=1) for grid in grids), self.max_rows, where)

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        columns = " and ".join(dict.fromkeys(show_expression(grid.expression) for grid in self.grids))
        return f"{self.cells} moments of {columns}"


def _place(grid: Quantised) -> Expression:
    """Returns q as an expression: the same operations as those of Quantised."""
    high = grid.low + grid.step * grid.steps
    above: Expression = Call("clamp", (grid.expression, constant(grid.low), constant(high)))
    above = Call("sub", (above, constant(grid.low))) if grid.low else above
    above = Call("div", (above, constant(grid.step))) if grid.step != 1 else above
    return Call("least", (Call("floor", (Call("add", (above, Literal(Fraction(1, 2)))),)), Literal(grid.steps)))


def _bernstein(q: Expression, steps: int, degree: int, i: int) -> Expression:
    """Returns C(d, i) q^i (R - q)^(d - i)."""
    factors: list[Expression] = [Literal(math.comb(degree, i))] if 0 < i < degree else []
    factors += [q] * i + [Call("sub", (Literal(steps), q))] * (degree - i)
    product = factors[0]
    for factor in factors[1:]:
        product = Call("mul", (product, factor))
    return product


def grid_of(x: Expression, aggregate: Aggregate, collection: Collection) -> Quantised:
    """Returns the grid of a column whose moments are asked for."""
    return sensitivity.square_grid(x, collection.facts(x), aggregate, collection.may_be_cut)


def note_grid(x: Expression, grid: Quantised, collection: Collection) -> None:
    """Notes that margins leave out clipping, and the steps to which values are rounded if nobody declared them."""
    facts: Facts = collection.facts(x)
    collection.note_bounds(x)
    if sensitivity.rounding_error(grid, facts):
        collection.note(Coarse(x, grid.step))


# --- polynomials as weighted sums of cells ----------------------------------------------------------------------


@cache
def weights(degree: int, power: int) -> tuple[float, ...]:
    """Returns the weights of the cells in z^power.

    >>> weights(2, 1), weights(2, 2), weights(4, 4)
    ((-1.0, 0.0, 1.0), (1.0, -1.0, 1.0), (1.0, -1.0, 1.0, -1.0, 1.0))
    """
    found = []
    for i in range(degree + 1):
        terms = (
            Fraction(math.comb(power, k) * 2**k * (-1) ** (power - k) * math.comb(i, k), math.comb(degree, k))
            for k in range(power + 1)
        )
        found.append(float(sum(terms, Fraction(0))))
    return tuple(found)


def bernstein(u: float, degree: int) -> Floats:
    """Returns what a row at u adds to each cell."""
    return np.array([math.comb(degree, i) * u**i * (1 - u) ** (degree - i) for i in range(degree + 1)])


@dataclass(frozen=True)
class Range:
    """Numbers that are known to lie between `low` and `high`, one for each group."""

    low: Floats
    high: Floats

    @classmethod
    def of(cls, value: Floats) -> Range:
        return cls(value, value)

    @classmethod
    def around(cls, off: Floats) -> Range:
        return cls(-off, off)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Range) -> Range:
        return Range(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Range | float) -> Range:
        if not isinstance(other, Range):
            ends = self.low * other, self.high * other
        else:
            pairs = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
            ends = np.minimum.reduce(pairs), np.maximum.reduce(pairs)
        return Range(np.minimum(*ends), np.maximum(*ends))

    def power(self, n: int) -> Range:
        """Returns the n-th power, which is not negative if n is even."""
        ends = self.low**n, self.high**n
        low, high = np.minimum(*ends), np.maximum(*ends)
        inside = (self.low < 0) & (self.high > 0) & (n % 2 == 0)
        return Range(np.where(inside, 0.0, low), high)

    @property
    def size(self) -> Floats:
        return np.maximum(np.abs(self.low), np.abs(self.high))


@dataclass(frozen=True)
class Weighted:
    """A weighted sum of cells, in rows: its noisy value and its weights, as far as they are known."""

    value: Range
    weights: Range  # a row for each cell, a column for each group

    def __add__(self, other: Weighted) -> Weighted:
        return Weighted(self.value + other.value, self.weights + other.weights)

    def __sub__(self, other: Weighted) -> Weighted:
        return Weighted(self.value - other.value, self.weights - other.weights)

    def __mul__(self, other: Range | float) -> Weighted:
        return Weighted(self.value * other, self.weights * other)


class Sample:
    """The noisy cells of one release: powers of its columns, the number of rows, and intervals for quotients of them."""

    def __init__(self, noise: Noise, noisy: NDArray[Any]) -> None:
        if not isinstance(noise.of, Moments):
            raise TypeError("moments are read from a release of moments")
        self.release, self.noise = noise.of, noise
        self.cells: Floats = noisy.astype(np.float64).T / self.release.scale
        self.rows: Floats = self.cells.sum(axis=0)
        self.size: Floats = np.maximum(self.rows, 1.0)
        first = [self._point(self._z(powers)).value.low for powers in np.eye(len(noise.of.degrees), dtype=int).tolist()]
        self.means = [np.clip(each / self.size, -1.0, 1.0) for each in first]

    def _z(self, powers: Sequence[int]) -> Floats:
        vector = np.ones(1)
        for degree, power in zip(self.release.degrees, powers, strict=True):
            vector = np.outer(vector, np.array(weights(degree, power))).ravel()
        return vector[:, None] * np.ones_like(self.rows)

    def _point(self, vector: Floats) -> Weighted:
        return Weighted(Range.of((vector * self.cells).sum(axis=0)), Range.of(vector))

    def centred(self, *powers: int) -> Weighted:
        """Returns the sum of (z - mean)^a (w - mean)^b, by the noisy means."""
        total = np.zeros_like(self.cells)
        for place in np.ndindex(*(power + 1 for power in powers)):
            factor = np.ones_like(self.rows)
            for power, k, mean in zip(powers, place, self.means, strict=True):
                factor = factor * math.comb(power, k) * (-mean) ** (power - k)
            total = total + factor * self._z(place)
        return self._point(total)

    def reach(self, confidence: float) -> Floats:
        """Returns how far the number of rows may be off."""
        scales = np.full((self.release.cells, 1), self.noise.scale / self.release.scale)
        off = margins.reach(scales, confidence, self.noise.gaussian) + self.release.cells / self.release.scale
        rounded = 0.0 if self.release.step == 1 else self.release.cells / (2 * self.release.scale)
        wide: Floats = (np.full_like(self.rows, off[0]) + rounded * np.maximum(self.rows, 0.0)) / (1 - min(rounded, 0.5))
        return wide

    def floor(self, sums: Weighted) -> Floats:
        """Returns the standard deviation of the noise in a mean: less than that cannot be told from 0."""
        noise = math.sqrt(self.noise.variance) / self.release.scale
        wide: Floats = np.sqrt((sums.weights.size**2).sum(axis=0)) * noise / self.size
        return wide

    def mean(self, column: int, confidence: float) -> Range:
        """Returns the possible means of a column, less the noisy one."""
        powers = [int(column == each) for each in range(len(self.means))]
        return self.solve(self.centred(*powers), self.count, (-1.0 - self.means[column], 1.0 - self.means[column]), confidence)

    def variance(self, column: int, off: Range) -> Weighted:
        """Returns the sum of (z - m)^2 for a mean m that is `off` from the noisy one."""
        one, two = ([power * (column == each) for each in range(len(self.means))] for power in (1, 2))
        return self.centred(*two) - self.centred(*one) * off * 2.0 + self.count * off.power(2)

    @property
    def count(self) -> Weighted:
        """The number of rows."""
        return self.centred(*(0 for _ in self.means))

    def solve(self, above: Weighted, below: Weighted, limits: tuple[Any, Any], confidence: float) -> Range:
        """Returns the t = above / below that are possible, within the limits. `below` is never negative."""
        low, high = (np.zeros_like(self.rows) + end for end in limits)
        doubt = (1 - confidence) / PARTS
        most = np.maximum(self.rows + self.reach(1 - doubt), 1.0)  # rounding to steps moves a cell by half of one for each row
        step = 1 / self.release.scale
        moved = step + (0.0 if self.release.step == 1 else most * step / 2)

        def impossible(t: Floats, upper: bool) -> NDArray[np.bool_]:
            rest = above - below * Range.of(t)
            sizes = rest.weights.size
            off = -rest.value.high if upper else rest.value.low
            off = off - sizes.sum(axis=0) * moved - 1e-12 * most * (1 + np.abs(t))
            return margins.beyond(sizes * (self.noise.scale * step), off, 1 - confidence - doubt, self.noise.gaussian)

        guess = (above.value.low + above.value.high) / np.maximum(below.value.low + below.value.high, 1e-300)
        ends = [_edge(impossible, pair, guess, upper) for upper, pair in ((False, (low, high)), (True, (high, low)))]
        return Range(np.minimum(*ends), np.maximum(*ends))


def _edge(
    impossible: Callable[[Floats, bool], NDArray[np.bool_]], limits: tuple[Floats, Floats], guess: Floats, upper: bool
) -> Floats:
    """Returns how far the impossible t reach from the first limit towards the second: the limit itself where it is possible."""
    near, far = limits
    sure = impossible(near, upper)
    for _ in range(_HALVINGS):
        if np.all(~sure | (np.abs(far - near) <= _CLOSE * np.abs(near - guess))):
            break  # close enough to `near`, which is the safe side
        middle = near + (far - near) / 2
        out = impossible(middle, upper) & sure
        near, far = np.where(out, middle, near), np.where(out, far, middle)
    return near
