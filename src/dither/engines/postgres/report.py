"""Counts how the rows of a catalog fit what it declares, for the curator only: `dither check --data` and `dither init`.

Each table is read once, by the expressions through which questions read it, and once more for rows per person. Nothing is kept:
catalog/report.py prints it, and no other command asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import psycopg

from dither.catalog.report import ColumnReport, People, TableReport
from dither.catalog.values import Budget, Catalog, ColumnFacts, Table
from dither.engines.base import Places, Progress
from dither.engines.postgres.columns import Stored, View, quoted, short_text
from dither.engines.postgres.connection import Connection
from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.postgres.sources import Opened, open_catalog
from dither.engines.sql.facts import StoredKeys, listed, outside, owned, unique_columns, unmatched
from dither.errors import CatalogError

_DIALECT = PostgresDialect({})  # for constants
_COUNTS = 7  # of each column


def report_data(catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
    """Returns a report of each table that can be read, and the error if the catalog does not open."""
    found: dict[str, TableReport] = {}

    def inspect(connection: Connection, known: Catalog, name: str, stored: Mapping[str, Stored], view: View) -> None:
        found[name] = _table(connection, known, name, stored, view)
        if progress is not None:
            progress(len(found) / (len(catalog.tables) + 1))

    try:
        opened = open_catalog(catalog, inspect=inspect)
    except CatalogError as error:
        return tuple(found.values()), error
    try:
        return tuple(_with_people(opened, report) for report in found.values()), None
    finally:
        opened.close()


@contextmanager
def stored_keys(places: Places) -> Iterator[StoredKeys]:
    """Opens the key columns of some tables: by name, the source, how it is read and the kind of each column."""
    tables = {
        name: Table(source, unit="row", columns={column: ColumnFacts(kind=kind) for column, kind in kinds.items()}, read=read)
        for name, (source, read, kinds) in places.items()
    }
    opened = open_catalog(Catalog(tables, Budget(1)))
    try:
        yield StoredKeys(opened.connection.rows, opened.engine.dialect.table, quoted)
    finally:
        opened.close()


def _table(connection: Connection, catalog: Catalog, name: str, stored: Mapping[str, Stored], view: View) -> TableReport:
    table, parts = catalog.tables[name], ["count(*)"]
    for column, facts in table.columns.items():
        parts += _counts(stored[column], view.columns[column].text, facts)
    ((rows, *counts),) = connection.rows(f"SELECT {', '.join(parts)} FROM {view.source}")
    reports = [
        ColumnReport(column, str(facts.kind), rows, *counts[place * _COUNTS : (place + 1) * _COUNTS])
        for place, (column, facts) in enumerate(table.columns.items())
    ]
    unit = table.unit.column if table.unit else None
    nobody = next((each.missing + each.unread + each.long for each in reports if each.column == unit), 0)
    keys = {column: view.columns[column].text for column in unique_columns(catalog, name)}
    repeated = tuple((column, count) for column, read in keys.items() if (count := _repeated(connection, read, view)))
    return TableReport(name, rows, tuple(reports), unit, nobody, repeated)


def _counts(stored: Stored, read: str, facts: ColumnFacts) -> list[str]:
    """Prints the counts of one column, in the order of ColumnReport: missing, unread, unlisted, outside, long, examples."""
    column, null = quoted(stored.name), f"({read} IS NULL)"
    text = f"{column}::text"
    missing = f"({column} IS NULL OR btrim({text}) = '')" if stored.kind == "text" else f"({column} IS NULL)"
    if stored.kind == "real":
        missing = f"({missing} OR {column} = 'NaN')"
        null = f"({null} OR {read} = 'NaN')" if facts.kind == "real" else null
    long = f"NOT coalesce({short_text(stored, facts)}, TRUE)"
    unread, fits = f"(NOT {missing} AND {null} AND NOT ({long}))", f"(NOT {null} AND NOT {missing})"
    unlisted = f"({fits} AND NOT {listed(read, facts, _DIALECT)})"
    return [
        *(f"count(*) FILTER (WHERE {each})" for each in (missing, unread, unlisted)),
        f"count(*) FILTER (WHERE {fits} AND {outside(read, facts, _DIALECT)})",
        f"count(*) FILTER (WHERE {long})",
        f"min({text}) FILTER (WHERE {unread})",
        f"mode() WITHIN GROUP (ORDER BY {text}) FILTER (WHERE {unlisted})",
    ]


def _repeated(connection: Connection, read: str, view: View) -> int:
    """Returns how many values of a key column are in more than one row."""
    groups = f"SELECT 1 FROM (SELECT {read} AS k FROM {view.source}) AS s WHERE k IS NOT NULL GROUP BY k HAVING count(*) > 1"
    ((count,),) = connection.rows(f"SELECT count(*) FROM ({groups}) AS s")
    return int(count)


def _with_people(opened: Opened, report: TableReport) -> TableReport:
    """Returns the report with what bounding leaves out, and with rows that lead to no person."""
    table = opened.catalog.tables[report.table]
    if table.unit is None:
        return report
    rows, unit = owned(opened.catalog, report.table, opened.engine.dialect.rows, quoted)
    most, groups = table.max_rows or 1, table.max_groups
    named = [name for name, facts in table.columns.items() if facts.values is not None and groups is not None]
    columns = [(f"t.{quoted(name)}", table.columns[name]) for name in named]
    tests = [f"count(DISTINCT {x}) FILTER (WHERE {listed(x, facts, _DIALECT)})" for x, facts in columns]
    distinct = "".join(f", {test} AS g{place}" for place, test in enumerate(tests))
    each = f"SELECT {unit} AS u, count(*) AS n{distinct} FROM {rows} GROUP BY {unit}"
    above = "".join(f", count(*) FILTER (WHERE g{place} > {groups})" for place in range(len(named)))
    heavy = f"coalesce(max(n), 0), count(*) FILTER (WHERE n > {most}), coalesce(sum(greatest(n - {most}, 0)), 0)"
    usual = "coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY n), 0)"
    nobody = "(SELECT coalesce(sum(n), 0) FROM e WHERE u IS NULL)"
    nobody += f", {unmatched(opened.catalog, report.table, opened.engine.dialect.rows, quoted)}"
    counts = f"WITH e AS MATERIALIZED ({each}) SELECT {nobody}, count(*), {usual}, {heavy}{above} FROM e WHERE u IS NOT NULL"
    try:
        ((lost, unknown, people, median, heaviest, over, beyond, *more),) = opened.connection.rows(counts)
    except psycopg.Error:  # such as too little memory: the rest of the report stands
        return report
    found = People(people, median, heaviest, table.max_rows, over, int(beyond), groups, tuple(zip(named, more, strict=True)))
    parent = table.unit.references[0] if table.unit.references else None
    nobodys = max(report.without_unit, int(lost))
    return replace(report, without_unit=nobodys, unmatched=int(unknown), parent=parent, people=found)
