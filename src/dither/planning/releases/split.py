"""SUM and AVG with disjoint FILTERs, as one release: AVG(x) FILTER (WHERE sex = 'M'), AVG(x) FILTER (WHERE sex = 'F').

As for counts (parts.py), each row is given to the first condition that is true. So it moves the cells of one part only, by what
it would move a sum alone (sums.py), and all parts together cost as much as one. The price does not rest on a proof that the
conditions are disjoint; the meaning does. All parts are on one grid. If COUNT(*) is asked for too, a last cell counts the rows
that are in no part, and COUNT(*) is read from all cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dither.planning import sensitivity
from dither.planning.releases.base import Collection, Release, either, not_null
from dither.planning.releases.parts import MOST_PARTS, where_of
from dither.query.disjoint import disjoint
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

_NULL = Literal(None)


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
            q = replace(self.grid, expression=_first(self.columns, place))
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


def _first(columns: Sequence[Expression], place: int) -> Expression:
    """Returns the value of a part where its condition is the first that is true, else NULL."""
    before = [part for column in columns[:place] for part in (_pair(column)[0], _NULL)]
    return Call("case", (*before, *_pair(columns[place]), _NULL))


def _any(columns: Sequence[Expression]) -> Expression:
    """Returns the value of the part that a row is in; NULL in none."""
    return Call("case", (*(part for column in columns for part in _pair(column)), _NULL))


def share(collection: Collection) -> None:
    """Adds a release for each set of sums and means with disjoint FILTERs, and notes where each is read from."""
    lowered = [collection.lower(one) for one in collection.aggregates]
    functions: dict[Expression, set[str]] = {}
    for one in lowered:
        if one.argument is not None and one.function not in ("count", "count_units"):
            functions.setdefault(one.argument, set()).add(one.function)
    added = {x: one for one in lowered if (x := one.argument) is not None and functions.get(x, {""}) <= {"sum", "avg"}}
    parts = sorted((x for x in added if where_of(added[x]) is not None), key=show_expression)
    sets = [each for each in _partitions(parts, added, collection) if len(each) > 1]
    alone = sum(map(len, sets)) == len(functions)  # no other column has the count of all rows
    for columns in sets:
        _add(columns, added, [one for one in lowered if one.function == "count"], collection, alone and columns is sets[0])


def _partitions(
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


def _add(
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
