"""Declares the survey's catalog, and fills its tables with values that have broken systems before."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

import dither as dt

Facts = dict[str, Any]
Pick = Callable[[list[Any]], Any]
INF, NAN = float("inf"), float("nan")
AGES = [None, 0, 120, 2**62, -(2**62), 37]
INCOMES = [None, NAN, INF, -INF, -0.0, 1e308, 5e-324, 40000.5]
CITIES = [None, "", "rare", "north", "NORTH", "nor\u0301th", "a'b", "x" * 500, "\u0000z"]
DAYS = [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]


def facts() -> dict[str, Facts]:
    """Returns the declaration of each table, with its columns."""
    word = dt.values("north", "south", "east", "west")
    visit = {"visit_id": dt.column(), "cost": dt.between(0, 1000), "ward": dt.values("a", "b"), "day": dt.column()}
    person = {
        "age": dt.between(0, 120),
        "income": dt.between(0, 250000, step=1),
        "score": dt.column(),
        "Mixed": dt.between(0, 9),
        "region": word,
        "city": dt.column(),
        "active": dt.values(True, False),
        "born": dt.column(),
    }
    people, visits = ({"column": c, "references": f"{t}.{c}"} for t, c in (("people", "person_id"), ("visits", "visit_id")))
    dose = {"drug": dt.column(), "dose": dt.between(0, 100), "visit_id": dt.column()}
    return {
        "people": {"unit": "person_id", "max_rows": 2, "max_groups": 2, "columns": person},
        "visits": {"unit": people, "max_rows": 3, "max_groups": 2, "columns": visit},
        "prescriptions": {"unit": visits, "max_rows": 4, "max_groups": 2, "columns": dose},
        "records": {"unit": "row", "columns": {"x": dt.between(0, 10), "region": word}},
        "regions": {"public": True, "key": "name"},
    }


def catalog(tables: Mapping[str, Any], declared: Mapping[str, Facts], delta: str = "1/2") -> dt.Catalog:
    """Returns a catalog of these tables, with a budget that never runs out."""
    declarations = {name: dt.Table(tables[name], **declared[name]) for name in declared}
    return dt.Catalog(tables=declarations, budget=dt.Budget(epsilon=100000, delta=delta))


def poisoned(people: int = 60) -> dt.Catalog:
    """Returns a catalog of poisoned tables."""
    pick: Pick = random.Random(7).choice
    most = 5 * people
    tables = {
        "people": pa.table(_people(people, pick)),
        "visits": pa.table(_visits(people, most, pick)),
        "prescriptions": pa.table(_drugs(most, pick)),
        "records": pa.table(_records(most, pick)),
        "regions": pa.table({"name": ["north", "south", "east", "west"], "area": [1, 2, 3, 4]}),
    }
    return catalog(tables, facts())


def _people(people: int, pick: Pick) -> Facts:
    rows = range(people)
    return {
        "person_id": [None if i % 20 == 19 else i for i in rows],
        "age": pa.array([pick(AGES) for _ in rows], pa.int64()),
        "income": pa.array([pick(INCOMES) for _ in rows], pa.float64()),
        "score": pa.array([pick(INCOMES) for _ in rows], pa.float64()),
        "Mixed": pa.array([pick([0, 9, None]) for _ in rows], pa.int64()),
        "region": [pick(["north", "south", "east", None, "elsewhere"]) for _ in rows],
        "city": [pick(CITIES) for _ in rows],
        "active": [pick([True, False, None]) for _ in rows],
        "born": pa.array([pick(DAYS) for _ in rows], pa.date32()),
    }


def _visits(people: int, most: int, pick: Pick) -> Facts:
    rows = range(most)
    return {
        "visit_id": list(rows),
        "person_id": pa.array([pick([*range(people), None]) for _ in rows], pa.int64()),
        "cost": pa.array([pick([None, 0, 1000, -5, 2**40]) for _ in rows], pa.int64()),
        "ward": [pick(["a", "b", "c", None]) for _ in rows],
        "day": pa.array([pick([None, datetime.date(2020, 2, 29)]) for _ in rows], pa.date32()),
    }


def _drugs(most: int, pick: Pick) -> Facts:
    rows = range(most)
    return {
        "visit_id": [pick(list(rows)) for _ in rows],
        "drug": [pick(CITIES) for _ in rows],
        "dose": [pick([0, 100, 7]) for _ in rows],
    }


def _records(most: int, pick: Pick) -> Facts:
    rows = range(most)
    return {
        "x": pa.array([pick([0, 10, None, -(2**62)]) for _ in rows], pa.int64()),
        "region": [pick(CITIES) for _ in rows],
    }
