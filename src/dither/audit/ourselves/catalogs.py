"""Catalogs to ask about: one small table in many types and bounds, and a survey of several tables.

A setup holds what is declared, how to generate one more unit, the rows without a unit, and the generator of questions.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import dither as dt
from dither.audit.ourselves import poisoned, survey
from dither.audit.ourselves.questions import Maker, OneTable, Survey
from dither.audit.ourselves.survey import INF, NAN, Person, Row, Rows, kind_of


@dataclass(frozen=True)
class CatalogSetup:
    """`catalog` takes every table's rows; `person(number, rng)` generates one unit; `rows_without_unit` are in both tables."""

    name: str
    catalog: Callable[[Mapping[str, Any]], dt.Catalog]
    schemas: Mapping[str, pa.Schema]
    rows_without_unit: Person
    person: Callable[[int, random.Random], Person]
    maker: Callable[[int], Maker] | None  # None: questions are given
    replace: bool = False
    single: tuple[str, ...] = ()  # tables whose rows cannot be repeated: each is its own unit, or has a key

    def is_single(self, table: str) -> bool:
        return table in self.single

    def arrow(self, table: str, rows: Rows) -> pa.Table:
        schema = self.schemas[table]
        return pa.table({field.name: _column([row.get(field.name) for row in rows], field.type) for field in schema})


def _column(values: list[Any], kind: pa.DataType) -> Any:
    """Returns an Arrow column. Clamps values to the range of the type."""
    if pa.types.is_integer(kind):
        bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        values = [value if value is None else min(max(value, low), high) for value in values]
    if pa.types.is_floating(kind):
        values = [value if value is None else float(value) for value in values]
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


def any_setup(rng: random.Random) -> CatalogSetup:
    """Returns a random setup: its bounds, types and neighbours are random too."""
    return rng.choice([small, small, people])(rng)


# --- one table --------------------------------------------------------------------------------------------------

AGES = (None, -5, 0, 60, 120, 121, 2**62, -(2**62), 2**63 - 1, -(2**63))
WAGES = (None, NAN, NAN, NAN, INF, -INF, -0.0, 1e308, 5e-324, -7.25, 12.5, 50.0)
REGIONS = ("north", "south", "east", "elsewhere", "NORTH", "north ", None)
TOWNS = ("a", "b", "c", "d", None, "", "x" * 5000, "a'b", "\0", "no\u0301rth")
BORN = (None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2020, 2, 29))
PLACES: Rows = [{"name": name, "area": area} for name, area in (("north", 9), ("south", 1), ("far", None))]


def small(rng: random.Random) -> CatalogSetup:
    """Returns one table called t, whose units are people (in several rows) or its rows, and a public table."""
    replace, by_row = rng.random() < 0.3, rng.random() < 0.15
    kinds: dict[str, pa.DataType] = {
        "person": pa.int64(),
        "age": rng.choice([pa.int64(), pa.int64(), pa.int32(), pa.int16(), pa.uint8(), pa.float64()]),
        "wage": rng.choice([pa.float64(), pa.float64(), pa.float64(), pa.float32()]),
        "region": rng.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]),
        "town": pa.string(),
        "active": pa.bool_(),
        "born": pa.date32(),
    }
    columns = {
        "age": rng.choice([dt.between(0, 120), dt.between(-60, 60), dt.between(0, 120, null=False)]),
        "wage": rng.choice([dt.between(-10, 50), dt.between(-10, 50, step="0.01"), dt.between(0, 50, step=1)]),
        "region": rng.choice([dt.values("north", "south", "east"), dt.values("north", "south", None)]),
        "town": dt.column(),
        "active": dt.column(),
        "born": dt.column(),
    }
    # Where a row is its own unit and one row is replaced, the number of rows is public.
    facts: dict[str, Any] = {}
    if not by_row:  # now and then the questions choose their bounds
        facts = {"max_rows": rng.choice([1, 2, 3, 4, 4, None]), "max_groups": rng.choice([1, 2, 3, 3, None])}
        facts["caps"] = {"max_rows": 8, "max_groups": 6}
    unit = "row" if by_row else "person"
    columns |= {"person": dt.column()} if by_row else {}

    def catalog(tables: Mapping[str, Any]) -> dt.Catalog:
        declared = {"t": dt.Table(tables["t"], unit=unit, columns=columns, **facts)}
        declared["places"] = dt.Table(tables["places"], public=True, key="name", columns={"area": dt.between(0, 10)})
        if replace:  # declares the public number of people
            declared["everyone"] = dt.Table({"person": [1]}, unit="person", max_rows=1, rows={"public": 5})
        return dt.Catalog(declared, dt.Budget(10**6, "1/2"), "replace" if replace else "add-remove")

    schemas = {"t": pa.schema(kinds), "places": pa.schema({"name": pa.string(), "area": pa.int64()})}
    rows_without_unit = {"t": [] if by_row else [{**any_row(0, rng), "person": None}], "places": PLACES}
    make = one_row if by_row else any_rows
    single = ("t",) if by_row else ()
    return CatalogSetup("one table", catalog, schemas, rows_without_unit, make, OneTable, replace, single)


def any_row(person: int, rng: random.Random) -> Row:
    """Returns a row of values that have broken systems before."""
    return {
        "person": person,
        "age": rng.choice(AGES),
        "wage": rng.choice(WAGES),
        "region": rng.choice(REGIONS),
        "town": rng.choice(TOWNS),
        "active": rng.choice([True, False, None]),
        "born": rng.choice(BORN),
    }


def any_rows(person: int, rng: random.Random) -> Person:
    """Returns one person: ordinary, poisoned, one row many times, or rows at one bound in every group."""
    kind = kind_of(person, rng)
    if kind == "ordinary":
        rows = [_ordinary(person, rng) for _ in range(rng.choice([1, 1, 2]))]
    elif kind == "poisoned":
        rows = [{**_ordinary(person, rng), **_some(any_row(person, rng), rng)} for _ in range(rng.choice([0, 1, 2, 12]))]
    elif kind == "repeated":
        rows = [any_row(person, rng)] * 9
    else:
        most = {"age": rng.choice([121, -61]), "wage": rng.choice([1e9, -1e9, 50.0])}
        places = [(region, town) for region in REGIONS[:3] for town in TOWNS[: rng.choice([1, 4])]]
        rows = [{**any_row(person, rng), **most, "region": r, "town": t} for r, t in places for _ in range(rng.choice([1, 5]))]
    return {"t": rows}


def _some(row: Row, rng: random.Random) -> Row:
    """Keeps about half of the values: a bad value often counts only beside good ones."""
    return {name: value for name, value in row.items() if rng.random() < 0.5}


def _ordinary(person: int, rng: random.Random) -> Row:
    plain = {"age": rng.randint(18, 90), "wage": round(rng.uniform(0, 40), 2), "active": rng.random() < 0.5}
    return {**any_row(person, rng), **plain, "region": rng.choice(REGIONS[:3]), "town": rng.choice(TOWNS[:4])}


def one_row(person: int, rng: random.Random) -> Person:
    return {"t": [rng.choice([_ordinary, any_row])(person, rng)]}


# --- a survey ---------------------------------------------------------------------------------------------------


def people(rng: random.Random) -> CatalogSetup:
    """Returns people, visits, prescriptions two hops away, records that are their own units, and a public table."""
    declared = poisoned.facts()
    for facts in declared.values():
        if "max_rows" in facts:
            facts |= {"max_rows": rng.randint(1, 4), "max_groups": rng.randint(1, 3)}
    declared["people"]["columns"]["income"] = dt.between(0, 250000, step=rng.choice([1000, 250]))
    schemas = {name: survey.arrow(name, []).schema for name in declared}
    rows_without_unit = {name: rows for name, rows in survey.nobody(rng).items() if name in declared}

    def catalog(tables: Mapping[str, Any]) -> dt.Catalog:
        return poisoned.catalog(tables, declared)

    single = ("people", "visits", "records")  # visits refer to people, and prescriptions to visits
    return CatalogSetup("a survey", catalog, schemas, rows_without_unit, survey.any_person, Survey, single=single)
