"""Settings of [tables.x.read] and of columns: what is wrong, or in the wrong place, is refused with what to write."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.catalog.check import check
from dither.catalog.declare import read_column
from dither.catalog.file import parse
from dither.catalog.reading import DIRECTIVES, format_faults, format_pattern
from dither.engines.registry import read_schema
from dither.errors import CatalogError

HEAD = '[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "row"\n'
READ = {
    'encodng = "cp1252"': "did you mean encoding?",
    'encoding = "cp9999"': 'write encoding = "cp1252"',
    'encoding = "rot13"': 'write encoding = "cp1252"',
    'encoding = "unicode_escape"': 'write encoding = "cp1252"',
    "encoding = 1252": 'write encoding = "cp1252"',
    'delimiter = ";;"': 'write delimiter = ";"',
    'delimiter = ""': 'write delimiter = ";"',
    'quote = "<>"': 'write quote = "\'"',
    'delimiter = "\'"\nquote = "\'"': 'write quote = ""',
    "skip = -1": "write how many lines",
    "skip = true": "write how many lines",
    "header = 1.5": "write how many lines",
    "header = 0": 'write names = ["id", "age"] as well.',
    'names = "a"': 'write names = ["id", "age"]',
    'names = ["a", "A"]': "with a name of its own",
    "trim = 1": "write trim = true",
    'na = "-"': 'write na = ["NA", "-"]',
    "na = [1]": 'write na = ["NA", "-"]',
    'decimal = "comma"': 'write decimal = ","',
    'decimal = "1"': 'write decimal = ","',
    'thousands = "."': 'write decimal = "," as well.',
    'decimal = ","\nthousands = ","': "two different characters",
    'format = "d.m.Y"': "write %Y where the year stands",
    'format = "%d.%m.%Y %Q"': "known are: %d",
    'format = "%d.%m.%Y %z"': "known are: %d",
    'format = "%Y %"': "known are: %d",
    "format = 3": 'write format = "%d.%m.%Y"',
}


@pytest.mark.parametrize("written", READ)
def test_a_wrong_setting_of_a_source_is_refused_with_its_line(written: str) -> None:
    with pytest.raises(CatalogError) as refused:
        parse(f"{HEAD}[tables.t.read]\n{written}\n")
    (line, _, fix), *_ = refused.value.problems
    assert line is not None
    assert line >= 7
    assert READ[written] in str(fix)


COLUMN = {
    "kind = 'text', format = '%Y'": "leave format out, or write kind",
    "kind = 'int', format = '%Y'": "leave format out, or write kind",
    "values = ['a'], format = '%Y'": "leave format out",
    "kind = 'text', decimal = ','": "leave decimal out",
    "kind = 'date', thousands = ','": "leave thousands out",
    "encoding = 'cp1252'": "Known are:",
    "kind = 'timestamp', between = [0, 1]": "write dates without quotes",
    "between = [0, 1], format = '%d.%m.%Y'": "write dates without quotes",
    "kind = 'timestamp', between = [2020-01-01, 2021-01-01], step = 1": "leave step out",
    "kind = 'timestamp', between = [2021-01-01, 2020-01-01]": "write [",
}


@pytest.mark.parametrize("written", COLUMN)
def test_a_wrong_setting_of_a_column_is_refused(written: str) -> None:
    with pytest.raises(CatalogError) as refused:
        parse(f"{HEAD}[tables.t.columns]\nx = {{ {written} }}\n")
    assert COLUMN[written] in str(refused.value.problems[0][2])


@pytest.mark.parametrize("read", [{"encoding": "cp1252"}, {"delimiter": ";"}, {"skip": 1}, {"names": ["x"]}], ids=str)
def test_settings_of_files_are_refused_where_there_is_no_such_file(read: dict[str, Any], tmp_path: Path) -> None:
    frame = pa.table({"x": ["1"]})
    pq.write_table(frame, tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        with pytest.raises(CatalogError, match="is a setting of CSV") as refused:
            read_schema(source, dt.Table(source, unit="row", read=read).read)
        assert f"leave {next(iter(read))} out" in str(refused.value)
        with pytest.raises(CatalogError, match="is a setting of CSV"):
            dt.open(dt.Catalog({"t": dt.Table(source, unit="row", read=read)}, dt.Budget(epsilon=1)), ledger=":memory:")


def test_settings_for_text_are_refused_where_something_else_is_stored() -> None:
    frame = pa.table({"x": [datetime.date(2020, 1, 1)], "n": [1.5]})
    columns = {"x": dt.column(format="%d.%m.%Y"), "n": dt.column(na=["-"])}
    catalog = dt.Catalog({"t": dt.Table(frame, unit="row", columns=columns)}, dt.Budget(epsilon=1))
    assert sorted(what for _, what, _ in check(catalog, read_schema)) == [
        "t.n is stored as real, and na is for columns that are stored as text.",
        "t.x is stored as date, and format is for columns that are stored as text.",
    ]
    everywhere = dt.Table(frame, unit="row", columns={"x": dt.column()}, read={"na": ["-"], "format": "%d.%m.%Y", "trim": True})
    assert check(dt.Catalog({"t": everywhere}, dt.Budget(epsilon=1)), read_schema) == []


def test_wrong_settings_in_python_are_refused_too() -> None:
    with pytest.raises(CatalogError, match=r"read\.encodng is not known"):
        dt.Table("t.csv", unit="row", read={"encodng": "cp1252"})
    with pytest.raises(CatalogError, match="read must hold named settings"):
        dt.Table("t.csv", unit="row", read="cp1252")  # type: ignore[arg-type]
    with pytest.raises(CatalogError, match="the format has no year"):
        dt.column(format="%d.%m.")


def test_a_blank_before_a_name_is_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age, sex\n30, Male\n", encoding="utf-8")
    table = dt.Table(tmp_path / "t.csv", unit="row", columns={"sex": dt.values("Male", "Female")})
    ((_, what, fix),) = check(dt.Catalog({"t": table}, dt.Budget(epsilon=1)), read_schema)
    assert what == "t has no column sex."
    assert fix == (
        'did you mean " sex"? (it begins with a blank) Write trim = true under [tables.t.read] to remove blanks around names '
        'and cells. Its columns are: " sex", age.'
    )


def test_a_blank_before_a_name_is_shown_to_analysts(tmp_path: Path) -> None:
    table = dt.Table(pa.table({" sex": [" Male"]}), unit="row", columns={" sex": dt.values(" Male")})
    with (
        dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=1)), ledger=":memory:") as survey,
        pytest.raises(dt.DitherError, match=r'did you mean " sex"\? \(it begins with a blank\)'),
    ):
        survey.ask("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", epsilon=1)


@given(
    st.lists(st.sampled_from([*(f"%{letter}" for letter in DIRECTIVES), *"./- ()[]{}\\^$*+?|Tü年"]), max_size=6).map("".join)
)
def test_a_pattern_matches_what_its_format_writes(format: str) -> None:
    time = datetime.datetime(2011, 2, 3, 14, 5, 6, 789)
    assert not [what for what, _ in format_faults(format) if "not known" in what]
    assert re.fullmatch(format_pattern(format), time.strftime(format))


@given(st.text(max_size=8))
def test_any_format_is_read_or_refused(format: str) -> None:
    facts, faults = read_column(("column",), {"format": format})
    assert (facts is None) == bool(faults)
