"""Law 1 on real rows: what the questions of the golden file ask of one person depends on that person's rows alone.

The rows of unit u in the resolved relation, computed from everybody's data, must equal those computed from the data of u
alone. For rows protected on their own: the relation of the table must be the relations of its rows put together.
"""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.engines.reference import Bag, rows_of
from dither.query.nodes import Aggregate, Column, Compute, Join, Named, PerUnit, Relation, Scan, Semi
from dither.query.resolve.relations import Resolved, resolve
from dither.query.sql.select import parse
from dither.query.work import UNIT
from sql.survey import CATALOG
from sql.test_golden import cases

QUESTIONS = [question for _, question, _ in cases("sql_to_nodes.txt")]
Tables = dict[str, list[dict[str, Any]]]

ids = st.integers(1, 4) | st.none()
regions = st.sampled_from(["north", "south", "east", None])
days = st.dates(datetime.date(1989, 12, 30), datetime.date(1990, 2, 2)) | st.none()


def table(**columns: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.fixed_dictionaries(columns), max_size=6)


numbers = st.floats(-5, 10) | st.sampled_from([float("nan"), float("inf"), None])
wholes = st.integers(-3, 130) | st.none()
TABLES = st.fixed_dictionaries(
    {
        "people": table(
            person_id=ids,
            age=wholes,
            income=numbers,
            score=numbers,
            region=regions,
            city=st.sampled_from(["Bern", "7", None]),
            active=st.booleans() | st.none(),
            born=days,
            Mixed=wholes,
        ),
        "visits": table(visit_id=st.none(), cost=wholes, ward=regions, day=days, region=regions, person_id=ids),
        "prescriptions": table(drug=regions, dose=wholes, visit_id=st.integers(0, 6) | st.none()),
        "records": table(x=wholes, g=regions, region=regions),
        "regions": table(name=st.none(), area=wholes, coast=st.booleans()),
        "towns": table(town=st.sampled_from(["a", "bc"]), region=regions),
    }
)


def unique_keys(tables: Tables) -> Tables:
    """Visits are numbered and regions named once: keys are unique, as the opening of a snapshot checks."""
    for number, visit in enumerate(tables["visits"]):
        visit["visit_id"] = number
    for name, region in zip(["north", "south", "east", "west", None, "far"], tables["regions"], strict=False):
        region["name"] = name
    return tables


def bags(tables: Tables) -> dict[str, Bag]:
    columns = {name: [*declared.columns] for name, declared in CATALOG.tables.items()}
    columns["visits"].append("person_id")
    return {name: Bag(tuple(columns[name]), rows) for name, rows in tables.items()}


def only(unit: int, tables: Tables) -> Tables:
    """The data of one person, and what is public."""
    visits = [row for row in tables["visits"] if row["person_id"] == unit]
    mine = {row["visit_id"] for row in visits}
    return {
        **tables,
        "people": [row for row in tables["people"] if row["person_id"] == unit],
        "visits": visits,
        "prescriptions": [row for row in tables["prescriptions"] if row["visit_id"] in mine],
    }


def counted(relation: Relation, tables: Tables, unit: int | None = None) -> Counter[str]:
    found = rows_of(relation, bags(tables)).rows
    return Counter(repr(sorted(row.items())) for row in found if unit is None or row[UNIT] == unit)


def is_unit_local(relation: Relation, tables: Tables) -> bool:
    return all(counted(relation, tables, unit) == counted(relation, only(unit, tables), unit) for unit in range(1, 5))


@cache
def resolved(question: str) -> Resolved:
    return resolve(parse(question, CATALOG), CATALOG, question)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
@settings(max_examples=12)
@given(tables=TABLES.map(unique_keys))
def test_one_persons_rows_depend_on_that_person_alone(question: str, tables: Tables) -> None:
    found = resolved(question)
    if found.by_unit:
        assert is_unit_local(found.query.source, tables)
    else:
        whole = counted(found.query.source, tables)
        single = [counted(found.query.source, {**tables, "records": [row]}) for row in tables["records"]]
        assert all(sum(each.values()) <= 1 for each in single)
        assert whole == sum(single, Counter())


def with_unit(alias: str) -> Relation:
    names = [f"{alias}.{name}" for name in ("person_id", "region")]
    columns = tuple(Named(name, Column(name)) for name in names)
    return Compute(Scan("people", alias), (*columns, Named(UNIT, Column(names[0]))))


def test_that_check_can_fail_for_a_join() -> None:
    other = Compute(Scan("people", "q"), (Named("q.region", Column("q.region")),))
    mixing = Join(with_unit("p"), other, ((Column("p.region"), Column("q.region")),), "inner")
    assert not is_unit_local(mixing, two_people())


def test_that_check_can_fail_for_an_aggregate() -> None:
    grouped = PerUnit(
        with_unit("p"), (Named("r", Column("p.region")),), (Aggregate(UNIT, "min", Column(UNIT)), Aggregate("n", "count"))
    )
    assert not is_unit_local(grouped, two_people())


def test_that_check_can_fail_for_a_not_in() -> None:
    """The NULL of one person in a list that is everybody's."""
    named = Named("q.city", Column("q.city")), Named("q.id", Column("q.person_id"))
    listed = Semi(with_unit("p"), Compute(Scan("people", "q"), named), (), True, (Column("p.region"), Column("q.city")))
    tables = two_people()
    tables["people"][1]["city"] = "7"
    assert not is_unit_local(listed, tables)
    assert is_unit_local(replace(listed, equal=((Column(UNIT), Column("q.id")),)), tables)


def two_people() -> Tables:
    tables: Tables = {name: [] for name in CATALOG.tables}
    person = dict.fromkeys(CATALOG.tables["people"].columns)
    tables["people"] = [{**person, "person_id": 1, "region": "north"}, {**person, "person_id": 2, "region": "north"}]
    return tables
