"""How many rows the bounds leave out: people by class of the rows that are not counted.

    T = a person's rows in all groups        c = those that count: at most max_rows in each of max_groups groups

A person in G > L = max_groups groups keeps L of them at random, so L / G of what would count. In each class the sum of T - c is
released jointly with the number of people (the planner's mean of a place between 0 and the class's end), so no class has a
middle to guess. Beyond the last end T - c counts as that end. What was counted is read from the answer itself. If the answer
counts no rows, the classes are those of T, with the sums of both T and T - c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.planning.contributions import (
    by_class,
    class_facts,
    counted,
    exactly_known,
    into_classes,
    one_bin,
    one_row_each,
    per_group,
)
from dither.planning.left_out.base import PLACE, Kept, LeftOut, Part, laplace_scale, place_cells, whole_key
from dither.planning.left_out.estimate import Cells, Share, share
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.planning.releases.base import not_null
from dither.query.functions.base import Facts
from dither.query.functions.domains import facts
from dither.query.nodes import Aggregate, Call, Column, Compute, Expression, Literal, Named, PerUnit, Relation
from dither.query.resolve.relations import Resolved
from dither.query.work import UNIT, Cell, Pairs, Sums, Work

_BEYOND = 10  # doublings of what one person can count for, before the last class
_TOTAL, _LOST, _REASON, _CLASS = "#total", "#lost", "#reason", "#class"
_NAMES = {_TOTAL: "rows of people", _LOST: "rows not counted"}
_GROUPS, _ROWS, _KEPT = Column("#groups"), Column("#rows"), Column("#kept")
Bounds = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Count:
    """Where the answer counts rows: the place of a measure, and the weight of each of its cells."""

    measure: int
    weights: tuple[Fraction, ...]


@dataclass(frozen=True)
class RowsPart(Part):
    """People by class. `count`: where the answer counts what is not left out; None: the classes are of all rows."""

    ends: tuple[int, ...]
    open: bool  # the last class has no end
    of: str
    bounds: Bounds
    most: int  # the most that is counted of one person
    count: Count | None

    def read(self, main: tuple[Plan, Noisy], own: tuple[Plan, Noisy], confidence: Fraction, kept: Kept) -> list[LeftOut]:
        cells, reasons = self._cells(*own)
        tops = [*self.ends, self.ends[-1]] if self.open else [*self.ends]
        if self.count is None:
            floors = [max(0.0, 1 - self.most / top) for top in tops]
            found = share(cells, floors, sum(end < self.most for end in self.ends), confidence)
        else:
            found = share(cells.with_cells(count_cells(self.count, *main)), [1.0] * len(tops), 0, confidence)
        everyone = not self.open and found.level == len(tops) - 1
        beyond = None if everyone else self._beyond(tops[found.level])
        return [LeftOut(self.of, found.estimate, found.low, found.high, self._bounds(cells, reasons, found), beyond)]

    def _beyond(self, top: int) -> str:
        unit = ("group" if self.of != "rows" else "row") + ("" if top == 1 else "s")
        return f"{top} {unit}{'' if self.count is None else ' not counted'}"

    def _cells(self, made: Plan, noisy: Noisy) -> tuple[Cells, NDArray[np.int64]]:
        """Returns the cells, by (release, class, cell), and the main bound of each."""
        places, scales = place_cells(made, noisy)
        level = np.array([whole_key(key[0]) for key in noisy.keys])
        why = np.array([whole_key(key[1]) if len(key) > 1 else 0 for key in noisy.keys])
        lost, total, people = (np.zeros(places.shape) for _ in range(3))
        tops = np.array([*self.ends, self.ends[-1]], dtype=np.float64)[level]
        lost[-1, :, 0] = tops  # the last release is what was left out; where it is the only one, the answer has the rest
        total[0, :, 0] = tops
        people[0] = 1.0
        levels, reasons = (np.tile(np.repeat(each, 2), len(places)) for each in (level, why))
        return Cells(places.ravel(), scales.ravel(), levels, lost.ravel(), total.ravel(), people.ravel()), reasons

    def _bounds(self, cells: Cells, reasons: NDArray[np.int64], found: Share) -> tuple[tuple[str, str, float], ...]:
        """Returns each bound with the share that is mainly due to it."""
        if len(self.bounds) == 1:
            return tuple((name, str(bound), found.estimate) for name, bound in self.bounds)
        kept = cells.levels <= found.level
        each = [max(0.0, float((cells.lost * cells.values)[kept & (reasons == i)].sum())) for i, _ in enumerate(self.bounds)]
        whole = sum(each) or 1.0
        return tuple(
            (name, str(bound), found.estimate * part / whole) for (name, bound), part in zip(self.bounds, each, strict=True)
        )


def cutting(question: Resolved, work: Work) -> Bounds:
    """Returns the bounds that can leave rows out, with their names."""
    if not question.by_unit or question.one_row or one_row_each(question.query.source):
        return ()
    rows = () if counts_people(question) else (("max_rows", question.max_rows or 1),)
    most = work.max_groups
    groups = most is not None and not question.one_group and _more_groups(work, most)
    return (("max_groups", most or 1), *rows) if groups else rows


def _more_groups(work: Work, most: int) -> bool:
    """Whether there are more groups than a person may be in."""
    return bool(work.keys) and (work.known is None or math.prod(len(set(values)) for values in work.known) > most)


def counts_people(question: Resolved) -> bool:
    return all(each.function == "count_units" for each in question.query.aggregates)


def rows(question: Resolved, work: Work) -> Iterator[Part]:
    """Returns the question about rows, if bounds can leave any out."""
    bounds = cutting(question, work)
    if not bounds:
        return
    people, groups = counts_people(question), max(1, work.max_groups or 1)
    in_group = 1 if people else question.max_rows or 1
    most = groups * in_group * len(counted(work))
    count = count_of(question, work, in_group)
    last = None
    if people and work.known is not None:  # nobody is in more groups than there are
        last = math.prod(len(set(values)) for values in work.known) - (groups if count is not None else 0)
    ends = _ends(most, last)
    columns, scope = _columns(ends, last is None, groups, of_all=count is None, reasons=len(bounds) > 1)
    aggregates = tuple(Aggregate(f"mean {name}", "avg", Column(name, words=_NAMES[name])) for name in scope if name in _NAMES)
    each = per_group(work)
    asked = one_bin(question, _totals(each, work, people, in_group), columns, aggregates, scope)
    of, pairs = "people in groups" if people else "rows", Pairs(work, each) if exactly_known(work) else None
    yield RowsPart(asked, f"how many {of} were not counted", ends, last is None, of, bounds, most, count, pairs=pairs)


def count_of(question: Resolved, work: Work, max_rows: int) -> Count | None:
    """Returns where the answer counts its rows in all groups; None if it does not, or if it shows only some groups."""
    if (work.keys and work.known is None) or len(counted(work)) > 1:
        return None
    for place, measure in enumerate(work.measures):
        if not isinstance(measure, Sums) or measure.max_rows != max_rows:
            continue
        first, *others = measure.cells
        if not others and first == Cell(constant=1):
            return Count(place, (Fraction(1),))
        grid = first.argument
        if grid is None or not others or others[0] != Cell(grid, constant=grid.steps, linear=-1):  # q, and what is missing
            continue
        if len(others) > 1 or measure.where == not_null(grid.expression) or not facts(grid.expression, question.scope).nullable:
            return Count(place, (Fraction(1, grid.steps),) * len(measure.cells))
    return None


def count_cells(count: Count, made: Plan, noisy: Noisy) -> Cells:
    """Returns the answer's own cells that count rows."""
    values = noisy.cells[count.measure].astype(np.float64)
    none, scale = np.zeros(values.size), laplace_scale(made.noises[count.measure])
    weights = np.tile([float(weight) for weight in count.weights], len(values))
    return Cells(values.ravel(), none + scale, np.full(values.size, -1), none, weights, none)


def _ends(bound: int, last: int | None) -> tuple[int, ...]:
    """Returns the ends of classes: the bound, halved down to 1, and doubled up to the last end.

    >>> _ends(20, None), _ends(5, 12)
    ((1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480), (1, 2, 5, 10, 12))
    """
    above = (bound << i for i in range(1, _BEYOND + 1))
    every = (*ends_below(bound), *above)
    return every if last is None else (*(end for end in every if end < last), last)


def ends_below(bound: int) -> tuple[int, ...]:
    """Returns the ends of classes up to a bound, which is halved down to 1."""
    return tuple(bound >> i for i in reversed(range(bound.bit_length())))


def _totals(each: Relation, work: Work, people: bool, most: int) -> Relation:
    """Returns one row for each person: groups, rows, and the rows that would count if all groups did. `each`: `per_group`."""
    rows: list[Expression] = [Column(f"#rows {place}") for place, _ in enumerate(counted(work))]
    kept: list[Expression] = [Call("least", (own, Literal(most))) for own in rows]
    unit, groups = Named(UNIT, Column(UNIT)), Aggregate(_GROUPS.name, "count")
    if people:
        counts = PerUnit(each, (unit,), (groups,))
        return Compute(counts, tuple(Named(own.name, _GROUPS) for own in (_GROUPS, _ROWS, _KEPT)))
    if not work.keys:
        named = (Named(_GROUPS.name, Literal(1)), Named(_ROWS.name, _added(rows)), Named(_KEPT.name, _added(kept)))
        return Compute(each, named)
    sums = (Aggregate(_ROWS.name, "sum", _added(rows)), Aggregate(_KEPT.name, "sum", _added(kept)))
    return PerUnit(each, (unit,), (groups, *sums))


def _added(parts: Sequence[Expression]) -> Expression:
    total = parts[0]
    for part in parts[1:]:
        total = Call("add", (total, part))
    return total


def _columns(
    ends: tuple[int, ...], open_end: bool, groups: int, *, of_all: bool, reasons: bool
) -> tuple[list[Named], dict[str, Facts]]:
    """Returns a person's class, the main bound if there are two, and the places in the class. `of_all`: the class of all rows,
    not of those that are not counted."""
    kept = Call("to_real", (_KEPT,))
    counts = Call(
        "case", (Call("le", (_GROUPS, Literal(groups))), kept, Call("div", (Call("mul", (kept, Literal(groups))), _GROUPS)))
    )
    lost = Call("sub", (Call("least", (_ROWS, Literal(ends[-1]))) if of_all else _ROWS, counts))
    by = _ROWS if of_all else lost
    columns = [Named(_CLASS, into_classes(by, ends if open_end else ends[:-1]))]
    scope = {_CLASS: class_facts(len(ends) + open_end)}
    if reasons:
        cut, rows = Call("sub", (kept, counts)), Call("sub", (_ROWS, kept))
        columns.append(Named(_REASON, Call("case", (Call("gt", (cut, rows)), Literal(0), Literal(1)))))
        scope[_REASON] = class_facts(2)
    tops = [Literal(end) for end in (*ends, ends[-1])]
    for name, value in ((_TOTAL, _ROWS), (_LOST, lost)) if of_all else ((_LOST, lost),):
        columns.append(Named(name, by_class(by, ends, [Call("div", (value, top)) for top in tops])))
        scope[name] = PLACE
    return columns, scope
