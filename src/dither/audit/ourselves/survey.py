"""Generates a survey and its people: ordinary ones, one with hundreds of rows, one whose every value has broken some system.

Tables: people, their visits, prescriptions two hops away, records that are their own units, and public tables. A person is
all rows that belong to them, table by table. Removing a person removes all of these rows.
"""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Rows = list[Row]
Person = dict[str, Rows]
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
TEXTS = (None, "", "a'b", "\0", "NORTH", "north ", "x" * 300, "no\u0301rth")
DAYS = (None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
WHOLE = (None, 2**63 - 1, -(2**63), 0)


def survey(seed: int = 3, people: int = 40) -> Person:
    """Returns an ordinary survey, with rows that belong to nobody: NULL units and dangling references."""
    rng = random.Random(seed)
    tables: Person = {name: [] for name in TABLES}
    for person in range(people):
        add(tables, ordinary(person, rng))
    for name, rows in nobody(rng).items():
        tables[name] = [*tables[name], *rows]
    return tables


def nobody(rng: random.Random) -> Person:
    """Returns rows that belong to nobody, rows that are their own units, and public rows."""
    places = [("north", 900, True), ("south", 10, False), ("far", 1, None)]
    return {
        "people": [{"person_id": None, "age": 30}],
        "visits": [{"visit_id": -1, "person_id": None, "cost": 7, "ward": "a"}],
        "prescriptions": [{"visit_id": 10**9, "dose": 5, "drug": "none"}],
        "records": [{"x": rng.randint(-2, 12), "g": rng.choice(["p", "q", "r"]), "region": "north"} for _ in range(30)],
        "regions": [{"name": name, "area": area, "coast": coast} for name, area, coast in places],
        "towns": [{"town": t, "region": r} for t, r in (("a", "north"), ("b", "north"), ("long town", "south"))],
    }


def ordinary(person: int, rng: random.Random) -> Person:
    visits = range(rng.randint(0, 4))
    return {
        "people": [
            {
                "person_id": person,
                "age": rng.randint(0, 110),
                "income": rng.uniform(0, 3e5),
                "score": rng.gauss(50, 30),
                "region": rng.choice(["north", "south", "east", "west"]),
                "city": rng.choice(["a", "b", "7"]),
                "active": rng.random() < 0.5,
                "born": DAY + datetime.timedelta(days=rng.randint(0, 700)),
                "Mixed": rng.randint(0, 9),
            }
        ],
        "visits": [visit(person, i, rng) for i in visits],
        "prescriptions": [
            {"visit_id": 1000 * person + i, "drug": rng.choice("pq"), "dose": rng.randint(0, 100)}
            for i in visits
            for _ in range(rng.randint(0, 2))
        ],
    }


def visit(person: int, number: int, rng: random.Random) -> Row:
    return {
        "visit_id": 1000 * person + number,
        "person_id": person,
        "cost": rng.randint(0, 1000),
        "ward": rng.choice(["a", "b"]),
        "day": DAY + datetime.timedelta(days=rng.randint(0, 9)),
        "region": rng.choice(["x", "y"]),
    }


def heavy(person: int = 777, visits: int = 150) -> Person:
    """Returns one person with hundreds of rows at the largest values, in every group and in new ones."""
    rng = random.Random(person)
    mine = [{**visit(person, i, rng), "cost": 1000, "region": f"own {i % 13}"} for i in range(visits)]
    drugs = [{"visit_id": 1000 * person + i % visits, "drug": f"rare {i % 11}", "dose": 100} for i in range(3 * visits)]
    row = {"person_id": person, "age": 120, "income": 250000.0, "region": "north", "city": "nowhere else", "active": True}
    return {"people": [{**row, "born": DAY, "Mixed": 9, "score": 1e9}], "visits": mine, "prescriptions": drugs}


def poisoned(person: int = 888, visits: int = 60) -> Person:
    """Returns one person whose every value has broken some system."""
    rng = random.Random(person)
    row = {"person_id": person, "age": -(2**63), "income": NAN, "score": -INF, "region": "NORTH", "city": "1e999"}
    mine = [
        {
            "visit_id": 1000 * person + i,
            "person_id": person,
            "cost": rng.choice(WHOLE),
            "ward": rng.choice([*TEXTS, "a", "b"]),
            "day": rng.choice(DAYS),
            "region": rng.choice(TEXTS),
        }
        for i in range(visits)
    ]
    drugs = [
        {"visit_id": 1000 * person + i % visits, "drug": rng.choice(TEXTS), "dose": rng.choice(WHOLE)}
        for i in range(2 * visits)
    ]
    return {"people": [{**row, "Mixed": 2**62, "born": DAYS[2]}], "visits": mine, "prescriptions": drugs}


KINDS = ("poisoned", "heavy", "ordinary", "poisoned", "repeated")


def kind_of(person: int, rng: random.Random) -> str:
    """Returns the kinds in turn, so that five people in a row have all of them; now and then a random one."""
    return rng.choice(KINDS) if rng.random() < 0.2 else KINDS[person % len(KINDS)]


def any_person(person: int, rng: random.Random) -> Person:
    """Returns one person. A poisoned one has some of the worst values, and may lack rows in some tables."""
    kind = kind_of(person, rng)
    if kind == "repeated":  # a row that is its own unit
        return {"records": [{"x": rng.choice([*WHOLE, 10, 11]), "g": "q", "region": rng.choice(TEXTS)}]}
    if kind == "ordinary":
        return ordinary(person, rng)
    if kind == "heavy":
        return heavy(person, rng.choice([9, 30]))
    one = rng.choice([ordinary(person, rng), poisoned(person, rng.choice([3, 12]))])
    worse = {name: value for name, value in bad(rng).items() if rng.random() < 0.5}
    one["people"] = [{**row, **worse} for row in one["people"]]
    return {**one, "people": []} if rng.random() < 0.1 else one  # visits that refer to nobody


def bad(rng: random.Random) -> Row:
    """Returns values of a person that have broken systems before."""
    real = (None, NAN, NAN, NAN, INF, -INF, -0.0, 1e308, 5e-324, 250000.0, -1.5)
    return {
        "age": rng.choice([*WHOLE, 120, 121, -1]),
        "income": rng.choice(real),
        "score": rng.choice(real),
        "region": rng.choice([*TEXTS, "east"]),
        "city": rng.choice([*TEXTS, "1e999", "7", "y" * 5000]),
        "active": rng.choice([True, False, None]),
        "born": rng.choice(DAYS),
        "Mixed": rng.choice([*WHOLE, 9, 10]),
    }


def add(tables: Person, person: Person) -> None:
    for name, rows in person.items():
        tables[name] = [*tables[name], *rows]


def without(tables: Person, person: int) -> Person:
    """Removes all rows of one person, however many hops away."""
    visits = {row["visit_id"] for row in tables["visits"] if row["person_id"] == person}
    return {
        **tables,
        "people": [row for row in tables["people"] if row["person_id"] != person],
        "visits": [row for row in tables["visits"] if row["person_id"] != person],
        "prescriptions": [row for row in tables["prescriptions"] if row["visit_id"] not in visits],
    }


def arrow(name: str, rows: Rows) -> pa.Table:
    """Returns the rows of one table as Arrow; missing values are NULL."""
    return pa.table({c: pa.array([row.get(c) for row in rows], TYPES.get(c, pa.string())) for c in TABLES[name]})
