"""Checks the terms of a question (price or margin, delta, confidence, assumed rows, bounds) and plans it at its price.

For a margin, `cheapest` finds the smallest price that gives it: a search over plans, which reads no rows.
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
from dither.planning.auto import Auto, needs_choice, plan_auto
from dither.planning.bounds import Bound, bounded, check_bound
from dither.planning.outputs import Computed, outputs
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.privacy.filters import Caps
from dither.query.resolve.relations import Resolved

_LOWEST = -6  # the first price tried is 10^-6
_SEARCH_DIGITS = 1000


def cheapest(
    build: Callable[[Fraction], Plan], least: Fraction, most: Fraction, margin: Fraction, confidence: Fraction, rows: int | None
) -> Plan:
    """Returns the plan with the smallest epsilon (three digits, from `least` to `most`) whose margins are within `margin`."""
    _refuse_unpredictable(build(most), rows)
    count = 0
    while _price(count) < most:
        count += _SEARCH_DIGITS * 9 // 10
    last = search(lambda i: _price(i) >= most, 0, count)

    def holds(index: int) -> bool:
        return widest_margin(build(min(_price(index), most)), confidence, rows) <= margin

    if not holds(last):
        raise DitherError(
            f"A margin of {show(margin)} needs more than ε = {show(most)}, which is all there is.",
            fix="ask for a wider margin, fewer outputs or a lower confidence.",
        )
    epsilon = min(_price(search(holds, 0, last)), most)
    return build(epsilon) if epsilon >= least else replace(build(least), rounded_up=True)


def _price(index: int) -> Fraction:
    """Returns the index-th number with three significant digits, from 10^-6 upwards.

    >>> [str(_price(i)) for i in (0, 900)]
    ['1/1000000', '1/100000']
    """
    decade, digits = divmod(index, 900)
    return Fraction(100 + digits, 100) * Fraction(10) ** (_LOWEST + decade)


def widest_margin(plan: Plan, confidence: Fraction, rows: int | None) -> float:
    """Returns the largest predicted margin of all outputs; for a quantile it is a rank, in rows."""
    margin = 0.0
    for output in outputs(plan):
        margin = max(margin, output.rank(plan, confidence) or output.predicted(plan, rows, confidence) or 0.0)
    return margin


def _refuse_unpredictable(plan: Plan, rows: int | None) -> None:
    """Refuses a plan whose margins cannot be predicted."""
    columns = outputs(plan)
    for output in columns:
        if isinstance(output, Computed) and output.predicted(plan, rows or 1, Fraction(1, 2)) is None:
            raise DitherError(
                f"The margin of {output.name} depends on the noisy numbers it is computed from, and cannot be predicted.",
                fix=Fix(
                    "ask with {epsilon} instead of {margin}, or ask for the numbers themselves.",
                    epsilon=Blank(),
                    margin=Blank(),
                ),
            )
    readings = [reading for output in columns for reading in output.readings]
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


_DIGITS = 10**30  # a default delta is rounded down to a multiple of 1 / this


@dataclass(frozen=True)
class Terms:
    """The terms of a question, checked: the price or the margin, the confidence of margins, assumed rows, and bounds."""

    epsilon: Fraction | None
    delta: Fraction | None
    margin: Fraction | None
    confidence: Fraction
    assume_rows: int | None
    max_rows: Bound = None
    max_groups: Bound = None

    @classmethod
    def of(
        cls,
        epsilon: Number | None,
        delta: Number | None = None,
        margin: Number | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
        max_rows: Bound = None,
        max_groups: Bound = None,
    ) -> Terms:
        """Checks the arguments of `ask`, `quote` or `suggest`. Refuses a wrong one even if it is not used."""
        level = between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        if (epsilon is None) == (margin is None):
            raise ArgumentError(
                "Name the price or the margin, one of the two.",
                fix=Fix("write {epsilon}, or {margin} for the smallest price.", epsilon="0.1", margin=50),
            )
        return cls(
            None if epsilon is None else positive(epsilon, "epsilon"),
            None if delta is None else not_negative(delta, "delta"),
            None if margin is None else positive(margin, "margin"),
            level,
            None if assume_rows is None else whole(assume_rows, "assume_rows", least=1),
            check_bound(max_rows, "max_rows"),
            check_bound(max_groups, "max_groups"),
        )

    def price(self, caps: Caps, epsilon: Fraction | None = None) -> Price:
        """Returns the price for `epsilon`, or for that of the terms. Without a delta, the question gets delta in proportion to
        its epsilon."""
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
        """Returns the rows assumed in a group: those of the terms, or those that the catalog declares public."""
        return self.assume_rows or query.rows.public or query.rows.at_least


def plan_answer(query: Resolved, catalog: Catalog, caps: Caps, terms: Terms, text: str) -> Batch | Auto:
    """Plans a question at its price, or at the smallest price that gives its margin. A refusal marks its place in `text`."""
    query = bounded(query, catalog, terms.max_rows, terms.max_groups)
    rows = terms.rows(query)

    def at(epsilon: Fraction) -> Plan:
        return plan(query, catalog, terms.price(caps, epsilon))

    try:
        if needs_choice(query, terms.max_rows, terms.max_groups):
            _refuse_margin(terms)
            return plan_auto(query, catalog, terms.price(caps), terms.max_rows, terms.max_groups, rows)
        if terms.margin is None:
            made = plan(query, catalog, terms.price(caps))
        else:
            budget = catalog.budget
            made = cheapest(at, budget.least_epsilon, budget.epsilon, terms.margin, terms.confidence, rows)
    except QueryError as error:
        raise error.located(text) from None
    return Batch((made,), query.tables, rows=rows)


def _refuse_margin(terms: Terms) -> None:
    """Refuses a margin where bounds are chosen: the noise depends on what is chosen, and so does the price of a margin."""
    if terms.margin is not None:
        raise ArgumentError(
            "A margin has no price where max_rows or max_groups are chosen by the question: the noise depends on them.",
            fix=Fix(
                "name both bounds, as in {max_rows} and {max_groups}, or ask with {epsilon}.",
                max_rows=10,
                max_groups=5,
                epsilon="0.1",
            ),
        )
