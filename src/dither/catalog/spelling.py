"""Spells the settings in a fix as Python, for a catalog that was made in Python.

Rules of the catalog write their fixes as lines of a catalog file. The same words are arguments in Python, so these can be
translated:

    write trim = true.                                    write trim=True.
    write rows = { public = 100 }.                        write rows={"public": 100}.
    write age = { kind = "int" } under [tables.t.columns].   write "age": dt.column(kind="int") in columns of t.
    write encoding = "cp1252" under [tables.t.read].      write "encoding": "cp1252" in read of t.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dither.errors import CatalogError

_VALUE = r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|true\b|false\b|-?[0-9][0-9a-zA-Z_.:+-]*[0-9a-zA-Z]|[0-9]|N\b'
_NAME = r'[A-Za-z_]\w*|"(?:[^"\\]|\\.)*"'
_SETTING = re.compile(rf"({_NAME}) = ({_VALUE})")
_TABLE = re.compile(rf"({_NAME}) = \{{ ((?:{_NAME}) = (?:{_VALUE})(?:, (?:{_NAME}) = (?:{_VALUE}))*) \}}")
_DATE = re.compile(r"\b([0-9]{4})-([0-9]{2})-([0-9]{2})\b")
_MAPPINGS = ("rows", "caps", "unit", "read", "at_most")  # arguments of dt.Table that are mappings


def in_python(fix: str) -> str:
    """Returns a fix with its settings as Python.

    >>> in_python("write between = [1900-01-01, 2030-12-31].")
    'write between=[datetime.date(1900, 1, 1), datetime.date(2030, 12, 31)].'
    >>> in_python('write unit = "id" and max_rows = 1; or public = true.')
    'write unit="id" and max_rows=1; or public=True.'
    """
    inside = re.search(r"under (read\b|caps\b|\[tables\.\w+\.(read|caps)\])", fix) is not None
    text = _TABLE.sub(_table, fix)
    text = _SETTING.sub(_entry if inside else _argument, text)
    text = re.sub(r"(under|in) \[tables\.(\w+)\.(\w+)\]", r"in \3 of \2", text)
    text = re.sub(r"(under|in) \[privacy\]", "in dt.Catalog", text).replace("[budget]", "dt.Budget")
    return re.sub(r"\[tables\.\w+\]", "dt.Table", text)


def raised_in_python(error: CatalogError) -> CatalogError:
    """Returns the error of a catalog that was made in Python."""
    problems = [(line, what, fix if fix.parts else in_python(str(fix))) for line, what, fix in error.problems]
    return CatalogError(problems, diagnosis=error.diagnosis)


def _table(found: re.Match[str]) -> str:
    name, settings = found[1], found[2]
    if name in _MAPPINGS:
        return f"{name}={{{_SETTING.sub(_entry, settings)}}}"
    if name == "nodes":
        return f"nodes=dt.column({_SETTING.sub(_argument, settings)})"
    quoted = name if name.startswith('"') else f'"{name}"'
    return f"{quoted}: dt.column({_SETTING.sub(_argument, settings)})"


def _argument(found: re.Match[str]) -> str:
    return f"{found[1]}={_value(found[2])}"


def _entry(found: re.Match[str]) -> str:
    return f'"{found[1]}": {_value(found[2])}'


def _value(text: str) -> str:
    if text.startswith('"'):
        return text
    made: Callable[[re.Match[str]], str] = lambda day: f"datetime.date({int(day[1])}, {int(day[2])}, {int(day[3])})"  # noqa: E731
    return {"true": "True", "false": "False"}.get(text) or _DATE.sub(made, text)
