"""Numbers with disjoint FILTERs, as one release: COUNT(*) FILTER (WHERE sex = 'M'), COUNT(*) FILTER (WHERE sex = 'F').

Each row is given to the first condition that is true, so a row moves one cell by one, and all counts together cost as much as
one. That holds for any conditions: the price does not rest on a proof that they are disjoint (query/disjoint.py). The proof is
needed for the meaning: only then is "the first that is true" what each FILTER asks for. If COUNT(*) is asked for too, one more
cell counts the rows of no part, and COUNT(*) is the sum of all cells. COUNT(x) counts the part where x is not NULL: beside
COUNT(*), the number of NULLs is a cell of its own.

Sums and means on one grid are parts in the same way: a row moves the cells of its part by what it would move a sum alone.

A unit may have several rows in one group. The cells of one measure are cut together, as all measures of a question are
(base.py, `rows_that_count`). Where a unit may be cut, a row counts for 2^16 in its cell, so that a unit in two parts counts for
a part of a row in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dither.planning import sensitivity
from dither.planning.releases.base import Collection, Release, either, not_null
from dither.planning.sensitivity import PARTS
from dither.query.disjoint import disjoint
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

_ZERO, _ONE, _NULL = Fraction(0), Fraction(1), Literal(None)
MOST_PARTS = 32  # every cell repeats the conditions before its own


# --- counts ---------------------------------------------------------------------------------------------------------


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


def share_counts(collection: Collection) -> None:
    """Adds a release for each set of counts with disjoint FILTERs, and notes which cells each count is read from."""
    counts = [collection.lower(one) for one in collection.aggregates if one.function == "count"]
    free = [one for one in counts if one.name not in collection.parts and one.argument not in collection.joint]
    some = [one for one in free if where_of(one) is not None or not collection.counts_every_row(one.argument)]
    for part in _partitions(sorted(some, key=lambda one: show_expression(_condition(one)))):
        _add(part, tuple(dict.fromkeys(map(_condition, part))), counts, collection)


def _add(
    part: Sequence[Aggregate], conditions: tuple[Expression, ...], counts: Sequence[Aggregate], collection: Collection
) -> None:
    every = [one for one in counts if collection.counts_every_row(one.argument) and one.name not in collection.parts]
    read = [] if collection.joint or collection.public_rows is not None else every
    if len(conditions) + bool(read) < 2:
        return
    titles = dict.fromkeys(show_expression(_asked(one)) for one in part)
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
    return disjoint(_asked(one), _asked(other)) or one.argument == other.argument


def _asked(lowered: Aggregate) -> Expression:
    """Returns the condition as it was asked: that of FILTER, or that x is not NULL."""
    where = where_of(lowered)
    return _condition(lowered) if where is None else where


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


# --- sums and means -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split(Release):
    """The sum in each part: one cell, or two with what is missing to the upper bound (`counted`); with `rest`, a last cell
    for rows that are in no part."""

    columns: tuple[Expression, ...]  # CASE WHEN condition THEN value END
    grid: Quantised  # of the first one
    max_rows: int
    rows: Expression | None = None  # the rows by whose number a unit is cut; None: all
    counted: bool = False
    rest: bool = False

    @property
    def empty_value(self) -> tuple[int, ...]:
        return (0,) * self.cells

    @property
    def width(self) -> int:
        """The cells of one part."""
        return 2 if self.counted else 1

    @property
    def cells(self) -> int:
        return len(self.columns) * self.width + self.rest

    @property
    def first_step(self) -> int:
        """The low end of the grid, in steps from zero; only without counts."""
        return int(self.grid.low / self.grid.step)

    @cached_property
    def measure(self) -> Sums:
        cells: list[Cell] = []
        for place in range(len(self.columns)):
            q = replace(self.grid, expression=_value_of(self.columns, place))
            steps = q.steps
            cells += [Cell(q, linear=1), Cell(q, constant=steps, linear=-1)] if self.counted else [self._from_zero(q)]
        if self.rest:
            every = replace(self.grid, expression=_any(self.columns))
            cells.append(Cell(every, null=self.grid.steps))
        return Sums(tuple(cells), self.max_rows, self.rows)

    def _from_zero(self, q: Quantised) -> Cell:
        return Cell(q, constant=self.first_step, linear=1)

    @property
    def row(self) -> int:
        return self.grid.steps if self.counted else max(abs(self.first_step), abs(self.first_step + self.grid.steps), 1)

    @property
    def signed(self) -> bool:
        return not self.counted and self.first_step < 0

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        missing = ", each with what is missing to its upper bound" if self.counted else ""
        others = ", and the number of other rows" if self.rest else ""
        return f"sums in {len(self.columns)} parts: {'; '.join(map(show_expression, self.columns))}{missing}{others}"


def _pair(column: Expression) -> tuple[Expression, Expression]:
    """Returns the condition and the value of a part."""
    if not isinstance(column, Call):
        raise TypeError("a part is a CASE")
    return column.arguments[0], column.arguments[1]


def _value_of(columns: Sequence[Expression], place: int) -> Expression:
    """Returns the value of a part where its condition is the first that is true, else NULL."""
    before = [part for column in columns[:place] for part in (_pair(column)[0], _NULL)]
    return Call("case", (*before, *_pair(columns[place]), _NULL))


def _any(columns: Sequence[Expression]) -> Expression:
    """Returns the value of the part that a row is in; NULL in none."""
    return Call("case", (*(part for column in columns for part in _pair(column)), _NULL))


def share_sums(collection: Collection) -> None:
    """Adds a release for each set of sums and means with disjoint FILTERs, and notes where each is read from."""
    lowered = [collection.lower(one) for one in collection.aggregates]
    functions: dict[Expression, set[str]] = {}
    for one in lowered:
        if one.argument is not None and one.function not in ("count", "count_units"):
            functions.setdefault(one.argument, set()).add(one.function)
    added = {x: one for one in lowered if (x := one.argument) is not None and functions.get(x, {""}) <= {"sum", "avg"}}
    parts = sorted((x for x in added if where_of(added[x]) is not None), key=show_expression)
    sets = [each for each in _sum_partitions(parts, added, collection) if len(each) > 1]
    alone = sum(map(len, sets)) == len(functions)  # no other column has the count of all rows
    for columns in sets:
        _add_sums(columns, added, [one for one in lowered if one.function == "count"], collection, alone and columns is sets[0])


def _sum_partitions(
    parts: Sequence[Expression], added: dict[Expression, Aggregate], collection: Collection
) -> list[list[Expression]]:
    """Puts each column into the first set on the same grid with whose conditions its own is disjoint."""
    sets: list[list[Expression]] = []
    for x in parts:
        grid = _grid(x, added[x], collection)
        if grid.expression != x:  # bounds that are one point
            continue
        for each in sets:
            same = replace(_grid(each[0], added[each[0]], collection), expression=grid.expression) == grid
            if same and len(each) < MOST_PARTS and all(disjoint(_pair(x)[0], _pair(other)[0]) for other in each):
                each.append(x)
                break
        else:
            sets.append([x])
    return sets


def _grid(x: Expression, aggregate: Aggregate, collection: Collection) -> Quantised:
    return sensitivity.sum_grid(x, collection.facts(x), aggregate, collection.may_be_cut)


def _add_sums(
    columns: Sequence[Expression],
    added: dict[Expression, Aggregate],
    counts: Sequence[Aggregate],
    collection: Collection,
    alone: bool,
) -> None:
    grid = _grid(columns[0], added[columns[0]], collection)
    own = {one.name: place for one in counts if (place := _part(one, columns, collection)) is not None}
    every = [one for one in counts if collection.counts_every_row(one.argument)]
    rest = bool(every) and alone and collection.public_rows is None
    means = any(one.function == "avg" for one in map(collection.lower, collection.aggregates) if one.argument in columns)
    counted = means or bool(own) or rest or (grid.low / grid.step).denominator != 1
    rows = collection.rows_that_count(None if rest else either(map(not_null, columns)))
    release = Split(tuple(columns), grid, collection.max_rows, rows, counted, rest)
    place = collection.add(release)
    for i, x in enumerate(columns):
        collection.split[x] = (place, i * release.width)
        collection.note_bounds(x)
    for name, i in own.items():
        collection.parts[name] = (place, (2 * i, 2 * i + 1))
    for one in every if rest else ():
        collection.parts[one.name] = (place, tuple(range(release.cells)))


def _part(count: Aggregate, columns: Sequence[Expression], collection: Collection) -> int | None:
    """Returns the part whose rows a count counts."""
    for place, x in enumerate(columns):
        condition, value = _pair(x)
        if count.argument == x or (where_of(count) == condition and _counts_all(count, value, collection)):
            return place
    return None


def _counts_all(count: Aggregate, value: Expression, collection: Collection) -> bool:
    """Whether a count with a FILTER counts every row of it, as the part of a value does that is never NULL."""
    return count.argument is not None and not any(collection.facts(each).nullable for each in (value, _pair(count.argument)[1]))
