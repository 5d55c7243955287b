"""What the rows of a catalog look like to the curator: exact numbers, and what to write where a declaration does not fit.

These numbers are private. They are for the curator's own screen: `dither check --data` prints them. They enter no log, ledger,
answer or note, and no other command shows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dither.catalog.text import key, quoted

MOSTLY = 0.98  # a column with this share of NULL is worth a warning
_SOME = 0.01  # as is this share of cells that do not fit


@dataclass(frozen=True)
class ColumnReport:
    """How the cells of a column fit what is declared. All counts are of rows."""

    column: str
    kind: str
    rows: int
    missing: int  # NULL or empty in the source
    unread: int  # something in the source, and NULL as the declared kind
    unlisted: int = 0  # none of the declared values
    outside: int = 0  # outside the declared bounds
    long: int = 0  # more characters than `longest`
    unread_example: str | None = None  # such a cell
    unlisted_example: str | None = None
    formats: tuple[str, ...] = ()  # formats of dates that all those cells have
    comma: bool = False  # those cells are numbers with a decimal comma
    blanks: bool = False  # without blanks around them, those cells fit

    def warnings(self, table: str) -> Iterator[str]:
        """Yields what does not fit, and what to write."""
        name = f"{table}.{self.column}"
        if self.rows and self.unread >= max(_SOME * self.rows, 1):
            yield f"{percent(self.unread, self.rows)} of {name} did not read as {self.kind}{self._remedy()}"
        elif self.rows and self.missing + self.unread >= MOSTLY * self.rows:
            yield f"{percent(self.missing + self.unread, self.rows)} of {name} is empty: leave it out, or look at the source"
        if self.unlisted >= max(_SOME * self.rows, 1):
            cell, such = shown(self.unlisted_example), "" if self.unlisted_example is None else ", such as "
            why = f"; for {cell} write trim = true" if self.blanks else f"{such}{cell if such else ''}: list what is public"
            yield f"{percent(self.unlisted, self.rows)} of {name} is none of its values, and is in no group{why}"
        if self.outside >= max(_SOME * self.rows, 1):
            yield f"{percent(self.outside, self.rows)} of {name} is outside its bounds, and is clipped in sums"
        if self.long:
            cells = "1 cell" if self.long == 1 else f"{self.long:,} cells"
            yield f"{cells} of {name}: longer than `longest`, so NULL. If they matter, write longest = 20000, or more"

    @property
    def serious(self) -> bool:
        """Whether hardly a cell fits."""
        return bool(self.rows) and max(self.missing + self.unread, self.unlisted, self.outside) >= MOSTLY * self.rows

    def _remedy(self) -> str:
        """Returns what to write so that unread cells are read."""
        cell = shown(self.unread_example)
        if self.formats:
            return f"; for {cell} write " + " or ".join(f"format = {quoted(format)}" for format in self.formats)
        if self.comma:
            return f'; for {cell} write decimal = ","'
        if self.blanks:
            return f"; for {cell} write trim = true"
        if self.kind == "bool":
            return f'; {cell} is no bool: declare it as text, kind = "text"'
        word = "..." if self.unread_example is None else quoted(self.unread_example[:40])
        return f"; if {cell} means NULL, write na = [{word}]; else declare another kind"


@dataclass(frozen=True)
class People:
    """What bounding leaves out. Counts are of people; a person is a unit of the catalog."""

    people: int
    usual: int  # the rows that 95 % of people have at most
    most: int  # the most rows of one person
    max_rows: int | None
    above: int  # people with more than max_rows rows
    beyond: int  # their rows beyond max_rows
    max_groups: int | None
    groups: tuple[tuple[str, int], ...] = ()  # for each column with values: people in more than max_groups of its groups


_MOST_ROWS = ("value", "people", "rows")


@dataclass(frozen=True)
class TableReport:
    """How the rows of a table fit its declaration."""

    table: str
    rows: int
    columns: tuple[ColumnReport, ...]
    unit: str | None = None
    without_unit: int = 0  # rows that belong to nobody, and are left out
    repeated: tuple[tuple[str, int], ...] = ()  # key columns: values in more than one row
    people: People | None = None
    most_rows: tuple[int, int, int] | None = None  # its value, people with more rows, and their rows that are left out
    unmatched: int = 0  # rows of people who have no row in the table that their unit points to
    parent: str | None = None  # that table

    def warnings(self) -> Iterator[str]:
        """Yields what does not fit, and what to write."""
        for column in self.columns:
            yield from column.warnings(self.table)
        if self.without_unit:
            share = percent(self.without_unit, self.rows)
            yield f"{share} of the rows of {self.table} belong to nobody and are left out: their {self.unit} leads to no person"
        if self.most_rows is not None and self.most_rows[1]:
            most, people, beyond = self.most_rows
            share = f"{beyond:,} of their rows are left out of every answer"
            yield f"most_rows = {most}: {people:,} people of {self.table} have more, and {share}"
        if self.unmatched:
            share, it = percent(self.unmatched, self.rows), self.parent
            yield f"{share} of the rows of {self.table} are of people who are not in {it}; they count, unless {it} is joined"
        for name, count in self.repeated:
            yield f"{count:,} values of {self.table}.{name} stand in more than one row, and it must be unique"

    @property
    def serious(self) -> bool:
        """Whether something must be corrected before anyone asks."""
        nobody = bool(self.rows) and self.without_unit >= MOSTLY * self.rows
        return bool(self.repeated) or nobody or any(column.serious for column in self.columns)

    def unquoted(self) -> TableReport:
        """Returns the report without any cell."""
        return replace(self, columns=tuple(replace(each, unread_example=None, unlisted_example=None) for each in self.columns))

    def notes(self) -> Iterator[str]:
        """Yields what bounding leaves out."""
        if self.people is None or not self.people.people:
            return
        who = self.people
        usual = "1 row" if who.usual == 1 else f"{who.usual:,} rows"
        yield f"{who.people:,} people; 95 % of them have at most {usual}, and one has {who.most:,}"
        if who.max_rows is not None and who.above:
            cut = f"{percent(who.beyond, self.rows)} of the rows are beyond it in a question without groups"
            yield f"max_rows = {who.max_rows}: {percent(who.above, who.people)} of people have more, and {cut}"
        for column, above in who.groups:
            if above:
                share = percent(above, who.people)
                yield f"max_groups = {who.max_groups}: {share} of people are in more groups by {column}"

    def as_data(self) -> dict[str, Any]:
        """Returns the report in plain values, without any cell: JSON is kept and sent on."""
        people = None
        if self.people is not None:
            people = {name: getattr(self.people, name) for name in People.__dataclass_fields__}
            people["groups"] = dict(self.people.groups)
        return {
            "table": self.table,
            "rows": self.rows,
            "without_unit": self.without_unit,
            "unmatched": self.unmatched,
            "repeated": dict(self.repeated),
            "most_rows": None if self.most_rows is None else dict(zip(_MOST_ROWS, self.most_rows, strict=True)),
            "people": people,
            "columns": [_column_data(column) for column in self.columns],
            "warnings": list(self.unquoted().warnings()),
        }


def _column_data(report: ColumnReport) -> dict[str, Any]:
    counts = ("column", "kind", "missing", "unread", "unlisted", "outside", "long")
    return {name: getattr(report, name) for name in counts}


HEAD = ("column", "kind", "empty", "not read", "not listed", "outside", "too long")


def cells(report: TableReport) -> list[list[str]]:
    """Returns the rows of the table to print: shares of the table's rows, blank where there are none."""
    counts = [(each.missing, each.unread, each.unlisted, each.outside, each.long) for each in report.columns]
    return [
        [key(each.column), each.kind, *(percent(count, report.rows) if count else "" for count in row)]
        for each, row in zip(report.columns, counts, strict=True)
    ]


def to_json(reports: Sequence[TableReport], refused: str = "") -> str:
    """Returns reports as JSON. `refused`: why the catalog does not open."""
    data = {"tables": [report.as_data() for report in reports], "refused": refused or None}
    return json.dumps(data, ensure_ascii=False, indent=2)


def percent(count: int, total: int) -> str:
    """Shows a share; neither 0 % nor 100 % if it is not exactly that.

    >>> percent(0, 7), percent(1, 3), percent(1, 10**6), percent(10**6 - 1, 10**6), percent(245, 10_000)
    ('0 %', '33 %', '<0.1 %', '>99.9 %', '2.5 %')
    """
    share = 100 * count / total if total else 0.0
    if count in (0, total):
        return f"{share:.0f} %"
    if share < 0.1:
        return "<0.1 %"
    return ">99.9 %" if share > 99.9 else f"{share:.2g} %" if share < 99 else f"{share:.1f} %"


def shown(cell: str | None) -> str:
    """Shows a cell in quotes, on one line and not too long; "such a cell" without one.

    >>> shown("12/1/2010 8:26"), shown("a\\n" + 99 * "b")
    ("'12/1/2010 8:26'", "'a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…'")
    """
    if cell is None:
        return "such a cell"
    plain = "".join(c if c.isprintable() else " " for c in cell[:41])
    return f"'{plain if len(plain) <= 40 else plain[:39] + '…'}'"
