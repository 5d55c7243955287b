"""Where engines keep their tables. A test puts rows into a place and gets the engine that reads them, or a catalog's source.

The fixture `place` of tests/conftest.py runs a test in DuckDB and in PostgreSQL. SQLite is a place too, for tests that ask for
it: `@pytest.mark.parametrize("place", ["duckdb", "postgres", "sqlite"], indirect=True)`.

PostgreSQL is opened as a curator opens it, by the addresses of a catalog, and by a role that can only SELECT.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

import dither as dt
from dither.engines.base import Engine, Opened
from dither.engines.duckdb.dialect import DIALECT, secret_numbers
from dither.engines.reference import Choose, Reference
from dither.engines.registry import open_sources
from dither.engines.sql.choice import keyed_choice
from dither.engines.sql.dialect import Sql
from dither.query.work import Group, Work
from engines.sqlite.dialect import SQLiteDialect
from engines.sqlite.dialect import keyed_hash as sqlite_hash
from engines.sqlite.engine import SQLite
from engines.tables import KINDS, SECRET, arrow, by_key, in_duckdb
from ledger.postgres_server import Server

Rows = Sequence[Mapping[str, Any]]
Kinds = Mapping[str, Mapping[str, str]]  # of each table's columns
READER = "reader"
LIGHT = "--driver-java-options -XX:TieredStopAtLevel=1 pyspark-shell"  # Java that compiles little: no statement runs often here


class Place(Protocol):
    """An engine and somewhere to put its tables."""

    name: str

    def holds(self, text: str) -> bool:
        """Whether a text can be stored."""
        ...

    def engine(self, tables: Mapping[str, Rows], kinds: Kinds | None = None) -> Engine:
        """Stores the tables and returns the engine that reads them, until the next call."""
        ...

    def source(self, rows: Rows, kinds: Mapping[str, str]) -> Any:
        """Stores a table and returns what a catalog calls it."""
        ...

    def choose(self, work: Work, tables: Mapping[str, Rows], kinds: Kinds) -> Choose:
        """Returns how the engine chooses groups and values, for the reference engine."""
        ...

    def close(self) -> None: ...


def fit(place: Place, rows: Rows) -> list[dict[str, Any]]:
    """Returns the rows with texts that the place can hold: a zero character becomes another one."""

    def held(value: Any) -> Any:
        return value.replace("\0", "\x01") if isinstance(value, str) and not place.holds(value) else value

    return [{name: held(value) for name, value in row.items()} for row in rows]


def compare(
    place: Place, work: Work, tables: Mapping[str, Rows], kinds: Kinds | None = None
) -> tuple[dict[Any, Group], dict[Any, Group]]:
    """Returns the groups that the place's engine finds, and those of the reference engine with the same choice."""
    kinds = kinds or dict.fromkeys(tables, KINDS)
    held = {name: fit(place, rows) for name, rows in tables.items()}
    engine = place.engine(held, kinds)
    engine.prepare(work)
    reference = Reference(held, kinds, place.choose(work, held, kinds))
    return by_key(engine.run(work, SECRET)), by_key(reference.run(work, SECRET))


def sorted_by(hashed: Callable[[bytes, Any, Any], Any]) -> Choose:
    """Returns the choice of the candidates with the smallest hashes."""

    def choose(secret: bytes, unit: Any, candidates: list[Any], most: int) -> list[Any]:
        if len(candidates) <= most:
            return candidates
        return sorted(candidates, key=lambda each: hashed(secret, unit, each))[:most]

    return choose


class DuckDBPlace:
    """Arrow tables in one DuckDB connection. Its hash is its own, so DuckDB computes it for the reference engine as well."""

    name = "duckdb"

    def __init__(self) -> None:
        self._hashing = duckdb.connect(config={"threads": 1})

    def holds(self, text: str) -> bool:
        return True

    def engine(self, tables: Mapping[str, Rows], kinds: Kinds | None = None) -> Engine:
        return in_duckdb({name: arrow(rows, kinds[name] if kinds else KINDS) for name, rows in tables.items()})

    def source(self, rows: Rows, kinds: Mapping[str, str]) -> Any:
        return arrow(rows, kinds)

    def choose(self, work: Work, tables: Mapping[str, Rows], kinds: Kinds) -> Choose:
        """DuckDB hashes all candidates at once: it takes milliseconds for each query."""
        met: dict[type, dict[tuple[Any, ...], int]] = {}

        def note(secret: bytes, unit: Any, candidates: list[Any], most: int) -> list[Any]:
            for each in candidates:
                met.setdefault(_type(work, each), {})[unit, *each] = 0
            return candidates

        Reference(tables, kinds, note).run(work, SECRET)
        for found in met.values():
            found.update(zip(found, self._hashes(work, list(found)), strict=True))
        return sorted_by(lambda secret, unit, each: met[_type(work, each)][unit, *each])

    def _hashes(self, work: Work, rows: list[tuple[Any, ...]]) -> list[int]:
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        names = ["u", *(f"k{i}" for i in range(len(columns) - 1))]
        purpose = "values" if len(names) - 1 > len(work.keys) else "groups"
        self._hashing.register("candidates", pa.table(columns, names=names))
        texts = [self._numbered(work, place, name) for place, name in enumerate(names)]
        given = {name: value for name, value in secret_numbers(SECRET).items() if name.startswith(purpose)}
        hashed = DIALECT.keyed_hash(purpose, [Sql(text, "") for text in texts])
        return [row[0] for row in self._hashing.execute(f"SELECT {hashed} FROM candidates", given).fetchall()]

    @staticmethod
    def _numbered(work: Work, place: int, name: str) -> str:
        """Public texts are numbered before they are hashed."""
        if work.known is None or not 1 <= place <= len(work.known):
            return name
        return DIALECT.number_texts(name, work.known[place - 1]) or name

    def close(self) -> None:
        self._hashing.close()


def _type(work: Work, candidate: tuple[Any, ...]) -> type:
    """Returns the type of a candidate's value; that of None for a group."""
    return type(candidate[-1] if len(candidate) > len(work.keys) else None)


class SQLitePlace:
    """Tables in memory."""

    name = "sqlite"
    types: Mapping[str, str] = {
        "int": "INTEGER",
        "real": "REAL",
        "text": "TEXT",
        "bool": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    }

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")

    def holds(self, text: str) -> bool:
        return True

    def engine(self, tables: Mapping[str, Rows], kinds: Kinds | None = None) -> Engine:
        self._connection.close()
        self._connection = sqlite3.connect(":memory:")
        for name, rows in tables.items():
            self._store(self._connection, name, rows, kinds[name] if kinds else KINDS)
        return SQLite(self._connection, SQLiteDialect({name: name for name in tables}), kinds or dict.fromkeys(tables, KINDS))

    def source(self, rows: Rows, kinds: Mapping[str, str]) -> Any:
        raise NotImplementedError("tests of whole catalogs in SQLite write their own file")

    def _store(self, connection: sqlite3.Connection, name: str, rows: Rows, kinds: Mapping[str, str]) -> None:
        listed = ", ".join(f'"{column}" {self.types[kind]}' for column, kind in kinds.items())
        connection.execute(f'CREATE TABLE "{name}" ({listed})')
        values = [[written(row[column]) for column in kinds] for row in rows]
        connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" for _ in kinds)})', values)

    def choose(self, work: Work, tables: Mapping[str, Rows], kinds: Kinds) -> Choose:
        def hashed(secret: bytes, unit: Any, each: tuple[Any, ...]) -> str:
            purpose = b"groups" if len(each) == len(work.keys) else b"values"
            return sqlite_hash(secret + purpose, unit, *map(written, each))

        return sorted_by(hashed)

    def close(self) -> None:
        self._connection.close()


def written(value: Any) -> Any:
    """As SQLite stores it: days and times as ISO text."""
    return value.isoformat(*([" "] if hasattr(value, "hour") else [])) if hasattr(value, "isoformat") else value


class PostgresPlace:
    """Tables of a schema of their own. The engine's role may SELECT from them and do nothing else, not even make a temporary
    table."""

    name = "postgres"
    types: Mapping[str, str] = {
        "int": "bigint",
        "real": "double precision",
        "text": "text",
        "bool": "boolean",
        "date": "date",
        "timestamp": "timestamp",
    }

    def __init__(self, server: Server) -> None:
        self.server = server
        self.schema = f"place_{next(_schemas)}"
        self._starts = 0  # of the server, as of the connection below
        self._link: psycopg.Connection[Any] | None = None
        self._opened: dict[str, Opened] = {}
        self._names = itertools.count(1)

    @property
    def link(self) -> psycopg.Connection[Any]:
        """A connection of the owner of the tables. Tests may stop the server, so it is opened again."""
        if self._link is None or self._starts != self.server.starts:
            self._forget()
            settings = "-c synchronous_commit=off -c lock_timeout=20s -c client_min_messages=error"
            self._link = psycopg.connect(self.server.uri, autocommit=True, options=settings)
            self._starts = self.server.starts
            if not self._link.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER]).fetchall():
                self._link.execute(f"CREATE ROLE {READER} LOGIN".encode())
            self._link.execute(b"REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
            self._link.execute(self._make_schema.encode())
        return self._link

    @property
    def _make_schema(self) -> str:
        return (
            f"CREATE SCHEMA IF NOT EXISTS {self.schema}; SET search_path = {self.schema}, public;"
            f"GRANT USAGE ON SCHEMA {self.schema} TO {READER};"
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {self.schema} GRANT SELECT ON TABLES TO {READER}"
        )

    def run(self, statements: str) -> None:
        """Runs statements as the owner of the tables, in their schema."""
        self.link.execute(statements.encode())

    def empty(self) -> None:
        """Drops all that is in the schema."""
        self.run(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE; {self._make_schema}")

    def holds(self, text: str) -> bool:
        return "\0" not in text

    def address(self, table: str, role: str = READER, **parameters: str) -> str:
        """Returns what a catalog calls a table of the schema."""
        host = parse_qs(urlsplit(self.server.uri).query)["host"][0]
        quoted = table.replace('"', '""')
        given = {"host": host, **parameters, "table": f'{self.schema}."{quoted}"'}
        return f"postgresql://{role}@/postgres?" + "&".join(f"{name}={quote(value)}" for name, value in given.items())

    def engine(self, tables: Mapping[str, Rows], kinds: Kinds | None = None) -> Engine:
        kinds = kinds or dict.fromkeys(tables, KINDS)
        link, signature = self.link, repr((sorted(tables), kinds))
        if signature not in self._opened:
            self._open(signature, tables, kinds)
        with link.transaction():
            for name, rows in tables.items():
                stored = self._stored(signature, name)
                link.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(self.schema, stored)))
                self.fill(stored, rows, kinds[name])
        return self._opened[signature].engine

    def _stored(self, signature: str, name: str) -> str:
        return f"{name}_{list(self._opened).index(signature) if signature in self._opened else len(self._opened)}"

    def _open(self, signature: str, tables: Mapping[str, Rows], kinds: Kinds) -> None:
        places = {}
        for name in tables:
            stored = self._stored(signature, name)
            self.make(stored, kinds[name])
            columns = {
                column: dt.column(kind=kind, longest=10**6 if kind == "text" else None) for column, kind in kinds[name].items()
            }
            places[name] = dt.Table(self.address(stored), unit="row", columns=columns)
        self._opened[signature] = open_sources(dt.Catalog(places, dt.Budget(epsilon=1)))

    def make(self, table: str, kinds: Mapping[str, str]) -> None:
        """Makes an empty table."""
        columns = [sql.SQL("{} " + self.types[kind]).format(sql.Identifier(name)) for name, kind in kinds.items()]
        named, listed = sql.Identifier(self.schema, table), sql.SQL(", ").join(columns)
        self.link.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(named))
        self.link.execute(sql.SQL("CREATE UNLOGGED TABLE {} ({})").format(named, listed))

    def fill(self, table: str, rows: Rows, kinds: Mapping[str, str]) -> None:
        """Adds rows to a table."""
        named = sql.Identifier(self.schema, table)
        with self.link.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(named)) as copy:
            for row in rows:
                copy.write_row([row[name] for name in kinds])

    def source(self, rows: Rows, kinds: Mapping[str, str]) -> Any:
        table = f"table_{next(self._names)}"
        self.make(table, kinds)
        self.fill(table, fit(self, rows), kinds)
        return self.address(table)

    def choose(self, work: Work, tables: Mapping[str, Rows], kinds: Kinds) -> Choose:
        return keyed_choice

    def _forget(self) -> None:
        for opened in self._opened.values():
            opened.close()
        self._opened.clear()
        if self._link is not None:
            self._link.close()

    def close(self) -> None:
        self.run(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        self._forget()


class SparkPlace:
    """Temporary views of one session in this process: a real Spark, on Java."""

    name = "spark"

    def __init__(self, master: str = "local[2]") -> None:
        from dither.engines.spark.session import connect

        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", LIGHT)
        self.master = master
        self.session = connect(master)
        self.session.conf.set("spark.sql.shuffle.partitions", "2")
        self._folder = tempfile.TemporaryDirectory(prefix="dither-spark-")
        self._names = itertools.count(1)

    def holds(self, text: str) -> bool:
        return True

    def engine(self, tables: Mapping[str, Rows], kinds: Kinds | None = None) -> Engine:
        from dither.engines.spark.dialect import SparkDialect
        from dither.engines.spark.engine import Spark
        from dither.engines.spark.sources import upload

        kinds = kinds or dict.fromkeys(tables, KINDS)
        for name, rows in tables.items():
            upload(self.session, name, kinds[name], [[row[column] for column in kinds[name]] for row in rows])
        return Spark(self.session, SparkDialect({}), kinds)

    def source(self, rows: Rows, kinds: Mapping[str, str]) -> Any:
        return self.files(arrow(rows, kinds))

    def files(self, table: pa.Table, **options: Any) -> str:
        """Writes a Parquet file and returns what a catalog calls it."""
        path = Path(self._folder.name) / f"table_{next(self._names)}.parquet"
        pq.write_table(table, path, **options)
        return f"spark:{path}#{self.master}"

    def choose(self, work: Work, tables: Mapping[str, Rows], kinds: Kinds) -> Choose:
        return keyed_choice

    def close(self) -> None:
        from dither.engines.spark.session import disconnect

        disconnect(self.session, self.master)
        self._folder.cleanup()


def missing_for_spark() -> str:
    """Returns what this machine lacks for Spark; empty if nothing."""
    from dither.engines.spark.session import LEAST_JAVA, java_version

    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: make test-spark installs it"
    version = java_version()
    return "" if version is not None and version >= LEAST_JAVA else f"Java {LEAST_JAVA} or newer is not found"


_schemas = itertools.count(1)
