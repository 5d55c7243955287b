"""Connects to a PostgreSQL ledger: its address, its connection, and its errors.

The address is postgresql://user:password@host/database#schema. Messages and names show only host, database and schema. The
driver's own messages may repeat other parts of the address, so they are never shown.

A message holds several statements, which the server parses once per connection. It is a pipeline with one sync at its end: the
server runs the statements in order up to the first that fails, and skips the rest. This uses the driver's documented lower
level (psycopg.pq). Its cursors take several times as long as the server on such a message, while others wait for the lock.
"""

from __future__ import annotations

import hashlib
import re
import select
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result

from dither.errors import LedgerError, NoLedgerError
from dither.ledger.stores import postgres_sql

SCHEMA = "dither"
# Notices a vanished machine within two minutes instead of hours. Options in the address override these.
PATIENCE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
MAYBE = "perhaps the price of the question, which may have been written"


@dataclass(frozen=True)
class Address:
    """The address of a ledger. `options` holds the password, so it is never printed.

    >>> Address.of("postgresql://me:secret@db.example:5433/survey#year_2026")
    Address(name='postgresql://db.example:5433/survey#year_2026', schema='year_2026')
    """

    name: str
    schema: str
    options: dict[str, str | int | None] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        base, _, schema = url.partition("#")
        schema = schema or SCHEMA
        try:
            parts: dict[str, str | int | None] = dict(conninfo_to_dict(base))
        except psycopg.Error:
            parts = {}
        is_schema = re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) and not schema.startswith("pg_")
        if not parts or not is_schema or not base.startswith(("postgresql://", "postgres://")):
            # Do not show the part after '#' either: an unescaped # in a password puts half of it there.
            fix = "write postgresql://user:password@host/database#schema; in a password # is %23, @ is %40 and / is %2F; "
            fix += "a schema has small letters, digits and _."
            raise LedgerError("The ledger's address is not one of a PostgreSQL database.", fix=fix)
        host = str(parts.get("host") or parts.get("hostaddr") or "localhost")
        port = f":{parts['port']}" if parts.get("port") else ""
        database = str(parts.get("dbname") or parts.get("user") or "")
        options = {**PATIENCE, "application_name": "dither", **parts, "client_encoding": "UTF8"}
        return cls(f"postgresql://{host}{port}/{database}#{schema}", schema, options)

    def connect(self) -> Wire:
        try:
            link = psycopg.connect(**self.options, autocommit=True)  # type: ignore[arg-type]
            try:
                link.execute(postgres_sql.SESSION)
            except BaseException:
                link.close()
                raise
        except psycopg.Error:
            fix = "see that the server runs, and that psql opens the same address with the same password."
            raise LedgerError(f"The ledger {self.name} cannot be reached.", fix=fix) from None
        return Wire(link)


def is_refused(error: psycopg.Error) -> bool:
    """Returns whether the server answered with an error: it is still there and has rolled back the transaction."""
    return error.diag.severity_nonlocalized == "ERROR"


def is_lost(error: psycopg.Error) -> bool:
    """Returns whether the connection was lost, so that it is unknown what the server did last."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not is_refused(error)


def unknown_outcome(name: str) -> LedgerError:
    """Returns the error for a commit that the server did not acknowledge. Such a commit must not be retried."""
    what = f"The connection to the ledger {name} was lost while an entry was being written. Nothing was released."
    fix = "ask again when the server is back; `dither history` shows whether the charge was written."
    return LedgerError(what, fix=fix, charged=MAYBE)


def failure(name: str, error: psycopg.Error) -> LedgerError:
    """Returns the error for a transaction that wrote nothing. Its text depends on the SQLSTATE, never on the message."""
    state = error.sqlstate or ""
    if is_lost(error):
        return LedgerError(
            f"The connection to the ledger {name} was lost before anything was written.",
            fix="ask again when the server is back.",
        )
    if state in ("42P01", "3F000"):
        return NoLedgerError(name)
    for start, what, fix in _REASONS:
        if state.startswith(start):
            return LedgerError(f"The ledger {name} {what}", fix=fix)
    return LedgerError(
        f"The ledger {name} could not be used (SQLSTATE {state or 'none'}).",
        fix="see the database server's log; entries already there are safe.",
    )


_REASONS = (
    ("55P03", "is locked by another transaction.", "ask again; if it stays so, look for a hanging session on the server."),
    ("57014", "is locked by another transaction.", "ask again; if it stays so, look for a hanging session on the server."),
    ("25006", "is read-only.", "use the primary server and a role whose transactions may write."),
    ("53100", "cannot grow: the server's disk is full.", "make room on the server's disk."),
    ("53", "is on a server without resources left.", "free memory, disk or connections on the server."),
    (
        "42501",
        "may not be used by this role.",
        "grant the role usage of the schema, and select, insert and update on its tables.",
    ),
    ("23505", "already holds an entry of this number.", "run dither verify: something else has written to it."),
)


Link = psycopg.Connection[tuple[Any, ...]]
Value = str | int | Sequence[str]
INERROR = pq.TransactionStatus.INERROR


class Statement(NamedTuple):
    """A statement with $1, $2, … and their values."""

    sql: bytes
    values: tuple[Value, ...] = ()


class Result(NamedTuple):
    status: str  # the server's command tag: "COMMIT", "INSERT 0 1"
    rows: list[tuple[Any, ...]]  # texts and None, whatever the column's type


class Wire:
    """One connection, used by one thread at a time. Raises psycopg.Error."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._server = link.pgconn
        self._names: dict[bytes, bytes] = {}
        self._tries = 0

    @property
    def closed(self) -> bool:
        return self.link.closed

    @property
    def failed(self) -> bool:
        """Whether the server is in a failed transaction."""
        return self.link.info.transaction_status == INERROR

    @property
    def busy(self) -> bool:
        """Whether the server is in a transaction."""
        return not self.closed and self.link.info.transaction_status != pq.TransactionStatus.IDLE

    def close(self) -> None:
        self.link.close()

    def run(self, *statements: Statement) -> list[Result]:
        """Sends the statements in one message. Returns a result for each, or raises the error of the first that failed.

        After an error from the server the connection can be used again. After any other interruption it is closed, because
        results could no longer be matched to statements."""
        encoded = [(sql, [_encode(value) for value in values]) for sql, values in statements]
        names = dict(self._names)
        try:
            expected = self._send(names, encoded)
            results = list(self._results())
            self._server.exit_pipeline_mode()
        except BaseException:
            self.link.close()
            raise
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                self._tries += 1  # the server may have prepared some of the new ones: give them other names
                raise error_from_result(result)
        self._names = names
        return [_decode(result) for result, is_expected in zip(results, expected, strict=True) if is_expected]

    def _send(self, names: dict[bytes, bytes], encoded: list[tuple[bytes, list[bytes]]]) -> list[bool]:
        """Sends the message. Returns for each result to come whether it belongs to a statement of the caller."""
        expected = []
        self._server.enter_pipeline_mode()
        for sql, values in encoded:
            if sql not in names:  # just before its use: BEGIN must come before anything that the server looks up
                names[sql] = self._name(sql)
                self._server.send_prepare(names[sql], sql)
                expected.append(False)
            self._server.send_query_prepared(names[sql], values)
            expected.append(True)
        self._server.pipeline_sync()
        while self._server.flush():
            self._wait(sending=True)
        return expected

    def _name(self, sql: bytes) -> bytes:
        """Returns a name that depends on the statement's text. Behind a proxy others may have used the connection: their names
        must not be ours, and the server refuses a name that exists."""
        return f"dither_{hashlib.sha256(sql).hexdigest()[:32]}_{self._tries}".encode()

    def _results(self) -> Iterable[pq.abc.PGresult]:
        while True:
            while self._server.is_busy():
                self._wait()
            result = self._server.get_result()
            if result is None:  # separates the results of two statements
                if self._server.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the connection was lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return
            else:
                yield result

    def _wait(self, sending: bool = False) -> None:
        """Waits until the server has sent something, or can take more."""
        if hasattr(select, "poll"):
            ready = select.poll()
            ready.register(self._server.socket, select.POLLIN | (select.POLLOUT if sending else 0))
            ready.poll()
        else:
            select.select([self._server.socket], [self._server.socket] if sending else [], [])
        self._server.consume_input()


def _encode(value: Value) -> bytes:
    if isinstance(value, (str, int)):
        text = str(value)
    else:
        parts = (part.replace("\\", "\\\\").replace('"', '\\"') for part in value)
        text = "{{{}}}".format(",".join(f'"{part}"' for part in parts))
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        encoded = b"\0"
    if b"\0" in encoded:  # the driver would cut the text there
        raise psycopg.DataError("this is no text that PostgreSQL holds")
    return encoded


def _decode(result: pq.abc.PGresult) -> Result:
    columns = range(result.nfields)
    rows = [tuple([_text(result.get_value(row, column)) for column in columns]) for row in range(result.ntuples)]
    return Result((result.command_status or b"").decode(), rows)


def _text(value: bytes | None) -> str | None:
    """Decodes a text. Bytes that are not UTF-8 are replaced, and then do not match their seal or hash."""
    return None if value is None else value.decode("utf-8", "replace")
