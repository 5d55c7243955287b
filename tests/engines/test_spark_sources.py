"""Opens tables and files of Spark: what is declared is reached, in its kind, and no stored value can make a question fail."""

from __future__ import annotations

import datetime
import os
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.catalog.file import parse
from dither.engines.base import Opened
from dither.engines.registry import backend_for, open_sources, read_schema
from dither.engines.spark import sources
from dither.engines.spark.address import Place
from dither.engines.spark.columns import read_column
from dither.engines.spark.session import connect, disconnect, is_address, java_version
from dither.errors import CatalogError
from dither.query.nodes import Column, Named, Scan
from dither.query.work import Cell, Sums, Work
from engines.places import SparkPlace
from engines.tables import SECRET

DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 13, 0, 0, 1)
LONG = "x" * 5000
# The type, the values in it, the declared kind, and what a question sees.
ZOO: dict[str, tuple[pa.DataType, list[Any], str, list[Any]]] = {
    "int8": (pa.int8(), [-128, 127, None], "int", [-128, 127, None]),
    "uint32": (pa.uint32(), [0, 2**32 - 1, None], "int", [0, 2**32 - 1, None]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, None], "int", [0, None, None]),
    "int_real": (pa.int64(), [2**53 + 1, -1, None], "real", [float(2**53), -1.0, None]),
    "float32": (pa.float32(), [0.5, float("nan"), float("inf")], "real", [0.5, None, float("inf")]),
    "real_int": (pa.float64(), [2.5, 1e300, float("nan")], "int", [2, None, None]),
    "decimal": (pa.decimal128(12, 2), [Decimal("2.50"), Decimal("-0.01"), None], "real", [2.5, -0.01, None]),
    "decimal_int": (pa.decimal128(38, 0), [Decimal(7), Decimal(10**37), None], "int", [7, None, None]),
    "text": (pa.string(), ["a", LONG, ""], "text", ["a", None, ""]),
    "large": (pa.large_string(), ["é😀", "\0", None], "text", ["é😀", "\0", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None], "text", ["a", "b", None]),
    "text_int": (pa.string(), ["12", " 12 ", "1e3"], "int", [12, None, None]),
    "text_real": (pa.string(), ["-3.5", "1d", "NaN"], "real", [-3.5, None, None]),
    "text_date": (pa.string(), ["2024-02-29", "2023-02-29", "now"], "date", [DAY, None, None]),
    "text_bool": (pa.string(), ["TRUE", "false", "1"], "bool", [True, False, None]),
    "bool_int": (pa.bool_(), [True, False, None], "int", [1, 0, None]),
    "date32": (pa.date32(), [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], "date", []),
    "date64": (pa.date64(), [DAY, None, None], "date", [DAY, None, None]),
    "moment": (pa.timestamp("us"), [MOMENT, datetime.datetime(1, 1, 1), None], "timestamp", []),
    "instant": (pa.timestamp("us", tz="Europe/Berlin"), [MOMENT, None, None], "timestamp", [MOMENT, None, None]),
    "millis": (pa.timestamp("ms"), [MOMENT.replace(microsecond=0), None, None], "timestamp", []),
    "time_date": (pa.timestamp("us"), [MOMENT, None, None], "date", [DAY, None, None]),
}


def seen(opened: Opened, table: str, column: str) -> list[Any]:
    """The values of a column as questions see them, in the order of n."""
    keys = (Named("n", Column("t.n")), Named("v", Column(f"t.{column}")))
    work = Work(Scan(table, "t"), keys, None, False, None, (Sums((Cell(constant=1),), 1),), plain=True)
    opened.engine.prepare(work)
    return [key[1] for key in sorted(group.key for group in opened.engine.run(work, SECRET))]


def catalog(source: str, columns: dict[str, str], **options: Any) -> dt.Catalog:
    declared = {name: dt.column(kind=kind) for name, kind in columns.items()}
    return dt.Catalog({"t": dt.Table(source, columns=declared, **{"unit": "row", **options})}, dt.Budget(epsilon=1))


def test_every_stored_type_is_read_in_its_kind(spark: SparkPlace) -> None:
    table = pa.table({"n": [0, 1, 2], **{name: pa.array(values, type) for name, (type, values, _, _) in ZOO.items()}})
    source = spark.files(table, row_group_size=1)
    opened = open_sources(catalog(source, {"n": "int", **{name: kind for name, (_, _, kind, _) in ZOO.items()}}))
    keys = [Named("n", Column("t.n")), *(Named(name, Column(f"t.{name}")) for name in ZOO)]
    work = Work(Scan("t", "t"), tuple(keys), None, False, None, (Sums((Cell(constant=1),), 1),), plain=True)
    rows = sorted((group.key for group in opened.engine.run(work, SECRET)), key=lambda key: key[0])
    for place, (name, (_, stored, _, expected)) in enumerate(ZOO.items(), 1):
        assert [row[place] for row in rows] == (expected or stored), name
    opened.close()


def test_text_that_is_not_utf8_is_null(spark: SparkPlace) -> None:
    broken = pa.array([b"a\xff", b"\xed\xa0\x80", b"ok"], pa.binary()).view(pa.string())
    source = spark.files(pa.table({"n": [0, 1, 2], "t": broken}))
    opened = open_sources(catalog(source, {"n": "int", "t": "text"}))
    assert seen(opened, "t", "t") == [None, None, "ok"]
    opened.close()


def test_a_stored_value_that_spark_rejects_is_refused_on_opening(spark: SparkPlace) -> None:
    """Spark multiplies milliseconds by 1,000 while it reads, and raises where that overflows."""
    beyond = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"))
    source = spark.files(pa.table({"n": [0, 1], "s": beyond}), version="2.6")
    with pytest.raises(CatalogError, match="t cannot be read") as caught:
        open_sources(catalog(source, {"n": "int", "s": "timestamp"}))
    assert "overflow" not in str(caught.value)
    open_sources(catalog(source, {"n": "int"})).close()  # the column is not declared, so nothing reads it


def test_identifying_columns_are_read_exactly(spark: SparkPlace) -> None:
    table = pa.table({"n": [0, 1, 2], "id": [1.0, 1.5, 2.0**60], "t": ["7", "07", LONG]})
    source = spark.files(table)
    opened = open_sources(catalog(source, {"n": "int", "id": "int"}, unit="id"))
    assert seen(opened, "t", "id") == [1, None, None]
    opened.close()
    opened = open_sources(catalog(source, {"n": "int", "t": "text"}, unit="t"))
    assert seen(opened, "t", "t") == ["7", "07"]  # the row of a text that is too long is left out
    opened.close()


# Stored values of one day, the declared kind, and who a question sees. No two of them may become one person.
NOON = datetime.datetime(2024, 2, 29, 12)
MIDNIGHT, LATER = NOON.replace(hour=0), NOON.replace(microsecond=100_000)
PEOPLE: dict[str, tuple[pa.DataType, list[Any], str, list[Any]]] = {
    "moment": (pa.timestamp("us"), [MIDNIGHT, NOON, LATER], "date", [DAY, None, None]),
    "instant": (pa.timestamp("us", tz="UTC"), [MIDNIGHT, NOON, LATER], "date", [DAY, None, None]),
    "day": (pa.string(), ["2024-02-29", "2024-02-29 00:00:00", "2024-02-29T12:00"], "date", [DAY, None, None]),
    "time": (pa.string(), ["2024-02-29 12:00:00", "2024-02-29T12:00:00", "2024-02-29 12:00"], "timestamp", [NOON, None, None]),
    "zeros": (pa.string(), ["2024-02-29 12:00:00", "2024-02-29 12:00:00.0", None], "timestamp", [NOON, None, None]),
    "tenths": (pa.string(), ["2024-02-29 12:00:00.1", "2024-02-29 12:00:00.10", None], "timestamp", [LATER, None, None]),
}


def people(spark: SparkPlace) -> dict[str, list[Any]]:
    """What identifies in each column of PEOPLE, as a question sees it."""
    source = spark.files(
        pa.table({"n": [0, 1, 2], **{name: pa.array(stored, type) for name, (type, stored, *_) in PEOPLE.items()}})
    )
    found = {}
    for name, (_, _, kind, _) in PEOPLE.items():
        opened = open_sources(catalog(source, {"n": "int", name: kind}, unit=name))
        found[name] = seen(opened, "t", name)
        opened.close()
    return found


def test_two_moments_of_a_day_are_not_one_person(spark: SparkPlace) -> None:
    assert people(spark) == {name: expected for name, (*_, expected) in PEOPLE.items()}


def test_that_persons_read_like_other_columns_would_be_one(spark: SparkPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "read_column", lambda *given, exact: read_column(*given, exact=False))
    assert all(len({*values} - {None}) < 3 - values.count(None) for values in people(spark).values())


def test_keys_must_be_unique(spark: SparkPlace) -> None:
    source = spark.files(pa.table({"n": [7_654_321, 7_654_321, 2]}))
    with pytest.raises(CatalogError, match=r"t\.n is not unique") as caught:
        open_sources(catalog(source, {"n": "int"}, unit="n", key="n"))
    assert "7654321" not in str(caught.value)


def test_undeclared_columns_are_not_reached(spark: SparkPlace) -> None:
    opened = open_sources(catalog(spark.files(pa.table({"n": [1], "hidden": [2]})), {"n": "int"}))
    assert dict(opened.engine.schema("t")) == {"n": "int"}
    assert opened.session.table("dither_view_0").columns == ["n"]  # type: ignore[attr-defined]
    opened.close()


def test_files_that_change_are_noticed(spark: SparkPlace, tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    opened = open_sources(catalog(f"spark:{tmp_path}/*.parquet#{spark.master}", {"n": "int"}))
    assert opened.unchanged()
    pq.write_table(pa.table({"n": [5]}), tmp_path / "5.parquet")
    assert seen(opened, "t", "n") == [0, 1]  # the list of files is fixed
    assert opened.unchanged()
    later = time.time() + 10
    os.utime(tmp_path / "0.parquet", (later, later))
    assert not opened.unchanged()
    opened.close()


def test_a_table_that_is_made_of_other_files_is_noticed(spark: SparkPlace, tmp_path: Path) -> None:
    """Its old files stay as they were, and there are as many new ones."""
    for name in ("old", "new"):
        pq.write_table(pa.table({"n": [1]}), tmp_path / f"{name}.parquet")
    spark.session.read.parquet(str(tmp_path / "old.parquet")).createOrReplaceGlobalTempView("moved")
    opened = open_sources(catalog(f"spark:global_temp.moved#{spark.master}", {"n": "int"}))
    assert opened.unchanged()
    spark.session.read.parquet(str(tmp_path / "new.parquet")).createOrReplaceGlobalTempView("moved")
    assert not opened.unchanged()
    opened.close()


def test_views_whose_rows_vary_are_refused(spark: SparkPlace) -> None:
    spark.session.range(10).createOrReplaceGlobalTempView("numbers")
    texts = ("SELECT id, rand() AS x FROM global_temp.numbers", "SELECT id FROM global_temp.numbers LIMIT 3")
    for number, text in enumerate(texts):
        spark.session.sql(text).createOrReplaceGlobalTempView(f"vary{number}")
        with pytest.raises(CatalogError, match="not the same each time"):
            open_sources(catalog(f"spark:global_temp.vary{number}#{spark.master}", {"id": "int"}))
    opened = open_sources(catalog(f"spark:global_temp.numbers#{spark.master}", {"id": "int"}))
    assert opened.unchanged()
    opened.close()


@pytest.mark.parametrize(("format", "log"), [("Delta", "_delta_log/0000.json"), ("Iceberg", "metadata/v1.metadata.json")])
def test_files_of_a_table_format_are_refused(spark: SparkPlace, tmp_path: Path, format: str, log: str) -> None:
    """Its folder has files of removed rows too: only the log says which are the table."""
    inner = tmp_path / "the lake" / "visits" / "y=a,b" / "m=1"
    inner.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), inner / "0.parquet")
    ends = ("", "/*/*/*/*/*.parquet", "/*/visits", "/*/visits/y=a,b", "/*/visits/y=a,b/m=1", "/*/visits/y=a,b/m=1/0.parquet")
    paths = [f"spark:{tmp_path}{end}#{spark.master}" for end in ends]
    for source in paths:
        open_sources(catalog(source, {"n": "int"})).close()
    (inner.parent.parent / log).parent.mkdir()
    (inner.parent.parent / log).write_text("{}", encoding="utf-8")
    for source in paths:
        with pytest.raises(CatalogError, match=f"table of {format}"):
            open_sources(catalog(source, {"n": "int"}))


def test_the_schema_is_read_without_rows(spark: SparkPlace) -> None:
    source = spark.files(pa.table({"n": [1], "a": [[1]], "s": ["x"]}))
    assert dict(read_schema(source)) == {"n": "int", "a": "unsupported", "s": "text"}
    with pytest.raises(CatalogError, match="cannot read"):
        read_schema(f"spark:/nowhere/*.parquet#{spark.master}")


def test_files_that_lack_a_declared_column_are_refused(spark: SparkPlace, tmp_path: Path) -> None:
    """Spark would read NULL there, and a mean would be of some files only."""
    folder = tmp_path / "two %41 files"
    for part, table in (("y=1", {"n": [1, 2], "x": [5, 6]}), ("y=2", {"n": [3], "x": pa.array([None], pa.int64())})):
        (folder / part).mkdir(parents=True)
        pq.write_table(pa.table(table), folder / part / "0.parquet")
    source = f"spark:{folder}/*/*.parquet#{spark.master}"
    opened = open_sources(catalog(source, {"n": "int", "x": "int", "y": "text"}))  # a column without values is there
    assert sorted(map(str, seen(opened, "t", "x"))) == ["5", "6", "None"]
    opened.close()
    pq.write_table(pa.table({"n": [3]}), folder / "y=2" / "0.parquet")
    with pytest.raises(CatalogError, match="some lack x"):
        open_sources(catalog(source, {"n": "int", "x": "int", "y": "text"}))
    open_sources(catalog(source, {"n": "int", "y": "text"})).close()  # x is not declared


def test_only_declared_columns_of_a_row_that_does_not_fit_are_fetched(
    spark: SparkPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there is a text that is too long is asked of Spark, and no row comes here."""
    from pyspark.sql.classic.dataframe import DataFrame

    fetched: list[Any] = []
    collect = DataFrame.collect
    monkeypatch.setattr(DataFrame, "collect", lambda frame: fetched.extend(found := collect(frame)) or found)
    table = pa.table({"id": [1, 2], "t": ["a", "x" * 5000], "hidden": ["secret one", "secret two"]})
    open_sources(catalog(spark.files(table), {"id": "int", "t": "text"})).close()
    assert fetched
    assert not any("secret" in str(row) or "xxx" in str(row) for row in fetched)


def test_an_address_means_itself_whatever_spark_remote_says(spark: SparkPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere.example:1")
    session = connect(spark.master)
    assert session.sql("SELECT 1 AS one").toArrow().to_pylist() == [{"one": 1}]
    disconnect(session, spark.master)
    assert os.environ["SPARK_REMOTE"] == "sc://nowhere.example:1"


def test_the_whole_path(spark: SparkPlace, tmp_path: Path) -> None:
    """A catalog file with [engine], a private table of Spark and a public one from a CSV."""
    place = spark.files(pa.table({"id": list(range(1000)), "age": [i % 90 for i in range(1000)], "region": ["n", "s"] * 500}))
    (tmp_path / "regions.csv").write_text("region,name\nn,North\ns,South\n")
    path = tmp_path / "survey.toml"
    path.write_text(
        f'[budget]\nepsilon = 100\n[engine]\nspark = "{spark.master}"\n'
        f'[tables.people]\nsource = "{place.partition("#")[0]}"\nunit = "id"\nmax_rows = 1\n'
        'columns.age = { between = [0, 120] }\ncolumns.region = { values = ["n", "s"] }\n'
        '[tables.regions]\nsource = "regions.csv"\npublic = true\n'
    )
    with dt.open(path, ledger=tmp_path / "survey.ledger", make=True) as survey:
        asked = "SELECT name, COUNT(*) AS n FROM people JOIN regions ON people.region = regions.region GROUP BY name"
        answer = survey.ask(asked, epsilon=50)
        assert answer.to_dict() == {"name": ["North", "South"], "n": [500, 500]}


# --- without Spark ------------------------------------------------------------------------------------------------


def test_places_are_read() -> None:
    assert Place.of("spark:lake.visits#sc://host:15002") == Place("sc://host:15002", "lake.visits")
    assert Place.of("spark:/lake/a#b/*.parquet#local[2]") == Place("local[2]", "/lake/a#b/*.parquet")
    assert Place.of("spark:s3a://bucket/visits#yarn").is_path
    for wrong in ("spark:lake/visits.parquet", "spark:a; DROP TABLE b", "spark:", "spark:a.b.c.d"):
        with pytest.raises(CatalogError):
            Place.of(wrong)
    assert backend_for("spark:lake.visits").name == "Spark"


def test_the_engine_of_a_file_holds_for_all_its_tables() -> None:
    text = '[budget]\nepsilon = 1\n[engine]\nspark = "local[2]"\n[tables.t]\nsource = "spark:lake.t"\nunit = "row"\n'
    assert parse(text).tables["t"].source == "spark:lake.t#local[2]"
    with pytest.raises(CatalogError, match="duckdb"):
        parse(text.replace('spark = "local[2]"', 'duckdb = "x"'))


def test_addresses_that_cannot_be_used_are_refused() -> None:
    assert is_address("k8s://https://host:443")
    for address, what in (("sc://host/;token=abc", "token"), ("http://host", "address"), ("local[2]; x", "address")):
        with pytest.raises(CatalogError, match=what) as caught:
            connect(address)
        assert "abc" not in str(caught.value)


def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() is None
    with pytest.raises(CatalogError, match="Java"):
        connect("local[2]")
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    assert java_version() == 8
    with pytest.raises(CatalogError, match="this is 8"):
        connect("local[2]")
