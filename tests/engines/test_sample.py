"""A secret sample in the engines: DuckDB keeps the units that the reference engine keeps, whole and everywhere."""

from __future__ import annotations

import datetime
import hashlib
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import secret_numbers
from dither.errors import ArgumentError
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.sample import is_sampled, limit, sample_key, unit_text
from dither.query.work import UNIT, Cell, Sums, Work
from engines.sqlite.dialect import SQLiteDialect
from engines.sqlite.engine import SQLite
from engines.tables import DATES, INTS, KINDS, SECRET, TEXTS, TIMES, arrow, by_key, in_duckdb, in_python, rows
from engines.works import works

SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
HALF = Fraction(1, 2)
Table = list[dict[str, Any]]


def unit_work(column: str, sample: Fraction | None = HALF) -> Work:
    """Counts the rows of each unit, where `column` is the unit, by the unit itself."""
    source = Compute(Scan("t", "t"), (Named("k", Column(f"t.{column}")), Named(UNIT, Column(f"t.{column}"))))
    return Work(source, (Named("k", Column("k")),), None, True, 1, (Sums((Cell(constant=1),), 100),), sample=sample)


def filled(column: str, values: list[Any]) -> Table:
    return [{**dict.fromkeys(KINDS), column: value} for value in values for _ in range(2)]


@SOME
@given(work=works(by_unit=True), table=rows(units=12, most=30), public=rows(most=4), q=st.sampled_from(["1/2", "1/10", "6/7"]))
def test_the_integers_of_a_sample_are_the_reference_engines(work: Work, table: Table, public: Table, q: str) -> None:
    sampled, tables = replace(work, sample=Fraction(q)), {"t": table, "p": public}
    ours = in_duckdb({name: arrow(each) for name, each in tables.items()}).run(sampled, SECRET)
    assert by_key(ours) == by_key(in_python(tables).run(sampled, SECRET))


DAYS = [*DATES, *(datetime.date(2000, 1, 1) + datetime.timedelta(n) for n in range(80))]
MOMENTS = [*TIMES, *(datetime.datetime(1950, 1, 1) + n * datetime.timedelta(seconds=10**7, microseconds=1) for n in range(80))]
UNITS: dict[str, list[Any]] = {
    "i": [*range(-40, 40), *INTS],
    "t": [*TEXTS, *(f"p{n}" for n in range(80)), "x" * 200, "é" * 60],
    "b": [True, False],
    "d": DAYS,
    "s": MOMENTS,
}


@pytest.mark.parametrize("column", list(UNITS))
def test_units_of_every_kind_have_the_coins_of_the_specification(column: str) -> None:
    unique = list(dict.fromkeys(UNITS[column]))
    table, key = filled(column, unique), sample_key(SECRET)
    found = in_duckdb({"t": arrow(table)}).run(unit_work(column), SECRET)
    plain = {unit for unit in unique if is_sampled(key, unit, HALF)}
    assert {group.key[0] for group in found} == plain
    assert all(group.measures == ((2,),) for group in found)  # both rows of a unit, or none
    assert len(unique) < 10 or 0 < len(plain) < len(unique)


def test_rows_of_one_unit_are_never_parted_and_the_secret_decides() -> None:
    table = filled("i", list(range(200)))
    engine = in_duckdb({"t": arrow(table)})
    kept = [frozenset(group.key for group in engine.run(unit_work("i"), secret)) for secret in (b"one", b"one", b"two")]
    assert kept[0] == kept[1] != kept[2]


def test_coins_are_sha256_of_key_length_and_text() -> None:
    key = sample_key(SECRET)
    digest = hashlib.sha256(f"{key}2:é".encode()).hexdigest()
    assert is_sampled(key, "é", HALF) == (int(digest, 16) < 1 << 255)
    assert len(key) == 64  # one block of SHA-256
    assert len({unit_text(each) for each in (*DATES, datetime.date(1970, 1, 1))}) == len(DATES) + 1


@pytest.mark.parametrize("q", ["1/2", "1/3", "1/10", "999/1000", "1/1000003"])
def test_the_probability_of_the_coins_is_at_most_q_and_all_but_q(q: str) -> None:
    exact, below = Fraction(q), Fraction(int(limit(Fraction(q)), 16), 1 << 256)
    assert 0 <= exact - below < Fraction(1, 1 << 256)


def test_coins_fall_as_often_as_they_should() -> None:
    """Fixed keys, so this never fails by chance: 100,000 units, within five standard deviations."""
    key, units, q = sample_key(SECRET), 100_000, Fraction(1, 10)
    kept = sum(is_sampled(key, unit, q) for unit in range(units))
    assert abs(kept - units / 10) < 5 * math.sqrt(units * 0.09)
    other = sample_key(b"another")
    both = sum(is_sampled(key, unit, q) and is_sampled(other, unit, q) for unit in range(units))
    assert abs(both - units / 100) < 5 * math.sqrt(units * 0.0099)


def test_an_engine_without_the_hash_refuses_before_anything_is_charged() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        engine = SQLite(connection, SQLiteDialect({"t": "t"}), {"t": KINDS})
        engine.prepare(unit_work("i", None))
        with pytest.raises(ArgumentError, match="SQLite cannot sample people"):
            engine.prepare(unit_work("i"))


def test_the_key_of_the_sample_is_no_other_key_and_in_no_statement() -> None:
    key = sample_key(SECRET)
    engine = in_duckdb({"t": arrow(filled("i", [1]))})
    (text,) = engine.explain(unit_work("i"))
    assert "$sample" in text
    assert key not in text
    assert not {f"{value:016x}" for value in secret_numbers(SECRET).values()} & {key[i : i + 16] for i in range(0, 64, 16)}
