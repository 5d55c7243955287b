"""Holds one connection to PostgreSQL: read-only snapshots with fixed settings, and errors without the server's words.

A snapshot is a transaction that sees the data at one moment (REPEATABLE READ, READ ONLY). Settings that change what a statement
means, such as the time zone, are set for each transaction, so that a pooler between dither and the server changes nothing.

A connection that was lost while nothing was running is opened again. If it is lost during a statement, that one has failed.
Ctrl-C cancels the running statement on the server: the driver does that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import pq

from dither.engines.postgres.address import Address
from dither.errors import CatalogError
from dither.process import Origin

OLDEST = 150000  # the version of the server
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "search_path": "pg_catalog",
    "jit": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_min_messages": "error",
}
_SET = f"SELECT {', '.join(f'''set_config('{name}', '{value}', true)''' for name, value in _SETTINGS.items())}"
_ELSEWHERE = "This catalog was opened in another process, and a fork cannot use its connection."
Row = tuple[Any, ...]


class Connection:
    """One connection, used by one thread at a time. Its methods raise psycopg.Error."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._busy = threading.RLock()
        self._depth = 0
        self._origin = Origin()
        self._link = self._connected()
        ((self.schemas,),) = self._link.execute("SELECT current_schemas(false)::text[]").fetchall()  # where the role looks

    def _connected(self) -> psycopg.Connection[Row]:
        options: dict[str, Any] = {"autocommit": True, "cursor_factory": psycopg.RawCursor, "prepare_threshold": None}
        link = psycopg.connect(**self._address.options, **options)
        what, fix = "", ""
        if link.info.server_version < OLDEST:
            what, fix = f"The server {self._address.name} is older than PostgreSQL {OLDEST // 10000}.", "use a newer server."
        elif link.info.parameter_status("server_encoding") != "UTF8":
            what = f"The database {self._address.name} does not store its texts in UTF-8."
            fix = "copy the tables to a database whose encoding is UTF8."
        if what:
            link.close()
            raise CatalogError([(None, what, fix)])
        return link

    @property
    def version(self) -> int:
        """The version of the server, as in 180004."""
        return self._link.info.server_version

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Shows the data of one moment to all statements inside the block. Inside another snapshot, it is that one."""
        self._origin.check(_ELSEWHERE, "open the catalog in the process that asks.")
        with self._busy:
            if self._depth == 0:
                self._begin()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    with suppress(psycopg.Error):  # nothing was written, so nothing can be lost
                        self._link.execute("ROLLBACK")

    def _begin(self) -> None:
        if self._link.closed or self._link.info.transaction_status != pq.TransactionStatus.IDLE:
            self._reconnect()
        try:
            self._link.execute(_BEGIN)
        except psycopg.OperationalError:  # lost while nothing was running
            self._reconnect()
            self._link.execute(_BEGIN)
        self._link.execute(_SET)

    def _reconnect(self) -> None:
        self._link.close()
        self._link = self._connected()

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """Runs one statement in the snapshot, or in one of its own."""
        with self.snapshot():
            return self._link.execute(text.encode(), values).fetchall()

    def cancel(self) -> None:
        """Stops the running statement on the server, from another thread."""
        self._link.cancel_safe()

    def close(self) -> None:
        if self._origin.here:
            self._link.close()
