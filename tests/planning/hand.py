"""Questions built by hand, without SQL: one table of people with an age, a wage, a region and a person's number."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dither.catalog.values import Budget, Catalog, Rows, Table
from dither.engines.reference import Reference
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.query.functions.base import Facts
from dither.query.nodes import Aggregate, Column, Compute, Expression, Named, Query, Scan
from dither.query.resolve.relations import Resolved
from dither.query.work import UNIT, Group

REGIONS = ("east", "north", "south")
AGE = Facts("int", Fraction(0), Fraction(120), True, True, tuple(range(121)), Fraction(1))
WAGE = Facts("real", Fraction(-10), Fraction(50), False)
SCOPE = {
    "age": AGE,
    "wage": WAGE,
    "region": Facts("text", values=REGIONS),
    "town": Facts("text"),
    UNIT: Facts("int"),
}
KINDS = {"people": {"person": "int", "age": "int", "wage": "real", "region": "text", "town": "text"}}
NAMES = ("age", "wage", "region", "town")
SOURCE = Compute(Scan("people", "p"), (*(Named(name, Column(f"p.{name}")) for name in NAMES), Named(UNIT, Column("p.person"))))


def ask(
    name: str,
    function: str,
    argument: str | Expression | None = None,
    p: Fraction | None = None,
    second: str | Expression | None = None,
) -> Aggregate:
    columns = [Column(each) if isinstance(each, str) else each for each in (argument, second)]
    return Aggregate(name, function, columns[0], p, second=columns[1])


def query(*aggregates: Aggregate, keys: tuple[str, ...] = (), **more: Any) -> Query:
    names = (*keys, *(aggregate.name for aggregate in aggregates))
    return Query(
        SOURCE, tuple(Named(key, Column(key)) for key in keys), aggregates, tuple(Named(n, Column(n)) for n in names), **more
    )


def catalog(delta: Fraction = Fraction(0), neighbours: str = "add-remove") -> Catalog:
    rows = Rows(public=1000) if neighbours == "replace" else None
    return Catalog({"people": Table("people.parquet", unit="person", max_rows=1, rows=rows)}, Budget(10, delta), neighbours)


def planned(
    asked: Query,
    epsilon: Fraction | int = 1,
    delta: Fraction = Fraction(0),
    *,
    neighbours: str = "add-remove",
    by_unit: bool = True,
    max_rows: int = 1,
    max_groups: int | None = 1,
    rows: Rows | None = None,
    **more: Any,
) -> Plan:
    more.setdefault("one_row", max_rows == 1)  # a fact of these questions; a table's max_rows alone is none
    question = Resolved(asked, by_unit, ("people",), max_rows, max_groups, SCOPE, rows or Rows(), "person", **more)
    return plan(question, catalog(delta, neighbours), Price(Fraction(epsilon), delta))


def run(plan: Plan, rows: list[dict[str, Any]], secret: bytes = b"secret") -> list[Group]:
    return Reference({"people": rows}, KINDS).run(plan.work, secret)
