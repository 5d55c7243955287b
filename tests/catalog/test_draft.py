"""A draft is made from schemas only and is valid; drafting and checking a catalog read no row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.catalog import declare as dt
from dither.catalog.check import check, show_problems
from dither.catalog.draft import draft
from dither.catalog.file import parse, read
from dither.catalog.values import Budget, Catalog, Table
from dither.engines.duckdb.sources import open_catalog, schema
from dither.errors import CatalogError


def unreadable_parquet(file: Path, columns: dict[str, list[Any]]) -> Path:
    """Writes a Parquet file with a valid footer and invalid pages: reading any row fails."""
    pq.write_table(pa.table(columns), file, compression="none")
    data = bytearray(file.read_bytes())
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    data[4:-footer] = b"\xab" * (len(data) - footer - 4)
    file.write_bytes(data)
    return file


PEOPLE = {"person_id": list(range(50)), "age": [1.5] * 50, "my region": ["n"] * 50, "tags": [[1]] * 50}


def test_a_draft_reads_no_row_and_passes_its_check(tmp_path: Path) -> None:
    people = unreadable_parquet(tmp_path / "people.parquet", PEOPLE)
    visits = tmp_path / "2024 visits.csv"
    visits.write_bytes(b"person_id,day\n\xff\xfe not text,\n")
    text = draft([str(people), str(visits)], "person_id", schema)
    (tmp_path / "survey.toml").write_text(text, encoding="utf-8")
    assert check(tmp_path / "survey.toml", schema) == []
    catalog = read(tmp_path / "survey.toml")
    assert list(catalog.tables) == ["people", "t_2024_visits"]
    assert list(catalog.tables["people"].columns) == ["age", "my region"]
    assert catalog.tables["people"].max_rows is None  # chosen for each question
    for word in ("CHOOSE", "between", "values", "tags", "never by looking at the data"):
        assert word in text


def test_that_the_monitor_can_fail(tmp_path: Path) -> None:
    people = unreadable_parquet(tmp_path / "people.parquet", PEOPLE)
    with pytest.raises(CatalogError, match="cannot be read"):  # a key is looked at row by row, on opening
        open_catalog(Catalog({"people": Table(people, unit="person_id", max_rows=1, key="person_id")}, Budget(1)))


def test_a_lazy_frame_is_not_computed_for_its_schema() -> None:
    def fail(frame: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("a row was read")

    lazy = pl.LazyFrame({"id": [1], "x": [2.5]}).map_batches(fail, schema={"id": pl.Int64, "x": pl.Float64})
    assert schema(lazy) == {"id": "int", "x": "real"}
    catalog = Catalog({"t": Table(lazy, unit="id", max_rows=1, columns={"x": dt.between(0, 1)})}, Budget(1))
    assert check(catalog, schema) == []
    with pytest.raises(CatalogError, match="The frame cannot be read"):
        open_catalog(catalog)


def test_a_draft_of_a_csv_says_how_its_numbers_become_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,age\n1,2\n", encoding="utf-8")
    pq.write_table(pa.table({"id": [1], "age": [2]}), tmp_path / "b.parquet")
    of_csv, of_parquet = (draft([str(tmp_path / name)], "id", schema) for name in ("a.csv", "b.parquet"))
    assert 'Bounds without kind = "int" mean numbers with' in of_csv
    shown = 'age = { kind = "int", between = [0, 120] }'
    assert shown in of_csv
    assert "A CSV" not in of_parquet
    filled = of_csv.replace("age = {}\n", f"{shown}\n").replace("#   age", "# age")
    assert parse(filled).tables["a"].columns["age"].kind == "int"


def test_quoted_dates_are_answered_with_unquoted_ones(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "born": pa.array([1], pa.date32())}), tmp_path / "people.parquet")
    head = '[budget]\nepsilon = 1\n[tables.people]\nsource = "people.parquet"\nunit = "id"\nmax_rows = 1\n'
    for written in ('between = ["1900-01-01", "2030-12-31"]', 'values = ["1900-01-01"]'):
        (tmp_path / "survey.toml").write_text(f"{head}[tables.people.columns]\nborn = {{ {written} }}\n", encoding="utf-8")
        ((line, _, fix),) = check(tmp_path / "survey.toml", schema)
        assert line == 8
        assert "ates without quotes" in fix or "Dates are written without quotes" in fix
    with pytest.raises(CatalogError, match=r"datetime\.date\(1900, 1, 1\)"):
        dt.between("1900-01-01", "2030-12-31")


def test_drafts_by_row_and_tables_without_the_unit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("z\n", encoding="utf-8")
    one, two = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")
    assert parse(draft([one, one], "row", schema)).tables["a_2"].by_row
    with pytest.raises(CatalogError, match="b declares neither a unit"):  # closed until the curator says so
        parse(draft([one, two], "x", schema))


def test_drafts_of_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("person,y\n", encoding="utf-8")
    with pytest.raises(CatalogError, match="No data"):
        draft([], "x", schema)
    with pytest.raises(CatalogError, match="No table has a column persn"):
        draft([str(tmp_path / "a.csv")], "persn", schema)
    with pytest.raises(CatalogError, match="no such file"):
        draft([str(tmp_path / "b.csv")], "x", schema)


SURVEY = """\
[budget]
epsilon = 1
[tables.people]
source = "people.parquet"
unit = "person_id"
max_rows = 1
[tables.people.columns]
age = { between = [0, 120] }
"my region" = { values = ["n"] }
[tables.visits]
source = "visits.csv"
max_rows = 3
unit = { column = "person_id", references = "people.person_id" }
[tables.visits.columns]
person_id = { kind = "int" }
cost = { between = [0, 9] }
"""

# what is changed in the survey above, and the line and words of the problem that makes
CHANGES = [
    ("age =", "agee =", 8, "people has no column agee"),
    ("age = { between = [0, 120] }", "tags = {}", 8, "a type that questions cannot use"),
    ("between = [0, 120]", "kind = 'text'", 8, "declared as text and stored as real"),
    ("between = [0, 120]", "values = ['a']", 8, "declared as text and stored as real"),
    ('["n"]', "[1]", 9, "is stored as text, and its values are not"),
    ('["n"]', '[1], kind = "int"', None, ""),  # text can be read as a whole number, if that is said
    ('{ values = ["n"] }', "{ between = [0, 9] }", 9, "is stored as text, and its bounds are not"),
    ('{ values = ["n"] }', "{ between = [1900-01-01, 2030-12-31] }", 9, "does not read as date would be NULL"),
    ('{ values = ["n"] }', "{ between = [0, 9], kind = 'real' }", None, ""),
    ("cost = { between = [0, 9] }", "cost = { values = [1, 2] }", None, ""),  # a CSV is text throughout
    ('unit = "person_id"', 'unit = "person"', 5, "people has no column person"),
    ('unit = "person_id"', 'unit = "age"', 5, "cannot tell people apart"),
    ("max_rows = 1\n", "max_rows = 1\nkey = 'nobody'\n", 7, "people has no column nobody"),
    ("people.person_id", "people.person", 13, "people has no column person"),
    ('person_id = { kind = "int" }', "", 13, "no row would find its person"),
    ("visits.csv", "visit.csv", 11, "no such file"),
    ("[0, 9]", "[0, 9], kind = 'int'", None, ""),
    ("[0, 9]", "[0.5, 9], kind = 'int'", 16, "must be whole"),
]


def survey(folder: Path, text: str) -> list[tuple[int | None, str]]:
    unreadable_parquet(folder / "people.parquet", PEOPLE)
    (folder / "visits.csv").write_text("person_id,cost\n", encoding="utf-8")
    (folder / "survey.toml").write_text(text, encoding="utf-8")
    return [(line, what) for line, what, _ in check(folder / "survey.toml", schema)]


def test_a_survey_that_fits_its_files_is_well(tmp_path: Path) -> None:
    assert survey(tmp_path, SURVEY) == []


@pytest.mark.parametrize(("old", "new", "line", "words"), CHANGES)
def test_what_does_not_fit_is_told_with_its_line(old: str, new: str, line: int | None, words: str, tmp_path: Path) -> None:
    assert old in SURVEY
    found = survey(tmp_path, SURVEY.replace(old, new))
    if line is None:
        assert found == []
    else:
        assert [at for at, what in found if words in what] == [line], found


def test_problems_of_the_file_and_of_the_sources_come_together(tmp_path: Path) -> None:
    text = SURVEY.replace("epsilon = 1", "epsilon = 0").replace("agee", "x").replace("cost", "price")
    assert [line for line, _ in survey(tmp_path, text)] == [2, 16]
    shown = show_problems(check(tmp_path / "survey.toml", schema), "survey.toml")
    assert shown.startswith("survey.toml has 2 problems.\n    line 2: epsilon must be above 0")


def test_dates_are_bounded_by_dates() -> None:
    frame = pa.table({"d": pa.array([1], pa.date32())})
    numbers = Catalog({"t": Table(frame, unit="row", columns={"d": dt.between(0, 9)})}, Budget(1))
    assert "holds dates" in check(numbers, schema)[0][1]


def test_columns_that_differ_only_in_case_are_refused() -> None:
    twins = Catalog({"t": Table({"a": [1], "A": [2]}, unit="row")}, Budget(1))
    assert "differ only in case" in check(twins, schema)[0][1]


def test_a_missing_catalog_is_a_problem_not_a_failure(tmp_path: Path) -> None:
    assert "There is no catalog file" in check(tmp_path / "none.toml", schema)[0][1]


def test_a_kind_that_is_none_is_one_problem_and_the_word_for_it_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "ville": ["a"]}), tmp_path / "t.parquet")
    head = '[budget]\nepsilon = 1\n[tables.t]\nsource = "t.parquet"\nunit = "id"\nmax_rows = 1\n[tables.t.columns]\n'
    (tmp_path / "survey.toml").write_text(head + 'ville = { kind = "string" }\n', encoding="utf-8")
    ((line, what, fix),) = check(tmp_path / "survey.toml", schema)
    assert (line, what) == (8, "t.ville has no known kind.")
    assert fix.startswith('write kind = "text"; the kinds are int')
