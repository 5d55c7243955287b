"""Delta tables: one version is what the format's own reader says it is, and what its files alone cannot say is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from dither.catalog.draft import draft
from dither.catalog.file import parse
from dither.engines.duckdb import files
from dither.engines.registry import open_sources, read_schema
from dither.errors import CatalogError
from dither.query.nodes import Column, Named, Scan
from dither.query.work import Cell, Sums, Work
from engines.tables import SECRET

deltalake: Any = pytest.importorskip("deltalake")
KEYS = (Named("n", Column("t.n")), Named("s", Column("t.s")))
EVERY = Work(Scan("t", "t"), KEYS, None, False, None, (Sums((Cell(constant=1),), 1),), plain=True)


def seen(source: str) -> list[Any]:
    """The rows that a question sees."""
    columns = {"n": dt.column(kind="int"), "s": dt.column(kind="text")}
    opened = open_sources(dt.Catalog({"t": dt.Table(source, unit="row", columns=columns)}, dt.Budget(epsilon=1)))
    try:
        return sorted(group.key for group in opened.engine.run(EVERY, SECRET) for _ in range(group.measures[0][0]))  # type: ignore[index]
    finally:
        opened.close()


def told(folder: Path, version: int) -> list[Any]:
    """The rows of a version by the format's own reader."""
    rows = deltalake.DeltaTable(str(folder), version=version).to_pyarrow_table().to_pylist()
    return sorted((row["n"], row["s"]) for row in rows)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Five versions: two writes, a row that is removed, a row that is changed, all files rewritten as one."""
    folder = tmp_path / "visits"
    deltalake.write_deltalake(str(folder), pa.table({"n": [1, 2], "s": ["a", "b"]}))
    deltalake.write_deltalake(str(folder), pa.table({"n": [3, 4], "s": ["c", "d"]}), mode="append")
    deltalake.DeltaTable(str(folder)).delete("n = 2")
    deltalake.DeltaTable(str(folder)).update(updates={"s": "'changed'"}, predicate="n = 3")
    deltalake.DeltaTable(str(folder)).optimize.compact()
    return folder


def test_each_version_has_the_rows_that_the_formats_own_reader_finds(lake: Path) -> None:
    versions = [told(lake, version) for version in range(5)]
    assert versions[1] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert versions[4] == [(1, "a"), (3, "changed"), (4, "d")]
    assert [seen(f"delta:{lake}@{version}") for version in range(5)] == versions


def test_paths_into_the_folder_are_refused(lake: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.parquet"
    link.symlink_to(next(lake.glob("*.parquet")))
    for source in (f"{lake}", f"{lake}/*.parquet", str(next(lake.glob("*.parquet"))), str(link)):
        with pytest.raises(CatalogError, match="table of Delta"):
            seen(source)


def test_that_its_files_alone_would_bring_removed_rows_back(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "refuse_lakes", lambda paths: None)
    assert len(seen(f"{lake}/*.parquet")) > len(told(lake, 4))


def test_files_of_iceberg_are_refused_at_any_depth(tmp_path: Path) -> None:
    data = tmp_path / "data" / "day=1"
    data.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"n": [1], "s": ["a"]}), data / "0.parquet")
    assert seen(f"{data}/*.parquet") == [(1, "a")]
    (tmp_path / "metadata").mkdir()
    assert seen(f"{data}/*.parquet") == [(1, "a")]
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CatalogError, match="table of Iceberg"):
        seen(f"{data}/*.parquet")


def protocol(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda action: action["protocol"].update(changes) if "protocol" in action else None


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the first entry of a table's log."""
    log = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        change(action)
    log.write_text("\n".join(map(json.dumps, actions)) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        protocol(
            minReaderVersion=3, minWriterVersion=7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"]
        ),
        protocol(minReaderVersion=2, minWriterVersion=5),
    ],
    ids=["deletion vectors", "column mapping"],
)
def test_tables_that_are_more_than_their_files_are_refused(tmp_path: Path, change: Any) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [1], "s": ["a"]}))
    assert seen(f"delta:{tmp_path}@0") == [(1, "a")]
    rewrite(tmp_path, change)
    with pytest.raises(CatalogError, match=r"deletion vectors or column mapping"):
        seen(f"delta:{tmp_path}@0")


def test_partitioned_tables_are_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [1], "s": ["a"]}), partition_by=["s"])
    with pytest.raises(CatalogError, match="partitioned"):
        seen(f"delta:{tmp_path}@0")


def test_a_column_that_was_added_later_is_refused_not_guessed(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [1]}))
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [2], "s": ["b"]}), mode="append", schema_mode="merge")
    with pytest.raises(CatalogError, match="differ in columns"):
        seen(f"delta:{tmp_path}@1")


def test_a_version_must_be_named_and_there(lake: Path) -> None:
    for source, what in (
        (f"delta:{lake}", "version of the Delta table is missing"),
        (f"delta:{lake}@99", "version 99 of the Delta table cannot be read"),
        (f"delta:{lake}/nowhere@1", "no Delta table in that folder"),
        ("delta:s3://bucket/visits@1", "network"),
    ):
        with pytest.raises(CatalogError, match=what) as caught:
            seen(source)
        assert "Fix:" in str(caught.value)
    for file in lake.glob("*.parquet"):
        file.unlink()
    with pytest.raises(CatalogError, match="a file of that version is missing"):
        seen(f"delta:{lake}@1")


def test_a_missing_package_is_named(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CatalogError, match="deltalake"):
        read_schema(f"delta:{lake}@0")


def test_a_path_is_relative_to_the_catalog_file(lake: Path) -> None:
    text = '[budget]\nepsilon = 1\n[tables.t]\nsource = "delta:visits@1"\nunit = "row"\n'
    assert parse(text, base=lake.parent).tables["t"].source == f"delta:{lake}@1"


def test_a_question_is_asked_of_one_version(lake: Path) -> None:
    table = dt.Table(f"delta:{lake}@2", unit="n", max_rows=1)
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=100, left_out=False)), ledger=":memory:") as survey:
        assert survey.ask("SELECT COUNT(*) AS n FROM t", epsilon=50).rows == ((3,),)
        deltalake.write_deltalake(str(lake), pa.table({"n": [5, 6], "s": ["e", "f"]}), mode="append")
        assert survey.ask("SELECT COUNT(*) AS n FROM t", epsilon=40, fresh=True).rows == ((3,),)


def test_a_catalog_is_drafted_from_a_version(lake: Path) -> None:
    assert "[tables.visits]" in draft([f"delta:{lake}@1"], "n", read_schema)
