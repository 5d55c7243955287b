"""SUM, AVG and the counts beside them, from one joint release. With x on its grid as q = 0..R:

    A = sum of q        B = sum of R - q        C = sum of R where x is NULL (only if COUNT(*) is asked and x may be NULL)

A row moves the three by exactly R together, so they cost what one count costs:
COUNT(x) = (A + B)/R, COUNT(*) = (A + B + C)/R, SUM = low COUNT(x) + step A, AVG = low + range A/(A + B).
A SUM alone is one cell that a row moves by max(|low|, |high|). With a public number of rows n (replace neighbours) A alone
gives SUM and AVG. CLIPPED(x), the share of values outside the bounds, is the mean of 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import decimal
from dither.planning import margins, sensitivity
from dither.planning.releases.base import (
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
    on_whole,
    present,
    reached,
)
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
_MEANS = frozenset(("avg", "clipped", *SPREADS))  # read from the joint release, whatever else is asked


@dataclass(frozen=True)
class Joint(Release):
    """A, B and C of a column."""

    x: Expression
    grid: Quantised
    max_rows: int
    nulls: bool = False  # with C
    optional: bool = False  # x may be NULL, and such rows are not counted
    alone: bool = False  # just A: the number of rows is public
    outside: bool = False  # x is 1 for values outside their bounds

    @property
    def nothing(self) -> tuple[int, ...]:
        return (0,) * self.cells

    @cached_property
    def measure(self) -> Sums:
        q = self.grid
        found = [Cell(q, linear=1)]
        found += [] if self.alone else [Cell(q, constant=q.steps, linear=-1)]
        found += [Cell(q, null=q.steps)] if self.nulls else []
        return Sums(tuple(found), self.max_rows, present(self.x) if self.optional else None)

    @property
    def row(self) -> int:
        return self.grid.steps

    @property
    def cells(self) -> int:
        return len(self.measure.cells)

    @property
    def worth(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        if self.outside:
            return "counts of values outside and inside the bounds" + (", and of NULLs" if self.nulls else "")
        about = show_expression(self.x) + (" and what is missing to its upper bound" if self.cells > 1 else "")
        return f"sums of {about}{', and NULLs' if self.nulls else ''}, in steps of {decimal(self.grid.step)}"


@dataclass(frozen=True)
class Total(Release):
    """A sum without a count: one cell, in steps from zero."""

    x: Expression
    grid: Quantised
    max_rows: int
    optional: bool

    @property
    def _first(self) -> int:
        return int(self.grid.low / self.grid.step)

    @property
    def nothing(self) -> tuple[int, ...]:
        return (0,)

    @cached_property
    def measure(self) -> Sums:
        cell = Cell(self.grid, constant=self._first, linear=1)
        return Sums((cell,), self.max_rows, present(self.x) if self.optional else None)

    @property
    def row(self) -> int:
        return max(abs(self._first), abs(self._first + self.grid.steps), 1)

    @property
    def signed(self) -> bool:
        return self._first < 0

    @property
    def worth(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        return f"sum of {show_expression(self.x)}, in steps of {decimal(self.grid.step)}"


# --- which columns share a release ------------------------------------------------------------------------------


def share(question: Collection) -> None:
    """A joint release for each column of which a mean is asked, or a sum beside a count of the same rows."""
    asked = [_mean(one, question) for one in question.aggregates]
    functions: dict[Expression, set[str]] = {}
    for one, written in zip(asked, question.aggregates, strict=True):
        if one.argument is not None and one.function in {"sum", *_MEANS}:
            functions.setdefault(one.argument, set()).add(written.function)
    counts = [one for one in asked if one.function == "count"]
    everyone = any(question.everywhere(one.argument) for one in counts)
    counted = {one.argument for one in counts if one.argument is not None}
    for one in asked:
        x = one.argument
        if x is None or x not in functions or x in question.joint:
            continue
        if functions[x] & _MEANS or everyone or x in counted or question.known is not None:
            _joint(question, x, one, functions[x], everyone)


def _joint(question: Collection, x: Expression, asked: Aggregate, functions: set[str], everyone: bool) -> None:
    known = question.facts(x)
    nulls = everyone and known.nullable and question.known is None
    alone = question.known is not None and not known.nullable and not functions & set(SPREADS)
    optional, outside = known.nullable and not nulls, functions == {"clipped"}
    grid = sensitivity.summed(x, known, asked)
    question.joint[x] = question.add(Joint(x, grid, question.max_rows, nulls, optional, alone, outside))
    if not outside:
        question.note_bounds(x)


def joint(question: Collection, x: Expression) -> tuple[int, Joint]:
    """The joint release of a column, and its place."""
    place = question.joint[x]
    found = question.releases[place]
    if not isinstance(found, Joint):
        raise TypeError("a joint release was expected here")
    return place, found


def _mean(asked: Aggregate, question: Collection) -> Aggregate:
    """CLIPPED(x) as the mean of a 0/1 expression: two complementary counts. Anything else as it is, FILTER inside."""
    asked = question.lowered(asked)
    x = asked.argument
    if asked.function != "clipped" or x is None:
        return asked
    low, high = sensitivity.bounds(question.facts(x), asked)
    least, most = (int(end) if end.denominator == 1 else end for end in (low, high))
    outside = Call("or", (Call("lt", (x, Literal(least))), Call("gt", (x, Literal(most)))))
    share = Call("case", (outside, Literal(1), Call("is_null", (x,)), Literal(None), Literal(0)))
    return Aggregate(asked.name, "avg", share, span=asked.span)


# --- how they are read ------------------------------------------------------------------------------------------


def read_mean(asked: Aggregate, question: Collection) -> Reading:
    x = _mean(asked, question).argument or question.argument(asked)
    place, release = joint(question, x)
    if release.alone:
        return _over(asked, place, release, question, Fraction(1, question.known or 1))
    return ratio(asked, x, question)


def ratio(asked: Aggregate, x: Expression, question: Collection) -> Ratio:
    """The mean of a column with a joint release."""
    place, release = joint(question, x)
    known = question.facts(x)
    least = question.least if not known.nullable else 1
    return Ratio(asked, place, release.grid, least, sensitivity.moved(release.grid, known))


def read_sum(asked: Aggregate, question: Collection) -> Reading:
    x = question.argument(asked)
    known = question.facts(x)
    q = sensitivity.summed(x, known, asked)
    if x not in question.joint:
        if (q.low / q.step).denominator == 1:
            return _total(asked, x, q, question)
        _joint(question, x, asked, {"sum"}, False)  # zero is not on the grid
    place, release = joint(question, x)
    if release.alone:
        return _over(asked, place, release, question, Fraction(1))
    # low (A + B)/R + step A = high A/R + low B/R
    terms = (Term(place, 0, (q.low + q.step * q.steps) / q.steps), Term(place, 1, q.low / q.steps))
    moved = sensitivity.moved(q, known)
    counted = tuple(Term(place, cell, Fraction(1, q.steps)) for cell in (0, 1)) if moved else ()
    kept = tuple(term for term in terms if term.weight)
    return Linear(asked, kept, whole=on_whole(q, known), each=moved, counted=counted)


def _total(asked: Aggregate, x: Expression, q: Quantised, question: Collection) -> Linear:
    known = question.facts(x)
    place = question.add(Total(x, q, question.max_rows, known.nullable))
    question.note_bounds(x)
    moved = sensitivity.moved(q, known)
    if moved:  # no count is released with a SUM alone, so what grows with the rows cannot be part of its margin
        question.note(Rounded(x, q.step, moved))
    return Linear(asked, (Term(place, 0, q.step),), whole=on_whole(q, known))


def _over(asked: Aggregate, place: int, release: Joint, question: Collection, part: Fraction) -> Linear:
    """Over a public number of rows: low n + step A, times `part` (1/n for the mean)."""
    rows, q, known = question.known or 1, release.grid, question.facts(release.x)
    whole = on_whole(q, known) and part == 1 and asked.function == "sum"
    slack = sensitivity.moved(q, known) * rows * part
    return Linear(asked, (Term(place, 0, q.step * part),), q.low * rows * part, whole, slack=slack)


@dataclass(frozen=True)
class Ratio(Reading):
    """A mean as low + range A / (A + B), where A sums u = (x - low)/range on the grid and B sums 1 - u.

    Value: the centred form mid + range/2 (A - B) / max(A + B, floor), which no group can make undefined, brought into the
    bounds. `least` is a public minimum of rows (1 without one).
    Margin (Fieller): for the true share r the noise of (1 - r) A - r B is known exactly, and its exact value is 0, so
    {r : |A - r (A + B)| <= m(r)} holds r with the confidence, m(r) being the reach of (1 - r) X - r Y for the two noises.
    m falls up to r = 1/2 and rises after it (Proschan 1965), so over an interval it is largest at an end: from the whole of
    [0, 1] the interval is narrowed step by step and always holds the set. `slack`: what the grid may have moved the mean by.
    No margin where the noisy number of rows is within its own margin of zero (`unsure`): a mean of nothing is undefined. That
    is read from the released numbers alone. A margin is stated and wrong no more often than the confidence leaves; but a tiny
    group has one only where its noise is large, so of those that are stated more are wrong: at epsilon 1 and 95 %, three in ten
    with one row, one in ten with three, and no more than one in twenty from about ten on.
    """

    asked: Aggregate
    noise: int
    grid: Quantised
    least: int = 1
    slack: Fraction = Fraction(0)
    by_rows = True

    def parts(self, noisy: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A and B in each group."""
        cells = noisy[self.noise]
        return cells[:, 0].astype(np.float64), cells[:, 1].astype(np.float64)

    def share(self, noisy: Cells) -> NDArray[np.float64]:
        a, b = self.parts(noisy)
        found: NDArray[np.float64] = np.clip(0.5 + (a - b) / (2 * np.maximum(a + b, float(self.grid.steps * self.least))), 0, 1)
        return found

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        low, width = float(self.grid.low), float(self.grid.step * self.grid.steps)
        found: list[Number] = (low + width * self.share(noisy)).tolist()
        return found

    def interval(
        self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest share that the noisy parts leave possible."""
        noise = noises[self.noise]
        a, b = self.parts(noisy)
        total = a + b
        low, high = np.zeros_like(a), np.ones_like(a)
        for _ in range(3):
            reach = np.maximum(self._reach(noise, low, confidence), self._reach(noise, high, confidence))
            low, high = fieller(a, total, reach, low, high)
        return low, high

    @staticmethod
    def _reach(noise: Noise, r: NDArray[np.float64], confidence: Fraction) -> NDArray[np.float64]:
        return margins.two((1 - r) * noise.scale, r * noise.scale, float(confidence), noise.gaussian) + 1

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction, rows: int = 0) -> NDArray[np.bool_]:
        """Where the noisy numbers leave open that there are no more than `rows` rows; nowhere with a public minimum."""
        a, b = self.parts(noisy)
        if self.least > 1:
            return np.zeros(len(a), dtype=bool)
        each = tuple(Term(self.noise, cell, Fraction(1)) for cell in (0, 1))
        few: NDArray[np.bool_] = a + b - reached(each, noises, confidence) <= float(rows * self.grid.steps)
        return few

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        low, high = self.interval(noises, noisy, confidence)
        share = self.share(noisy)
        width = float(self.grid.step * self.grid.steps)
        wide = width * np.maximum(np.abs(high - share), np.abs(share - low)) + float(self.slack)
        return stated(wide, self.unsure(noises, noisy, confidence))

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        low, high = self.interval(noises, noisy, confidence)
        start, width, slack = float(self.grid.low), float(self.grid.step * self.grid.steps), float(self.slack)
        few = self.unsure(noises, noisy, confidence)
        return np.where(few, -math.inf, start + width * low - slack), np.where(few, math.inf, start + width * high + slack)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """At `rows` rows in the group, wherever between the bounds the mean lies."""
        if rows is None:
            return None
        reach = float(self._reach(noises[self.noise], np.zeros(1), confidence)[0])
        return float(self.grid.step * self.grid.steps) * min(1.0, reach / (self.grid.steps * rows)) + float(self.slack)


def stated(wide: NDArray[np.float64], unsure: NDArray[np.bool_]) -> list[float | None]:
    """The margins, None where it is unsure that there is anything to have one."""
    return [None if few else float(margin) for margin, few in zip(wide, unsure, strict=True)]


def fieller(
    a: NDArray[np.float64],
    total: NDArray[np.float64],
    reach: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where |a - r total| <= reach within [low, high]; the whole interval where the total is too small to say, or nothing
    is left (noise beyond its margin: any statement is then wrong, and the widest is the safest)."""
    safe = np.where(total > 0, total, 1.0)
    down, up = np.maximum((a - reach) / safe, low), np.minimum((a + reach) / safe, high)
    keep = (total > 0) & (down <= up)
    return np.where(keep, down, low), np.where(keep, up, high)


KIND = Kind({"sum": read_sum, "avg": read_mean, "clipped": read_mean}, share)
