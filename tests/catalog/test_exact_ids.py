"""Opening a source keeps people distinct, and finds unreadable data before any question."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.catalog import declare as dt
from dither.catalog.values import Budget, Catalog, Table
from dither.engines.duckdb.sources import Sources, open_catalog, schema
from dither.errors import CatalogError

INT = {"id": dt.column(kind="int")}


def opened(**tables: Table) -> Sources:
    return open_catalog(Catalog(tables, Budget(1)), threads=1)


def ids(values: Any, **how: Any) -> list[Any]:
    sources = opened(t=Table({"id": values}, columns=INT, **how))
    try:
        return [row[0] for row in sources.connection.execute("SELECT id FROM t").fetchall()]
    finally:
        sources.close()


STORED = [
    (
        ["1.4", "0.6", "1", "007", "7", " 7", "+7", "-0", "-3", "1e3", "9007199254740993"],
        2 * [None] + [1, None, 7] + 3 * [None],
    ),
    ([1.4, 0.6, 1.0, -7.0, float("inf"), float("nan"), 2.0**53, 2.0**53 + 2], [None, None, 1, -7, None, None, 2**53, None]),
    (pa.array([1.5, 16777216.0], pa.float32()), [None, 16777216]),
    ([Decimal("1.4"), Decimal("0.6"), Decimal("2.0")], [None, None, 2]),
    (pa.array([2**64 - 1, 5], pa.uint64()), [None, 5]),
    (pa.array([3, None], pa.int8()), [3, None]),
]
STORED[0][1].extend([-3, None, 9007199254740993])


@pytest.mark.parametrize(("values", "expected"), STORED)
def test_only_what_is_a_whole_number_as_it_stands_is_a_person(values: Any, expected: list[Any]) -> None:
    assert ids(values, unit="id", max_rows=3) == expected
    assert ids(values, public=True, key="id") == expected


def test_other_kinds_are_read_only_if_nothing_is_lost() -> None:
    day = datetime.datetime(2020, 1, 1)
    frame = {"id": [day, day + datetime.timedelta(hours=1)], "flag": ["true", "t"]}
    columns = {"id": dt.column(kind="date"), "flag": dt.column(kind="bool")}
    for name, expected in {"id": [day.date(), None], "flag": [True, None]}.items():
        sources = opened(t=Table(frame, unit=name, max_rows=1, columns={name: columns[name]}))
        assert sources.connection.execute(f"SELECT {name} FROM t").fetchall() == [(value,) for value in expected]
        sources.close()


def test_referenced_columns_are_read_exactly_too() -> None:
    people = Table({"id": ["1.4", "0.6", "1"], "me": [1, 2, 3]}, unit="me", max_rows=1, columns=INT)
    visits = Table({"who": ["1", "1.2"]}, unit={"column": "who", "references": "people.id"}, max_rows=9)
    sources = opened(people=people, visits=Table(**{**vars(visits), "columns": {"who": dt.column(kind="int")}}))
    assert sources.connection.execute("SELECT id FROM people").fetchall() == [(None,), (None,), (1,)]
    assert sources.connection.execute("SELECT who FROM visits").fetchall() == [(1,), (None,)]
    sources.close()


def test_other_columns_are_still_rounded() -> None:
    assert ids(["1.4", "0.6"], unit="row") == [1, 1]


# --- text that is no text -----------------------------------------------------------------------------------------

BROKEN = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pa.py_buffer(b"ok\xff\xfe")])


def test_invalid_text_is_null(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "name": BROKEN})
    pq.write_table(table, tmp_path / "t.parquet")
    pq.write_table(table, tmp_path / "plain.parquet", use_dictionary=False)
    for source in (table, tmp_path / "t.parquet", tmp_path / "plain.parquet"):
        sources = opened(t=Table(source, unit="id", max_rows=1, columns={"name": dt.column(kind="text")}))
        assert sources.connection.execute("SELECT id, name FROM t").fetchall() == [(1, "ok"), (2, None)]
        sources.close()


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["a", "a"], ["a", "b\0c"]])
def test_names_of_columns_that_cannot_be_used_are_refused(names: list[str]) -> None:
    frame = pa.table([[1], [2]], names=names)
    for attempt in (lambda: schema(frame), lambda: opened(t=Table(frame, unit="row", columns={"a": dt.column()}))):
        with pytest.raises(CatalogError, match="column names are not all different"):
            attempt()


def test_a_table_name_ends_where_its_line_ends() -> None:
    with pytest.raises(CatalogError, match="not a valid table name"):
        opened(**{"people\n": Table({"id": [1]}, unit="row")})
