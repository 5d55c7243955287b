"""Counts people by what they contribute: in how many groups they are, and how many rows they have in one group.

    rows  ─▶  one row per person and group: its rows  ─▶  one row per person: groups, most rows  ─▶  classes  ─▶  noisy counts

It is an ordinary question over ordinary nodes, so it is planned, charged, run and drawn like any other. Each person is in one
class, so one person moves one count by one, however many rows the person has. The classes are a public list, and the last one
is open: nothing about a heavy person shows but that it is beyond the last end.

A group is one of the question's own: its keys, its public values, and its rows as its measures count them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from dither.catalog.values import Key, Rows
from dither.planning.outputs import Noisy
from dither.query.functions.base import Facts
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Literal,
    Named,
    PerUnit,
    Query,
    Relation,
)
from dither.query.normal import form
from dither.query.resolve.relations import Resolved
from dither.query.show import show_expression
from dither.query.work import UNIT, Bins, Cell, Distinct, Measure, Sums, Work

GROUPS, MOST = "#groups", "#most"  # of one person: the number of groups, and the most rows in one of them
_LISTED = 1000  # public values of a key that a condition lists one by one


@dataclass(frozen=True)
class Classes:
    """Public classes of people. Class i of a dimension ends at its i-th number, included; one open class follows the last.

    A dimension without ends is left out.

    >>> Classes(rows=(1, 2, 4), groups=()).place("rows", 3), Classes(rows=(1, 2, 4), groups=()).place("rows", 5)
    (2, 3)
    """

    rows: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()

    def ends(self, dimension: str) -> tuple[int, ...]:
        return self.rows if dimension == "rows" else self.groups

    def place(self, dimension: str, number: int) -> int:
        """Returns the class of a number."""
        return sum(end < number for end in self.ends(dimension))


class Bin(NamedTuple):
    """A pair of classes, by its places (0 for a dimension that is left out), and the noisy number of people in it."""

    groups: int
    rows: int
    people: int


def histogram(question: Resolved, work: Work, classes: Classes) -> Resolved:
    """Returns the question that counts people by class. `work`: of the question's own plan; its bounds do not matter."""
    dimensions = [("groups", GROUPS, classes.groups), ("rows", MOST, classes.rows)]
    keys = tuple((f"#{name}", column, ends) for name, column, ends in dimensions if ends)
    named = tuple(Named(key, into_classes(Column(column), ends)) for key, column, ends in keys)
    scope = {key: class_facts(len(ends) + 1) for key, _, ends in keys}
    count = Aggregate("people", "count")
    return one_bin(question, per_person(work), named, (count,), scope)


def one_bin(
    question: Resolved,
    persons: Relation,
    columns: Sequence[Named],
    aggregates: Sequence[Aggregate],
    scope: Mapping[str, Facts],
) -> Resolved:
    """Returns a question about the rows of `persons`, each its own unit: one row moves one group, as rows of a table do.

    `columns` are computed from each row; those whose facts list their values are the keys. A person has one row because the
    engine groups by the unit alone, so `persons` must do that. Where rows are the question's own units, `persons` is a table
    of rows.
    """
    if question.by_unit and not one_row_each(persons):
        raise TypeError("a histogram of people needs one row for each person")
    keys = tuple(Named(name, Column(name)) for name, facts in scope.items() if facts.values is not None)
    outputs = tuple(Named(each.name, Column(each.name)) for each in aggregates)
    query = Query(Compute(persons, tuple(columns)), keys, tuple(aggregates), outputs)
    return replace(
        question,
        query=query,
        by_unit=False,
        max_rows=1,
        max_groups=1,
        scope=scope,
        rows=Rows(),
    )


def one_row_each(relation: Relation) -> bool:
    """Whether the relation has one row for each unit: it is grouped by the unit alone, and then only filtered or computed."""
    while isinstance(relation, (Filter, Compute)):
        relation = relation.source
    return isinstance(relation, PerUnit) and [key.expression for key in relation.keys] == [Column(UNIT)]


def read(noisy: Noisy, classes: Classes) -> tuple[Bin, ...]:
    """Reads the noisy counts of a `histogram`, one for each pair of classes."""
    counts = noisy.cells[0][:, 0].tolist()
    places = [[part for part in key if isinstance(part, int)] for key in noisy.keys]
    return tuple(
        Bin(place[0] if classes.groups else 0, place[-1] if classes.rows else 0, int(people))
        for place, people in zip(places, counts, strict=True)
    )


# --- one row per person -----------------------------------------------------------------------------------------


def per_person(work: Work) -> Relation:
    """Returns one row for each person with a row in a public group: the number of groups and the most rows in one."""
    rows = [f"#rows {place}" for place, _ in enumerate(counted(work))]
    most = Column(rows[0]) if len(rows) == 1 else Call("greatest", tuple(map(Column, rows)))
    if not work.keys:  # one group: grouped by the unit alone already
        return Compute(per_group(work), (Named(GROUPS, Literal(1)), Named(MOST, most)))
    parts = (Aggregate(GROUPS, "count"), Aggregate(MOST, "max", most))
    return PerUnit(per_group(work), (Named(UNIT, Column(UNIT)),), parts)


def per_group(work: Work, further: Sequence[Aggregate] = ()) -> Filter:
    """Returns one row for each person and public group: "#rows i" are its rows as the i-th of `counted` counts them."""
    order = sorted(range(len(work.keys)), key=lambda place: spelling(work, work.keys[place].expression))
    names = [f"#key {order.index(place)}" for place, _ in enumerate(work.keys)]
    keys = [Named(f"#key {place}", work.keys[own].expression) for place, own in enumerate(order)]
    counts = (replace(each, name=f"#rows {place}") for place, each in enumerate(counted(work)))
    grouped: Relation = PerUnit(work.source, (*keys, Named(UNIT, Column(UNIT))), (*counts, *further))
    owned = Call("not", (Call("is_null", (Column(UNIT),)),))
    known = [] if work.known is None else [among(Column(name), values) for name, values in zip(names, work.known, strict=True)]
    tests = [test for test in known if test is not None]
    return Filter(grouped, Call("and", (owned, *tests)))  # after grouping: there are fewer groups than rows


def counted(work: Work) -> tuple[Aggregate, ...]:
    """Returns the different ways in which the measures count one person's rows in a group, in an order of their own."""
    people = Sums((Cell(constant=1),), 1)  # people count once whatever their rows, unless nothing else is measured
    others = [measure for measure in work.measures if measure != people] or [people]
    ways = dict.fromkeys(_count(measure) for measure in others)
    return tuple(sorted(ways, key=lambda way: (way.function, "" if way.argument is None else spelling(work, way.argument))))


def spelling(work: Work, expression: Expression) -> str:
    """Returns the same text however the question writes the expression: the order of keys and outputs must not matter."""
    return show_expression(form(work.source).expressions([expression])[expression], names=True)


def _count(measure: Measure) -> Aggregate:
    if isinstance(measure, Distinct):
        return Aggregate("", "count_distinct", measure.expression)
    if measure.where is not None:
        return Aggregate("", "count", Call("case", (measure.where, Literal(1), Literal(None))))
    if isinstance(measure, Bins):
        return Aggregate("", "count", measure.argument.expression)  # rows without a value are in no bin
    return Aggregate("", "count")


def exactly_known(work: Work) -> bool:
    """Whether `per_group` keeps exactly the groups that count: `among` lists all public values."""
    return work.known is None or all(len(set(values)) <= _LISTED for values in work.known)


def among(column: Expression, values: tuple[Key, ...]) -> Expression | None:
    """Returns the condition that a key is public, as far as it can be written in short."""
    some = sorted({value for value in values if value is not None}, key=str)
    tests: list[Expression] = [Call("is_null", (column,))] if None in values else []
    if some and len(some) <= _LISTED:
        tests.append(Call("in_list", (column, *map(Literal, some))))
    elif some:
        if isinstance(some[0], str):
            return None
        ends = Call("ge", (column, Literal(min(some)))), Call("le", (column, Literal(max(some))))
        tests.append(Call("and", ends))
    return Call("or", tuple(tests)) if len(tests) > 1 else tests[0] if tests else Literal(False)


# --- classes ----------------------------------------------------------------------------------------------------


def into_classes(number: Expression, ends: Sequence[int | Fraction]) -> Expression:
    """Returns the class of a number: 0 up to the first end, included; len(ends) beyond the last."""
    return by_class(number, ends, [Literal(place) for place in range(len(ends) + 1)])


def by_class(number: Expression, ends: Sequence[int | Fraction], values: Sequence[Expression]) -> Expression:
    """Returns the value of the number's class; the last value is for numbers beyond the last end."""
    arms = [part for end, value in zip(ends, values, strict=False) for part in (Call("le", (number, Literal(end))), value)]
    return Call("case", (*arms, values[-1]))


def class_facts(count: int) -> Facts:
    """Returns the facts of a key that is one of so many classes."""
    return Facts("int", Fraction(0), Fraction(count - 1), False, True, tuple(range(count)), Fraction(1))
