"""Opens the tables of a catalog in one PostgreSQL database.

Each table becomes a subselect of its declared columns in their kinds (columns.py), which the dialect prints wherever a question
names the table. So a question reaches what is declared only, and nothing is created in the database.

Views, foreign tables, policies that hide rows, and columns that are computed when they are read may themselves fail on a row.
They are read in full here, and behind OFFSET 0 everywhere, so that no condition of a question runs before their own.

The data may change at any time: `snapshot` in the catalog is the curator's label for a version of it. Changes of the schema are
noticed: columns, types, and the text of views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psycopg

from dither.catalog.reading import AS_IS, LINES, TEXT_FILE, Read
from dither.catalog.values import Catalog, Key, Table
from dither.engines.base import Constants, Progress
from dither.engines.opening import NOTHING, check_unique, completed, identifying, kinds_of, with_found
from dither.engines.postgres.address import Address
from dither.engines.postgres.columns import Reading, Stored, View, quoted, read_column
from dither.engines.postgres.connection import Connection
from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.postgres.engine import Postgres
from dither.errors import CatalogError
from dither.text import did_you_mean

# Its text is that of a view and of the policies that hide rows. `computes`: reading it may fail on a row by itself.
_RELATION = """
SELECT c.oid::bigint, n.nspname, c.relkind,
    concat(CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END, c.relrowsecurity, c.relforcerowsecurity,
        (SELECT string_agg(concat(p.polname, p.polcmd, pg_get_expr(p.polqual, c.oid)), ';' ORDER BY p.polname)
            FROM pg_policy p WHERE p.polrelid = c.oid),
        (SELECT string_agg(concat(i.indexrelid, i.indkey, i.indisvalid), ';' ORDER BY i.indexrelid)
            FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique),
        CASE WHEN c.relkind = 'r' THEN
            (SELECT string_agg(inhrelid::text, ';' ORDER BY inhrelid) FROM pg_inherits WHERE inhparent = c.oid) END),
    c.relkind IN ('v', 'f') OR c.relrowsecurity OR EXISTS (
        WITH RECURSIVE below AS (
            SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid
            UNION ALL SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.inhrelid)
        SELECT FROM below JOIN pg_class f ON f.oid = below.inhrelid WHERE f.relkind = 'f')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = ANY ($2::text[])
ORDER BY array_position($2::text[], n.nspname::text)
"""
_NAMES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = ANY ($1::text[])
"""
_COLUMNS = """
WITH RECURSIVE typed AS (
    SELECT attnum, attname, atttypid AS type, atttypmod AS modifier, to_jsonb(a)->>'attgenerated' AS generated
    FROM pg_attribute a WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE modifier END, generated
    FROM typed JOIN pg_type t ON t.oid = typed.type WHERE t.typtype = 'd')
SELECT attname, t.typname, t.typtype, n.nspname, modifier, generated, has_column_privilege($1::oid, attnum, 'SELECT')
FROM typed JOIN pg_type t ON t.oid = typed.type JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype <> 'd' ORDER BY attnum
"""
_UNIQUE = """
SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = $1::oid AND a.attname = $2 AND i.indnkeyatts = 1 AND i.indisunique AND i.indisvalid AND i.indimmediate
AND i.indpred IS NULL AND i.indexprs IS NULL
AND NOT EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent WHERE c.oid = $1::oid AND c.relkind = 'r')
"""  # the rows of children are read, too, and an index of the parent is not about them; one of a partitioned table is

_UNREACHABLE = (
    "see that the server runs, and that psql opens the same address; a password comes from PGPASSWORD, a service file or "
    ".pgpass."
)


@dataclass(frozen=True)
class Relation:
    """A table, view or foreign table of the database."""

    oid: int
    schema: str
    name: str
    kind: str  # as pg_class.relkind: r, p, v, m or f
    columns: Mapping[str, Stored]
    text: str  # of a view, and of policies that hide rows
    computes: bool  # reading it may fail on a row by itself

    @property
    def sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def kinds(self) -> dict[str, str]:
        return {name: column.kind for name, column in self.columns.items()}

    @property
    def stamp(self) -> str:
        """What changes with the schema."""
        return hashlib.sha256(repr((self.oid, self.kind, tuple(self.columns.values()), self.text)).encode()).hexdigest()


def connect(address: Address) -> Connection:
    """Connects, or raises a CatalogError without the driver's words, which may repeat parts of the address."""
    try:
        return Connection(address)
    except psycopg.Error:
        failed = CatalogError([(None, f"The database {address.name} cannot be reached.", _UNREACHABLE)])
    raise failed


def find(connection: Connection, address: Address) -> Relation:
    """Returns a table of the database, from its catalogs only."""
    *schema, name = address.table
    with connection.snapshot():
        found = connection.rows(_RELATION, (name, schema or connection.schemas))
        if not found:
            near = did_you_mean(name, (each for (each,) in connection.rows(_NAMES, (schema or connection.schemas,))))
            fix = f"{near}Name its schema as well, and see that the role may use it."
            raise CatalogError([(None, f"The database has no table {'.'.join(address.table)}.", fix)])
        oid, place, kind, text, computes = found[0]
        columns = {}
        for column, type, form, home, modifier, generated, readable in connection.rows(_COLUMNS, (oid,)):
            known = type if home == "pg_catalog" and form == "b" else "text" if form == "e" or type == "citext" else ""
            own = kind in "rpm"
            columns[column] = Stored(column, known, modifier, fixed=own, computed=generated == "v", readable=readable)
        return Relation(oid, place, name, kind, columns, text, computes)


def schema(source: str, read: Read) -> dict[str, str]:
    """Returns the column names and kinds of a table. Reads no row."""
    _refuse_settings(read)
    address = Address.of(source)
    connection = connect(address)
    try:
        return find(connection, address).kinds
    except psycopg.Error:
        failed = CatalogError([(None, f"The database {address.name} cannot be read.", _UNREACHABLE)])
    finally:
        connection.close()
    raise failed


def _refuse_settings(read: Read) -> None:
    given = [*read.given((*TEXT_FILE, *LINES)), *(["cells"] if read.cells != AS_IS else [])]
    if given:
        what = "Tables of PostgreSQL have no settings under read."
        raise CatalogError([(None, what, "leave them out; make a view that reads the text as it is meant.")])


@dataclass(frozen=True)
class Opened:
    """An open catalog."""

    catalog: Catalog
    engine: Postgres
    connection: Connection
    places: Mapping[str, tuple[Address, str]]  # of each table: where it is, and the stamp of its schema

    def unchanged(self) -> bool:
        """Whether the schema is still as it was when opened, and the server can be reached."""
        try:
            with self.connection.snapshot():
                return all(find(self.connection, address).stamp == stamp for address, stamp in self.places.values())
        except (psycopg.Error, CatalogError):
            return False

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()


# Called with each table when its view is known: the connection, the catalog, its name and its view.
Inspect = Callable[[Connection, Catalog, str, Mapping[str, Stored], View], None]


def open_catalog(catalog: Catalog, progress: Progress | None = None, inspect: Inspect | None = None) -> Opened:
    """Opens all tables in one connection, or names every fault in one error. Its text depends on no row."""
    addresses = _addresses(catalog)
    connection = connect(next(iter(addresses.values())))
    try:
        with connection.snapshot():
            return _Opening(catalog, connection, addresses).open(progress, inspect or (lambda *_: None))
    except BaseException as error:
        connection.close()
        if not isinstance(error, psycopg.Error):
            raise
    raise CatalogError([(None, "The tables of this catalog cannot be read.", _UNREACHABLE)])


def _addresses(catalog: Catalog) -> dict[str, Address]:
    """Returns where the tables are: all in one database."""
    addresses: dict[str, Address] = {}
    problems: list[tuple[int | None, str, Any]] = []
    for name, table in catalog.tables.items():
        if isinstance(table.source, Constants):
            continue
        try:
            _refuse_settings(table.read)
            addresses[name] = Address.of(table.source)
        except CatalogError as error:
            problems += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
    if problems:
        raise CatalogError(problems)
    first, *others = addresses.items()
    for name, address in others:
        if address.options != first[1].options:
            what = f"{first[0]} and {name} are in different databases, or have different users or settings."
            raise CatalogError([(None, what, "use one address for all tables, which differs in its table only.")])
    return addresses


class _Opening:
    """One opening, in one snapshot."""

    def __init__(self, catalog: Catalog, connection: Connection, addresses: Mapping[str, Address]) -> None:
        self._catalog, self._connection, self._addresses = catalog, connection, addresses
        self._relations: dict[str, Relation] = {}
        self._dialect = PostgresDialect({})

    def open(self, progress: Progress | None, inspect: Inspect) -> Opened:
        self._relations = self._find_all()
        uploaded = {name: table.source for name, table in self._catalog.tables.items() if name not in self._relations}
        schemas = {name: relation.kinds for name, relation in self._relations.items()}
        schemas |= {name: source.kinds for name, source in uploaded.items()}
        known = completed(self._catalog, schemas)
        self._check_rights(known)
        views = {name: self._view(known, name) for name in self._relations}
        self._dialect = PostgresDialect(views, {name: self._constants(source) for name, source in uploaded.items()})
        for name, relation in self._relations.items():
            self._try(name, known.tables[name], relation)
            inspect(self._connection, known, name, relation.columns, views[name])
        check_unique(known, self._doubled)
        known = replace(
            known, tables={name: with_found(table, partial(self._different, name)) for name, table in known.tables.items()}
        )
        places = {name: (self._addresses[name], relation.stamp) for name, relation in self._relations.items()}
        engine = Postgres(self._connection, self._dialect, kinds_of(known), progress)
        return Opened(known, engine, self._connection, places)

    def _find_all(self) -> dict[str, Relation]:
        found, problems = {}, []
        for name, address in self._addresses.items():
            try:
                found[name] = find(self._connection, address)
            except CatalogError as error:
                problems += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
        if problems:
            raise CatalogError(problems)
        return found

    def _check_rights(self, catalog: Catalog) -> None:
        problems: list[tuple[int | None, str, Any]] = []
        for name, relation in self._relations.items():
            declared = catalog.tables[name].columns
            hidden = [column for column in declared if not relation.columns[column].readable]
            problems += [
                (None, f"The role may not read {name}.{column}.", f"GRANT SELECT ON {relation.sql} TO the role.")
                for column in hidden
            ]
            problems += [
                (None, f"{name}.{column} has settings for text, and PostgreSQL's text is read as it is.", "leave them out.")
                for column, facts in declared.items()
                if facts.cells != AS_IS
            ]
        if problems:
            raise CatalogError(problems)

    def _view(self, catalog: Catalog, name: str) -> View:
        """Returns a table as questions see it."""
        table, relation, exact = catalog.tables[name], self._relations[name], identifying(catalog, name)
        read: dict[str, Reading] = {
            column: read_column(relation.columns[column], facts, exact=column in exact)
            for column, facts in table.columns.items()
        }
        if not _computes(table, relation):
            return View(relation.sql, read)
        names = ", ".join(map(quoted, table.columns))
        return View(f"(SELECT {names} FROM {relation.sql} OFFSET 0) AS stored", read, fenced=True)

    def _constants(self, source: Constants) -> str:
        """Prints the rows of a public table from elsewhere."""
        kinds = {**source.kinds} or {NOTHING: "int"}
        names = ", ".join(map(quoted, kinds))
        if not source.rows:
            nulls = ", ".join(f"NULL::{self._dialect.type(kind)} AS {quoted(name)}" for name, kind in kinds.items())
            return f"(SELECT {nulls} WHERE FALSE)"
        printed = (
            [self._constant(value, kind) for value, kind in zip(row, kinds.values(), strict=True)] for row in source.rows
        )
        rows = ", ".join(f"({', '.join(row)})" for row in printed)
        return f"(SELECT * FROM (VALUES {rows}) AS v({names}))"

    def _constant(self, value: Any, kind: str) -> str:
        if value is None:
            return f"NULL::{self._dialect.type(kind)}"
        return self._dialect.literal(float(value) if kind == "real" else value).text

    def _try(self, name: str, table: Table, relation: Relation) -> None:
        """Reads in full what is computed when it is read: it may fail on a row by itself."""
        if not _computes(table, relation):
            return
        columns = ", ".join(f"count({quoted(column)})" for column in table.columns) or "count(*)"
        try:
            self._connection.rows(f"SELECT {columns} FROM {self._dialect.table(name)}")
        except psycopg.Error:  # its text may quote a value
            failed = True
        else:
            failed = False
        if failed:
            fix = "let no row make the view fail: guard its divisions and casts."
            raise CatalogError([(None, f"{name} cannot be read: a row makes it fail.", fix)])

    def _doubled(self, name: str, column: str) -> int:
        """Returns how many values a column has more than once. A unique index of the column says that none has."""
        relation = self._relations.get(name)
        if relation is not None and relation.kind in "rp":
            ((indexes,),) = self._connection.rows(_UNIQUE, (relation.oid, column))
            if indexes:
                return 0
        held = quoted(column)
        rows = f"SELECT 1 FROM {self._dialect.table(name)} WHERE {held} IS NOT NULL GROUP BY {held} HAVING count(*) > 1"
        ((count,),) = self._connection.rows(f"SELECT count(*) FROM ({rows}) AS s")
        return int(count)

    def _different(self, name: str, column: str, most: int) -> list[Key]:
        rows = self._connection.rows(f"SELECT DISTINCT {quoted(column)} FROM {self._dialect.table(name)} LIMIT {most}")
        return [value for (value,) in rows]


def _computes(table: Table, relation: Relation) -> bool:
    """Whether reading the table computes something that may fail."""
    used = (relation.columns[column] for column in table.columns if column in relation.columns)
    return relation.computes or any(column.computed for column in used)
