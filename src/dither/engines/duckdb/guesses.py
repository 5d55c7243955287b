"""Guesses how a CSV file is written, for the curator who drafts a catalog: encoding, lines above the header, names, blanks, and
for each column its kind, decimal commas, formats of dates and words for NULL.

Unlike opening a file, this looks at rows: the first megabyte, at most a thousand of them. It is for the curator only, who
checks the draft. No cell is copied into it: words for NULL are those of a list.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dither.catalog.draft import Found
from dither.catalog.reading import format_pattern, has_time
from dither.engines.duckdb.cells import BLANKS
from dither.engines.duckdb.delimited import SEPARATORS

DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d %b %Y")
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_START = 1 << 20  # bytes to look at
_RECORDS = 1000
_MOST_ABOVE = 50  # lines above a header
_NAMED = 0.6  # the share of cells of a header that have a name
_PADDED = 0.01  # the share of rows with blanks around a cell from which they are removed
_MISSING = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "-", "--", "?", ".", "k. A.", "k.A.", "missing")
_WHOLE, _NUMBER = "-?(0|[1-9][0-9]{0,17})", r"-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?"
_LEADING_ZERO = "-?0[0-9]+"  # a code, such as 01234
_DAY, _MOMENT = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?"
_MARKS = ((".", ","), (",", ""), (",", "."), (",", " "), (".", "'"), (".", " "))  # decimal and thousands


def guess(file: str) -> Found:
    """Returns the settings of a CSV file that differ from the default, and those of its columns."""
    with gzip.open(file, "rb") if file.lower().endswith(".gz") else open(file, "rb") as stream:
        start = stream.read(_START)
    encoding = _encoding(start)
    text = start.decode(encoding or "utf-8-sig", errors="replace").removeprefix("\ufeff")
    read: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
    separator, records, place = _layout(text, cut=len(start) == _START)
    if not records:
        return Found(read, {})
    above, header = records[place]
    if above:
        read["skip"] = above
    line = next(itertools.islice(io.StringIO(text, newline=""), above, None), "")
    if separator != max(SEPARATORS, key=line.count):
        read["delimiter"] = separator
    rows = [cells for _, cells in records[place + 1 :]]
    if _padded(header, rows):
        read["trim"] = True
        header = [name.strip(BLANKS) for name in header]
    header = header[:-1] if len(header) > 1 and not header[-1] else header
    names = list(_distinct(header))
    if names != header:
        read["names"] = names
    full = [row for row in rows if len(row) >= len(names)]
    columns = {name: _column([row[number] for row in full]) for number, name in enumerate(names)}
    return Found(read, {name: found for name, found in columns.items() if found})


def _encoding(start: bytes) -> str | None:
    """Returns the encoding if it is not UTF-8."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if _decodes(start, "utf-8"):
        return None
    return "cp1252" if _decodes(start, "cp1252") else "latin-1"


def _decodes(start: bytes, encoding: str) -> bool:
    """Whether bytes decode, but for a character that is cut off at the end."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return False
    return True


# --- lines ------------------------------------------------------------------------------------------------------

_Records = list[tuple[int, list[str]]]  # the lines before a record, and its cells


def _layout(text: str, *, cut: bool) -> tuple[str, _Records, int]:
    """Returns the separator, the records, and which of them is the header. `cut`: the last record may be cut off."""
    tried = []
    for separator in SEPARATORS:
        records = _records(text, separator)
        records = records[:-1] if cut and 1 < len(records) < _RECORDS else records
        if not records:
            return ",", [], 0
        width, many = Counter(len(cells) for _, cells in records).most_common(1)[0]
        place = next((n for n, (_, cells) in enumerate(records) if _is_header(cells, width)), 0)
        wide = width > 1 and records[place][0] <= _MOST_ABOVE
        tried.append(((many / len(records) if wide else 0.0, len(records[place][1])), separator, records, place if wide else 0))
    _, separator, records, place = max(tried, key=lambda each: each[0])
    return separator, records, place


def _records(text: str, separator: str) -> _Records:
    """Returns the first records that are not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=False)
    found: _Records = []
    before = 0
    try:
        for cells in itertools.islice(reader, _RECORDS):
            if cells:
                found.append((before, cells))
            before = reader.line_num
    except csv.Error:  # such as a cell that is too long: what was read is enough
        pass
    return found


def _is_header(cells: Sequence[str], width: int) -> bool:
    named = sum(1 for cell in cells if cell.strip(BLANKS))
    return abs(len(cells) - width) <= 1 and named >= _NAMED * width


def _padded(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether blanks stand around names, or around cells of some rows."""
    padded = sum(1 for row in rows if any(cell != cell.strip(BLANKS) for cell in row))
    return any(name != name.strip(BLANKS) for name in header) or padded > _PADDED * len(rows)


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """Yields a name of its own for every column.

    >>> list(_distinct(["id", "score", "Score", ""]))
    ['id', 'score', 'Score_2', 'column_4']
    """
    taken: set[str] = {name.casefold() for name in names}
    seen: set[str] = set()
    for place, name in enumerate(names, 1):
        new = name or f"column_{place}"
        number = 2
        while new.casefold() in seen or (new != name and new.casefold() in taken):
            new, number = f"{name or 'column'}_{number}", number + 1
        seen.add(new.casefold())
        yield new


# --- columns ----------------------------------------------------------------------------------------------------


def _column(cells: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Returns the settings under which all cells of a column are read, or several to choose from; none for plain text."""
    filled = [cell for cell in (cell.strip(BLANKS) for cell in cells) if cell]
    missing = [word for word in _MISSING if word in filled]
    rest = [cell for cell in filled if cell not in missing]
    found = ([*_numbers(rest)][:1] or [*_dates(rest)]) if rest else []
    return tuple({**each, "na": missing} if missing else each for each in found)


def _numbers(cells: Sequence[str]) -> Iterator[dict[str, Any]]:
    if any(re.fullmatch(_LEADING_ZERO, cell) for cell in cells):
        return
    if _all(_WHOLE, cells):
        yield {"kind": "int"}
    if _all(_NUMBER, cells):
        yield {"kind": "real"}
    for decimal, thousands in _MARKS:
        whole = f"([0-9]{{1,3}}({re.escape(thousands)}[0-9]{{3}})+|[0-9]+)" if thousands else "[0-9]+"
        if _all(f"-?{whole}({re.escape(decimal)}[0-9]+)?", cells):
            kind = "real" if any(decimal in cell for cell in cells) else "int"
            marks = {"decimal": decimal} if decimal != "." and (kind == "real" or thousands == ".") else {}
            yield {"kind": kind, **marks, **({"thousands": thousands} if thousands else {})}


def _dates(cells: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the formats that read all cells: more than one if no day is above 12."""
    if _all(_DAY, cells) or _all(_MOMENT, cells):
        yield {"kind": "date" if _all(_DAY, cells) else "timestamp"}
        return
    for format in (day + time for time in TIMES for day in DAYS):
        if all(_reads(cell, format) for cell in cells):
            yield {"kind": "timestamp" if has_time([format]) else "date", "format": format}


def _all(pattern: str, cells: Sequence[str]) -> bool:
    return all(re.fullmatch(pattern, cell) for cell in cells)


def _reads(cell: str, format: str) -> bool:
    if not re.fullmatch(format_pattern(format), cell):
        return False
    try:
        datetime.datetime.strptime(cell, format)
    except ValueError:
        return False
    return True
