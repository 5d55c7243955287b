"""How the text of a source is read: encoding, lines to skip, blanks, words for NULL, decimal commas, formats of dates.

`Cells` says how one cell is read. It stands beside a column, or in `[tables.x.read]` for all columns of a table; a column's own
setting comes first. `Read` adds what concerns the file as a whole. Every setting is total: a cell that does not fit is NULL.

Catalog files and Python both go through `read_cells` and `read_source`, so that they mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dither.catalog.rules import Fault, Path, listed
from dither.text import did_you_mean

_Report = Callable[[str, str, str], None]

# What a directive of `format` matches. Names of months and days are English. %y: 69 to 99 are 19xx.
DIRECTIVES = {
    **dict.fromkeys("dmHIMS", "[0-9]{1,2}"),
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "j": "[0-9]{1,3}",
    "f": "[0-9]{1,6}",
    **dict.fromkeys("aAbB", "[A-Za-z]+"),
    "p": "[AaPp][Mm]",
    "%": "%",
}
_TIME = "HIMSfp"
_PIECES = re.compile(r"%(.?)|([^%]+)", re.DOTALL)
_MARKS = re.compile(r"[^A-Za-z0-9+\-\"]")
_ESCAPES = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "unicode-escape", "raw-unicode-escape", "undefined")
_MOST_LINES = 1000


@dataclass(frozen=True)
class Cells:
    """How a cell of text is read. None: not declared here."""

    format: tuple[str, ...] | None = None  # of dates and timestamps; the first that fits counts
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] | None = None  # words that mean NULL
    trim: bool | None = None  # remove blanks around the cell; a cell of blanks is NULL

    def over(self, other: Cells) -> Cells:
        """Returns these settings, and those of `other` where these say nothing.

        >>> Cells(trim=True).over(Cells(decimal=",", trim=False))
        Cells(format=None, decimal=',', thousands=None, na=None, trim=True)
        """
        mine = {part.name: getattr(self, part.name) for part in fields(self)}
        return replace(other, **{name: value for name, value in mine.items() if value is not None})

    def for_kind(self, kind: str) -> Cells:
        """Returns the settings that matter for a kind."""
        dates, numbers = kind in ("date", "timestamp"), kind in ("int", "real")
        return Cells(
            self.format or None if dates else None,
            self.decimal if numbers else None,
            self.thousands if numbers else None,
            self.na or None,
            self.trim or None,
        )


AS_IS = Cells()


@dataclass(frozen=True)
class Read:
    """How a source is read. The names of its fields are the settings of `[tables.x.read]`, together with those of Cells."""

    encoding: str = "utf-8"
    delimiter: str | None = None  # None: found in the header line
    quote: str = '"'  # "": cells are never quoted
    skip: int = 0  # lines above the header
    header: int = 1  # lines of the header; the first one has the names
    names: tuple[str, ...] | None = None  # the columns' names, instead of those in the header
    cells: Cells = AS_IS

    def given(self, parts: Iterable[str]) -> list[str]:
        """Returns those of the parts that differ from the default."""
        return [part for part in parts if getattr(self, part) != getattr(DEFAULT, part)]


DEFAULT = Read()
TEXT_FILE = ("encoding", "delimiter", "quote")  # settings of CSV files alone
LINES = ("skip", "header", "names")  # settings of CSV and Excel files
CELLS = tuple(part.name for part in fields(Cells))
SOURCE = (*TEXT_FILE, *LINES, *CELLS)
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def read_source(path: Path, written: Any) -> tuple[Read, list[Fault]]:
    """Reads the settings of a source. Returns them, and every fault."""
    name = ".".join(path[1:]) or path[-1]
    if not isinstance(written, Mapping):
        return DEFAULT, [Fault(path, f"{name} must hold named settings.", f"known are: {listed(SOURCE)}.")]
    faults = [
        Fault((*path, part), f"{name}.{part} is not known.", f"{did_you_mean(str(part), SOURCE)}Known are: {listed(SOURCE)}.")
        for part in written
        if part not in SOURCE
    ]

    def report(part: str, what: str, fix: str) -> None:
        faults.append(Fault((*path, part), f"{name}: {what}", fix))

    cells = read_cells(written, report)
    given = {part: written[part] for part in (*TEXT_FILE, *LINES) if written.get(part) is not None}
    for part, value in list(given.items()):
        wrong = _WRONG[part](value)
        if wrong:
            report(part, *wrong)
            del given[part]
    if "names" in given:
        given["names"] = tuple(given["names"])
    read = Read(**given, cells=cells)
    if read.header == 0 and read.names is None and "names" not in written:
        report("header", "a file without a header line does not name its columns.", 'write names = ["id", "age"] as well.')
    if read.quote and read.quote == read.delimiter:
        report("quote", "quote and delimiter are the same character.", 'leave quote out, or write quote = "".')
    return read, faults


def read_cells(written: Mapping[str, Any], report: _Report) -> Cells:
    """Reads the settings of cells among those of a column or a source, and reports their faults."""
    formats = _texts(written, "format", 'write format = "%d.%m.%Y".', report, one=True)
    words = _texts(written, "na", 'write na = ["NA", "-"].', report)
    trim = written.get("trim")
    if trim is not None and not isinstance(trim, bool):
        report("trim", "trim must be true or false.", "write trim = true.")
        trim = None
    for format in formats or ():
        for what, fix in format_faults(format):
            report("format", what, fix)
    decimal, thousands = (_mark(written, part, report) for part in ("decimal", "thousands"))
    if thousands is not None and thousands == (decimal or "."):
        fix = 'write decimal = "," as well.' if thousands == "." else "write two different characters."
        report("thousands", "decimal and thousands are the same character.", fix)
        thousands = None
    return Cells(formats, decimal, thousands, words, trim)


def has_time(formats: Iterable[str]) -> bool:
    """Whether a format reads the time of day, so that its column is a timestamp.

    >>> has_time(["%d.%m.%Y"]), has_time(["%m/%d/%Y %H:%M"])
    (False, True)
    """
    return any(letter in _TIME for format in formats for letter, _ in _PIECES.findall(format) if letter)


def format_faults(format: str) -> Iterator[tuple[str, str]]:
    """Yields (what, fix) for every fault of a format."""
    known = ", ".join(f"%{letter}" for letter in DIRECTIVES)
    letters = [letter for letter, text in _PIECES.findall(format) if not text]
    for letter in letters:
        if letter not in DIRECTIVES:
            yield f"%{letter} is not known in a format.", f"known are: {known}."
    if not {"Y", "y"} & set(letters):
        yield "the format has no year.", 'write %Y where the year stands, as in format = "%d.%m.%Y".'
    if "\0" in format or any("\ud800" <= letter <= "\udfff" for letter in format):
        yield "the format is not text that a database can hold.", 'write it as in format = "%d.%m.%Y".'


def format_pattern(format: str) -> str:
    """Returns the regular expression of the texts that a format reads, the same in Python and in RE2.

    >>> format_pattern("%d.%m.%Y %H:%M")
    '[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4} +[0-9]{1,2}:[0-9]{1,2}'
    """
    return "".join(DIRECTIVES[letter] if not text else _literal(text) for letter, text in _PIECES.findall(format))


def _literal(text: str) -> str:
    return re.sub(r" +|[\\^$.|?*+()\[\]{}]", lambda found: " +" if found[0][0] == " " else _one(found[0]), text)


def _one(mark: str) -> str:
    return f"\\{mark}" if mark in "\\^[]" else f"[{mark}]"


def _mark(written: Mapping[str, Any], part: str, report: _Report) -> str | None:
    """Reads a character that stands between digits."""
    value = written.get(part)
    if value is None:
        return None
    if (
        not isinstance(value, str)
        or len(value) != 1
        or not _MARKS.fullmatch(value)
        or (not value.isprintable() and value != "\u00a0")
    ):
        example = "," if part == "decimal" else "."
        report(part, f"{part} must be one character that is no letter, digit, sign or quote.", f'write {part} = "{example}".')
        return None
    return value


def _texts(written: Mapping[str, Any], part: str, fix: str, report: _Report, *, one: bool = False) -> tuple[str, ...] | None:
    """Reads a list of texts; `one`: or a single text."""
    value = written.get(part)
    if value is None:
        return None
    if one and isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        report(part, f"{part} must be {'text, or ' if one else ''}a list of texts.", fix)
        return None
    if any("\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text) for text in value):
        report(part, f"{part} has a text that a database cannot hold.", fix)
        return None
    return tuple(value)


def _wrong_encoding(value: Any) -> tuple[str, str] | None:
    fix = 'write encoding = "cp1252", "latin-1", "utf-16" or another name that Python knows.'
    if not isinstance(value, str) or value.lower() in _ESCAPES:
        return "the encoding is not known.", fix
    try:
        right = "a;b\n".encode(value).decode(value) == "a;b\n"
    except (LookupError, ValueError):
        right = False
    return None if right else ("the encoding is not known.", fix)


def _wrong_delimiter(value: Any) -> tuple[str, str] | None:
    right = isinstance(value, str) and len(value) == 1 and value not in '\r\n\0"'
    return None if right else ("the delimiter must be one character.", 'write delimiter = ";", or leave it out.')


def _wrong_quote(value: Any) -> tuple[str, str] | None:
    right = isinstance(value, str) and len(value) <= 1 and value not in ("\r", "\n", "\0", " ")
    return None if right else ("quote must be one character, or none.", 'write quote = "\'", or quote = "" if there are none.')


def _wrong_lines(value: Any) -> tuple[str, str] | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_LINES
    return None if right else (f"a number of lines must be whole, from 0 to {_MOST_LINES:,}.", "write how many lines, as in 1.")


def _wrong_names(value: Any) -> tuple[str, str] | None:
    fix = 'write names = ["id", "age"], with a name of its own for every column.'
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(name, str) and name for name in value):
        return "names must be a list of column names.", fix
    return None if len({name.casefold() for name in value}) == len(value) else ("names has one name twice.", fix)


_WRONG: dict[str, Callable[[Any], tuple[str, str] | None]] = {
    "encoding": _wrong_encoding,
    "delimiter": _wrong_delimiter,
    "quote": _wrong_quote,
    "skip": _wrong_lines,
    "header": _wrong_lines,
    "names": _wrong_names,
}
