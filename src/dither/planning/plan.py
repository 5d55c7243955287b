"""Makes the plan: the work for the engine, the noise of every number and the whole price, before any row is read.

A plan is frozen and canonical: the same question, catalog and price give the same plan. `outputs.explain` prints it.

`schema` has the columns of the answer. Kinds are those of the catalog: int, real, text, bool, date, timestamp. An aggregate is
int if its truth is a whole number. A key that is a number is int, because only whole numbers can be grouped by. An output
computed from them follows the rules of its functions. So all answers of one plan have the same columns, even without rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist

from dither.catalog.values import Catalog, Key
from dither.errors import ArgumentError, QueryError
from dither.mechanisms import Threshold
from dither.planning import releases
from dither.planning.outer import compute_all, opened
from dither.planning.price import Choice, Price, choose, with_gaussian, with_geometric
from dither.planning.releases.base import Clipped, Collection, Noise, Note, Reading, collect
from dither.planning.releases.keys import Together, combinations, dependent, public_keys
from dither.planning.releases.running import compared, running
from dither.planning.rows import Rows
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import ZCDP, Loss, Pure, total
from dither.privacy.neighbours import BY_NAME, AddRemove, Replace
from dither.query.functions.base import Facts
from dither.query.functions.registry import columns, known
from dither.query.nodes import Outer, PerUnit, Query, Relation, WithinUnit, sources
from dither.query.outer import resolve_above
from dither.query.resolve.aggregates import short
from dither.query.resolve.relations import Resolved
from dither.query.work import Group, Work

_ROWS = 1 << 32  # more than any table of people has
_LONG = 1 << 63


@dataclass(frozen=True)
class Field:
    """A column. `noisy`: it is read or computed from noisy numbers; `long`: its whole numbers may exceed 64 bits."""

    name: str
    kind: str
    noisy: bool = False
    nullable: bool = True
    long: bool = False


def schema(
    query: Query,
    keys: Sequence[Facts],
    known_keys: Sequence[Sequence[Key]] | None,
    readings: Sequence[Reading],
    noises: Sequence[Noise],
    argument_kinds: Mapping[str, str],
) -> tuple[Field, ...]:
    """Returns the columns in order. `keys` are the facts of the query's keys, `known_keys` their public values if any,
    `argument_kinds` the kinds of what aggregates are about."""
    domains = known_keys if known_keys is not None else [None] * len(keys)
    scope = {key.name: _key(facts, values) for key, facts, values in zip(query.keys, keys, domains, strict=True)}
    scope |= {reading.name: _aggregate(reading, argument_kinds) for reading in readings}
    long = {reading.name for reading in readings if reading.largest(noises, _ROWS) >= _LONG}
    noisy = {reading.name for reading in readings}
    each = [(known(output.expression, scope), columns(output.expression)) for output in query.outputs]
    fields = tuple(_field(output.name, *one, noisy, long) for output, one in zip(query.outputs, each, strict=True))
    if not query.above:
        return fields
    return fields_around(query.above, [facts for facts, _ in each], fields, opened(query, known_keys is None and bool(keys)))


def fields_around(above: Sequence[Outer], facts: Sequence[Facts], fields: Sequence[Field], table: Rows) -> tuple[Field, ...]:
    """Returns the columns of the last SELECT around a noisy table with these columns, which may lack its rows."""
    found = resolve_above(above, facts)[1]
    noisy = compute_all(above, [field.name for field in fields], table).noisy
    long = any(field.long for field in fields)
    return tuple(
        Field(
            each.name, "text" if one.kind == "null" else one.kind, each.name in noisy, one.nullable, long and one.kind == "int"
        )
        for each, one in zip(above[-1].outputs, found, strict=True)
    )


def _field(name: str, facts: Facts, used: set[str] | frozenset[str], noisy: set[str], long: set[str]) -> Field:
    kind = "text" if facts.kind == "null" else facts.kind  # as in SQL, a bare NULL is text
    return Field(name, kind, bool(used & noisy), facts.nullable, kind == "int" and bool(used & long))


def _key(facts: Facts, values: Sequence[Key] | None) -> Facts:
    """Returns the facts of a key. It is nullable if NULL was declared, or if keys are discovered in a nullable column."""
    nullable = facts.nullable if values is None else None in values
    if facts.kind in ("int", "real"):
        return Facts("int", facts.low, facts.high, nullable, whole=True)
    return Facts(facts.kind, facts.low, facts.high, nullable)


def _aggregate(reading: Reading, kinds: Mapping[str, str]) -> Facts:
    """Returns the facts of a noisy number: never NULL, without bounds. A chosen value is of its column's kind."""
    if reading.label and not reading.whole:
        return Facts(kinds[reading.name], nullable=False)
    return Facts("int" if reading.whole else "real", nullable=False, whole=reading.whole)


@dataclass(frozen=True)
class Sample:
    """The secret sample that a plan looks at: the probability of each unit, and the price of the noise on the sample."""

    q: Fraction
    inside: Price


@dataclass(frozen=True)
class Plan:
    """The work for the engine, a noise for each measure, a reading for each aggregate, and the total price."""

    query: Query
    work: Work
    bounding: Bounding
    noises: tuple[Noise, ...]
    readings: tuple[Reading, ...]
    threshold: Threshold | None
    price: Price
    loss: Loss
    unit: str
    notes: tuple[Note | str, ...]
    # The price was raised to the catalog's least: the same question as one asked at that price.
    rounded_up: bool = field(default=False, compare=False)
    schema: tuple[Field, ...] = field(default=(), compare=False)  # follows from the rest
    # The keys of the work that groups are added up by, for a grouping set (levels.py); None: by all of them.
    level: tuple[int, ...] | None = None
    # The keys of the work that depend on each other. Other combinations of public values are in no group.
    together: tuple[Together, ...] = ()
    sample: Sample | None = None  # `loss` and `price` are those of the sample (sampling.py)

    @property
    def known(self) -> tuple[tuple[Key, ...], ...] | None:
        """The public values of its keys."""
        if self.level is None or self.work.known is None:
            return self.work.known
        return tuple(self.work.known[place] for place in self.level)

    def public_groups(self) -> list[tuple[Key, ...]]:
        """Returns the groups that are shown whatever the data, in order; none if they are found in the data."""
        if self.known is None:
            return []
        level = self.level
        return combinations(self.known, self.together if level is None else [each.of(level) for each in self.together])

    def possible(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Returns those of the work's groups that a row within the declared values can be in."""
        if not self.together:
            return groups
        return [group for group in groups if all(each.allows(group.key) for each in self.together)]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many public values each key of the work has."""
        return tuple(len(values) for values in self.work.known or ())

    @property
    def margin_notes(self) -> tuple[str, ...]:
        """The notes on what margins leave out, as text."""
        return tuple(map(str, self.notes))

    def reading(self, name: str) -> Reading | None:
        """Returns the reading of the aggregate of this name."""
        return next((reading for reading in self.readings if reading.name == name), None)

    @property
    def zcdp(self) -> ZCDP:
        """The price stated a second way, read from the objects that draw: rho-zCDP, and the delta of discovered keys."""
        own = [noise.zcdp for noise in self.noises]  # each noise by its own rho: the rho of their total would be larger
        found = total([*own, self.threshold.zcdp()] if self.threshold else own).zcdp()
        if self.sample is None or not isinstance(self.loss, Pure):
            return found  # a sample does not raise it
        return min(found, self.loss.zcdp(), key=lambda each: each.rho)

    @property
    def people_shown(self) -> int:
        """How many people a group found in the data needs to be shown with 95 %, about; 0 if its groups are public."""
        if self.threshold is None:
            return 0
        if self.sample is None:
            return self.threshold.margin("0.95")
        few, q = self.threshold.margin("0.975"), float(self.sample.q)  # and so many are in the sample with 97.5 %
        off = NormalDist().inv_cdf(0.975) * math.sqrt(1 - q) / 2
        return math.ceil((off + math.sqrt(off * off + few)) ** 2 / q)


def plan(question: Resolved, catalog: Catalog, price: Price, gaussian: bool | None = None) -> Plan:
    """Plans a legal question. Reads the catalog and the question only. `gaussian`: the family of noise, if it is decided."""
    query = question.query
    operands = question.operands()
    known = public_keys(query.keys, operands.keys)
    if known is None:
        _refuse_discovery(query, operands.keys, price)
    bounding = bounding_of(question, known, BY_NAME[catalog.neighbours])
    collected, readings = measured(question, bounding)
    choice = choose(collected.releases, bounding, price, known is None, gaussian)
    if query.above and known is not None and not question.joint:
        choice = with_strategy(query, bounding, price, choice, gaussian)
    return Plan(
        query,
        Work(
            query.source,
            query.keys,
            known if query.keys else None,
            question.by_unit,
            bounding.max_groups if question.by_unit and query.keys else None,
            tuple(release.measure for release in collected.releases),
            count_units=choice.threshold is not None,
        ),
        bounding,
        choice.noises,
        readings,
        choice.threshold,
        price if choice.uses_delta else Price(price.epsilon),  # an unused delta must not change the identity
        choice.loss,
        question.unit,
        tuple(dict.fromkeys((*collected.notes, *clipped_inside(query.source)))),
        schema=schema(query, operands.keys, known, readings, choice.noises, _kinds(collected)),
        together=() if known is None else dependent(query.keys, known, question.joint),
    )


def with_strategy(query: Query, bounding: Bounding, price: Price, plain: Choice, gaussian: bool | None) -> Choice:
    """Returns the noise of running counts by a strategy, if they are what is asked for and that is better."""
    ways = []
    for smooth in (False, True) if gaussian is None else (gaussian,):
        release = running(query, bounding.groups or 0, [noise.of for noise in plain.noises], smooth)
        if release is None or (smooth and not price.delta):
            continue
        try:
            way = (with_gaussian if smooth else with_geometric)([release], bounding, price, False)
        except (ArgumentError, QueryError):  # no noise within range at this price
            continue
        noise = compared(way.noises[0], plain.noises[0])
        ways += [] if noise is None else [(noise.sums, replace(way, noises=(noise,)))]
    return min(ways, key=lambda each: each[0])[1] if ways else plain


def measured(question: Resolved, bounding: Bounding) -> tuple[Collection, tuple[Reading, ...]]:
    """Returns what is released of a question, before it has a price, and how its aggregates are read from that."""
    # A question has `rows` only where it is about all of them.
    public = question.rows.public if isinstance(bounding.neighbours, Replace) else None
    one_row = question.one_row or not question.by_unit
    counted = (bounding.max_rows, one_row, public, question.rows.at_least or 1)
    collected = Collection(question.query.aggregates, question.operands(), question.scope, *counted)
    return collected, collect(releases.KINDS, collected)


def clipped_inside(relation: Relation) -> Iterator[Note]:
    """Returns a note for each sum inside one unit whose values are clipped before they are added up."""
    if isinstance(relation, (PerUnit, WithinUnit)):
        parts = relation.aggregates if isinstance(relation, PerUnit) else relation.windows
        clips = [each.clip for each in parts if each.clip is not None]
        yield from (Clipped(clip.x, clip.low, clip.high, clip.step) for clip in clips)
    for source in sources(relation):
        yield from clipped_inside(source)


def _kinds(collected: Collection) -> dict[str, str]:
    """Returns the kind of each aggregate's argument."""
    lowered = ((each.name, collected.lower(each).argument) for each in collected.aggregates)
    return {name: collected.facts(argument).kind for name, argument in lowered if argument is not None}


def _refuse_discovery(query: Query, known: Sequence[Facts], price: Price) -> None:
    """Refuses keys that are not public if the price has no delta."""
    if not price.delta:
        key, facts = next(pair for pair in zip(query.keys, known, strict=True) if pair[1].values is None)
        clamped = f"group by CLAMP({short(key.expression)}, 0, 20) with your own limits, " if facts.numeric else ""
        raise QueryError(
            f"The keys of GROUP BY {key.name} are not public, and a pure epsilon cannot show keys found in the data.",
            span=key.expression.span,
            fix=f"{clamped}declare their `values` in the catalog, or a delta in its budget and ask with it.",
        )


def bounding_of(question: Resolved, known: object, neighbours: AddRemove | Replace) -> Bounding:
    """Returns the limits of each unit, which the engine enforces."""
    groups = None
    if isinstance(known, tuple):
        groups = 1
        for values in known:
            groups *= max(1, len(values))
    if not question.by_unit:
        return Bounding(1, 1, groups, neighbours)
    rows, most = question.max_rows, question.max_groups if question.query.keys else 1
    if rows is None or most is None:
        raise TypeError("a question is planned with bounds: bounds.py sets those that the catalog leaves open")
    return Bounding(rows, most if groups is None else min(most, groups), groups, neighbours)
