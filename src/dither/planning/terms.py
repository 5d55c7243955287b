"""The terms of a question: the price or the margin, and what margins are stated with; and what a price means in a catalog."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError, Fix, QueryError
from dither.exact.numbers import Number, between, not_negative, positive, whole
from dither.planning.choose import Price
from dither.planning.plan import Plan, plan
from dither.planning.program import Batch
from dither.planning.search import cheapest
from dither.privacy.filters import Caps
from dither.query.catalog import Catalog
from dither.query.resolve import Resolved

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
