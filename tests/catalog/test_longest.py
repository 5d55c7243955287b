"""A text longer than `longest` is NULL; as a unit or key, its row is left out. No text is cut, so no two people merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.catalog import declare as dt
from dither.catalog.file import parse
from dither.catalog.text import catalog_hash, catalog_json, catalog_text
from dither.catalog.values import Budget, Catalog, Table
from dither.engines.duckdb.sources import open_catalog
from dither.errors import CatalogError

LONG = "x" * 4097
ROWS = {
    "id": ["a", "b", LONG + "1", LONG + "2", "é" * 4096, None],
    "note": ["n", "😀" * 4096, "o", "p", "😀" * 4097, LONG],
}


def stored(rows: dict[str, list[Any]], folder: Path) -> dict[str, Any]:
    pq.write_table(pa.table(rows), folder / "t.parquet")
    pd.DataFrame(rows).to_csv(folder / "t.csv", index=False)
    return {"arrow": pa.table(rows), "parquet": folder / "t.parquet", "csv": folder / "t.csv", "pandas": pd.DataFrame(rows)}


def found(source: Any, **how: Any) -> list[tuple[Any, ...]]:
    sources = open_catalog(Catalog({"t": Table(source, **how)}, Budget(1)), threads=1)
    try:
        return sources.connection.execute("SELECT id, note FROM t").fetchall()
    finally:
        sources.close()


def shown(rows: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Shows a long text by its first letter and length."""
    return {tuple(cell and (cell[0], len(cell)) for cell in row) for row in rows}


def test_long_texts_are_null_and_rows_of_long_ids_are_left_out(tmp_path: Path) -> None:
    for name, source in stored(ROWS, tmp_path).items():
        by_unit = found(source, unit="id", columns={"note": dt.column()})
        assert shown(by_unit) == {
            (("a", 1), ("n", 1)),
            (("b", 1), ("😀", 4096)),
            (("é", 4096), None),
            (None, None),
        }, name
        assert len(by_unit) == 4, name  # a row whose id is NULL is there, and belongs to nobody


def test_a_longer_longest_keeps_them(tmp_path: Path) -> None:
    columns = {"id": dt.column(longest=5000), "note": dt.column(longest=10)}
    for name, source in stored(ROWS, tmp_path).items():
        rows = found(source, unit="id", columns=columns)
        assert sorted(len(row[0] or "") for row in rows) == [0, 1, 1, 4096, 4098, 4098], name
        assert {row[1] for row in rows} == {"n", None, "o", "p"}, name


def test_rows_of_long_keys_are_left_out(tmp_path: Path) -> None:
    rows = {"id": [LONG, LONG, "k"], "note": ["a", "b", "c"]}
    for source in stored(rows, tmp_path).values():  # two rows with one key that is too long: neither is there
        assert found(source, public=True, key="id") == [("k", "c")]


def test_only_tables_with_long_texts_are_copied(tmp_path: Path) -> None:
    """A view would show functions the long texts in the file's dictionary; a table without long texts is read in place."""

    def views(rows: dict[str, list[Any]]) -> list[tuple[str]]:
        pq.write_table(pa.table(rows), tmp_path / "t.parquet")
        table = Table(tmp_path / "t.parquet", unit="id", max_rows=1, columns={"note": dt.column()})
        sources = open_catalog(Catalog({"t": table}, Budget(1)))
        found = sources.connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 't'").fetchall()
        sources.close()
        return found

    ((text,),) = views({"id": ["a"], "note": ["😀" * 4096]})
    assert "strlen" not in text
    assert views({"id": ["a"], "note": [LONG]}) == []


# --- the declaration ----------------------------------------------------------------------------------------------


def catalog(column: str) -> Catalog:
    return parse(f'[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "row"\n[tables.t.columns]\nnote = {column}\n')


def test_only_another_longest_is_another_catalog() -> None:
    plain, same, other = map(catalog, ("{}", "{ longest = 4096 }", "{ longest = 20000 }"))
    assert catalog_hash(plain) == catalog_hash(same) != catalog_hash(other)
    assert "longest" not in catalog_json(plain)
    assert "longest" not in catalog_text(plain)
    assert parse(catalog_text(other)) == other


@pytest.mark.parametrize(
    "column",
    ["{ longest = 0 }", "{ longest = 1.5 }", "{ longest = true }", '{ longest = "9" }', "{ longest = 2000000 }",
     '{ longest = 9, kind = "int" }', '{ longest = 2, values = ["abc"] }'],
)  # fmt: skip
def test_a_longest_that_makes_no_sense_is_refused(column: str) -> None:
    with pytest.raises(CatalogError, match="longe"):
        catalog(column)


def test_in_python_it_is_said_the_same_way() -> None:
    assert dt.column(longest=9).longest == 9
    assert dt.values("a", longest=9).longest == 9
    assert dt.column().longest == 4096
