"""The plan: what the engine is asked for, the noise of every number, and the whole price, known before any row is read.

Frozen and canonical: the same question, catalog and price give the same plan. `explain` prints it for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dither.errors import QueryError
from dither.mechanisms import Threshold
from dither.planning import releases
from dither.planning.choose import Price, choose
from dither.planning.releases.base import Noise, Reading
from dither.planning.releases.collect import Collection, Note, collect
from dither.planning.releases.keys import names, public_keys
from dither.planning.schema import Field, schema
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import ZCDP, Loss, total
from dither.privacy.neighbours import BY_NAME, AddRemove, Replace
from dither.query.catalog import Catalog
from dither.query.facts import Facts
from dither.query.nodes import Query
from dither.query.resolve import Resolved
from dither.query.work import Work


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
    notes: tuple[Note | str, ...]
    # The price is the catalog's least, and less would give the margin asked for: the same question as at that price.
    rounded_up: bool = field(default=False, compare=False)
    schema: tuple[Field, ...] = field(default=(), compare=False)  # follows from the rest

    @property
    def clipped(self) -> tuple[str, ...]:
        """What margins leave out, in words."""
        return tuple(map(str, self.notes))

    def reading(self, name: str) -> Reading | None:
        """How the aggregate of this name is read."""
        return next((reading for reading in self.readings if reading.name == name), None)

    @property
    def zcdp(self) -> ZCDP:
        """The price stated a second way, from the very objects that draw: rho-zCDP, but for the slack of shown keys."""
        own = [noise.zcdp for noise in self.noises]  # each by its own rho: that of their sum would be larger
        return total([*own, self.threshold.zcdp()] if self.threshold else own).zcdp()


def plan(question: Resolved, catalog: Catalog, price: Price) -> Plan:
    """From a legal question to a plan. Reads the catalog and the question, nothing else."""
    query = question.query
    neighbours = BY_NAME[catalog.neighbours]
    operands = question.operands()
    known = public_keys(query.keys, operands.keys)
    if known is None:
        _discovery(query, operands.keys, price)
    bounding = _bounding(question, known, neighbours)
    # A question has `rows` only where it is about all of them.
    public = question.rows.public if isinstance(neighbours, Replace) else None
    collected = Collection(query.aggregates, operands, question.scope, bounding.max_rows, public, question.rows.at_least or 1)
    readings = collect(releases.KINDS, collected)
    choice = choose(collected.releases, bounding, price, discover=known is None)
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
        price if choice.uses_delta else Price(price.epsilon),  # a delta that buys nothing makes no other question of it
        choice.loss,
        question.unit,
        (*collected.notes, *question.said),
        schema=schema(query, operands.keys, known, readings, choice.noises),
    )


def _discovery(query: Query, known: Sequence[Facts], price: Price) -> None:
    if not price.delta:
        key = next(key for key, facts in zip(query.keys, known, strict=True) if facts.values is None)
        raise QueryError(
            f"The keys of GROUP BY {key.name} are not public, and a pure epsilon cannot show keys found in the data.",
            span=key.expression.span,
            fix="declare their `values` in the catalog, or declare a delta in [budget] and ask with it.",
        )


def _bounding(question: Resolved, known: object, neighbours: AddRemove | Replace) -> Bounding:
    """What each unit is held to, as declared."""
    groups = None
    if isinstance(known, tuple):
        groups = 1
        for values in known:
            groups *= max(1, len(values))
    if not question.by_unit:
        return Bounding(1, 1, groups, neighbours)
    most = question.max_groups if question.query.keys else 1
    if most is None:
        raise QueryError(
            f"GROUP BY {names(question.query.keys)} needs max_groups: one {question.unit} may be in any number of groups.",
            fix="declare max_groups for the table in the catalog, or leave GROUP BY out.",
        )
    return Bounding(question.max_rows, most if groups is None else min(most, groups), groups, neighbours)
