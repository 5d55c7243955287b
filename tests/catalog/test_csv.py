"""CSV files: every line is one row, or the file is refused on opening. No cell swallows another line."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.catalog.values import Budget, Catalog, Table
from dither.engines.duckdb.files import place_file
from dither.engines.duckdb.sources import open_catalog
from dither.errors import CatalogError

PIECES = ["1", "2", "x", "é", ",", '"', '""', "\n", "\r\n", "\r", "\\", " ", "\0", '1,"x\ny"\n', '"a""b",c\n', "1,2\n", "1,2\n"]


def _rows(file: Path, columns: dict[str, Any], read: dict[str, Any] | None = None) -> list[tuple[object, ...]]:
    sources = open_catalog(Catalog({"t": Table(file, unit="row", columns=columns, read=read)}, Budget(1)), threads=1)
    try:
        return sources.connection.execute("SELECT * FROM t").fetchall()
    finally:
        sources.close()


def _texts(file: Path) -> list[tuple[object, ...]]:
    return _rows(file, {"a": dt.column(), "b": dt.column()})


def _as_python_reads(body: str) -> list[tuple[object, ...]] | None:
    """Reads two cells per line, empty as NULL, none after a last comma; None if the module finds it is not CSV.
    Whether a quote behind spaces begins a quoted cell is a matter of taste, so spaces and quotes are not compared."""
    text = io.StringIO("a,b\n" + body, newline="")
    try:
        lines = [line for line in csv.reader(text, strict=True, skipinitialspace=True) if line][1:]
    except csv.Error:
        return None
    lines = [line[:2] if len(line) == 3 and line[2] == "" else line for line in lines]
    return [_bare(line) for line in lines] if all(len(line) == 2 for line in lines) else None


def _bare(cells: Sequence[object]) -> tuple[object, ...]:
    return tuple(str(cell or "").replace(" ", "").replace('"', "") or None for cell in cells)


@pytest.mark.slow
@given(body=st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_file_is_read_as_it_stands_or_refused(body: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("csv") / "t.csv"
    file.write_bytes(f"a,b\n{body}".encode())
    try:
        found = _texts(file)
    except CatalogError:
        return
    assert [_bare(row) for row in found] == _as_python_reads(body)


@pytest.mark.slow
@given(body=st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_pythons_reader_reads_it_as_it_stands_or_refuses_it(body: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The reader of files that DuckDB cannot read."""
    file = tmp_path_factory.mktemp("csv") / "t.csv"
    file.write_bytes(f"a,b\n{body}".encode("utf-16"))
    try:
        found = _rows(file, {"a": dt.column(), "b": dt.column()}, {"encoding": "utf-16", "trim": True})
    except CatalogError:
        assert _as_python_reads(body) is None
        return
    assert [_bare(tuple(str(cell or "").strip() or None for cell in row)) for row in found] == [
        _bare(tuple(str(cell or "").strip() or None for cell in row)) for row in _as_python_reads(body) or []
    ]


SPOILT = {
    "a quote that stays open": b'3,"x',
    "too few cells": b"3",
    "too many cells": b"3,4,5",
    "no UTF-8": b"3,Z\xfcrich",
    "text behind a quoted cell": b'3,"x"y',
    "a stray end of line": b"3,x\ry",
}


@pytest.mark.parametrize("line", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_line_is_refused_in_a_constant_text(line: bytes, tmp_path: Path) -> None:
    """The number of the line reveals how many rows come before it, so only the curator sees it."""
    file = tmp_path / "t.csv"
    lines = [b"a,b", *(b"%d,secret" % i for i in range(100)), line, *(b"%d,secret" % i for i in range(100))]
    file.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CatalogError) as refused:
        _texts(file)
    assert str(refused.value).startswith("t cannot be read: a line of its file is no row of the table.\n")
    assert refused.value.diagnosis == (f"t: line 102 of {file}",)
    file.write_bytes(b"\n".join([b"a,b", line, *lines[1:101]]) + b"\n")
    with pytest.raises(CatalogError) as earlier:
        _texts(file)
    assert str(earlier.value) == str(refused.value)
    assert earlier.value.diagnosis == (f"t: line 2 of {file}",)
    file.write_bytes(b"\n".join(each for each in lines if each != line) + b"\n")
    assert len(_texts(file)) == 200


def test_that_one_cell_would_take_other_lines_away_if_it_were_read_all_the_same(tmp_path: Path) -> None:
    """The twin that must fail."""
    file = tmp_path / "t.csv"
    file.write_text("a,b\n" + "".join(f"{i},x\n" if i != 50 else '50,"x\n' for i in range(200)), encoding="utf-8")
    connection = duckdb.connect()
    strict = place_file(connection, str(file)).sql
    loose = strict.replace("strict_mode = true", "strict_mode = false, ignore_errors = true")
    assert loose != strict
    ((count,),) = connection.execute(f"SELECT count(*) FROM {loose}").fetchall()
    assert count < 100


FITS = {
    "int": ("7", "seven"),
    "real": ("70.5", "70,5"),
    "bool": ("true", "perhaps"),
    "date": ("2024-02-29", "2024-02-30"),
    "timestamp": ("2024-02-29 01:02:03", "n/a"),
}


@pytest.mark.parametrize("kind", FITS)
def test_a_cell_that_does_not_fit_is_null_and_its_row_stays(kind: str, tmp_path: Path) -> None:
    right, wrong = FITS[kind]
    frame = pd.DataFrame({"a": range(400), "b": [wrong if i % 4 == 0 else right for i in range(400)]})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    frame.astype({"a": str}).to_parquet(tmp_path / "t.parquet")
    of_csv, of_parquet = (
        _rows(tmp_path / name, {"a": dt.column(kind="int"), "b": dt.column(kind=kind)}) for name in ("t.csv", "t.parquet")
    )
    assert sorted(of_csv, key=lambda row: int(str(row[0]))) == sorted(of_parquet, key=lambda row: int(str(row[0])))
    assert [row[1] is None for row in of_csv].count(True) == 100
    assert len(of_csv) == 400


@pytest.mark.parametrize(("text", "count"), [("a\n1\n\n2\n", 3), ("a\n", 0), ("a", 0), ('a\n""\n', 1), ("a,b\n\n1,2\n\n", 1)])
def test_an_empty_line_is_a_row_only_where_there_is_one_column(text: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode("utf-8-sig")))
    for name in ("t.csv", "t.csv.gz"):
        assert len(_rows(tmp_path / name, {"a": dt.column()})) == count


def test_rows_that_the_two_readers_count_differently_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    assert len(_texts(tmp_path / "t.csv")) == 2
    monkeypatch.setattr("dither.engines.duckdb.files.rows", lambda files, read, separator, width: 3)
    with pytest.raises(CatalogError, match="t cannot be read"):
        _texts(tmp_path / "t.csv")
