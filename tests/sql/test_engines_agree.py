"""Every golden question, planned and run, gives the same integers in every engine and in the reference engine."""

from __future__ import annotations

import datetime
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from dither.engines.duckdb.engine import DuckDB
from dither.engines.reference import Reference
from dither.planning.levels import finest
from dither.planning.lookups import look_up
from dither.planning.plan import plan
from dither.planning.price import Price
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from dither.query.work import Distinct, Work
from engines.places import Place
from sql.survey import CATALOG
from sql.test_golden import cases

KINDS = {name: {column: str(facts.kind) for column, facts in table.columns.items()} for name, table in CATALOG.tables.items()}
KINDS["visits"]["person_id"] = "int"
TYPES = {"int": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE"}


def value(column: str, kind: str, dice: random.Random) -> Any:
    if dice.random() < 0.15:
        return None
    if kind == "int":
        return dice.randint(1, 12) if column.endswith("_id") else dice.randint(-3, 130)
    if kind == "real":
        return dice.choice([float("nan"), float("inf"), -1.0, dice.uniform(0, 9), dice.uniform(0, 3e5)])
    if kind == "date":
        return datetime.date(1990, 1, 1) + datetime.timedelta(days=dice.randint(-40, 40))
    if kind == "bool":
        return dice.random() < 0.5
    return dice.choice(["a", "b", "p", "7"] if column in ("ward", "g", "city") else ["north", "south", "east"])


def made_up(seed: int) -> dict[str, list[dict[str, Any]]]:
    dice = random.Random(seed)
    tables = {
        name: [{column: value(column, kind, dice) for column, kind in columns.items()} for _ in range(25)]
        for name, columns in KINDS.items()
    }
    for number, row in enumerate(tables["people"]):
        row["person_id"] = number
    for number, row in enumerate(tables["visits"]):
        row["visit_id"] = number
    tables["regions"] = [{**row, "name": name} for row, name in zip(tables["regions"], ("north", "south", "far"), strict=False)]
    return tables


def in_duckdb(tables: dict[str, list[dict[str, Any]]]) -> DuckDB:
    connection = duckdb.connect()
    for name, columns in KINDS.items():
        listed = ", ".join(f'"{column}" {TYPES[kind]}' for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({listed})")
        marks = ", ".join("?" for _ in columns)
        if tables[name]:
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", [[row[c] for c in columns] for row in tables[name]])
    return DuckDB(connection)


def work_of(question: str) -> Work:
    found = look_up(resolve(parse(question, CATALOG), CATALOG, question), lambda works: None, lambda work: ())  # empty tables
    found = replace(found, max_rows=found.max_rows or 9, max_groups=found.max_groups or 9)
    made = plan(finest(found), CATALOG, Price(Fraction(1), Fraction(1, 10**7))).work
    # Engines need not agree on the keyed hash, so nothing may have to be chosen here.
    free = [replace(each, max_values=10**6) if isinstance(each, Distinct) else each for each in made.measures]
    return replace(made, max_groups=None, measures=tuple(free))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_every_golden_question_gives_the_same_integers(place: Place, seed: int) -> None:
    tables = made_up(seed)
    reference, engine = Reference(tables, KINDS), place.engine(tables, KINDS)
    for _, question, _ in cases("sql_to_nodes.txt"):
        work = work_of(question)
        ours = sorted(engine.run(work, b"secret"), key=lambda group: repr(group.key))
        theirs = sorted(reference.run(work, b"secret"), key=lambda group: repr(group.key))
        assert ours == theirs, question
