"""Tables and their neighbours: the golden files' survey with one person more or less, and small poisoned tables."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa

import dither as dt
from sql.survey import CATALOG

Rows = list[dict[str, Any]]
TABLES = {
    "people": ("person_id", "age", "income", "score", "region", "city", "active", "born", "Mixed"),
    "visits": ("visit_id", "person_id", "cost", "ward", "day", "region"),
    "prescriptions": ("visit_id", "drug", "dose"),
    "records": ("x", "g", "region"),
    "regions": ("name", "area", "coast"),
    "towns": ("town", "region"),
}
TYPES = {
    **dict.fromkeys(("person_id", "age", "Mixed", "visit_id", "cost", "dose", "x", "area"), pa.int64()),
    **dict.fromkeys(("income", "score"), pa.float64()),
    **dict.fromkeys(("active", "coast"), pa.bool_()),
    **dict.fromkeys(("born", "day"), pa.date32()),
}
DAY = datetime.date(1990, 1, 1)
NAN, INF = float("nan"), float("inf")


def survey(seed: int = 3, people: int = 40) -> dict[str, Rows]:
    """An ordinary survey. NULL units and dangling references are there too; nobody owns them."""
    dice = random.Random(seed)
    tables: dict[str, Rows] = {name: [] for name in TABLES}
    for person in range(people):
        add(tables, ordinary(person, dice))
    tables["people"].append({"person_id": None, "age": 30})
    tables["visits"].append({"visit_id": -1, "person_id": None, "cost": 7, "ward": "a"})
    tables["prescriptions"].append({"visit_id": 10**9, "dose": 5, "drug": "none"})
    tables["records"] = [{"x": dice.randint(-2, 12), "g": dice.choice(["p", "q", "r"]), "region": "north"} for _ in range(30)]
    names = [("north", 900, True), ("south", 10, False), ("far", 1, None)]
    tables["regions"] = [{"name": name, "area": area, "coast": coast} for name, area, coast in names]
    tables["towns"] = [{"town": t, "region": r} for t, r in (("a", "north"), ("b", "north"), ("long town", "south"))]
    return tables


def ordinary(person: int, dice: random.Random) -> dict[str, Rows]:
    visits = range(dice.randint(0, 4))
    return {
        "people": [
            {
                "person_id": person,
                "age": dice.randint(0, 110),
                "income": dice.uniform(0, 3e5),
                "score": dice.gauss(50, 30),
                "region": dice.choice(["north", "south", "east", "west"]),
                "city": dice.choice(["a", "b", "7"]),
                "active": dice.random() < 0.5,
                "born": DAY + datetime.timedelta(days=dice.randint(0, 700)),
                "Mixed": dice.randint(0, 9),
            }
        ],
        "visits": [_visit(person, i, dice) for i in visits],
        "prescriptions": [
            {"visit_id": 1000 * person + i, "drug": dice.choice("pq"), "dose": dice.randint(0, 100)}
            for i in visits
            for _ in range(dice.randint(0, 2))
        ],
    }


def _visit(person: int, number: int, dice: random.Random) -> dict[str, Any]:
    return {
        "visit_id": 1000 * person + number,
        "person_id": person,
        "cost": dice.randint(0, 1000),
        "ward": dice.choice(["a", "b"]),
        "day": DAY + datetime.timedelta(days=dice.randint(0, 9)),
        "region": dice.choice(["x", "y"]),
    }


def heavy(person: int = 777) -> dict[str, Rows]:
    """One person with hundreds of rows, in every group there is and in some that were not there, at the largest values."""
    dice = random.Random(person)
    visits = [{**_visit(person, i, dice), "cost": 1000, "region": f"own {i % 13}"} for i in range(150)]
    drugs = [{"visit_id": 1000 * person + i % 150, "drug": f"rare {i % 11}", "dose": 100} for i in range(450)]
    row = {"person_id": person, "age": 120, "income": 250000.0, "region": "north", "city": "nowhere else", "active": True}
    return {"people": [{**row, "born": DAY, "Mixed": 9, "score": 1e9}], "visits": visits, "prescriptions": drugs}


def poisoned(person: int = 888) -> dict[str, Rows]:
    """One person whose every value has broken some system."""
    dice = random.Random(person)
    numbers = [None, 2**63 - 1, -(2**63), 0]
    days = [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    texts = [None, "", "a'b", "\0", "NORTH", "north ", "x" * 300, "no\u0301rth"]
    row = {
        "person_id": person,
        "age": -(2**63),
        "income": NAN,
        "score": -INF,
        "region": "NORTH",
        "city": "1e999",
        "Mixed": 2**62,
    }
    visits = [
        {
            "visit_id": 1000 * person + i,
            "person_id": person,
            "cost": dice.choice(numbers),
            "ward": dice.choice([*texts, "a", "b"]),
            "day": dice.choice(days),
            "region": dice.choice(texts),
        }
        for i in range(60)
    ]
    drugs = [{"visit_id": 1000 * person + i % 60, "drug": dice.choice(texts), "dose": dice.choice(numbers)} for i in range(120)]
    return {"people": [{**row, "born": datetime.date(9999, 12, 31)}], "visits": visits, "prescriptions": drugs}


def add(tables: dict[str, Rows], person: dict[str, Rows]) -> None:
    for name, rows in person.items():
        tables[name] = [*tables[name], *rows]


def without(tables: dict[str, Rows], person: int) -> dict[str, Rows]:
    """The survey as it is when this person never was: all rows that belong to them are gone, however many hops away."""
    visits = {row["visit_id"] for row in tables["visits"] if row["person_id"] == person}
    return {
        **tables,
        "people": [row for row in tables["people"] if row["person_id"] != person],
        "visits": [row for row in tables["visits"] if row["person_id"] != person],
        "prescriptions": [row for row in tables["prescriptions"] if row["visit_id"] not in visits],
    }


def filled(tables: dict[str, Rows], neighbours: str = "add-remove", delta: str = "1/2") -> dt.Catalog:
    """The golden files' catalog with these rows in it. `neighbours="replace"`: the people alone, a public number of them."""
    parts = ("unit", "by_row", "public", "max_rows", "max_groups", "rows", "key", "columns")
    held = {}
    for name, table in CATALOG.tables.items():
        columns = {c: pa.array([row.get(c) for row in tables[name]], TYPES.get(c, pa.string())) for c in TABLES[name]}
        held[name] = dt.Table(pa.table(columns), **{part: getattr(table, part) for part in parts})
    if neighbours == "replace":
        people = held["people"]
        counted = dt.Table(people.source, unit=people.unit, max_rows=1, rows={"public": 1000}, columns=people.columns)
        held = {"people": counted}
    return dt.Catalog(held, dt.Budget(10**6, delta), neighbours)


# --- small tables of one's own ----------------------------------------------------------------------------------


def any_rows(person: int, dice: random.Random, most: int = 12) -> list[tuple[Any, ...]]:
    """Rows of one person: (person, age, wage, region, town), values of every kind that has broken a system."""
    ages = [None, -5, 0, 60, 120, 121, 2**62, -(2**62)]
    wages = [None, NAN, INF, -INF, -0.0, 1e308, -7.25, 12.5, 50.0]
    places = ["north", "south", "east", "elsewhere", None]
    towns = ["a", "b", "c", "d", None]
    chosen = range(dice.choice([0, 1, 2, most]))
    return [(person, dice.choice(ages), dice.choice(wages), dice.choice(places), dice.choice(towns)) for _ in chosen]


def small(rows: list[tuple[Any, ...]], **more: Any) -> dt.Catalog:
    """One table called t of such rows."""
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
        tables["everyone"] = dt.Table({"person": [1]}, unit="person", rows={"public": 5})
    return dt.Catalog(tables, dt.Budget(10**6, "1/2"), neighbours)
