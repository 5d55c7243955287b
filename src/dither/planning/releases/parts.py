"""Counts with disjoint FILTERs, as one release: COUNT(*) FILTER (WHERE sex = 'M'), COUNT(*) FILTER (WHERE sex = 'F').

Each row is given to the first condition that is true, so a row moves one cell by one, and all counts together cost as much as
one. That holds for any conditions: the price does not rest on a proof that they are disjoint (query/disjoint.py). The proof is
needed for the meaning: only then is "the first that is true" what each FILTER asks for. If COUNT(*) is asked for too, one more
cell counts the rows of no part, and COUNT(*) is the sum of all cells.

A unit may have several rows in one group. The cells of one measure are cut together, as all measures of a question are
(base.py, `rows_that_count`). Where a unit may be cut, a row counts for 2^16 in its cell, so that a unit in two parts counts for
a part of a row in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dither.planning.releases.base import Collection, Release, either, not_null
from dither.planning.sensitivity import PARTS
from dither.query.disjoint import disjoint
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

_ZERO, _ONE = Fraction(0), Fraction(1)
MOST_PARTS = 32  # every cell repeats the conditions before its own


@dataclass(frozen=True)
class Parts(Release):
    """The number of rows in each part; with `rest`, a last cell for rows of no part."""

    conditions: tuple[Expression, ...]  # never NULL
    max_rows: int
    titles: tuple[str, ...]
    rows: Expression | None = None  # the rows by whose number a unit is cut; None: all
    rest: bool = False
    row: int = 1  # what a row adds to its cell

    @property
    def empty_value(self) -> tuple[int, ...]:
        return (0,) * self.cells

    @property
    def cells(self) -> int:
        return len(self.conditions) + self.rest

    @cached_property
    def measure(self) -> Sums:
        cells = tuple(Cell(_first(self.conditions, place), linear=self.row) for place in range(self.cells))
        return Sums(cells, self.max_rows, self.rows)

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        others = ("others",) if self.rest else ()
        return f"rows in {self.cells} parts: {'; '.join((*self.titles, *others))}"


def _first(conditions: Sequence[Expression], place: int) -> Quantised:
    """Returns 1 where the condition at `place` is the first that is true (beyond the last: where none is), else 0."""
    cases: list[Expression] = []
    for before in conditions[:place]:
        cases += [before, Literal(0)]
    if place == len(conditions):
        return Quantised(Call("case", (*cases, Literal(1))), _ZERO, _ONE, 1)
    return Quantised(Call("case", (*cases, conditions[place], Literal(1), Literal(0))), _ZERO, _ONE, 1)


def share(collection: Collection) -> None:
    """Adds a release for each set of counts with disjoint FILTERs, and notes which cells each count is read from."""
    counts = [collection.lower(one) for one in collection.aggregates if one.function == "count"]
    filtered = [one for one in counts if where_of(one) is not None and one.name not in collection.parts]
    for part in _partitions(sorted(filtered, key=lambda one: show_expression(_condition(one)))):
        _add(part, tuple(dict.fromkeys(map(_condition, part))), counts, collection)


def _add(
    part: Sequence[Aggregate], conditions: tuple[Expression, ...], counts: Sequence[Aggregate], collection: Collection
) -> None:
    every = [one for one in counts if collection.counts_every_row(one.argument) and one.name not in collection.parts]
    read = [] if collection.joint or collection.public_rows is not None else every
    if len(conditions) + bool(read) < 2:
        return
    titles = dict.fromkeys(show_expression(where) for where in map(where_of, part) if where is not None)
    rows = collection.rows_that_count(None if read else either(conditions))
    row = PARTS if collection.may_be_cut else 1
    place = collection.add(Parts(conditions, collection.max_rows, tuple(titles), rows, bool(read), row))
    for one in part:
        collection.parts[one.name] = (place, (conditions.index(_condition(one)),))
    for one in read:
        collection.parts[one.name] = (place, tuple(range(len(conditions) + 1)))


def _partitions(counts: Sequence[Aggregate]) -> list[list[Aggregate]]:
    """Puts each count into the first set with whose conditions its own is disjoint, or equal to one of them."""
    sets: list[list[Aggregate]] = []
    for one in counts:
        home = next((each for each in sets if len(each) < MOST_PARTS and all(_apart(one, other) for other in each)), None)
        if home is None:
            sets.append([one])
        else:
            home.append(one)
    return sets


def _apart(one: Aggregate, other: Aggregate) -> bool:
    left, right = where_of(one), where_of(other)
    return left is not None and right is not None and (disjoint(left, right) or one.argument == other.argument)


def where_of(lowered: Aggregate) -> Expression | None:
    """Returns the condition of FILTER, which `lower` has moved into a CASE; or of a CASE that means the same."""
    x = lowered.argument
    if isinstance(x, Call) and x.name == "case" and len(x.arguments) == 3 and x.arguments[2] == Literal(None):
        return x.arguments[0]
    return None


def _condition(lowered: Aggregate) -> Expression:
    """Returns the condition that the row is counted; never NULL."""
    if lowered.argument is None:
        raise TypeError("a count of all rows has no condition")
    return not_null(lowered.argument)
