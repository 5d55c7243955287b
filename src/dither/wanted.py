"""From a question and what was said of its price to a plan: at that price, or at the smallest that has the wanted margin."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from dither import paying
from dither.errors import ArgumentError, Fix, QueryError
from dither.exact.numbers import Number, between, positive, whole
from dither.planning.plan import Plan, plan
from dither.planning.search import cheapest
from dither.privacy.filters import Caps
from dither.query.catalog import Catalog
from dither.query.resolve import Resolved
from dither.questions import Question, text


class Wanted(NamedTuple):
    """What an analyst may say beside the question."""

    epsilon: Number | None
    delta: Number | None
    margin: Number | None
    sure: Fraction
    assume_rows: int | None

    def rows(self, found: Resolved) -> int | None:
        """How many rows a group is taken to have: what the analyst assumes, or what the catalog declares public."""
        if self.assume_rows is not None:
            return whole(self.assume_rows, "assume_rows", least=1)
        return found.rows.public or found.rows.at_least


def sure_of(confidence: Number) -> Fraction:
    return between(confidence, "confidence", 0, 1, open_low=True, open_high=True)


def planned_for(found: Resolved, question: Question, catalog: Catalog, caps: Caps, wanted: Wanted) -> Plan:
    """The plan; a refusal is shown in the question's text."""
    if (wanted.epsilon is None) == (wanted.margin is None):
        raise ArgumentError(
            "Name the price or the margin, one of the two.",
            fix=Fix("write {epsilon}, or {margin} for the smallest price.", epsilon="0.1", margin=50),
        )
    rows = wanted.rows(found)  # looked at with a price as well: what breaks its rule is refused, not passed over

    def at(epsilon: Number) -> Plan:
        return plan(found, catalog, paying.price(caps, epsilon, wanted.delta))

    try:
        if wanted.epsilon is not None:
            return at(wanted.epsilon)
        margin = positive(wanted.margin if wanted.margin is not None else 0, "margin")
        return cheapest(at, catalog.budget.least_epsilon, catalog.budget.epsilon, margin, wanted.sure, rows)
    except QueryError as error:
        raise error.located(text(question)) from None
