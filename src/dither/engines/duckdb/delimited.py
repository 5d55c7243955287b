"""Reads CSV files with Python's strict reader: the header, the number of rows, and the rows themselves.

In a CSV, an open quote in one person's cell swallows all lines up to the next quote, so a tolerant reader would let one
person's cell change the rows of others. So every file is read strictly from end to end, and a line that is not a row raises
LineError.
Lines end with a line feed, or with a carriage return alone if the first line does. A character that the encoding cannot read
is a fault of its line.

`batches` decodes while it reads, a few thousand rows at a time: for encodings, quotes and headers that DuckDB's reader lacks.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from dither.catalog.reading import Read
from dither.engines.duckdb.cells import BLANKS

SEPARATORS = ",;\t|"
_ROWS, _CHARACTERS = 65_536, 1 << 24  # the most in one batch
_START = 1 << 20  # the longest first line
DAMAGED = (OSError, EOFError, zlib.error)  # what a file raises that cannot be read, or not be unpacked
_UNREADABLE = "\udfff"  # stands for bytes that do not decode; no decoder returns it
_ERRORS = "dither-unreadable"
codecs.register_error(_ERRORS, lambda error: (_UNREADABLE, getattr(error, "end", 0)))


class LineError(Exception):
    """A line that is not a row. Its file and number are for the curator only: the number depends on the rows before it."""

    def __init__(self, file: str, number: int) -> None:
        super().__init__(file, number)
        self.file, self.number = file, number


class HeaderError(Exception):
    """The header cannot be read."""


def header(file: str, read: Read) -> tuple[str, tuple[str, ...]]:
    """Returns the separator and the columns' names. Uses the header alone, never a row."""
    usual = "\t" if ".tsv" in file.lower()[-7:] else ","
    if read.header == 0:
        return read.delimiter or usual, read.names or ()
    try:
        with _opened(file, read) as stream:
            first = next(itertools.islice(stream, read.skip, None), "")
            separator = read.delimiter or max(SEPARATORS, key=first.count)
            names = next(_cells(itertools.chain([first], stream), read, separator, blanks=False), []) if first else []
    except (*DAMAGED, csv.Error, ValueError):
        raise HeaderError from None
    if any(_UNREADABLE in name for name in names):
        raise HeaderError
    trimmed = [name.strip(BLANKS) for name in names] if read.cells.trim else names
    if len(trimmed) > 1 and not trimmed[-1]:  # as at the end of every line
        trimmed = trimmed[:-1]
    return separator, read.names or tuple(trimmed)


def ends_with_returns(file: str, read: Read) -> bool:
    """Whether lines end with a carriage return alone, as old Macs wrote them. Uses the first line alone."""
    try:
        with _decoded(file, read, "\n") as stream:
            first = stream.readline(_START)
    except (*DAMAGED, UnicodeError):
        return False
    if read.quote and not read.skip:  # a title above the header is no CSV
        mark = re.escape(read.quote)
        first = re.sub(f"{mark}[^{mark}]*({mark}|$)", "", first)
    return re.search(r"\r(?!\n)", first) is not None


def rows(files: Sequence[str], read: Read, separator: str, width: int) -> int:
    """Returns the number of rows, or raises LineError at the first line that is not a row. Empty lines do not count, unless
    there is only one column. One extra comma at the end of a line is allowed."""
    return sum(1 for file in files for _ in _rows(file, read, separator, width))


def batches(
    files: Sequence[str], read: Read, separator: str, names: Sequence[str], wanted: Sequence[str]
) -> Iterator[pa.Table]:
    """Yields the rows as text, some thousands at a time, with the wanted columns only. An empty cell is NULL."""
    places = [names.index(name) for name in wanted]
    found: list[list[str | None]] = [[] for _ in places]
    size = 0
    for file in files:
        for cells in _rows(file, read, separator, len(names), blanks=bool(read.cells.trim)):
            for column, place in zip(found, places, strict=True):
                cell = cells[place] if cells else ""
                column.append(cell or None)
                size += len(cell)
            if len(found[0]) == _ROWS or size > _CHARACTERS:
                yield _table(wanted, found)
                found, size = [[] for _ in places], 0
    yield _table(wanted, found)


def _table(names: Sequence[str], columns: Sequence[Sequence[str | None]]) -> pa.Table:
    return pa.table({name: pa.array(column, pa.large_string()) for name, column in zip(names, columns, strict=True)})


def _rows(file: str, read: Read, separator: str, width: int, *, blanks: bool = True) -> Iterator[list[str]]:
    """Yields the cells of every row; an empty list for an empty row of one column. `blanks`: a quote after blanks begins a
    quoted cell, as in DuckDB's reader, and the blanks are left out."""
    seen = read.skip
    try:
        with _opened(file, read) as stream:
            lines = _Lines(itertools.islice(stream, read.skip, None))
            for number, cells in enumerate(_cells(lines, read, separator, blanks=blanks)):
                count = len(cells)
                if number >= read.header:
                    if count == width or (count == width + 1 and not cells[-1]) or (not count and width == 1):
                        yield cells
                    elif count:
                        raise LineError(file, seen + 1)
                seen = read.skip + lines.count
    except (csv.Error, UnicodeError, *DAMAGED):
        raise LineError(file, seen + 1) from None


class _Lines:
    """Counts lines, and refuses those that do not decode."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if _UNREADABLE in line:
                raise UnicodeError
            self.count += 1
            yield line


def _cells(lines: Iterator[str] | _Lines, read: Read, separator: str, *, blanks: bool) -> Iterator[list[str]]:
    return csv.reader(
        lines,
        delimiter=separator,
        quotechar=read.quote or None,
        quoting=csv.QUOTE_MINIMAL if read.quote else csv.QUOTE_NONE,
        strict=True,
        skipinitialspace=blanks,
    )


@contextmanager
def _opened(file: str, read: Read) -> Iterator[IO[str]]:
    with _decoded(file, read, "\r" if ends_with_returns(file, read) else "\n") as stream:
        yield stream


def _decoded(file: str, read: Read, newline: str) -> IO[str]:
    name = codecs.lookup(read.encoding).name
    encoding = "utf-8-sig" if name == "utf-8" else name
    if file.lower().endswith(".gz"):
        return gzip.open(file, "rt", encoding=encoding, errors=_ERRORS, newline=newline)
    return open(file, encoding=encoding, errors=_ERRORS, newline=newline)
