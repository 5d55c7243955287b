"""SUM, AVG and the counts beside them, from one joint release. With x on its grid as q = 0..R:

    A = sum of q        B = sum of R - q        C = sum of R where x is NULL (only if COUNT(*) is asked for and x may be NULL)

A row moves the three by exactly R together, so they cost as much as one count:
COUNT(x) = (A + B)/R, COUNT(*) = (A + B + C)/R, SUM = low COUNT(x) + step A, AVG = low + range A/(A + B).
A SUM alone is one cell that a row moves by max(|low|, |high|). With a public number of rows n (replace neighbours) A alone
gives SUM and AVG. CLIPPED(x), the share of values outside the bounds, is the mean of 0 and 1. GEOMEAN(x) is the exponential of
the mean of LN(x), for bounds above 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import show_decimal
from dither.planning import margins, sensitivity
from dither.planning.releases import parts
from dither.planning.releases.base import (
    SPREADS,
    Bounds,
    Cells,
    Collection,
    Kind,
    Linear,
    Noise,
    Number,
    Reading,
    Release,
    Rounded,
    Term,
    is_whole,
    noise_reach,
    not_null,
    weighted_sum,
)
from dither.planning.releases.parts import Split
from dither.query.functions.base import Facts
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.resolve.shapes import constant
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

_MEANS = frozenset(("avg", "clipped", "geomean", *SPREADS))  # always read from the joint release


@dataclass(frozen=True)
class Joint(Release):
    """A, B and C of a column."""

    x: Expression
    grid: Quantised
    max_rows: int
    rows: Expression | None = None  # the rows by whose number a unit is cut; None: all
    nulls: bool = False  # with C
    optional: bool = False  # x may be NULL, and no cell counts such rows
    alone: bool = False  # A only: the number of rows is public
    outside: bool = False  # x is 1 for values outside their bounds

    @property
    def empty_value(self) -> tuple[int, ...]:
        return (0,) * self.cells

    @cached_property
    def measure(self) -> Sums:
        q = self.grid
        cells = [Cell(q, linear=1)]
        cells += [] if self.alone else [Cell(q, constant=q.steps, linear=-1)]
        cells += [Cell(q, null=q.steps)] if self.nulls else []
        return Sums(tuple(cells), self.max_rows, self.rows)

    @property
    def row(self) -> int:
        return self.grid.steps

    @property
    def cells(self) -> int:
        return len(self.measure.cells)

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        if self.outside:
            return "counts of values outside and inside the bounds" + (", and of NULLs" if self.nulls else "")
        about = show_expression(self.x) + (" and what is missing to its upper bound" if self.cells > 1 else "")
        return f"sums of {about}{', and NULLs' if self.nulls else ''}, in steps of {show_decimal(self.grid.step)}"


@dataclass(frozen=True)
class Total(Release):
    """A sum without a count: one cell, in steps from zero."""

    x: Expression
    grid: Quantised
    max_rows: int
    rows: Expression | None = None  # the rows by whose number a unit is cut; None: all

    @property
    def _first(self) -> int:
        return int(self.grid.low / self.grid.step)

    @property
    def empty_value(self) -> tuple[int, ...]:
        return (0,)

    @cached_property
    def measure(self) -> Sums:
        cell = Cell(self.grid, constant=self._first, linear=1)
        return Sums((cell,), self.max_rows, self.rows)

    @property
    def row(self) -> int:
        return max(abs(self._first), abs(self._first + self.grid.steps), 1)

    @property
    def signed(self) -> bool:
        return self._first < 0

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        return f"sum of {show_expression(self.x)}, in steps of {show_decimal(self.grid.step)}"


# --- which columns share a release ------------------------------------------------------------------------------


def share(collection: Collection) -> None:
    """Adds a release for each set of parts, and one for each other column with a mean, or a sum and a count of its rows."""
    parts.share_sums(collection)
    lowered = [_mean(one, collection) for one in collection.aggregates]
    functions: dict[Expression, set[str]] = {}
    for one, original in zip(lowered, collection.aggregates, strict=True):
        if one.argument is not None and one.function in {"sum", *_MEANS}:
            functions.setdefault(one.argument, set()).add(original.function)
    counts = [one for one in lowered if one.function == "count"]
    everyone = any(collection.counts_every_row(one.argument) for one in counts)
    counted = {one.argument for one in counts if one.argument is not None}
    for one in lowered:
        x = one.argument
        if x is None or x not in functions or x in collection.joint or x in collection.split:
            continue
        if functions[x] & _MEANS or everyone or x in counted or collection.public_rows is not None:
            _joint(collection, x, one, functions[x], everyone)


def _joint(collection: Collection, x: Expression, aggregate: Aggregate, functions: set[str], everyone: bool) -> None:
    facts = collection.facts(x)
    nulls = everyone and facts.nullable and collection.public_rows is None
    alone = collection.public_rows is not None and not facts.nullable and not functions & set(SPREADS)
    optional, outside = facts.nullable and not nulls, functions == {"clipped"}
    grid = sensitivity.sum_grid(x, facts, aggregate, collection.may_be_cut)
    rows = collection.rows_that_count(not_null(x) if optional else None)
    collection.joint[x] = collection.add(Joint(x, grid, collection.max_rows, rows, nulls, optional, alone, outside))
    if not outside and functions != {"geomean"}:
        collection.note_bounds(x)


def joint(collection: Collection, x: Expression) -> tuple[int, Joint]:
    """Returns the joint release of a column, and its place."""
    place = collection.joint[x]
    release = collection.releases[place]
    if not isinstance(release, Joint):
        raise TypeError("a joint release was expected here")
    return place, release


def _mean(aggregate: Aggregate, collection: Collection) -> Aggregate:
    """Rewrites CLIPPED(x) as the mean of a 0/1 expression: two complementary counts; and GEOMEAN(x) as the mean of LN(x). Moves
    every FILTER inside."""
    aggregate = collection.lower(aggregate)
    x = aggregate.argument
    if aggregate.function == "geomean" and x is not None:
        ends = (constant(end) for end in sensitivity.bounds(collection.facts(x), aggregate))
        inside = Call("clamp", (x, *ends)) if collection.facts(x).clipped else x
        return Aggregate(aggregate.name, "avg", Call("ln", (inside,)), span=aggregate.span)
    if aggregate.function != "clipped" or x is None:
        return aggregate
    low, high = sensitivity.bounds(collection.facts(x), aggregate)
    least, most = (int(end) if end.denominator == 1 else end for end in (low, high))
    outside = Call("or", (Call("lt", (x, Literal(least))), Call("gt", (x, Literal(most)))))
    share = Call("case", (outside, Literal(1), Call("is_null", (x,)), Literal(None), Literal(0)))
    return Aggregate(aggregate.name, "avg", share, span=aggregate.span)


# --- how they are read ------------------------------------------------------------------------------------------


def read_mean(aggregate: Aggregate, collection: Collection) -> Reading:
    x = _mean(aggregate, collection).argument or collection.argument(aggregate)
    if x in collection.split:
        return ratio(aggregate, x, collection)
    place, release = joint(collection, x)
    if release.alone:
        return _over(aggregate, place, release, collection, Fraction(1, collection.public_rows or 1))
    return ratio(aggregate, x, collection)


def read_geometric(aggregate: Aggregate, collection: Collection) -> Reading:
    collection.note_bounds(collection.argument(aggregate))
    return GeometricMean(aggregate, read_mean(aggregate, collection))


def ratio(aggregate: Aggregate, x: Expression, collection: Collection) -> Ratio:
    """Returns the reading of the mean of a column with a joint release."""
    facts = collection.facts(x)
    if x in collection.split:
        (place, first), q = collection.split[x], sensitivity.sum_grid(x, facts, aggregate, collection.may_be_cut)
        return Ratio(aggregate, place, q, 1, sensitivity.rounding_error(q, facts), first)
    place, release = joint(collection, x)
    least = collection.least_rows if not facts.nullable else 1
    return Ratio(aggregate, place, release.grid, least, sensitivity.rounding_error(release.grid, facts))


def read_sum(aggregate: Aggregate, collection: Collection) -> Reading:
    x = collection.argument(aggregate)
    facts = collection.facts(x)
    q = sensitivity.sum_grid(x, facts, aggregate, collection.may_be_cut)
    if x in collection.split:
        return _part(aggregate, x, q, collection)
    if x not in collection.joint:
        if (q.low / q.step).denominator == 1:
            return _total(aggregate, x, q, collection)
        _joint(collection, x, aggregate, {"sum"}, False)  # zero is not on the grid
    place, release = joint(collection, x)
    if release.alone:
        return _over(aggregate, place, release, collection, Fraction(1))
    return _from_both(aggregate, x, q, (place, 0), collection)


def _from_both(aggregate: Aggregate, x: Expression, q: Quantised, at: tuple[int, int], collection: Collection) -> Linear:
    """Returns a sum from A and B, which stand `at` (release, cell): low (A + B)/R + step A = high A/R + low B/R."""
    (place, first), facts = at, collection.facts(x)
    terms = (Term(place, first, (q.low + q.step * q.steps) / q.steps), Term(place, first + 1, q.low / q.steps))
    moved = sensitivity.rounding_error(q, facts)
    counted = tuple(Term(place, cell, Fraction(1, q.steps)) for cell in (first, first + 1)) if moved else ()
    nonzero = tuple(term for term in terms if term.weight)
    whole, step, parted = is_whole(q, facts), _step(q, facts), collection.may_be_cut
    return Linear(aggregate, nonzero, whole=whole, each=moved, counted=counted, step=step, parted=parted)


def _part(aggregate: Aggregate, x: Expression, q: Quantised, collection: Collection) -> Linear:
    """Returns the sum of a part of a release of several (parts.py)."""
    place, first = collection.split[x]
    release = collection.releases[place]
    if isinstance(release, Split) and release.counted:
        return _from_both(aggregate, x, q, (place, first), collection)
    return _from_zero(aggregate, x, q, (place, first), collection)


def _total(aggregate: Aggregate, x: Expression, q: Quantised, collection: Collection) -> Linear:
    rows = collection.rows_that_count(not_null(x) if collection.facts(x).nullable else None)
    place = collection.add(Total(x, q, collection.max_rows, rows))
    collection.note_bounds(x)
    return _from_zero(aggregate, x, q, (place, 0), collection)


def _from_zero(aggregate: Aggregate, x: Expression, q: Quantised, at: tuple[int, int], collection: Collection) -> Linear:
    """Returns a sum from one cell, in steps from zero."""
    facts = collection.facts(x)
    moved = sensitivity.rounding_error(q, facts)
    if moved:  # a SUM alone has no count, so an error that grows with the rows cannot be in its margin
        collection.note(Rounded(x, q.step, moved))
    whole, step, parted = is_whole(q, facts), _step(q, facts), collection.may_be_cut
    return Linear(aggregate, (Term(*at, q.step),), whole=whole, step=step, parted=parted)


def _step(q: Quantised, facts: Facts) -> Fraction | None:
    """Returns the step of which sums of rows are multiples, if it was declared."""
    step = facts.step
    return step if step is not None and {(step / q.step).denominator, (q.low / step).denominator} == {1} else None


def _over(aggregate: Aggregate, place: int, release: Joint, collection: Collection, part: Fraction) -> Linear:
    """Returns the reading over a public number of rows n: low n + step A, times `part` (1/n for the mean)."""
    rows, q, facts = collection.public_rows or 1, release.grid, collection.facts(release.x)
    whole = is_whole(q, facts) and part == 1 and aggregate.function == "sum"
    slack = sensitivity.rounding_error(q, facts) * rows * part
    return Linear(aggregate, (Term(place, 0, q.step * part),), q.low * rows * part, whole, slack=slack)


@dataclass(frozen=True)
class Ratio(Reading):
    """A mean as low + range A / (A + B), where A sums u = (x - low)/range on the grid and B sums 1 - u.

    Value: the centred form mid + range/2 (A - B) / max(A + B, floor), which is defined for every group, clipped to the bounds.
    `least` is a public minimum of rows (1 without one).
    Margin (Fieller): for the true share r the noise of (1 - r) A - r B is known exactly, and its exact value is 0, so
    {r : |A - r (A + B)| <= m(r)} holds r with the confidence, m(r) being the reach of (1 - r) X - r Y for the two noises.
    m falls up to r = 1/2 and rises after it (Proschan 1965), so over an interval it is largest at an end: from the whole of
    [0, 1] the interval is narrowed step by step and always holds the set, each end by the larger of m there and m at
    A / (A + B). `slack`: how far the grid may have moved the mean.
    The interval always lies within the bounds, so a margin is always stated: small groups have one as often as large ones,
    and it holds as often (margins.py, *Stated margins*). Where A or B came out negative, the interval is widened by that
    of the same parts held at 0. `unsure` are groups that may be empty: a mean of no rows is undefined, and no margin holds.
    """

    aggregate: Aggregate
    noise: int
    grid: Quantised
    least: int = 1
    slack: Fraction = Fraction(0)
    first: int = 0  # the cell of A; that of B is the next one
    by_rows = True

    def parts(self, noisy: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns A and B in each group."""
        cells = noisy[self.noise][:, self.first : self.first + 2].astype(np.float64)
        return cells[:, 0], cells[:, 1]

    def share(self, noisy: Cells) -> NDArray[np.float64]:
        """Returns the mean's place between the bounds, from 0 to 1."""
        a, b = self.parts(noisy)
        share: NDArray[np.float64] = np.clip(0.5 + (a - b) / (2 * np.maximum(a + b, float(self.grid.steps * self.least))), 0, 1)
        return share

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        low, width = float(self.grid.low), float(self.grid.step * self.grid.steps)
        values: list[Number] = (low + width * self.share(noisy)).tolist()
        return values

    def interval(
        self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the lowest and the highest share that are possible given the noisy parts."""
        a, b = self.parts(noisy)
        low, high = self._possible(noises[self.noise], a, b, confidence)
        if np.all((a >= 0) & (b >= 0)):
            return low, high
        held = self._possible(noises[self.noise], np.maximum(a, 0), np.maximum(b, 0), confidence)
        return np.fmin(low, held[0]), np.fmax(high, held[1])

    def _possible(
        self, noise: Noise, a: NDArray[np.float64], b: NDArray[np.float64], confidence: Fraction
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the ends of the possible shares, NaN where there is none."""
        low, high, total = np.zeros_like(a), np.ones_like(a), a + b
        middle = self.reach(noise, np.clip(a / np.where(total > 0, total, 1.0), 0, 1), confidence)
        for _ in range(4):
            ends = (np.nan_to_num(each, nan=0.5) for each in (low, high))
            first, last = (np.maximum(self.reach(noise, each, confidence), middle) for each in ends)
            low, high = fieller(a, total, (first, last), low, high)
        return low, high

    @staticmethod
    def reach(noise: Noise, r: NDArray[np.float64], confidence: Fraction) -> NDArray[np.float64]:
        return margins.two((1 - r) * noise.scale, r * noise.scale, float(confidence), noise.gaussian) + 1

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction, rows: int = 0) -> NDArray[np.bool_]:
        """Returns the groups that may have at most `rows` rows, by the noisy numbers; none if a minimum is public."""
        a, b = self.parts(noisy)
        if self.least > 1:
            return np.zeros(len(a), dtype=bool)
        each = tuple(Term(self.noise, self.first + cell, Fraction(1)) for cell in (0, 1))
        few: NDArray[np.bool_] = a + b - noise_reach(each, noises, confidence) <= float(rows * self.grid.steps)
        return few

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        low, high = self.interval(noises, noisy, confidence)
        share = self.share(noisy)
        width = float(self.grid.step * self.grid.steps)
        wide = width * np.maximum(np.abs(high - share), np.abs(share - low)) + float(self.slack)
        return [float(each) for each in np.minimum(wide, width * np.maximum(share, 1 - share))]

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        low, high = self.interval(noises, noisy, confidence)
        start, width, slack = float(self.grid.low), float(self.grid.step * self.grid.steps), float(self.slack)
        return np.maximum(start + width * low - slack, start), np.minimum(start + width * high + slack, start + width)

    def smallest(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.float64]:
        """Returns the lower bound if it is above 0, and a single step over the most rows if it is 0."""
        above, rows = self.quotient(noises)
        if above.smallest(noises, noisy, confidence)[0] < 0 or self.grid.low > 0:
            return np.full(len(noisy[self.noise]), float(self.grid.low) if self.grid.low > 0 else -math.inf)
        most = weighted_sum(rows.terms, noisy) + noise_reach(rows.terms, noises, confidence)
        least: NDArray[np.float64] = float(self.grid.step) / np.maximum(most, 1.0)
        return least

    def quotient(self, noises: Sequence[Noise]) -> tuple[Linear, Linear]:
        steps, a, b = self.grid.steps, self.first, self.first + 1
        rows = (Term(self.noise, a, Fraction(1, steps)), Term(self.noise, b, Fraction(1, steps)))
        high = self.grid.low + self.grid.step * steps
        above = (Term(self.noise, a, high / steps), Term(self.noise, b, self.grid.low / steps))
        each = Linear(self.aggregate, above, each=self.slack, counted=rows if self.slack else ())
        return each, Linear(self.aggregate, rows)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin at `rows` rows in the group, for any mean within the bounds."""
        if rows is None:
            return None
        reach = float(self.reach(noises[self.noise], np.zeros(1), confidence)[0])
        return float(self.grid.step * self.grid.steps) * min(1.0, reach / (self.grid.steps * rows)) + float(self.slack)


@dataclass(frozen=True)
class GeometricMean(Reading):
    """The exponential of a mean of logarithms, and of its interval."""

    aggregate: Aggregate
    logarithm: Reading
    by_rows = True
    sign = "typically ±"  # it depends on the mean

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        return [math.exp(value) for value in self.logarithm.values(noises, noisy)]

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        low, high = self.logarithm.bounds(noises, noisy, confidence)
        return np.exp(low), np.exp(high)

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        (low, high), value = self.bounds(noises, noisy, confidence), np.array(self.values(noises, noisy))
        return [float(each) for each in np.maximum(np.abs(high - value), np.abs(value - low)) * (1 + 1e-12)]

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.bool_]:
        return self.logarithm.unsure(noises, noisy, confidence)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin for a mean in the middle of the logarithms."""
        wide = self.logarithm.predicted(noises, rows, confidence)
        if wide is None:
            return None
        empty = [np.zeros((1, noise.of.cells)) for noise in noises]
        return math.exp(float(self.logarithm.values(noises, empty)[0])) * math.expm1(min(wide, 500.0))


def fieller(
    a: NDArray[np.float64],
    total: NDArray[np.float64],
    reach: tuple[NDArray[np.float64], NDArray[np.float64]],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the r in [low, high] with -reach[1] <= a - r total <= reach[0]: NaN where there is none, all of [low, high] where
    the total is not positive."""
    safe = np.where(total > 0, total, 1.0)
    down, up = np.maximum((a - reach[0]) / safe, low), np.minimum((a + reach[1]) / safe, high)
    down, up = np.where(total > 0, down, low), np.where(total > 0, up, high)
    return np.where(down <= up, down, np.nan), np.where(down <= up, up, np.nan)


KIND = Kind({"sum": read_sum, "avg": read_mean, "clipped": read_mean, "geomean": read_geometric}, share)
