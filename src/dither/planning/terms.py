"""The terms of a question: the price or the margin, and what margins are stated with; and what a price means in a catalog."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import Number, between, not_negative, positive, whole
from dither.planning.choose import Price
from dither.planning.plan import Plan, plan
from dither.planning.program import Batch
from dither.planning.search import cheapest
from dither.privacy.either import Caps
from dither.query.catalog import Catalog
from dither.query.resolve import Resolved

_DIGITS = 10**30  # a delta that nobody wrote is rounded down to this many parts


@dataclass(frozen=True)
class Terms:
    """What an analyst may say beside the question. `confidence` is any number; it is kept as a Fraction."""

    epsilon: Number | None = None
    delta: Number | None = None
    margin: Number | None = None
    confidence: Fraction = Fraction(19, 20)
    assume_rows: int | None = None

    @classmethod
    def of(
        cls, epsilon: Number | None, delta: Number | None, margin: Number | None, confidence: Number, assume_rows: int | None
    ) -> Terms:
        """The terms as they were given to `ask` or `quote`."""
        sure = between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        return cls(epsilon, delta, margin, sure, assume_rows)

    def price(self, caps: Caps, epsilon: Number) -> Price:
        """What this epsilon means here. Without a delta: the share of the plain sum's delta that epsilon is of all epsilon."""
        spend = positive(epsilon, "epsilon")
        if self.delta is None:
            share = caps.delta_sums * min(spend / caps.epsilon, Fraction(1))
            return Price(spend, Fraction(math.floor(share * _DIGITS), _DIGITS))
        allowed = not_negative(self.delta, "delta")
        if allowed and not caps.delta:
            raise ArgumentError("This catalog is pure: its budget has no delta.", fix="leave delta out.")
        return Price(spend, between(allowed, "delta", 0, 1, open_high=True))

    def rows(self, query: Resolved) -> int | None:
        """How many rows a group is taken to have: what the analyst assumes, or what the catalog declares public."""
        if self.assume_rows is not None:
            return whole(self.assume_rows, "assume_rows", least=1)
        return query.rows.public or query.rows.at_least


def plan_answer(query: Resolved, catalog: Catalog, caps: Caps, terms: Terms, text: str) -> Batch:
    """Plans a question at its price, or at the smallest that has the margin wanted. A refusal shows its place in `text`."""
    if (terms.epsilon is None) == (terms.margin is None):
        raise ArgumentError(
            "Name the price or the margin, one of the two.", fix='write epsilon="0.1", or margin=50 for the smallest price.'
        )
    rows = terms.rows(query)  # looked at with a price as well: what breaks its rule is refused, not passed over

    def at(epsilon: Number) -> Plan:
        return plan(query, catalog, terms.price(caps, epsilon))

    try:
        if terms.epsilon is not None:
            found = at(terms.epsilon)
        else:
            margin = positive(terms.margin if terms.margin is not None else 0, "margin")
            found = cheapest(at, catalog.budget.least_epsilon, catalog.budget.epsilon, margin, terms.confidence, rows)
    except QueryError as error:
        raise error.located(text) from None
    return Batch((found,), query.tables, rows=rows)
