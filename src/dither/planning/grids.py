"""The public grid a number is put on before it is added up. The choice depends on the catalog and the question alone.

    declared step         as declared, from the declared low end (whole numbers over a wide range: as without one)
    no step, added up     the smallest power of two (1 or more for whole numbers) that leaves at most 2^22 steps
    no step, squared      the same with 2^11 steps, and for quantiles with 2^12

Why 2^22: sums over 2^40 rows stay within 2^62, where arrays of 64-bit integers and their noise live. Why 2^11: the same for
squares. Wider declared grids are added up in the engine's 128 bits and get their noise one number at a time; a grid of more
than 2^40 steps could leave 128 bits when squared or weighted, and is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dither.errors import QueryError
from dither.query.column_rules import LARGEST_BOUND
from dither.query.facts import Facts
from dither.query.nodes import Aggregate, Expression
from dither.query.work import Quantised

SUMS, SQUARES, BINS = 1 << 22, 1 << 11, 1 << 12
WIDEST = 1 << 40
ROWS = 1 << 40
NARROW = 1 << 62


def fits(row: int) -> bool:
    """Whether 2^40 rows that count up to `row` each stay within 64 bits with room for noise.

    >>> fits(SUMS), fits(SQUARES**2), fits(SUMS + 1)
    (True, True, False)
    """
    return row * ROWS <= NARROW


def summed(argument: Expression, facts: Facts, asked: Aggregate) -> Quantised:
    """For sums and means: the declared step if there is one."""
    low, high = bounds(facts, asked)
    if facts.step is None or (facts.whole and facts.step == 1 and high - low > SUMS):
        return _power_of_two(argument, low, high, SUMS, facts.whole)
    steps = max(1, math.ceil((high - low) / facts.step))
    if steps > WIDEST:
        raise QueryError(
            f"{title(asked)} has {steps} steps of {facts.step}, and at most 2^40 can be added up.",
            span=asked.span,
            fix="declare a coarser step, or narrower bounds.",
        )
    return Quantised(argument, low, facts.step, steps)


def coarse(argument: Expression, facts: Facts, asked: Aggregate, most: int) -> Quantised:
    """For squares and quantiles: the declared step if it has few enough steps."""
    low, high = bounds(facts, asked)
    if facts.step is not None and math.ceil((high - low) / facts.step) <= most:
        return Quantised(argument, low, facts.step, max(1, math.ceil((high - low) / facts.step)))
    return _power_of_two(argument, low, high, most, facts.whole)


def moved(q: Quantised, facts: Facts) -> Fraction:
    """How far the grid may move a value, where the grid is the planner's choice: half a step.

    Rounding to a step that was declared is part of what is asked, as clipping to declared bounds is; plans say so.
    """
    return Fraction(0) if q.step == facts.step or (facts.whole and q.step == 1) else q.step / 2


def bounds(facts: Facts, asked: Aggregate) -> tuple[Fraction, Fraction]:
    """The public interval, or the error that asks for it."""
    if facts.low is None or facts.high is None:
        if not facts.numeric:
            what = f"{title(asked)} needs a number, and its argument is {facts.kind}."
            raise QueryError(what, span=asked.span, fix="cast it, or count it.")
        raise QueryError(
            f"{title(asked)} has no bounds, so one person could change it without limit.",
            span=asked.span,
            fix="declare bounds for the column in the catalog, or write CLAMP(x, low, high) inside, with your own limits.",
        )
    if max(abs(facts.low), abs(facts.high)) > LARGEST_BOUND or 0 < facts.high - facts.low < 1 / LARGEST_BOUND:
        raise QueryError(
            f"{title(asked)} has bounds beyond 2^500, or less than 2^-500 apart: doubles cannot square or divide that.",
            span=asked.span,
            fix="write CLAMP(x, low, high) inside, with your own limits, or ask in other units.",
        )
    return facts.low, facts.high


def title(asked: Aggregate) -> str:
    """The function as people write it."""
    return f"{asked.function.upper()}({asked.name})" if asked.function != "count" else "COUNT"


def _power_of_two(argument: Expression, low: Fraction, high: Fraction, most: int, whole: bool) -> Quantised:
    """Multiples of a power of two around [low, high]: exact in doubles, and 0 is on the grid."""
    step = Fraction(1) if whole else _not_below((high - low) / most)
    while True:
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= most:
            return Quantised(argument, first * step, step, max(1, last - first))
        step *= 2


def _not_below(value: Fraction) -> Fraction:
    """The smallest power of two that is at least `value` (1 for a point interval)."""
    if value <= 0:
        return Fraction(1)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** (exponent - 1)
    while power < value:
        power *= 2
    return power
