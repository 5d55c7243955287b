"""Counts how the rows of a catalog fit what it declares, for the curator only: `dither check --data`.

Each table is read once, while its rows are there as they are stored, by the expressions through which questions read them. A
second reading counts rows per person, and a third one is needed only for columns with many cells that are not read: it tries
formats on them. Nothing is kept: catalog/report.py prints it, and no other command asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from duckdb import DuckDBPyConnection
from duckdb import Error as DuckDBError

from dither.catalog.report import ColumnReport, People, TableReport
from dither.catalog.values import Catalog, ColumnFacts
from dither.engines.base import Progress
from dither.engines.duckdb.dialect import DIALECT, identifier, literal
from dither.engines.duckdb.files import SqlSource
from dither.engines.duckdb.guesses import DAYS, TIMES
from dither.engines.duckdb.sources import Sources, open_catalog
from dither.engines.duckdb.views import stored_and_read
from dither.engines.opening import identifying
from dither.engines.sql.facts import listed, outside, owned, unique_columns, unmatched
from dither.errors import CatalogError

_WORTH = 0.01  # the share of unread cells from which formats are tried


def report_data(catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
    """Returns a report of each table that can be read, and the error if the catalog does not open."""
    found: dict[str, TableReport] = {}

    def inspect(connection: DuckDBPyConnection, known: Catalog, name: str, source: SqlSource) -> None:
        found[name] = _table(connection, known, name, source)
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


def _table(connection: DuckDBPyConnection, catalog: Catalog, name: str, source: SqlSource) -> TableReport:
    table, exact = catalog.tables[name], identifying(catalog, name)
    parts, columns = ["count(*)"], stored_and_read(table, source, exact)
    for column, (stored, read, short) in columns.items():
        parts += _counts(stored, read, short, source.types[column], table.columns[column])
    ((rows, *counts),) = connection.execute(f"SELECT {', '.join(parts)} FROM {source.sql}").fetchall()
    reports = []
    for place, (column, (stored, _, _)) in enumerate(columns.items()):
        facts = table.columns[column]
        report = ColumnReport(column, str(facts.kind), rows, *counts[place * 7 : place * 7 + 7])
        reports.append(_with_remedy(connection, report, stored, source, facts))
    unit = table.unit.column if table.unit else None
    nobody = next((each.missing + each.unread + each.long for each in reports if each.column == unit), 0)
    unique = {column: columns[column][1] for column in unique_columns(catalog, name)}
    left_out = (
        None
        if table.most_rows is None or unit is None
        else (table.most_rows, *_beyond(connection, columns[unit][1], table.most_rows, source))
    )
    return TableReport(name, rows, tuple(reports), unit, nobody, _repeated(connection, unique, source), most_rows=left_out)


def _counts(stored: str, read: str, short: str, type: str, facts: ColumnFacts) -> list[str]:
    """Prints the counts of one column, in the order of ColumnReport: missing, unread, unlisted, outside, long, examples."""
    text = type == "VARCHAR"
    missing = f"({stored} IS NULL OR trim({stored}) = '')" if text else f"({stored} IS NULL)"
    null = f"({read} IS NULL)"
    if facts.kind == "real":
        missing = f"({missing} OR isnan({stored}))" if type in ("FLOAT", "DOUBLE") else missing
        null = f"({null} OR isnan({read}))"
    unread, fits = f"(NOT {missing} AND {null})", f"(NOT {null} AND NOT {missing})"
    unlisted = f"({fits} AND NOT {listed(read, facts, DIALECT)})"
    return [
        *(f"count(*) FILTER ({each})" for each in (missing, unread, unlisted)),
        f"count(*) FILTER ({fits} AND {outside(read, facts, DIALECT)})",
        f"count(*) FILTER (NOT coalesce({short}, TRUE))",
        f"min(CAST({stored} AS VARCHAR)) FILTER ({unread})",
        f"mode(CAST({stored} AS VARCHAR)) FILTER ({unlisted})",
    ]


def _beyond(connection: DuckDBPyConnection, unit: str, most: int, source: SqlSource) -> tuple[int, int]:
    """Returns how many people have more rows than this, and how many rows more."""
    each = f"SELECT count(*) AS n FROM (SELECT {unit} AS u FROM {source.sql}) WHERE u IS NOT NULL GROUP BY u HAVING n > {most}"
    ((people, rows),) = connection.execute(f"SELECT count(*), coalesce(sum(n - {most}), 0) FROM ({each})").fetchall()
    return int(people), int(rows)


def _repeated(connection: DuckDBPyConnection, keys: dict[str, str], source: SqlSource) -> tuple[tuple[str, int], ...]:
    """Returns the key columns with values in more than one row, and how many such values they have."""
    found = []
    for column, read in keys.items():
        groups = f"SELECT 1 FROM (SELECT {read} AS k FROM {source.sql}) WHERE k IS NOT NULL GROUP BY k HAVING count(*) > 1"
        ((count,),) = connection.execute(f"SELECT count(*) FROM ({groups})").fetchall()
        found += [(column, int(count))] if count else []
    return tuple(found)


# --- what to write ----------------------------------------------------------------------------------------------


def _with_remedy(
    connection: DuckDBPyConnection, report: ColumnReport, stored: str, source: SqlSource, facts: ColumnFacts
) -> ColumnReport:
    """Returns the report with what would let most of the cells fit. Reads the column again if many do not."""
    text = source.types[report.column] == "VARCHAR"
    if not text or max(report.unread, report.unlisted) < max(_WORTH * report.rows, 1):
        return report
    filled = f"SELECT {stored} AS c FROM {source.sql} WHERE trim({stored}) <> ''"
    if report.unlisted > report.unread:
        inside = _share(connection, filled, [listed("trim(c)", facts, DIALECT)])
        outside = _share(connection, filled, [listed("c", facts, DIALECT)])
        return replace(report, blanks=inside[0] > max(outside[0], 0.5))
    if facts.kind in ("date", "timestamp"):
        tried = [day + time for day in DAYS for time in (TIMES if facts.kind == "timestamp" else TIMES[:1])]
        shares = _share(connection, filled, [f"try_strptime(trim(c), {literal(each).text}) IS NOT NULL" for each in tried])
        best = max(shares)
        return replace(report, formats=tuple(each for each, n in zip(tried, shares, strict=True) if n == best > 0.5)[:2])
    if facts.kind in ("int", "real"):
        number = "regexp_full_match(trim(c), '-?[0-9.]*,[0-9]+')"
        commas, trimmed = _share(connection, filled, [number, "TRY_CAST(trim(c) AS DOUBLE) IS NOT NULL AND trim(c) <> c"])
        return replace(report, comma=commas > 0.1, blanks=trimmed > 0.5)
    return report


def _share(connection: DuckDBPyConnection, cells: str, conditions: Sequence[str]) -> list[float]:
    """Returns the shares of cells `c` for which each condition holds."""
    counts = ", ".join(f"count(*) FILTER ({each})" for each in conditions)
    ((rows, *found),) = connection.execute(f"SELECT count(*), {counts} FROM ({cells})").fetchall()
    return [count / max(rows, 1) for count in found]


# --- people -----------------------------------------------------------------------------------------------------


def _with_people(opened: Sources, report: TableReport) -> TableReport:
    """Returns the report with what bounding leaves out, and with rows that lead to no person."""
    table = opened.catalog.tables[report.table]
    if table.unit is None:
        return report
    rows, unit = owned(opened.catalog, report.table, identifier, identifier)
    most, groups = table.max_rows or 1, table.max_groups
    named = [name for name, facts in table.columns.items() if facts.values is not None and groups is not None]
    columns = [(f"t.{identifier(name)}", table.columns[name]) for name in named]
    distinct = "".join(
        f", count(DISTINCT {x}) FILTER ({listed(x, facts, DIALECT)}) AS g{i}" for i, (x, facts) in enumerate(columns)
    )
    each = f"SELECT {unit} AS u, count(*) AS n{distinct} FROM {rows} GROUP BY u"
    above = "".join(f", count(*) FILTER (g{place} > {groups})" for place in range(len(named)))
    heavy = f"coalesce(max(n), 0), count(*) FILTER (n > {most}), coalesce(sum(greatest(n - {most}, 0)), 0)"
    nobody = "(SELECT coalesce(sum(n), 0) FROM e WHERE u IS NULL)"
    nobody += f", {unmatched(opened.catalog, report.table, identifier, identifier)}"
    counts = f"""WITH e AS MATERIALIZED ({each})
        SELECT {nobody}, count(*), coalesce(quantile_disc(n, 0.95), 0), {heavy}{above} FROM e WHERE u IS NOT NULL"""
    try:
        ((lost, strange, people, usual, heaviest, over, beyond, *more),) = opened.connection.execute(counts).fetchall()
    except DuckDBError:  # such as too little memory: the rest of the report stands
        return report
    found = People(people, usual, heaviest, table.max_rows, over, int(beyond), groups, tuple(zip(named, more, strict=True)))
    parent = table.unit.references[0] if table.unit.references else None
    nobodys = max(report.without_unit, int(lost))
    return replace(report, without_unit=nobodys, unmatched=int(strange), parent=parent, people=found)
