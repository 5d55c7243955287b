"""The plan: what the engine is asked for, the noise of every number, and the whole price, known before any row is read.

Frozen and canonical: the same question, catalog and price give the same plan. `explain` prints it for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dither.errors import QueryError
from dither.mechanisms import Threshold
from dither.planning.bounding import Bounding
from dither.planning.choose import Price, choose, names, public_keys
from dither.planning.measures import EXTREME, Measures, Need, percent
from dither.planning.noises import Noise
from dither.planning.readings import Linear, Quantile, Ratio, Term
from dither.planning.schema import Field, schema
from dither.planning.spreads import Reading, Spread
from dither.privacy.losses import ZCDP, Loss, total
from dither.query.catalog import Catalog
from dither.query.facts import Facts
from dither.query.infer import facts as infer
from dither.query.nodes import Query
from dither.query.resolve import Resolved
from dither.query.work import Quantised, Work


@dataclass(frozen=True)
class Plan:
    """Work for the engine, a noise for each measure, a reading for each aggregate, and the price of all of it."""

    query: Query
    work: Work
    bounding: Bounding
    noises: tuple[Noise, ...]
    readings: tuple[Reading, ...]
    threshold: Threshold | None
    price: Price
    loss: Loss
    unit: str
    clipped: tuple[str, ...]
    # The price is the catalog's least, and less would give the margin asked for: the same question as at that price.
    rounded_up: bool = field(default=False, compare=False)
    schema: tuple[Field, ...] = field(default=(), compare=False)  # follows from the rest

    def reading(self, name: str) -> Reading | None:
        """How the aggregate of this name is read."""
        return next((reading for reading in self.readings if reading.name == name), None)

    @property
    def zcdp(self) -> ZCDP:
        """The price stated a second way, from the very objects that draw: rho-zCDP, but for the slack of shown keys."""
        own: list[Loss] = [noise.loss for noise in self.noises]
        if self.threshold:
            own.append(self.threshold.curve())  # key by key: a unit's keys add up to less rho than their sum of epsilon has
        return total([loss.zcdp() for loss in own]).zcdp()  # each by its own rho: that of their sum would be larger


def plan(question: Resolved, catalog: Catalog, price: Price) -> Plan:
    """From a legal question to a plan. Reads the catalog and the question, nothing else."""
    query = question.query
    replace = catalog.neighbours == "replace"
    keys = [infer(key.expression, question.scope) for key in query.keys]
    known = public_keys(query.keys, keys)
    if known is None:
        _discovery(query, question.scope, price)
    bounding = _bounding(question, known, replace)
    public = question.rows.public if replace else None  # Resolved has rows only where the question is about all of them
    collected = Measures(query.aggregates, question.scope, bounding.max_rows, public).collect()
    choice = choose(collected.drafts, bounding, price, discover=known is None)
    least = question.rows.at_least or 1
    readings = tuple(_reading(need, choice.noises, public, least) for need in collected.needs)
    return Plan(
        query,
        Work(
            query.source,
            query.keys,
            known if query.keys else None,
            question.by_unit,
            bounding.max_groups if question.by_unit and query.keys else None,
            tuple(draft.measure for draft in collected.drafts),
            count_units=choice.threshold is not None,
        ),
        bounding,
        choice.noises,
        readings,
        choice.threshold,
        price if choice.uses_delta else Price(price.epsilon),  # a delta that buys nothing makes no other question of it
        choice.loss,
        question.unit,
        (*collected.clipped, *question.said),
        schema=schema(query, keys, readings, choice.noises),
    )


def _discovery(query: Query, scope: Mapping[str, Facts], price: Price) -> None:
    if not price.delta:
        key = next(key for key in query.keys if infer(key.expression, scope).values is None)
        raise QueryError(
            f"The keys of GROUP BY {key.name} are not public, and a pure epsilon cannot show keys found in the data.",
            span=key.expression.span,
            fix="declare their `values` in the catalog, or declare a delta in [budget] and ask with it.",
        )


def _bounding(question: Resolved, known: object, replace: bool) -> Bounding:
    """What each unit is held to, as declared."""
    groups = None
    if isinstance(known, tuple):
        groups = 1
        for values in known:
            groups *= max(1, len(values))
    if not question.by_unit:
        return Bounding(1, 1, groups, replace)
    most = question.max_groups if question.query.keys else 1
    if most is None:
        raise QueryError(
            f"GROUP BY {names(question.query.keys)} needs max_groups: one {question.unit} may be in any number of groups.",
            fix="declare max_groups for the table in the catalog, or leave GROUP BY out.",
        )
    return Bounding(question.max_rows, most if groups is None else min(most, groups), groups, replace)


def _reading(need: Need, noises: tuple[Noise, ...], public: int | None, least: int) -> Reading:
    name, q = need.asked.name, need.grid
    if need.shape == "known":
        return Linear(name, (), Fraction(public or 0), True)
    if need.shape == "count":
        return Linear(name, _counted(need, noises), Fraction(0), True)
    place = need.places[0]
    if q is None:
        return Linear(name, (Term(place, 0, Fraction(1)),), Fraction(0), True)
    if need.shape == "quantile":
        return Quantile(name, place, q, need.whole, _note(need))
    if need.shape == "cell":
        return Linear(name, (Term(place, 0, q.step),), Fraction(0), need.whole)
    if noises[place].draft.cells == 1:
        return _public(need, q, public or 1)
    if need.shape == "sum":  # low (A + B)/R + step A = high A/R + low B/R
        high = q.low + q.step * q.steps
        terms = (Term(place, 0, high / q.steps), Term(place, 1, q.low / q.steps))
        counted = tuple(Term(place, cell, Fraction(1, q.steps)) for cell in (0, 1)) if need.moved else ()
        kept = tuple(term for term in terms if term.weight)
        return Linear(name, kept, Fraction(0), need.whole, each=need.moved, counted=counted)
    mean = Ratio(name, place, q, least if need.full else 1, need.moved)
    if need.shape == "mean" or need.squares is None:
        return mean
    function = need.asked.function
    root, sample = function.startswith("stddev"), function.endswith("samp")
    return Spread(name, mean, need.places[1], need.squares, root, sample, need.rounded)


def _public(need: Need, q: Quantised, rows: int) -> Linear:
    """Over a public number of rows: low n + step A, divided by n for the mean."""
    share = Fraction(1, rows) if need.shape == "mean" else Fraction(1)
    terms = (Term(need.places[0], 0, q.step * share),)
    whole = need.whole and need.shape == "sum"
    return Linear(need.asked.name, terms, q.low * rows * share, whole, slack=need.moved * rows * share)


def _note(need: Need) -> str:
    """Which quantile is chosen, where that is not what the question says."""
    asked = need.asked.parameter if need.asked.function == "quantile" else EXTREME["median"]
    return f"the {percent(need.p)} quantile" if need.p is not None and need.p != asked else ""


def _counted(need: Need, noises: tuple[Noise, ...]) -> tuple[Term, ...]:
    """The counts of all joint releases that count the same rows, weighted by inverse variance; the weights add to 1."""
    variances = []
    for place in need.places:
        noise = noises[place]
        variances.append(noise.variance * _width(need, noise) / noise.draft.row**2)
    inverse = [max(1, round(min(variances) / v * (1 << 20))) for v in variances]
    terms = []
    for place, weight in zip(need.places, inverse, strict=True):
        each = Fraction(weight, sum(inverse)) / noises[place].draft.row
        terms += [Term(place, cell, each) for cell in range(_width(need, noises[place]))]
    return tuple(terms)


def _width(need: Need, noise: Noise) -> int:
    """COUNT(*) adds the NULL cell, COUNT(x) does not."""
    return noise.draft.cells if need.nulls else 2
