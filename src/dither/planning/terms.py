"""The smallest price that gives the margin asked for: a search over plans, which reads no rows.

The terms of a question: the price or the margin, and what margins are stated with; and what a price means in a catalog.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Blank, DitherError, Fix, QueryError
from dither.exact.laws.base import search
from dither.exact.numbers import Number, between, not_negative, positive, show, whole
from dither.planning.outputs import Computed, outputs
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.privacy.filters import Caps
from dither.query.resolve.relations import Resolved

_LOWEST = -6  # the first price tried is 10^-6
_SEARCH_DIGITS = 1000


def cheapest(
    build: Callable[[Fraction], Plan], least: Fraction, most: Fraction, margin: Fraction, sure: Fraction, rows: int | None
) -> Plan:
    """The plan with the smallest epsilon (three digits) whose margins are all within `margin`; from `least` to `most`."""
    _can_tell(build(most), rows)
    count = 0
    while _price(count) < most:
        count += _SEARCH_DIGITS * 9 // 10
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


_DIGITS = 10**30  # a delta that nobody wrote is rounded down to this many parts


@dataclass(frozen=True)
class Terms:
    """What an analyst may say beside the question, checked: the price or the margin, and what margins are stated with."""

    epsilon: Fraction | None
    delta: Fraction | None
    margin: Fraction | None
    confidence: Fraction
    assume_rows: int | None

    @classmethod
    def of(
        cls,
        epsilon: Number | None,
        delta: Number | None = None,
        margin: Number | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
    ) -> Terms:
        """The terms as they were given to `ask`, `quote` or `suggest`; what breaks its rule is refused, used or not."""
        sure = between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        if (epsilon is None) == (margin is None):
            raise ArgumentError(
                "Name the price or the margin, one of the two.",
                fix=Fix("write {epsilon}, or {margin} for the smallest price.", epsilon="0.1", margin=50),
            )
        return cls(
            None if epsilon is None else positive(epsilon, "epsilon"),
            None if delta is None else not_negative(delta, "delta"),
            None if margin is None else positive(margin, "margin"),
            sure,
            None if assume_rows is None else whole(assume_rows, "assume_rows", least=1),
        )

    def price(self, caps: Caps, epsilon: Fraction | None = None) -> Price:
        """What the epsilon, or this one, means here. Without a delta: the share of the plain sum's delta that it is of all
        epsilon."""
        spend = epsilon or self.epsilon
        if spend is None:
            raise TypeError("terms with a margin have a price for each epsilon that is tried")
        if self.delta is None:
            share = caps.delta_sums * min(spend / caps.epsilon, Fraction(1))
            return Price(spend, Fraction(math.floor(share * _DIGITS), _DIGITS))
        if self.delta and not caps.delta:
            raise ArgumentError("This catalog is pure: its budget has no delta.", fix="leave delta out.")
        return Price(spend, between(self.delta, "delta", 0, 1, open_high=True))

    def rows(self, query: Resolved) -> int | None:
        """How many rows a group is taken to have: what the analyst assumes, or what the catalog declares public."""
        return self.assume_rows or query.rows.public or query.rows.at_least


def plan_answer(query: Resolved, catalog: Catalog, caps: Caps, terms: Terms, text: str) -> Batch:
    """Plans a question at its price, or at the smallest that has the margin wanted. A refusal shows its place in `text`."""
    rows = terms.rows(query)

    def at(epsilon: Fraction) -> Plan:
        return plan(query, catalog, terms.price(caps, epsilon))

    try:
        if terms.margin is None:
            found = plan(query, catalog, terms.price(caps))
        else:
            budget = catalog.budget
            found = cheapest(at, budget.least_epsilon, budget.epsilon, terms.margin, terms.confidence, rows)
    except QueryError as error:
        raise error.located(text) from None
    return Batch((found,), query.tables, rows=rows)
