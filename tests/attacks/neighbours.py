"""Tables and their neighbours: the golden files' survey with one person more or less, and small poisoned tables."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

import dither as dt
from dither.audit.ourselves.survey import INF, NAN, Rows, add, arrow, heavy, ordinary, poisoned, survey, without
from sql.survey import CATALOG

__all__ = ["add", "any_rows", "filled", "heavy", "ordinary", "poisoned", "small", "survey", "without"]


def filled(tables: dict[str, Rows], neighbours: str = "add-remove", delta: str = "1/2") -> dt.Catalog:
    """Returns the golden files' catalog with these rows. With `neighbours="replace"`: only people, in public number."""
    parts = ("unit", "by_row", "public", "max_rows", "max_groups", "rows", "key", "columns")
    held = {}
    for name, table in CATALOG.tables.items():
        held[name] = dt.Table(arrow(name, tables[name]), **{part: getattr(table, part) for part in parts})
    if neighbours == "replace":
        people = held["people"]
        counted = dt.Table(people.source, unit=people.unit, max_rows=1, rows={"public": 1000}, columns=people.columns)
        held = {"people": counted}
    return dt.Catalog(held, dt.Budget(10**6, delta), neighbours)


# --- small tables of one's own ----------------------------------------------------------------------------------


def any_rows(person: int, dice: random.Random, most: int = 12) -> list[tuple[Any, ...]]:
    """Returns rows of one person, (person, age, wage, region, town), with values that have broken systems before."""
    ages = [None, -5, 0, 60, 120, 121, 2**62, -(2**62)]
    wages = [None, NAN, INF, -INF, -0.0, 1e308, -7.25, 12.5, 50.0]
    places = ["north", "south", "east", "elsewhere", None]
    towns = ["a", "b", "c", "d", None]
    chosen = range(dice.choice([0, 1, 2, most]))
    return [(person, dice.choice(ages), dice.choice(wages), dice.choice(places), dice.choice(towns)) for _ in chosen]


def small(rows: list[tuple[Any, ...]], **more: Any) -> dt.Catalog:
    """Returns a catalog of one table t with these rows."""
    names = {"person": pa.int64(), "age": pa.int64(), "wage": pa.float64(), "region": pa.string(), "town": pa.string()}
    table = pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(names.items())})
    columns = {
        "age": dt.between(0, 120),
        "wage": dt.between(-10, 50),
        "region": dt.values("north", "south", "east"),
        "town": dt.column(),
    }
    neighbours, unit = more.pop("neighbours", "add-remove"), more.pop("unit", "person")
    tables = {"t": dt.Table(table, unit=unit, columns=columns, **more)}
    if neighbours == "replace":  # the number of people is public, and this is the table that says so
        tables["everyone"] = dt.Table({"person": [1]}, unit="person", max_rows=1, rows={"public": 5})
    return dt.Catalog(tables, dt.Budget(10**6, "1/2"), neighbours)
