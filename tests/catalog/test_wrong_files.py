"""A file that is missing, unreadable, empty or of another kind is refused by name, with a fix."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest

import dither as dt
from dither import workspace
from dither.catalog import file as catalog_file
from dither.catalog.check import check
from dither.engines.duckdb.sources import schema
from dither.errors import CatalogError


def refusal(source: Path | str) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        workspace.draft([str(source)], "person_id")
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.parquet", "there is no such file"),
        ("none.csv", "there is no such file"),
        ("none.duckdb#people", "there is no such file"),
        ("none", "there is no such file"),
        ("part-*.parquet", "no file matches"),
        ("**/*.csv", "no file matches"),
        ("folder", "the folder has no .parquet file in it"),
        ("people.json", "the kind of file is not known by its ending"),
        ("people.xlsx", "the file cannot be read as a workbook"),
        ("broken.parquet", "cannot be read as Parquet"),
    ],
)
def test_a_draft_of_what_cannot_be_read_names_it(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "people.xlsx").write_bytes(b"")
    (tmp_path / "people.json").write_bytes(b"")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    error = refusal(tmp_path / name)
    assert error.what.startswith(f"{tmp_path / name} cannot be used: ")
    assert words in error.what


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("person_id\n", encoding="utf-8")
    assert workspace.draft([str(tmp_path / "a.csv")], "person_id")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # a test may run as somebody who may read everything
    error = refusal(tmp_path / "a.csv")
    assert "a.csv cannot be used: it may not be read" in error.what
    assert "permissions" in error.fix


def test_all_that_cannot_be_read_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="The data has 2 problems") as caught:
        workspace.draft([str(tmp_path / "a.csv"), str(tmp_path / "b.parquet")], "row")
    assert "a.csv" in str(caught.value)
    assert "b.parquet" in str(caught.value)


def test_one_file_needs_no_list(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("person_id,age\n", encoding="utf-8")
    assert workspace.draft(str(file), "person_id") == workspace.draft([str(file)], "person_id")


@pytest.mark.parametrize("data", [[], (), None, 3, [None], [3], {}])
def test_a_draft_of_nothing_is_refused(data: object) -> None:
    with pytest.raises(CatalogError, match="No data is named"):
        workspace.draft(data, "person_id")  # type: ignore[arg-type]
    with pytest.raises(CatalogError, match="unit is a NoneType"):
        workspace.draft(["people.csv"], None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["people.parquet", "people.CSV", "people.csv.gz", "hospital.duckdb"])
@pytest.mark.parametrize("there", [True, False])
def test_a_data_file_is_no_catalog_and_the_text_says_how_to_make_one(tmp_path: Path, name: str, there: bool) -> None:
    if there:
        (tmp_path / name).write_bytes(b"x,y\n")
    with pytest.raises(CatalogError, match="is a data file by its ending, not a catalog") as caught:
        dt.open(tmp_path / name, ledger=":memory:")
    assert f"dither init {tmp_path / name} --unit COLUMN" in caught.value.fix
    assert check(tmp_path / name, schema) == list(caught.value.problems)


def test_a_folder_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="is a folder"):
        dt.open(tmp_path, ledger=":memory:")
    with pytest.raises(CatalogError, match="There is no catalog file"):
        dt.open(tmp_path / "catalog.toml", ledger=":memory:")


@pytest.mark.parametrize("wrong", [None, 3, [], {}, dt.Table({"a": [1]}, unit="row"), dt.Budget(1), object(), b"c.toml"])
def test_what_is_no_catalog_is_refused_with_what_to_write(wrong: object) -> None:
    with pytest.raises(CatalogError, match=f"this is a {type(wrong).__name__}") as caught:
        catalog_file.to_catalog(wrong)
    assert "dt.Catalog(tables=" in caught.value.fix


def test_a_catalog_is_taken_as_it_is(tmp_path: Path) -> None:
    known = dt.Catalog({"t": dt.Table({"a": [1]}, unit="row")}, dt.Budget(1))
    assert catalog_file.to_catalog(known) is known
    file = tmp_path / "c.toml"
    file.write_text('[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "row"\n', encoding="utf-8")
    assert catalog_file.to_catalog(str(file)) == catalog_file.to_catalog(file)


@pytest.mark.parametrize("place", [12, 10_000])
def test_a_damaged_archive_is_refused_in_words(place: int, tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"id,a\n" + b"".join(b"%d,%d\n" % (n, n * 7919 % 1000) for n in range(9000))))
    data[place : place + 20] = bytes(each ^ 0xFF for each in data[place : place + 20])
    (tmp_path / "t.csv.gz").write_bytes(data)
    table = dt.Table(tmp_path / "t.csv.gz", unit="row", columns={"a": dt.column()})
    with pytest.raises(CatalogError, match=r"cannot be (used|read)"):
        dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=1)), ledger=":memory:")
    with suppress(CatalogError):  # an archive that is damaged further on can be drafted
        assert workspace.draft([str(tmp_path / "t.csv.gz")], "id")
