"""SQLite as an engine: tables of one SQLite file, named as sqlite://file#table. Small, and a whole one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from dither.catalog.check import UNSUPPORTED, complete, schema_faults
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.values import Catalog
from dither.engines.base import Backend, Progress, check
from dither.engines.sql.relations import PURPOSES
from dither.engines.sql.work import Results, groups, statements
from dither.errors import CatalogError, EngineError
from dither.query.work import Group, Work
from engines.sqlite.dialect import FUNCTIONS, SQLiteDialect

PREFIX = "sqlite://"
KINDS = {"INTEGER": "int", "REAL": "real", "TEXT": "text", "BOOLEAN": "bool", "DATE": "date", "TIMESTAMP": "timestamp"}


class SQLite:
    """Runs a Work on one connection."""

    name = "sqlite"

    def __init__(self, connection: sqlite3.Connection, dialect: SQLiteDialect, kinds: Mapping[str, Mapping[str, str]]) -> None:
        self._connection, self._dialect, self._kinds = connection, dialect, kinds
        for name, (width, function) in FUNCTIONS.items():
            connection.create_function(name, width, function, deterministic=True)

    def schema(self, table: str) -> Mapping[str, str]:
        return self._kinds[table]

    def explain(self, work: Work) -> list[str]:
        return [statement.text for statement in self._statements(work)]

    def _statements(self, work: Work) -> Any:
        return statements(work, lambda table: list(self.schema(table).items()), self._dialect)

    def prepare(self, work: Work) -> None:
        check(work)
        self._statements(work)

    def run(self, work: Work, secret: bytes) -> list[Group]:
        found: Results = {}
        given = {purpose: secret + purpose.encode() for purpose in PURPOSES}
        try:
            for statement in self._statements(work):
                statement.read(self._connection.execute(statement.text, given).fetchall(), found)
            return groups(work, found)
        except sqlite3.Error as error:
            diagnosis = str(error)
        raise EngineError(diagnosis=diagnosis)


@dataclass(frozen=True)
class Opened:
    catalog: Catalog
    engine: SQLite
    connection: sqlite3.Connection
    file: str
    stamp: tuple[int, int]

    def unchanged(self) -> bool:
        return _stamp(self.file) == self.stamp

    def close(self) -> None:
        self.connection.close()


class SQLiteBackend(Backend):
    """Opens tables of one SQLite file."""

    name = "SQLite"

    def takes(self, source: Any) -> bool:
        return isinstance(source, str) and source.startswith(PREFIX)

    def schema(self, source: Any, read: Read = DEFAULT) -> dict[str, str]:
        file, table = _parts(source)
        with closing(_connected(file)) as connection:
            return _kinds(connection, table)

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Opened:
        places = {name: _parts(table.source) for name, table in catalog.tables.items()}
        if len({file for file, _ in places.values()}) > 1:
            raise CatalogError([(None, "The tables are in different SQLite files.", "put them into one.")])
        file = next(iter(places.values()))[0]
        connection, stamp = _connected(file), _stamp(file)
        try:
            schemas = {name: _kinds(connection, table) for name, (_, table) in places.items()}
            known = complete(catalog, schemas) if not (faults := schema_faults(catalog.tables, schemas)) else catalog
            if faults:
                raise CatalogError([(None, fault.what, fault.fix) for fault in faults])
            kinds = {name: {c: facts.kind or "" for c, facts in table.columns.items()} for name, table in known.tables.items()}
            _check_kinds(kinds, schemas)
            dialect = SQLiteDialect({name: table for name, (_, table) in places.items()})
            _check_keys(connection, known, dialect)
            return Opened(known, SQLite(connection, dialect, kinds), connection, file, stamp)
        except BaseException:
            connection.close()
            raise


def _check_kinds(kinds: Mapping[str, Mapping[str, str]], schemas: Mapping[str, Mapping[str, str]]) -> None:
    """A toy reads columns as they are stored."""
    for name, columns in kinds.items():
        for column, kind in columns.items():
            if schemas[name][column] != kind:
                raise CatalogError([(None, f"{name}.{column} is stored as {schemas[name][column]}.", "declare it so.")])


def _check_keys(connection: sqlite3.Connection, catalog: Catalog, dialect: SQLiteDialect) -> None:
    keys = {(name, table.key) for name, table in catalog.tables.items() if table.key}
    keys |= {table.unit.references for table in catalog.tables.values() if table.unit and table.unit.references}
    for name, column in keys:
        held = dialect.identifier(column)
        twice = f"SELECT 1 FROM {dialect.table(name)} WHERE {held} IS NOT NULL GROUP BY {held} HAVING count(*) > 1 LIMIT 1"
        if connection.execute(twice).fetchall():
            raise CatalogError([(None, f"{name}.{column} is not unique.", "keep one row for each.")])


def _parts(source: str) -> tuple[str, str]:
    file, _, table = source.removeprefix(PREFIX).partition("#")
    return file, table


def _connected(file: str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    except sqlite3.Error:
        raise CatalogError([(None, f"{file} cannot be opened.", "look at the path.")]) from None


def _kinds(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", [table]).fetchall()
    if not rows:
        raise CatalogError([(None, f"there is no table {table}.", "look at its name.")])
    return {name: KINDS.get(declared.upper(), UNSUPPORTED) for name, declared in rows}


def _stamp(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns
