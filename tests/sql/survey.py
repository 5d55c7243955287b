"""The catalog of the golden files: people, their visits, prescriptions two references away, and public tables."""

from __future__ import annotations

import datetime
from fractions import Fraction

from dither.catalog.values import Budget, Catalog, ColumnFacts, Rows, Table, Unit


def number(low: int, high: int, **more: object) -> ColumnFacts:
    return ColumnFacts("int", Fraction(low), Fraction(high), Fraction(1), **more)  # type: ignore[arg-type]


PEOPLE = Table(
    "people.parquet",
    unit=Unit("person_id"),
    max_rows=1,
    key="person_id",
    rows=Rows(at_least=100),
    columns={
        "person_id": ColumnFacts("int"),
        "age": number(0, 120, nullable=False),
        "income": ColumnFacts("real", Fraction(0), Fraction(250000), Fraction(1)),
        "score": ColumnFacts("real"),
        "region": ColumnFacts("text", values=("north", "south", "east", "west")),
        "city": ColumnFacts("text"),
        "active": ColumnFacts("bool"),
        "born": ColumnFacts("date"),
        "Mixed": number(0, 9),
    },
)
VISITS = Table(
    "visits.parquet",
    unit=Unit("person_id", ("people", "person_id")),
    max_rows=20,
    max_groups=5,
    key="visit_id",
    columns={
        "visit_id": ColumnFacts("int"),
        "cost": number(0, 1000),
        "ward": ColumnFacts("text", values=("a", "b")),
        "day": ColumnFacts("date"),
        "region": ColumnFacts("text"),
    },
)
PRESCRIPTIONS = Table(
    "prescriptions.parquet",
    unit=Unit("visit_id", ("visits", "visit_id")),
    max_rows=50,
    columns={"drug": ColumnFacts("text"), "dose": number(0, 100), "visit_id": ColumnFacts("int")},
)
RECORDS = Table(
    "records.parquet",
    by_row=True,
    columns={"x": number(0, 10), "g": ColumnFacts("text", values=("p", "q")), "region": ColumnFacts("text")},
)
REGIONS = Table(
    "regions.csv",
    public=True,
    key="name",
    columns={"name": ColumnFacts("text"), "area": number(0, 5000), "coast": ColumnFacts("bool")},
)
TOWNS = Table("towns.csv", public=True, columns={"town": ColumnFacts("text"), "region": ColumnFacts("text")})

CATALOG = Catalog(
    tables={
        "people": PEOPLE,
        "visits": VISITS,
        "prescriptions": PRESCRIPTIONS,
        "records": RECORDS,
        "regions": REGIONS,
        "towns": TOWNS,
    },
    budget=Budget(Fraction(1), Fraction(1, 10**6)),
)
A_DAY = datetime.date(2026, 1, 31)
