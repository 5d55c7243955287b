"""Every kind of source gives the same rows; undeclared data cannot be reached; the connection is locked."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from dither.catalog import declare as dt
from dither.catalog.values import Budget, Catalog, ColumnFacts, Table
from dither.engines.duckdb.sources import Sources, open_catalog, schema
from dither.errors import CatalogError

DAY = datetime.date(2020, 2, 29)
ROWS = {
    "id": [1, 2, 3, None],
    "age": [30.5, None, 7.0, 1.0],
    "name": ["a", "it's", None, "é"],
    "ok": [True, False, None, True],
    "day": [DAY, None, DAY, DAY],
    "secret": ["w", "x", "y", "z"],
}
COLUMNS = {
    "age": dt.between(0, 120),
    "name": dt.column(kind="text"),
    "ok": dt.column(kind="bool"),
    "day": dt.column(kind="date"),
    "id": dt.column(kind="int"),
}
EXPECTED = {(i, a, n, o, d) for i, a, n, o, d in zip(*(ROWS[c] for c in ("id", "age", "name", "ok", "day")), strict=True)}


def opened(**tables: Table) -> Sources:
    return open_catalog(Catalog(tables, Budget(1)), threads=1)


def rows(source: Any, columns: dict[str, ColumnFacts] = COLUMNS) -> list[tuple[Any, ...]]:
    sources = opened(t=Table(source, unit="id", max_rows=1, columns=columns))
    try:
        return sources.connection.execute("SELECT id, age, name, ok, day FROM t").fetchall()
    finally:
        sources.close()


def every_source(folder: Path) -> dict[str, Any]:
    table = pa.table(ROWS)
    frame = pd.DataFrame(ROWS)
    whole = frame.astype({"id": "Int64"}).astype(object)  # as text 1, not 1.0
    pq.write_table(table, folder / "t.parquet")
    pq.write_table(table.slice(0, 2), folder / "part1.parquet")
    pq.write_table(table.slice(2), folder / "part2.parquet")
    (folder / "directory" / "deep").mkdir(parents=True)
    pq.write_table(table, folder / "directory" / "deep" / "x.parquet")
    whole.to_csv(folder / "t.csv", index=False)
    whole.to_csv(folder / "t.tsv", index=False, sep="\t")
    (folder / "z.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        database.register("frame", table)
        database.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT * FROM frame; CREATE TABLE t AS SELECT * FROM frame")
    return {
        "parquet": folder / "t.parquet",
        "glob": str(folder / "part*.parquet"),
        "directory": str(folder / "directory"),
        "csv": str(folder / "t.csv"),
        "tsv": str(folder / "t.tsv"),
        "gz": str(folder / "z.csv.gz"),
        "duckdb": str(folder / "t.duckdb#t"),
        "duckdb schema": str(folder / "t.duckdb#s.t"),
        "pandas": frame,
        "pandas objects": whole,
        "pandas arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(ROWS),
        "polars lazy": pl.DataFrame(ROWS).lazy(),
        "polars scan": pl.scan_parquet(folder / "t.parquet"),
        "arrow": table,
        "arrow batches": table.to_reader(),
        "arrow dictionary": table.set_column(2, "name", table.column("name").dictionary_encode()),
        "mapping": ROWS,
    }


def test_every_kind_of_source_gives_the_same_rows(tmp_path: Path) -> None:
    for name, source in every_source(tmp_path).items():
        found = rows(source)
        assert len(found) == 4, name
        assert set(found) == EXPECTED, name


def test_that_check_can_fail() -> None:
    assert set(rows({**ROWS, "name": ["a", "its", None, "é"]})) != EXPECTED


def test_schemas_are_told_without_opening(tmp_path: Path) -> None:
    for name, source in every_source(tmp_path).items():
        assert list(schema(source)) == list(ROWS), name
    assert schema(tmp_path / "t.parquet")["day"] == "date"
    assert set(schema(str(tmp_path / "t.csv")).values()) == {"text"}


def test_undeclared_columns_and_other_files_are_out_of_reach(tmp_path: Path) -> None:
    every_source(tmp_path)
    sources = opened(t=Table(tmp_path / "t.parquet", unit="id", max_rows=1, columns={"age": dt.column()}))
    run = sources.connection.execute
    assert sources.engine.schema("t") == {"id": "int", "age": "real"}
    assert len(run("SELECT id, age FROM t").fetchall()) == 4
    other = str(tmp_path / "t.csv")
    for text in (
        "SELECT secret FROM t",
        f"SELECT * FROM read_csv('{other}')",
        f"SELECT * FROM '{other}'",
        f"SELECT * FROM read_text('{other}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"COPY (SELECT 1) TO '{tmp_path / 't.parquet'}'",
        f"ATTACH '{tmp_path / 't.duckdb'}' AS x",
        "SELECT * FROM glob('*')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1GB'",
        "SET allowed_configs = ['memory_limit']",
        "SET allowed_paths = ['/']",
        "SELECT * FROM ROWS",
        "SELECT * FROM other",
    ):
        with pytest.raises(duckdb.Error):
            run(text)
    assert not (tmp_path / "out.csv").exists()
    sources.close()


def test_a_public_table_offers_all_its_columns_and_a_table_of_rows_may_offer_none() -> None:
    frame = {"a": [1], "b": ["x"], "c": [[1]]}
    sources = opened(p=Table(frame, public=True, columns={"b": dt.values("x")}), r=Table(frame, unit="row"))
    assert sources.engine.schema("p") == {"a": "int", "b": "text"}
    assert sources.engine.schema("r") == {"no column": "int"}
    assert sources.catalog.tables["r"].columns == {}
    assert sources.connection.execute("SELECT count(*) FROM r").fetchall() == [(1,)]
    sources.close()


def test_types_are_read_in_the_declared_kind() -> None:
    frame = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "large": pa.array([2**64 - 1, 5], pa.uint64()),
            "half": pa.array(np.array([1.5, np.nan], np.float16)),
            "single": pa.array([0.1, 2], pa.float32()),
            "money": pa.array([1, 2], pa.decimal128(10, 2)),
            "nanos": pa.array([0, 1], pa.timestamp("ns")),
            "zone": pa.array([0, 1], pa.timestamp("us", "Europe/Berlin")),
            "far": pa.array([2**62, 0], pa.timestamp("s")),
            "view": pa.array(["a", "b"], pa.string_view()),
            "nothing": pa.nulls(2),
        }
    )
    sources = opened(t=Table(frame, unit="row", columns={name: dt.column() for name in frame.column_names}))
    start = datetime.datetime(1970, 1, 1)
    first = sources.connection.execute("SELECT * FROM t").fetchall()[0]
    assert first == (1, None, 1.5, float(np.float32(0.1)), 1.0, start, start, None, "a", None)
    stored = {row[0]: row[1] for row in sources.connection.execute("DESCRIBE t").fetchall()}
    assert set(stored.values()) == {"BIGINT", "DOUBLE", "TIMESTAMP", "VARCHAR"}
    sources.close()


def test_pandas_nan_and_mixed_objects_become_null_where_they_do_not_fit() -> None:
    frame = pd.DataFrame({"x": [1, "2", None, "z", 4.4, float("nan"), pd.NA], "y": [1.0, np.nan, 2, 3, 4, 5, 6]})
    sources = opened(t=Table(frame, unit="row", columns={"x": dt.column(kind="int"), "y": dt.column()}))
    found = sources.connection.execute("SELECT x, y FROM t").fetchall()
    assert [x for x, _ in found] == [1, 2, None, None, 4, None, None]
    assert [y for _, y in found][:3] == [1.0, None, 2.0]
    sources.close()


def test_partition_folders_are_text_columns(tmp_path: Path) -> None:
    for region, number in (("007", 1), ("north", 2)):
        (tmp_path / f"region={region}").mkdir()
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"region={region}" / "part.parquet")
    sources = opened(t=Table(str(tmp_path), unit="id", max_rows=1, columns={"region": dt.values("007", "north")}))
    assert set(sources.connection.execute("SELECT id, region FROM t").fetchall()) == {(1, "007"), (2, "north")}
    sources.close()


# --- keys ---------------------------------------------------------------------------------------------------------


def family(ids: list[int | None], key: str | None = None) -> Sources:
    people = Table({"id": ids}, unit="id", max_rows=1, key=key)
    return opened(people=people, visits=Table({"who": [1]}, unit={"column": "who", "references": "people.id"}, max_rows=9))


def test_referenced_keys_must_be_unique() -> None:
    family([1, 2, None, None]).close()
    with pytest.raises(CatalogError, match=r"people\.id is not unique, and visits refers to it"):
        family([1, 2, 2])


def test_declared_keys_must_be_unique_in_the_declared_kind() -> None:
    opened(t=Table({"k": ["1", "01"]}, public=True, key="k")).close()
    with pytest.raises(CatalogError, match="not unique"):
        opened(t=Table({"k": ["1", "1"]}, public=True, key="k", columns={"k": dt.column(kind="int")}))


def test_the_text_about_keys_is_constant() -> None:
    texts = set()
    for ids in ([7, 7], [3, 3, 3, 4, 4]):
        with pytest.raises(CatalogError) as caught:
            family(list(ids))
        texts.add(str(caught.value))
    assert len(texts) == 1


# --- sources that cannot be used ----------------------------------------------------------------------------------


def test_sources_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    every_source(tmp_path)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "twice.csv").write_text("a,A\n1,2\n", encoding="utf-8")
    (tmp_path / "latin.csv").write_bytes(b"caf\xe9,b\n1,2\n")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-9])
    (tmp_path / "torn.duckdb").write_bytes(b"nothing")
    (tmp_path / "part3.parquet").write_bytes(b"")
    pq.write_table(pa.table({"other": [1]}), tmp_path / "part4.parquet")
    with duckdb.connect(str(tmp_path / "view.duckdb")) as database:
        database.execute("CREATE VIEW v AS SELECT random() AS x")
    wrong = {
        "none.parquet": "no such file",
        "t.json": "not known by its ending",
        "t.xlsx": "there is no such file",
        "t.duckdb": "not named",
        "t.duckdb#u": "no such table",
        "view.duckdb#v": "no such table",
        "torn.duckdb#t": "cannot be opened",
        "t.parquet#t": "only a database or a workbook",
        "torn.parquet": "cannot be read as Parquet",
        "part[24].parquet": "differ in columns",
        "empty.csv": "no header line",
        "twice.csv": "lacks names or has one twice",
        "latin.csv": "header line cannot be read",
        "[tz].[tc][s]*": "not known by its ending",
    }
    for name, words in wrong.items():
        with pytest.raises(CatalogError, match=words):
            schema(str(tmp_path / name))
    for source in ("https://example.org/x.parquet", "s3://bucket/x.parquet", 3, None, b"t.parquet"):
        with pytest.raises(CatalogError, match="cannot be used"):
            schema(source)


def test_all_sources_are_tried_before_anything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        opened(a=Table(tmp_path / "a.csv", unit="row"), b=Table(tmp_path / "b.csv", unit="row"), c=Table(ROWS, unit="row"))
    assert len(caught.value.problems) == 2


def test_names_with_quotes_stay_names(tmp_path: Path) -> None:
    folder = tmp_path / "it's; DROP"
    folder.mkdir()
    (folder / "x.csv").write_text('"a\'b","c""d"\n1,2\n', encoding="utf-8")
    sources = opened(t=Table(folder / "x.csv", unit="row", columns={"a'b": dt.column(), 'c"d': dt.column(kind="int")}))
    assert sources.connection.execute("SELECT * FROM t").fetchall() == [("1", 2)]
    sources.close()


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n", encoding="utf-8")
    sources = opened(t=Table(file, unit="row", columns={"a": dt.column()}))
    assert sources.unchanged()
    file.write_text("a\n1\n2\n", encoding="utf-8")
    assert not sources.unchanged()
    file.unlink()
    assert not sources.unchanged()
    sources.close()


def test_too_little_memory_to_open_says_so_and_quotes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's own message, which may quote a value, is not shown."""
    (tmp_path / "people.csv").write_text("person_id,age\n1,30\n", encoding="utf-8")
    catalog = Catalog({"people": Table(tmp_path / "people.csv", unit="person_id", max_rows=1)}, Budget(1))

    def full(*_: object) -> object:
        raise duckdb.OutOfMemoryException("could not allocate for 'Ada Lovelace'")

    monkeypatch.setattr("dither.engines.duckdb.sources._Opening.attempt", full)
    with pytest.raises(CatalogError, match="not enough memory to open") as refused:
        open_catalog(catalog)
    assert "Ada" not in str(refused.value)
    assert refused.value.__suppress_context__
