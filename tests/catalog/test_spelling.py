"""Fixes for a catalog that was made in Python are Python; those for a file are TOML."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.catalog.spelling import in_python
from dither.errors import CatalogError

FIXES = [
    ("write trim = true.", "write trim=True."),
    ("write rows = { public = N } for it.", 'write rows={"public": N} for it.'),
    (
        'write age = { kind = "int", between = [0, 120] } under [tables.t.columns].',
        'write "age": dt.column(kind="int", between=[0, 120]) in columns of t.',
    ),
    ("Write trim = true under [tables.t.read] to remove blanks.", 'Write "trim": True in read of t to remove blanks.'),
    ('say under read how it is written: encoding = "cp1252".', 'say under read how it is written: "encoding": "cp1252".'),
    ("write max_rows = 20 or more under [tables.t.caps].", 'write "max_rows": 20 or more in caps of t.'),
    ('write neighbours = "replace" under [privacy].', 'write neighbours="replace" in dt.Catalog.'),
    ('write analysts = ["ana", "ben"], or leave it out.', 'write analysts=["ana", "ben"], or leave it out.'),
    ("write epsilon = 1, or another.", "write epsilon=1, or another."),
    ("write delta = 1e-6.", "write delta=1e-6."),
    ('write format = "%d = %m".', 'write format="%d = %m".'),
    ("write between = [1900-01-01, 1900-01-31].", "write between=[datetime.date(1900, 1, 1), datetime.date(1900, 1, 31)]."),
    ("keep one of the two.", "keep one of the two."),
]


@pytest.mark.parametrize(("toml", "python"), FIXES)
def test_settings_are_spelled_as_python(toml: str, python: str) -> None:
    assert in_python(toml) == python


WRONG: list[dict[str, Any]] = [
    {"trim": "yes"},
    {"decimal": "12"},
    {"na": "NA"},
    {"format": 7},
    {"longest": 0},
    {"between": (1, "x")},
    {"thousands": "."},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_no_fix_of_a_column_in_python_is_toml(wrong: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as caught:
        dt.column(**wrong)
    for _, _, fix in caught.value.problems:
        assert not re.search(r"\w = |= true|\[tables", str(fix).partition("; in Python")[0]), fix


def catalog(source: Any, **more: Any) -> dt.Catalog:
    return dt.Catalog({"t": dt.Table(source, unit="row", columns={"x": dt.column(**more)})}, dt.Budget(epsilon=1))


def test_opening_speaks_the_language_of_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("x,ä\n1,2\n".encode("cp1252"))
    with pytest.raises(CatalogError, match=re.escape('"encoding": "cp1252"')):
        dt.open(catalog(tmp_path / "t.csv"), ledger=":memory:")
    (tmp_path / "c.toml").write_text('[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "row"\n', encoding="utf-8")
    with pytest.raises(CatalogError, match=re.escape('encoding = "cp1252"')):
        dt.open(tmp_path / "c.toml", ledger=":memory:")


def test_every_setting_in_python_parses() -> None:
    for _, python in FIXES:
        for code in re.findall(r"(\w+=(?:True|\[[^\]]*\]|\"[^\"]*\"))", python):
            ast.parse(f"f({code})")
