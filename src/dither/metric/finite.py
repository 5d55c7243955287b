"""Metric privacy on a finite set, for any distance.

    Pr[release = o] proportional to e^(-epsilon/2 * d(x, o))        for the points o of the set

Why it is private: between x and y the weight of an output changes by at most e^(epsilon/2 * d(x, y)), by the triangle
inequality, and so does the normaliser, which is a sum of such weights. Together epsilon * d(x, y). The half is for the
normaliser: the set has ends, so it is not the same sum from every point.

On a grid with d = |i - i'| + |j - j'| the law is a product: each coordinate is drawn by itself.
Reference: McSherry and Talwar, FOCS 2007, with the score -d; Chatzikokolakis, Andres, Bordenabe and Palamidessi, PETS 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Integers, Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.derived import Finite
from dither.exact.numbers import Number, between, items, rational, whole
from dither.mechanisms import base
from dither.metric import price
from dither.metric.price import PerDistance, Ratio, coordinates
from dither.privacy.proof import Verified

_MOST = 1000  # points: distances are compared three by three
_WIDEST = 1 << 20


@dataclass(frozen=True)
class MetricExponential:
    """Releases one of finitely many public points, near ones with more probability.

    `distance`: "euclid" or "manhattan" for points that are tuples of numbers, or a function of two points.
    Guarantee: epsilon times the distance between any two points. A value that is not among the points counts as the first.

    >>> rooms = MetricExponential(("A", "B", "C"), lambda a, b: abs(ord(a) - ord(b)), epsilon=40)
    >>> rooms.release("B"), str(rooms.loss())
    ('B', 'ε = 40 per step')
    """

    points: tuple[Hashable, ...]
    epsilon: Fraction
    unit: str
    rooted: bool  # whether `table` holds squares of the distances
    table: tuple[tuple[Fraction, ...], ...] = field(repr=False)
    places: dict[Hashable, int] = field(repr=False, compare=False)

    def __init__(
        self,
        points: Iterable[Hashable],
        distance: str | Callable[[Any, Any], Number] = "euclid",
        *,
        epsilon: Number,
        unit: str = "step",
    ) -> None:
        listed = tuple(items(points, "points", fix="list the points."))
        if not 2 <= len(listed) <= _MOST or not _different(listed):
            raise ArgumentError(f"points must be 2 to {_MOST} different points.", fix="list each point once.")
        stated = PerDistance(epsilon, unit)
        measure = _measure(distance)
        table = tuple(tuple(rational(measure(x, y), "distance") for y in listed) for x in listed)
        rooted = isinstance(distance, str) and distance == "euclid"
        _check_metric(table, rooted)
        object.__setattr__(self, "points", listed)
        object.__setattr__(self, "epsilon", stated.epsilon)
        object.__setattr__(self, "unit", stated.unit)
        object.__setattr__(self, "rooted", rooted)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "places", {point: place for place, point in enumerate(listed)})

    def release(self, exact: Any) -> Any:
        """Returns one of the points."""
        return self.points[self.law(exact).draw()]

    def law(self, exact: Any) -> Law:
        """Returns the exact law of the index of the released point."""
        row = self.table[self._place(exact)]
        if not self.rooted:
            return Categorical(tuple(-self.epsilon / 2 * far for far in row))
        return Finite(tuple(_share(self.epsilon / 2, row, place) for place in range(len(row))))

    def _place(self, point: Any) -> int:
        try:
            return self.places.get(point, 0)
        except TypeError:
            raise ArgumentError("A point must be one of the points, and this is none.", fix="give a point.") from None

    def loss(self) -> PerDistance:
        """Returns the price: epsilon per unit of distance."""
        return PerDistance(self.epsilon, self.unit)

    def claim(self, x: Any, y: Any) -> balls.Real:
        """Returns epsilon times the distance of two points."""
        far = self.table[self._place(x)][self._place(y)]
        return lambda: balls.ball(self.epsilon) * (balls.ball(far).sqrt() if self.rooted else balls.ball(far))

    def between(self, x: Any, y: Any) -> Fraction:
        """Returns the epsilon between two points; rounded up."""
        return balls.above(self.claim(x, y))

    def ratio(self, x: Any, y: Any) -> Ratio:
        """Returns the largest log ratio over all outputs, by going through them."""
        left, right = self.law(x), self.law(y)
        ratios = [abs(left.pmf(k).log() - right.pmf(k).log()) for k in range(len(self.points))]
        worst = max(range(len(ratios)), key=lambda k: balls.upper(ratios[k]))
        return Ratio(ratios[worst], worst)

    def verify_pairs(self, pairs: Iterable[tuple[Any, Any]]) -> Verified:
        """Checks the price on pairs of points, certified. `dt.verify` calls this."""
        return price.verify(self, pairs)

    def true_price(self) -> Fraction:
        """Returns the largest log ratio per unit of distance over all pairs and outputs, rounded up: at most epsilon.

        Between epsilon/2 and epsilon, depending on how much the normaliser moves.
        """
        pairs = [(x, y) for place, x in enumerate(self.points) for y in self.points[:place]]

        def largest() -> arb:
            found = [self.ratio(x, y).value * balls.ball(self.epsilon) / self.claim(x, y)() for x, y in pairs]
            return max(found, key=balls.upper)

        return min(balls.above(largest), self.epsilon)

    def margin(self, confidence: Number) -> float:
        """Returns how far the released point may be from the true one, wherever that is."""
        sure = between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        far = np.array([[float(each) for each in row] for row in self.table])
        lengths = np.sqrt(far) if self.rooted else far
        return max(_reach(row, float(self.epsilon) / 2, float(sure)) for row in lengths)


@dataclass(frozen=True)
class MetricGrid:
    """Releases a cell of a grid; the distance of two cells is the number of steps between them, along the axes.

    Guarantee: epsilon per step. A cell outside the grid counts as the nearest one.

    >>> MetricGrid(10, 10, epsilon=60).release((3, 4))
    (3, 4)
    """

    width: int
    height: int
    epsilon: Fraction

    def __init__(self, width: int, height: int, *, epsilon: Number) -> None:
        for name, value in (("width", width), ("height", height)):
            if whole(value, name, least=1) > _WIDEST:
                raise ArgumentError(f"{name} must be at most 2^20.", fix="use larger cells.")
        object.__setattr__(self, "width", int(width))
        object.__setattr__(self, "height", int(height))
        object.__setattr__(self, "epsilon", PerDistance(epsilon).epsilon)

    def release(self, exact: Any) -> Any:
        """Returns a cell, or an array of them (one row each) for an array of cells."""
        if not isinstance(exact, np.ndarray):
            column, row = self._cell(exact)
            return int(_around(column, self.width, self.epsilon).draw()), int(_around(row, self.height, self.epsilon).draw())
        if exact.ndim != 2 or exact.shape[1] != 2:
            raise ArgumentError(
                "exact must have one row of two whole numbers for each cell.", fix="give an array of shape (n, 2)."
            )
        sizes = ((0, self.width), (1, self.height))
        return np.stack([self._along(base.whole_array(exact[:, axis]), size) for axis, size in sizes], axis=1)

    def _along(self, cells: Any, size: int) -> Integers:
        inside = np.clip(cells, 0, size - 1).astype(np.int64)
        released = np.empty(len(inside), dtype=np.int64)
        for cell in np.unique(inside):
            here = inside == cell
            released[here] = _around(int(cell), size, self.epsilon).draw(int(here.sum()))
        return released

    def _cell(self, exact: Any) -> tuple[int, int]:
        column, row = (base.single(each) for each in coordinates(exact, "exact"))
        return min(max(column, 0), self.width - 1), min(max(row, 0), self.height - 1)

    def loss(self) -> PerDistance:
        """Returns the price: epsilon per step."""
        return PerDistance(self.epsilon)

    def between(self, x: Any, y: Any) -> Fraction:
        """Returns the epsilon between two cells."""
        return self.epsilon * self._apart(x, y)

    def _apart(self, x: Any, y: Any) -> int:
        (a, b), (c, d) = self._cell(x), self._cell(y)
        return abs(a - c) + abs(b - d)

    def claim(self, x: Any, y: Any) -> balls.Real:
        """Returns epsilon times the distance of two cells."""
        return lambda: balls.ball(self.between(x, y))

    def laws(self, exact: Any) -> tuple[Law, Law]:
        """Returns the exact laws of the column and of the row of the released cell, which are independent."""
        column, row = self._cell(exact)
        return _around(column, self.width, self.epsilon), _around(row, self.height, self.epsilon)

    def ratio(self, x: Any, y: Any) -> Ratio:
        """Returns the largest log ratio over all outputs: the sum of the largest of each coordinate."""
        total, sizes = arb(0), (self.width, self.height)
        signed: list[list[arb]] = [
            [left.pmf(k).log() - right.pmf(k).log() for k in range(size)]
            for left, right, size in zip(self.laws(x), self.laws(y), sizes, strict=True)
        ]
        highest = sum((max(each, key=balls.upper) for each in signed), total)
        lowest = sum((min(each, key=balls.lower) for each in signed), total)
        return Ratio(highest if balls.upper(highest) >= -balls.lower(lowest) else -lowest, None)

    def verify_pairs(self, pairs: Iterable[tuple[Any, Any]]) -> Verified:
        """Checks the price on pairs of cells, certified. `dt.verify` calls this."""
        return price.verify(self, pairs)

    def margin(self, confidence: Number) -> int:
        """Returns how many steps the released cell may be from the true one, wherever that is, as a bound.

        The sum of two coordinates' margins at half the allowance each.
        """
        sure = between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        return sum(_axis_margin(size, float(self.epsilon) / 2, float((1 + sure) / 2)) for size in (self.width, self.height))


def _around(place: int, size: int, epsilon: Fraction) -> Categorical:
    return Categorical(tuple(-epsilon / 2 * abs(place - k) for k in range(size)))


def _axis_margin(size: int, rate: float, sure: float) -> int:
    """Returns the largest margin along one axis: that of an end or of the middle is the widest."""
    cells = np.arange(size)
    return max(int(_reach(np.abs(cells - place).astype(float), rate, sure)) for place in {0, size // 2})


def _reach(lengths: Any, rate: float, sure: float) -> float:
    """Returns the smallest distance with at least `sure` of the weight within it."""
    order = np.argsort(lengths)
    weights = np.cumsum(np.exp(-rate * (lengths[order] - lengths[order][0])))
    place = int(np.searchsorted(weights, sure * weights[-1] * (1 + 1e-12)))
    return float(lengths[order][min(place, len(order) - 1)])


def _share(rate: Fraction, row: Sequence[Fraction], place: int) -> balls.Real:
    """Returns the probability of one point, for squares of distances."""

    def weight(square: Fraction) -> arb:
        return (-balls.ball(rate) * balls.ball(square).sqrt()).exp()

    return lambda: weight(row[place]) / sum((weight(each) for each in row), arb(0))


def _different(points: tuple[Any, ...]) -> bool:
    try:
        return len(set(points)) == len(points)
    except TypeError:
        raise ArgumentError("A point must not change.", fix="give texts, numbers or tuples, no lists.") from None


def _measure(distance: str | Callable[[Any, Any], Number]) -> Callable[[Any, Any], Any]:
    if callable(distance):
        return partial(_called, distance)
    if not isinstance(distance, str) or distance not in ("euclid", "manhattan"):
        raise ArgumentError('distance must be "euclid", "manhattan" or a function of two points.', fix="give one of these.")
    power = 2 if distance == "euclid" else 1
    return lambda x, y: sum(abs(a - b) ** power for a, b in zip(*_vectors(x, y), strict=True))


def _called(distance: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    try:
        return distance(x, y)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        what = f"distance failed on two of the points ({type(error).__name__})."
        raise ArgumentError(what, fix="give a function of two points that returns a number.") from None


def _vectors(x: Any, y: Any) -> tuple[list[Fraction], list[Fraction]]:
    found = _vector(x), _vector(y)
    if len(found[0]) != len(found[1]):
        raise ArgumentError("All points must have the same number of coordinates.", fix="give tuples of one length.")
    return found


def _vector(point: Any) -> list[Fraction]:
    if not isinstance(point, tuple):
        raise ArgumentError("A point must be a tuple of numbers for this distance.", fix="give tuples, or a function.")
    return [rational(each, "coordinate") for each in point]


def _check_metric(table: tuple[tuple[Fraction, ...], ...], rooted: bool) -> None:
    """Refuses what is not a distance: the guarantee rests on the triangle inequality."""
    size = len(table)
    for i, row in enumerate(table):
        if row[i] != 0 or any(row[j] != table[j][i] or (row[j] <= 0 and i != j) for j in range(size)):
            raise ArgumentError(
                "distance must be 0 from a point to itself, positive between others, and the same both ways.",
                fix="check the function.",
            )
    if rooted:
        return  # a Euclidean distance keeps the triangle inequality
    common = _scaled(table)
    for middle in range(size):
        if (common > common[:, middle : middle + 1] + common[middle : middle + 1, :]).any():
            raise ArgumentError(
                "distance must keep the triangle inequality, and a detour through a third point is shorter.",
                fix="use the length of the shortest way between two points.",
            )


def _scaled(table: tuple[tuple[Fraction, ...], ...]) -> Any:
    """Returns the distances as whole numbers of any size, in one common unit."""
    unit = 1
    for far in {far.denominator for row in table for far in row}:
        unit = unit * far // np.gcd(unit, far) if unit < 2**62 and far < 2**62 else unit * far
    return np.array([[int(far * unit) for far in row] for row in table], dtype=object)
