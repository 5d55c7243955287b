"""The smallest price that gives the margin asked for: a search over plans, which reads no rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dither.errors import Blank, DitherError, Fix
from dither.exact.law import search
from dither.exact.numbers import show
from dither.planning.outputs import Computed, outputs
from dither.planning.plan import Plan

_LOWEST = -6  # the first price tried is 10^-6
_DIGITS = 1000


def cheapest(
    build: Callable[[Fraction], Plan], least: Fraction, most: Fraction, margin: Fraction, sure: Fraction, rows: int | None
) -> Plan:
    """The plan with the smallest epsilon (three digits) whose margins are all within `margin`; from `least` to `most`."""
    _can_tell(build(most), rows)
    count = 0
    while _price(count) < most:
        count += _DIGITS * 9 // 10
    last = search(lambda i: _price(i) >= most, 0, count)

    def holds(index: int) -> bool:
        return widest(build(min(_price(index), most)), sure, rows) <= margin

    if not holds(last):
        raise DitherError(
            f"A margin of {show(margin)} needs more than ε = {show(most)}, which is all there is.",
            fix="ask for a wider margin, fewer outputs or a lower confidence.",
        )
    found = min(_price(search(holds, 0, last)), most)
    return build(found) if found >= least else replace(build(least), rounded_up=True)


def _price(index: int) -> Fraction:
    """The index-th number with three significant digits, from 10^-6 upwards.

    >>> [str(_price(i)) for i in (0, 900)]
    ['1/1000000', '1/100000']
    """
    decade, digits = divmod(index, 900)
    return Fraction(100 + digits, 100) * Fraction(10) ** (_LOWEST + decade)


def widest(plan: Plan, sure: Fraction, rows: int | None) -> float:
    """The largest predicted margin of all outputs; for a quantile it is a rank, in rows."""
    found = 0.0
    for output in outputs(plan):
        found = max(found, output.rank(plan, sure) or output.predicted(plan, rows, sure) or 0.0)
    return found


def _can_tell(plan: Plan, rows: int | None) -> None:
    made = outputs(plan)
    for output in made:
        if isinstance(output, Computed) and output.predicted(plan, rows or 1, Fraction(1, 2)) is None:
            raise DitherError(
                f"The margin of {output.name} depends on the noisy numbers it is computed from, and cannot be foretold.",
                fix=Fix(
                    "ask with {epsilon} instead of {margin}, or ask for the numbers themselves.",
                    epsilon=Blank(),
                    margin=Blank(),
                ),
            )
    readings = [reading for output in made for reading in output.readings]
    if rows is None and any(reading.by_rows for reading in readings):
        raise DitherError(
            "The margin of a mean depends on how many rows it is taken over, and no row is read to find out.",
            fix=Fix("say how many rows a group has at least: {assume_rows}, or declare rows in the catalog.", assume_rows=1000),
        )
    if not readings:
        raise DitherError(
            "No output of this question has a margin.",
            fix=Fix("ask with {epsilon} instead of {margin}.", epsilon=Blank(), margin=Blank()),
        )
