"""Generated tables with everything that goes wrong in real ones, for the reference engine and for DuckDB alike."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DIALECT, DuckDBDialect
from dither.engines.duckdb.engine import DuckDB, use_many_parts
from dither.engines.duckdb.sources import configure
from dither.engines.reference import Reference
from dither.query.work import Group, Work

SECRET = b"a secret of the tests"
KINDS = {"who": "int", "i": "int", "x": "real", "t": "text", "b": "bool", "d": "date", "s": "timestamp"}
ARROW = {
    "int": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}

REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 99.5, 1e-320, 5e-324, 2.0**52, 2.0**53, -(2.0**62), 2.0**63, 1e300]
REALS += [1.7976931348623157e308, math.inf, -math.inf, math.nan, 0.49999999999999994, 7.000000000000001]
INTS = [0, 1, -1, 2, 3, 7, 10, 100, 2**31, 2**53 + 1, 2**62, -(2**62) - 1, 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "A", "ab", "b", " a ", "it's", 'say "x"', "100%", "a_c", "é", "😀", "ǅ", "\x00", "a\\b"]
TEXTS += ["12", "-3.5", "2024-02-29", "2023-02-29", "true"]
DATES = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)]
TIMES = [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29, 13)]


@functools.cache
def values(kind: str) -> st.SearchStrategy[Any]:
    """NULL, hard values and ordinary ones."""
    chosen: dict[str, tuple[Sequence[Any], st.SearchStrategy[Any]]] = {
        "int": (INTS, st.integers(-5, 5)),
        "real": (REALS, st.floats(-20, 130)),
        "text": (TEXTS, st.text(st.characters(exclude_categories=("Cs",)), max_size=3)),
        "bool": ((True, False), st.booleans()),
        "date": (DATES, st.dates()),
        "timestamp": (TIMES, st.datetimes(max_value=datetime.datetime(9999, 1, 1))),
    }
    hard, plain = chosen[kind]
    return st.one_of(st.none(), st.sampled_from(list(hard)), plain)


@functools.cache
def rows(units: int = 4, most: int = 12) -> st.SearchStrategy[list[dict[str, Any]]]:
    columns = {name: values(kind) for name, kind in KINDS.items()}
    columns["who"] = st.one_of(st.integers(1, units), st.integers(1, units), st.none())
    return st.lists(st.fixed_dictionaries(columns), max_size=most)


def arrow(table: Sequence[Mapping[str, Any]], kinds: Mapping[str, str] = KINDS) -> pa.Table:
    columns = {name: pa.array([row[name] for row in table], ARROW[kind]) for name, kind in kinds.items()}
    return pa.table(columns)


def in_duckdb(
    tables: Mapping[str, pa.Table], *, threads: int = 2, folder: Path | None = None, dialect: DuckDBDialect = DIALECT
) -> DuckDB:
    """The engine over Arrow tables, or over the same tables written as Parquet into a folder."""
    connection = _connection(threads, folder is None)
    for name, table in tables.items():
        if folder is None:
            connection.register(name, table)
            continue
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(table, path, row_group_size=5)
        connection.read_parquet(str(path)).create_view(name, replace=True)
    return DuckDB(connection, dialect=dialect)


@functools.cache
def _connection(threads: int, arrow: bool) -> duckdb.DuckDBPyConnection:
    """One for all examples: opening takes longer than most of them."""
    connection = duckdb.connect()
    configure(connection, threads)
    use_many_parts(connection)
    return connection


def in_python(tables: Mapping[str, Sequence[Mapping[str, Any]]], kinds: Mapping[str, str] = KINDS) -> Reference:
    return Reference(tables, dict.fromkeys(tables, kinds))


def by_key(groups: Sequence[Group]) -> dict[Any, Group]:
    found = {tuple((type(part).__name__, part) for part in group.key): group for group in groups}
    assert len(found) == len(groups), "a group was delivered twice"
    return found


def both(work: Work, table: Sequence[Mapping[str, Any]], **options: Any) -> tuple[dict[Any, Group], dict[Any, Group]]:
    """What the two engines say of a table called t."""
    ours = in_duckdb({"t": arrow(table)}, **options).run(work, SECRET)
    return by_key(ours), by_key(in_python({"t": table}).run(work, SECRET))
