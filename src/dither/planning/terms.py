"""Checks the terms of a question (price or margin, delta, confidence, assumed rows, bounds) and plans it at its price.

For a margin, `cheapest` in aims.py finds the smallest price that gives it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Blank, Fix, Name, QueryError
from dither.exact.numbers import Number, between, flag, not_negative, positive, whole
from dither.planning import left_out
from dither.planning.aims import Aim, Earlier, cheapest
from dither.planning.auto import Auto, choices, plan_auto
from dither.planning.bounds import Bound, bounded, check_bound
from dither.planning.levels import finest, levels_of, plan_levels
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.planning.sampling import plan_sampled
from dither.planning.sensitivity import ROWS
from dither.privacy.filters import Caps
from dither.query.resolve.relations import Resolved

_DIGITS = 10**30  # a default delta is rounded down to a multiple of 1 / this


@dataclass(frozen=True)
class Terms:
    """The terms of a question, checked: the price or the margin, the confidence of margins, assumed rows, and bounds."""

    epsilon: Fraction | None
    delta: Fraction | None
    margin: Aim | None
    confidence: Fraction
    assume_rows: int | None
    max_rows: Bound = None
    max_groups: Bound = None
    left_out: bool | None = None  # whether to estimate what bounds leave out; None: as the catalog says
    sample: Fraction | None = None  # the probability with which each unit is in the secret sample; None: all are looked at

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
        left_out: bool | None = None,
        *,
        of: Number | Earlier | None = None,
        sample: Number | None = None,
    ) -> Terms:
        """Checks the arguments of `ask`, `quote` or `suggest`. Refuses a wrong one even if it is not used."""
        free = cls.free(confidence, assume_rows, max_rows, max_groups)
        if (epsilon is None) == (margin is None):
            raise ArgumentError(
                "Name the price or the margin, one of the two.",
                fix=Fix("write {epsilon}, or {margin} for the smallest price.", epsilon="0.1", margin=50),
            )
        if of is not None and margin is None:
            raise ArgumentError(
                "Only a margin can be relative to a number.",
                fix=Fix("leave {of} out, or ask for a share such as {margin}.", of=Blank(), margin="2 %"),
            )
        terms = replace(
            free,
            epsilon=None if epsilon is None else positive(epsilon, "epsilon"),
            delta=None if delta is None else not_negative(delta, "delta"),
            margin=None if margin is None else Aim.read(margin, of),
            left_out=None if left_out is None else flag(left_out, "left_out"),
            sample=None if sample is None else between(sample, "sample", 0, 1, open_low=True, open_high=True),
        )
        if sample is not None:
            _refuse_on_sample(terms)
        return terms

    @classmethod
    def free(cls, confidence: Number, assume_rows: int | None, max_rows: Bound, max_groups: Bound) -> Terms:
        """Checks the arguments of a question without a price, whose answer is made of earlier ones."""
        return cls(
            None,
            None,
            None,
            between(confidence, "confidence", 0, 1, open_low=True, open_high=True),
            None if assume_rows is None else _assumed(assume_rows),
            None if max_rows is None else check_bound(max_rows, "max_rows"),
            None if max_groups is None else check_bound(max_groups, "max_groups"),
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
    """Plans a question at its price, or at the smallest price that gives its margin. A refusal marks its place in `text`.

    What its bounds leave out is estimated at a part of that price, if they can leave anything out.
    """
    query = bounded(query, catalog, terms.max_rows, terms.max_groups)
    rows = terms.rows(query)
    if query.query.sets:
        _refuse_margin_of_sets(terms)
    try:
        if terms.sample is not None:
            sampled = plan_sampled(query, catalog, terms.price(caps), terms.sample)
            return Batch((sampled,), query.tables, rows=rows, cuts=left_out.cuts(query, sampled.work, estimate=False))
        if query.max_rows is None or query.max_groups is None:
            _refuse_margin(terms)
            listed = choices(finest(query), catalog, terms.price(caps))
            if not listed.one:
                return plan_auto(query, catalog, terms.price(caps), listed, rows, estimate=_estimate(catalog, terms))
            query = replace(query, max_rows=listed.rows[0], max_groups=listed.groups[0])
        price = terms.price(caps, terms.epsilon or min(catalog.budget.epsilon, Fraction(1)))  # the same work at any price
        made, relative = plan_levels(query, catalog, price), ""
        further: tuple[Plan, ...] = ()
        levels = levels_of(query, catalog)
        estimate = _estimate(catalog, terms) and (levels is None or levels.together)
        cuts = left_out.cuts(finest(query), made[0].work, estimate=estimate)
        if cuts.parts:
            made, relative = _at_price(query, catalog, caps, terms, rows, reserve=True)
            spent = sum((each.price.epsilon for each in made), Fraction(0))
            further = left_out.plans(cuts.parts, catalog, left_out.beside(spent))
        if not further and (cuts.parts or terms.margin is not None):
            cuts = replace(cuts, parts=())
            made, relative = _at_price(query, catalog, caps, terms, rows, reserve=False)
    except QueryError as error:
        raise error.located(text) from None
    return Batch((*made, *further), query.tables, rows=rows, relative=relative, cuts=cuts, levels=levels)


def _at_price(
    query: Resolved, catalog: Catalog, caps: Caps, terms: Terms, rows: int | None, *, reserve: bool
) -> tuple[tuple[Plan, ...], str]:
    """Plans the answer itself, and says what its margin is relative to. `reserve`: a part of the price is for what is left
    out."""

    def priced(epsilon: Fraction) -> Price:
        price = terms.price(caps, epsilon)
        return replace(price, epsilon=epsilon - left_out.reserved(epsilon)) if reserve else price

    if terms.margin is None:
        return plan_levels(query, catalog, priced(terms.price(caps).epsilon)), ""
    budget, aim = catalog.budget, replace(terms.margin, rows=query.rows)
    made = cheapest(
        lambda epsilon: plan(query, catalog, priced(epsilon)), budget.least_epsilon, budget.epsilon, aim, terms.confidence, rows
    )
    return (made,), aim.words(made, terms.confidence)


def _refuse_margin_of_sets(terms: Terms) -> None:
    if terms.margin is not None:
        raise ArgumentError(
            "A margin has no price where grouping sets share it: each set has margins of its own.",
            fix=Fix("ask with {epsilon}, or ask each grouping set in a list of questions.", epsilon="0.1"),
        )


def _assumed(rows: int) -> int:
    """Returns the assumed rows. Refuses more than a table may have."""
    assumed = whole(rows, "assume_rows", least=1)
    if assumed > ROWS:
        raise ArgumentError(
            f"assume_rows may be at most {ROWS:,}: a table has no more rows.", fix=Fix("say {assume_rows}.", assume_rows=1000)
        )
    return assumed


def _refuse_on_sample(terms: Terms) -> None:
    """Refuses what a question on a sample cannot have: a margin that decides the price, and estimates of what is left out."""
    if terms.margin is not None:
        raise ArgumentError(
            "A margin has no price on a sample: it depends on how many people there are.",
            fix=Fix("ask with {epsilon}, or ask without {sample}.", epsilon="0.1", sample=Name("sample")),
        )
    if terms.left_out:
        raise ArgumentError(
            "What bounds leave out is not estimated on a sample.",
            fix=Fix("leave {left_out} out, or ask without {sample}.", left_out=Name("left_out"), sample=Name("sample")),
        )


def _estimate(catalog: Catalog, terms: Terms) -> bool:
    return catalog.budget.left_out if terms.left_out is None else terms.left_out


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
