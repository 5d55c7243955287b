"""Finds the law of computed outputs: weighted sums of aggregates, their quotients, and weighted sums of quotients.

`read` turns an expression into a `Form`: a weighted sum of cells plus weighted quotients of such sums. Cells that several
aggregates share are combined first, so COUNT(*) - COUNT(x) of one joint release is its NULL cell and has that cell's noise.

    a - b, 2 * a - 3 * b            one weighted sum: its margin is the reach of its law (margins.py), in every group the same
    SUM(x) / SUM(y), 100 * f / n    one quotient: the interval of margins.py, which always lies within public limits
    AVG(x) - AVG(y), SUM(x) / n - a several quotients: below

Several quotients. With true N_i, D_i and r_i = N_i / D_i, U_i = N^_i - r_i D^_i is noise alone, and E_i = D^_i - D_i too. Since
1/D^ = 1/D - E/(D D^), the weighted sum of N^_i / D^_i is off by

    sum of w_i U_i / D_i   minus   sum of w_i U_i E_i / (D_i D^_i)

The first is a weighted sum of noise with weights that are fixed, though unknown: over all r_i and D_i that are possible, each
cell's weight is largest somewhere, and the reach grows with each. The second is small in large groups: |U_i| is at most m(r_i)
where r_i is in its interval, and |E_i| at most its reach. The interval of each r_i and the reach of each U_i and E_i get a
small part of 1 - confidence, the first sum the rest (union bound). What lies outside the sum of the single intervals is cut
off too. All these statements hold at once, so no choice between two intervals is made after looking.

Nothing here depends on whether a group looks large, so small groups have margins as often as large ones. Other expressions,
such as products, are left to the interval rules of outputs.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dither.planning import margins
from dither.planning.margins import Floats
from dither.planning.releases.base import Bounds, Cells, Linear, Noise, Reading, Term, noise_reach, weighted_sum
from dither.planning.releases.count import Rows, Units
from dither.planning.releases.parts import Parts
from dither.planning.releases.sums import Joint
from dither.query.nodes import Call, Column, Expression, Literal

_PARTS = 64  # a side condition gets at most this part of 1 - confidence
_WRITTEN = 2  # quotients with divisors that may each come out as 0, with at most 1/3


@dataclass(frozen=True)
class Growing:
    """How far a grid may have moved a sum: by at most `each` for every row that `rows` counts."""

    each: Fraction
    rows: tuple[Term, ...]


@dataclass(frozen=True)
class Sum:
    """A constant plus a weighted sum of cells.

    `rounded`: how far the shown value may be from it, because aggregates are rounded before they are added. `unit`: the truth
    is a multiple of it, if known. `slack` and `growing`: how far grids may have moved it.
    """

    terms: tuple[Term, ...] = ()
    constant: Fraction = Fraction(0)
    rounded: Fraction = Fraction(0)
    unit: Fraction | None = Fraction(0)
    slack: Fraction = Fraction(0)
    growing: tuple[Growing, ...] = ()

    @classmethod
    def of(cls, linear: Linear) -> Sum:
        unit = linear.unit
        exact = unit is None or all((w / unit).denominator == 1 for w in (linear.constant, *(t.weight for t in linear.terms)))
        rounded = Fraction(0) if unit is None or exact else unit / 2
        growing = (Growing(linear.each, linear.counted),) if linear.counted else ()
        return cls(linear.terms, linear.constant, rounded, unit, linear.slack, growing)

    def __mul__(self, by: Fraction) -> Sum:
        if not by:
            return Sum()
        size = abs(by)
        return Sum(
            tuple(Term(term.noise, term.cell, term.weight * by) for term in self.terms),
            self.constant * by,
            self.rounded * size,
            None if self.unit is None else self.unit * size,
            self.slack * size,
            tuple(Growing(one.each * size, one.rows) for one in self.growing),
        )

    def __add__(self, other: Sum) -> Sum:
        return Sum.total((self, other))

    @classmethod
    def total(cls, sums: Sequence[Sum]) -> Sum:
        """Adds many sums at once."""
        every = cls(tuple(term for one in sums for term in one.terms))
        units = [one.unit for one in sums if one.unit is not None]
        return cls(
            tuple(Term(*place, weight) for place, weight in sorted(every.weights.items()) if weight),
            sum((one.constant for one in sums), Fraction(0)),
            sum((one.rounded for one in sums), Fraction(0)),
            greatest(units) if len(units) == len(sums) else None,
            sum((one.slack for one in sums), Fraction(0)),
            tuple(each for one in sums for each in one.growing),
        )

    @cached_property
    def weights(self) -> Mapping[tuple[int, int], Fraction]:
        weights: dict[tuple[int, int], Fraction] = {}
        for term in self.terms:
            weights[term.noise, term.cell] = weights.get((term.noise, term.cell), Fraction(0)) + term.weight
        return weights

    def weight(self, place: tuple[int, int]) -> Fraction:
        return self.weights.get(place, Fraction(0))

    def moved_by(self, places: int) -> Sum:
        """Returns the same sum over the noises that many places later."""

        def later(terms: tuple[Term, ...]) -> tuple[Term, ...]:
            return tuple(Term(term.noise + places, term.cell, term.weight) for term in terms)

        return replace(self, terms=later(self.terms), growing=tuple(Growing(one.each, later(one.rows)) for one in self.growing))

    def reach(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """Returns how far its noise reaches."""
        return noise_reach(self.terms, noises, confidence)

    def estimate(self, noisy: Cells) -> Floats:
        return weighted_sum(self.terms, noisy) + float(self.constant)

    def moved(self, noises: Sequence[Noise], noisy: Cells, doubt: Fraction) -> Floats:
        """Returns how far grids may have moved it in each group. Wrong with probability at most `doubt` for each `growing`."""
        wide = np.full(len(noisy[0]) if noisy else 1, float(self.slack))
        for one in self.growing:
            rows = weighted_sum(one.rows, noisy) + noise_reach(one.rows, noises, 1 - doubt)
            wide = wide + float(one.each) * np.maximum(rows, 0.0)
        return wide


def greatest(numbers: Iterable[Fraction]) -> Fraction:
    """Returns the greatest number of which all are multiples.

    >>> greatest([Fraction(1, 4), Fraction(1, 6)]), greatest([Fraction(0), Fraction(-3)])
    (Fraction(1, 12), Fraction(3, 1))
    """
    given = list(numbers)
    below = math.lcm(*(number.denominator for number in given))
    return Fraction(math.gcd(*(int(number * below) for number in given)), below)


@dataclass(frozen=True)
class Quotient:
    """`above` divided by `below`. `by_rows`: `below` counts the rows of the group. `written`: the question divides, and shows
    NULL where the noisy divisor is 0; a mean always has a value. `one_group`: both are about the same group."""

    above: Sum
    below: Sum
    by_rows: bool
    written: bool
    one_group: bool = True

    @property
    def places(self) -> list[tuple[int, int]]:
        return sorted({(term.noise, term.cell) for term in (*self.above.terms, *self.below.terms)})

    def limits(self, noises: Sequence[Noise], by_unit: bool) -> tuple[Fraction, Fraction] | None:
        """Returns public limits of the quotient, if its cells give any: a part of the rows is at most all, or mediants."""
        most = self._most(noises, by_unit)
        if most is not None:
            return min(most, Fraction(0)), max(most, Fraction(0))
        pairs = [(self.above.weight(place), self.below.weight(place)) for place in self.places]
        pairs += [(self.above.constant, self.below.constant)] if self.above.constant or self.below.constant else []
        if any(noises[noise].of.signed for noise, _ in self.places) or any(d <= 0 for _, d in pairs):
            return None
        each = [n / d for n, d in pairs]
        return min(each), max(each)

    def _most(self, noises: Sequence[Noise], by_unit: bool) -> Fraction | None:
        """Returns the limit of COUNT(*) FILTER (...) / COUNT(*): the rows above are some of those below. A unit with more than
        max_rows rows counts for slightly less in a joint release: each of its cells is rounded down."""
        if not self.one_group or len(self.above.terms) != 1 or self.above.constant or self.below.constant:
            return None
        (top,), base = self.above.terms, {(term.noise, term.weight) for term in self.below.terms}
        part = noises[top.noise].of
        if len(base) != 1 or not isinstance(part, (Rows, Units, Parts)):
            return None
        ((place, weight),) = base
        every, most = noises[place].of, top.weight * part.row
        if isinstance(every, Rows) and every.x is None and part.rows_per_unit <= every.max_rows:
            return most / weight
        if isinstance(every, Joint) and not every.optional and len(self.below.terms) == every.cells:
            steps = every.row - (every.cells if by_unit else 0)
            return most / (weight * steps) if steps > 0 and part.rows_per_unit <= every.max_rows else None
        return None

    def interval(self, noises: Sequence[Noise], by_unit: bool, noisy: Cells, confidence: Fraction) -> Bounds:
        """Returns an interval for the quotient in each group, always bounded."""
        known = self.limits(noises, by_unit)
        side = len(self.above.growing) + len(self.below.growing) + (known is None)
        doubt = (1 - confidence) / max(_PARTS, 2 * side)
        sure = confidence + side * doubt
        n, d = self.above.estimate(noisy), self.below.estimate(noisy)
        moved = self.above.moved(noises, noisy, doubt), self.below.moved(noises, noisy, doubt)
        if known is None:  # the divisor is a multiple of a public unit
            high = (np.abs(n) + self.above.reach(noises, 1 - doubt) + moved[0]) / float(self._unit())
            low = -high
        else:
            low, high = (np.full_like(n, float(end)) for end in known)
        cells = self._cells(noises, moved)
        least, most = margins.quotient(cells, n, d, low, high, float(sure))
        held = [np.maximum(cell, 0) if not noise.of.signed else cell for noise, cell in zip(noises, noisy, strict=True)]
        if any(np.any(noisy[noise][:, cell] < 0) and not noises[noise].of.signed for noise, cell in self.places):
            n, d = self.above.estimate(held), self.below.estimate(held)
            other = margins.quotient(cells, n, d, low, high, float(sure))
            least, most = np.fmin(least, other[0]), np.fmax(most, other[1])
        return np.where(np.isnan(least), low, least), np.where(np.isnan(most), high, most)

    def _cells(self, noises: Sequence[Noise], moved: tuple[Floats, Floats]) -> margins.Cells:
        above, below = (np.array([float(part.weight(place)) for place in self.places]) for part in (self.above, self.below))
        scales = np.array([noises[noise].scale for noise, _ in self.places])
        return margins.Cells.of(above, below, scales, noises[self.places[0][0]].gaussian, moved)

    def undefined(self, noises: Sequence[Noise]) -> float:
        """Returns a bound on the probability that the shown divisor is 0 and the true one is not: there is no margin beside
        NULL. A symmetric unimodal variable hits an interval that does not hold its middle with at most 1/3; if it is a sum
        with noise of scale b, with at most tanh(width / 2b)."""
        if not self.written:
            return 0.0
        width = max(2 * self.below.rounded, self._unit())
        widest = max(abs(float(term.weight)) * noises[term.noise].scale for term in self.below.terms)
        return min(1 / 3, math.tanh(float(width) / (2 * widest)))

    def _unit(self) -> Fraction:
        """Returns a number of which the exact divisor is a multiple."""
        return greatest([self.below.constant, *(term.weight for term in self.below.terms)])


@dataclass(frozen=True)
class Form:
    """A weighted sum of cells plus weighted quotients. Its margin comes from their joint law."""

    total: Sum
    quotients: tuple[tuple[Fraction, Quotient], ...] = ()

    def __mul__(self, by: Fraction) -> Form:
        return Form(self.total * by, tuple((weight * by, one) for weight, one in self.quotients) if by else ())

    def __add__(self, other: Form) -> Form:
        """Adds two forms. Quotients with the same divisor become one."""
        joined: list[tuple[Fraction, Quotient]] = list(self.quotients)
        for weight, one in other.quotients:
            same = [i for i, (_, each) in enumerate(joined) if each.below == one.below]
            if same:
                first, each = joined[same[0]]
                joined[same[0]] = (Fraction(1), replace(each, above=each.above * first + one.above * weight))
            else:
                joined.append((weight, one))
        return Form(self.total + other.total, tuple(joined))

    def moved_by(self, places: int) -> Form:
        """Returns the same form over the noises that many places later: those of another group."""
        quotients = tuple(
            (weight, replace(one, above=one.above.moved_by(places), below=one.below.moved_by(places)))
            for weight, one in self.quotients
        )
        return Form(self.total.moved_by(places), quotients)

    @property
    def alone(self) -> bool:
        """Whether it is one quotient and a constant."""
        return len(self.quotients) == 1 and not self.total.terms

    def constant_margin(self, noises: Sequence[Noise], confidence: Fraction) -> float | None:
        """Returns the margin without the grid's part if it is the same in every group: that of a weighted sum."""
        if self.quotients:
            return None
        wide, unit = self.total.reach(noises, confidence) + float(self.total.rounded), self.total.unit
        return float(math.floor(wide / float(unit) + 1e-9) * unit) if unit else wide

    def margins(self, noises: Sequence[Noise], by_unit: bool, noisy: Cells, values: Floats, confidence: Fraction) -> Floats:
        """Returns the margin of each value."""
        stated = 1 - Fraction(sum(one.undefined(noises) for _, one in self.quotients))  # at least this often
        doubt = (1 - confidence) * stated / max(_PARTS, 2 * len(self.total.growing))
        sure = 1 - (1 - confidence) * stated + doubt * len(self.total.growing)
        moved = self.total.moved(noises, noisy, doubt)
        half = self.constant_margin(noises, sure)
        if half is not None:
            return moved + half
        low, high = self._interval(noises, by_unit, noisy, sure)
        return np.maximum(np.maximum(high - values, values - low), 0.0) + moved

    def _interval(self, noises: Sequence[Noise], by_unit: bool, noisy: Cells, confidence: Fraction) -> Bounds:
        if self.alone:
            ((weight, one),) = self.quotients
            ends = [
                float(weight) * end + float(self.total.constant) for end in one.interval(noises, by_unit, noisy, confidence)
            ]
            return np.minimum(*ends), np.maximum(*ends)
        side = 1 + sum(3 + len(one.above.growing) + len(one.below.growing) for _, one in self.quotients)
        doubt = (1 - confidence) / max(_PARTS, 2 * side)
        middle = self.total.estimate(noisy)
        low, high = (middle + sign * self.total.reach(noises, 1 - doubt) for sign in (-1, 1))
        pieces = [_Piece.of(float(w), one, noises, by_unit, noisy, doubt) for w, one in self.quotients]
        for piece in pieces:
            low, high = low + np.minimum(*piece.ends), high + np.maximum(*piece.ends)
            middle = middle + piece.estimate
        wide = self._together(noises, pieces, confidence + side * doubt) + sum(piece.rest for piece in pieces)
        least, most = np.maximum(low, middle - wide), np.minimum(high, middle + wide)
        return np.where(least <= most, least, low), np.where(least <= most, most, high)

    def _together(self, noises: Sequence[Noise], pieces: Sequence[_Piece], confidence: Fraction) -> Floats:
        """Returns the reach of the total and of all U_i / D_i together."""
        sizes: dict[tuple[int, int], Floats] = {}
        for term in self.total.terms:
            sizes[term.noise, term.cell] = np.full_like(pieces[0].estimate, abs(float(term.weight)))
        for piece in pieces:
            for place, size in piece.sizes.items():
                sizes[place] = sizes.get(place, np.zeros_like(size)) + size
        weights = np.array(list(sizes.values()))
        finite = np.where(np.isfinite(weights), weights, 0.0)
        scales = finite * np.array([[noises[noise].scale] for noise, _ in sizes])
        reach = margins.reach(scales, float(confidence), noises[next(iter(sizes))[0]].gaussian) + finite.sum(axis=0)
        return np.where(np.isfinite(weights).all(axis=0), reach, np.inf)

    def predicted(self, noises: Sequence[Noise], by_unit: bool, rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin to expect with so many rows in a group, for all quotients within their limits; None if it depends
        on more than that. Leaves out what grows with rows if there are none."""
        moved = float(self.total.slack) + sum(float(one.each) for one in self.total.growing) * (rows or 0)
        half = self.constant_margin(noises, confidence)
        if half is not None:
            return half + moved
        known = [one.limits(noises, by_unit) for _, one in self.quotients]
        if rows is None or None in known or not all(one.by_rows for _, one in self.quotients):
            return None
        sizes: dict[tuple[int, int], float] = {(t.noise, t.cell): abs(float(t.weight)) for t in self.total.terms}
        for (weight, one), ends in zip(self.quotients, known, strict=True):
            for place in one.places:
                each = max(abs(one.above.weight(place) - r * one.below.weight(place)) for r in ends or ())
                sizes[place] = sizes.get(place, 0.0) + float(abs(weight) * each) / rows
            moved += sum(float(abs(weight) * part.each) for part in one.above.growing)
        terms = tuple(Term(*place, Fraction(size)) for place, size in sizes.items() if size)
        widest = sum(
            float(abs(w) * (high - low)) for (w, _), (low, high) in zip(self.quotients, filter(None, known), strict=True)
        )
        reach = noise_reach(terms, noises, confidence)
        return (reach if self.total.terms else min(reach, widest)) + moved


@dataclass(frozen=True)
class _Piece:
    """One of several quotients: its estimate and interval, the largest weight of each cell in U / D, and what is left over."""

    estimate: Floats
    ends: tuple[Floats, Floats]
    sizes: Mapping[tuple[int, int], Floats]
    rest: Floats

    @classmethod
    def of(cls, w: float, one: Quotient, noises: Sequence[Noise], by_unit: bool, noisy: Cells, doubt: Fraction) -> _Piece:
        n, d = one.above.estimate(noisy), one.below.estimate(noisy)
        low, high = one.interval(noises, by_unit, noisy, 1 - doubt)
        off = one.below.reach(noises, 1 - doubt)
        least = np.where(np.abs(d) > off, np.abs(d) - off, np.nan)  # of |D|
        divisor, shown = np.where(np.isnan(least), 1.0, least), np.where(np.isnan(least), 1.0, d)
        sizes = {
            place: np.maximum(
                *(np.abs(float(one.above.weight(place)) - r * float(one.below.weight(place))) for r in (low, high))
            )
            for place in one.places
        }
        weights = np.array(list(sizes.values()))
        scales = weights * np.array([[noises[noise].scale] for noise, _ in sizes])
        noise = margins.reach(scales, 1 - float(doubt), noises[one.places[0][0]].gaussian) + weights.sum(axis=0)
        moved = one.above.moved(noises, noisy, doubt) + np.maximum(np.abs(low), np.abs(high)) * one.below.moved(
            noises, noisy, doubt
        )
        rest = abs(w) * (noise * off / (divisor * np.abs(shown)) + moved / np.abs(shown))
        unknown = np.where(np.isnan(least), np.inf, 0.0)
        return cls(
            w * n / shown,
            (w * low, w * high),
            {place: abs(w) * size / divisor + unknown for place, size in sizes.items()},
            rest,
        )


def read(expression: Expression, readings: Mapping[str, Reading], noises: Sequence[Noise]) -> Form | None:
    """Returns the form of an expression over aggregates; None if it has none."""
    return combine(expression, lambda name: _read_column(name, readings, noises), lambda call: _counts_rows(call, readings))


def combine(
    expression: Expression, column: Callable[[str], Form | None], by_rows: Callable[[Call], bool] = lambda call: False
) -> Form | None:
    """Returns the form of an expression over columns that have forms. `by_rows`: whether a divisor counts the rows."""
    if isinstance(expression, Literal):
        number = number_of(expression)
        return None if number is None else of_number(number)
    if isinstance(expression, Column):
        return column(expression.name)
    parts = [combine(argument, column, by_rows) for argument in _operands(expression)]
    if any(part is None for part in parts):
        return None
    return _combine(expression, [part for part in parts if part is not None], by_rows)


def of_number(number: Fraction) -> Form:
    """Returns the form of a public number."""
    return Form(Sum(constant=number, unit=abs(number)))


def _operands(call: Call) -> tuple[Expression, ...]:
    """Returns the arguments; x for a divisor NULLIF(x, 0), which is x where the quotient is not NULL."""
    if call.name != "div":
        return call.arguments
    above, below = call.arguments
    if isinstance(below, Call) and below.name == "nullif" and number_of(below.arguments[1]) == 0:
        below = below.arguments[0]
    return above, below


def _read_column(name: str, readings: Mapping[str, Reading], noises: Sequence[Noise]) -> Form | None:
    if name not in readings:
        return None
    linear, quotient = readings[name].linear(noises), readings[name].quotient(noises)
    if linear is not None:
        return Form(Sum.of(linear))
    if quotient is not None:
        return Form(Sum(), ((Fraction(1), Quotient(Sum.of(quotient[0]), Sum.of(quotient[1]), by_rows=True, written=False)),))
    return None


def _combine(call: Call, parts: list[Form], by_rows: Callable[[Call], bool]) -> Form | None:
    if call.name == "neg":
        return parts[0] * Fraction(-1)
    if call.name in ("add", "sub"):
        both = parts[0] + parts[1] * Fraction(1 if call.name == "add" else -1)
        return both if sum(one.written for _, one in both.quotients) <= _WRITTEN else None
    if call.name not in ("mul", "div"):
        return None
    left, right = (None if part.quotients or part.total.terms else part.total.constant for part in parts)
    if call.name == "mul":
        return parts[0] * right if right is not None else parts[1] * left if left is not None else None
    if right is not None:
        return parts[0] * (1 / right) if right else None
    if parts[0].quotients or parts[1].quotients:
        return None
    return Form(Sum(), ((Fraction(1), Quotient(parts[0].total, parts[1].total, by_rows(call), written=True)),))


def _counts_rows(call: Call, readings: Mapping[str, Reading]) -> bool:
    """Whether the divisor is COUNT(*)."""
    below = _operands(call)[1]
    one = readings[below.name].aggregate if isinstance(below, Column) else None
    return one is not None and one.function == "count" and one.argument is None and one.where is None


def number_of(expression: Expression) -> Fraction | None:
    """Returns the number that a literal is."""
    if isinstance(expression, Literal) and isinstance(expression.value, (int, Fraction)) and expression.kind != "bool":
        return Fraction(expression.value)
    return None
