"""The lines of a CSV file, one by one: its header, and whether every line is a row.

A CSV has no rows, only characters: a quote that one person's cell leaves open takes all lines up to the next quote with it. A
reader that makes something of every file would let one person's cell decide about others. So a file is looked through from
end to end, by the strict reader of Python's library, before its rows count as rows; DuckDB, which is faster and lets some of
it pass, must then have found as many.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from typing import IO

SEPARATORS = ",;\t|"


class LineError(Exception):
    """A line that is no row: its file and its number, for the curator only. The number says how many rows stand before it."""

    def __init__(self, file: str, number: int) -> None:
        super().__init__(file, number)
        self.file, self.number = file, number


def header(file: str) -> tuple[str, tuple[str, ...]]:
    """The separator and the names in the first line; nothing behind that line is decoded."""
    with _opened(file) as stream:
        first = next(iter(stream), b"").decode("utf-8-sig").rstrip("\r\n")
    separator = max(SEPARATORS, key=first.count)
    return separator, tuple(next(csv.reader([first], delimiter=separator), []))


def rows(files: Sequence[str], separator: str, width: int) -> int:
    """How many rows there are, or the first line that is none. Empty lines do not count, unless there is one column only; a
    comma too many at the end of a line does no harm."""
    return sum(_rows(file, separator, width) for file in files)


def _rows(file: str, separator: str, width: int) -> int:
    count = seen = 0
    with _opened(file) as stream:
        texts = (line.decode("utf-8" if seen else "utf-8-sig") for line in stream)
        lines = csv.reader(texts, delimiter=separator, strict=True, skipinitialspace=True)  # as DuckDB takes quotes
        try:
            for cells in lines:
                found = len(cells)
                if found == width or (found == width + 1 and not cells[-1]) or (not found and width == 1):
                    count += 1
                elif found:
                    raise LineError(file, seen + 1)
                seen = lines.line_num
        except (csv.Error, UnicodeDecodeError, OSError, EOFError):
            raise LineError(file, seen + 1) from None
    return count - 1  # the header


def _opened(file: str) -> IO[bytes]:
    return gzip.open(file, "rb") if file.lower().endswith(".gz") else open(file, "rb")  # type: ignore[return-value]
