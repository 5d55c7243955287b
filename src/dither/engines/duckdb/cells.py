"""Prints how text cells are read by the settings of a catalog: blanks, words for NULL, formats of dates, decimal commas.

Every expression is total. A regular expression decides first whether a cell has the declared form, because readers are more
generous than people expect: DuckDB reads 'epoch' by the format %d.%m.%Y, and the year 47 in 24.10.47; without thousands, 1.234
would be 1234. A cell of another form is NULL, also if it reads as a number or date without the settings.

    trim        blanks around the cell (also tabs, line ends and no-break spaces); a cell of blanks is NULL
    na          NULL if the cell, trimmed if declared so, is one of the words
    format      the first format that fits
    decimal     digits, groups of three digits between thousands marks, then the decimal mark and digits; or an exponent
"""

from __future__ import annotations

import re

from dither.catalog.reading import Cells, format_pattern
from dither.catalog.values import ColumnFacts, Table
from dither.engines.duckdb.dialect import DIALECT, literal

BLANKS = " \t\r\n\v\f\u00a0\u202f"
_LONGEST = 200  # bytes of a cell with a number or a date
_SPACES = " \u00a0\u202f"  # one stands for all, as the mark of thousands


def settings(table: Table, facts: ColumnFacts) -> Cells:
    """Returns the settings that matter for a column: its own, else the source's."""
    return facts.cells.over(table.read.cells).for_kind(facts.kind or "text")


def cleaned(column: str, cells: Cells) -> str:
    """Prints the text of a cell without blanks and words for NULL."""
    text = f"nullif(trim({column}, {literal(BLANKS).text}), '')" if cells.trim else column
    if not cells.na:
        return text
    words = ", ".join(literal(word).text for word in cells.na)
    return f"(CASE WHEN {text} NOT IN ({words}) THEN {text} END)"


def is_formed(cells: Cells) -> bool:
    """Whether the settings say in which form a number or date is written."""
    return bool(cells.format or cells.decimal or cells.thousands)


def formed(text: str, kind: str, cells: Cells, *, exact: bool = False) -> str:
    """Prints a cell of text in its kind, by the format or the marks of the settings. `exact`: different numbers stay different,
    so only whole numbers in their usual spelling are read, as in views.py."""
    bare = f"trim({text}, {literal(BLANKS).text})"
    found = _date(bare, kind, cells.format) if cells.format else _number(bare, kind, cells, exact)
    return f"(CASE WHEN strlen({text}) <= {_LONGEST} THEN {found} END)"


def _date(text: str, kind: str, formats: tuple[str, ...]) -> str:
    tries = [
        f"(CASE WHEN {_matches(text, format_pattern(format))} THEN try_strptime({text}, {literal(format).text}) END)"
        for format in formats
    ]
    first = tries[0] if len(tries) == 1 else f"coalesce({', '.join(tries)})"
    return first if kind == "timestamp" else f"TRY_CAST({first} AS {DIALECT.types[kind]})"


def _number(text: str, kind: str, cells: Cells, exact: bool) -> str:
    decimal, thousands = cells.decimal or ".", cells.thousands
    point, group = _class(decimal), _class(_SPACES if thousands in tuple(_SPACES) else thousands or "")
    digits = f"([0-9]{{1,3}}({group}[0-9]{{3}})+|[0-9]+)" if thousands else "[0-9]+"
    pattern = f"[+-]?({digits}({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]{{1,3}})?"
    plain = f"regexp_replace({text}, {literal(group).text}, '', 'g')" if thousands else text
    plain = f"replace({plain}, {literal(decimal).text}, '.')" if decimal != "." else plain
    read = f"TRY_CAST({plain} AS {DIALECT.types[kind]})"
    usual = f" AND TRY_CAST({read} AS VARCHAR) = {plain}" if exact else ""
    return f"(CASE WHEN {_matches(text, pattern)}{usual} THEN {read} END)"


def _class(characters: str) -> str:
    return f"[{re.escape(characters)}]"


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {literal(pattern).text})"
