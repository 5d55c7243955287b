"""One transaction of the PostgreSQL store, between its lock and its commit."""

from __future__ import annotations

import os
from typing import Any

import psycopg

from dither.errors import LedgerError
from dither.ledger.postgres_link import Link, failure
from dither.ledger.postgres_sql import Statements, written
from dither.ledger.store import Row


class Work:
    """Between the lock and the commit. Writes are kept here until the commit; reads see them."""

    def __init__(self, name: str, statements: Statements, link: Link, known: dict[str, str | None]) -> None:
        self._name = name
        self._sql = statements
        self._link = link
        self._known = known
        self._pid = os.getpid()
        self.closed = False
        self.states: dict[str, str] = {}
        self.rows: list[Row] = []

    def get(self, key: str) -> str | None:
        if key in self.states:
            return self.states[key]
        if key not in self._known:
            found = self._read(self._sql.get, written(key))
            self._known[key] = found[0][0] if found else None
        return self._known[key]

    def put(self, key: str, value: str) -> None:
        self.link()
        self.states[key] = value

    def append(self, row: Row) -> None:
        self.link()
        self.rows.append(row)

    def entry(self, number: int) -> Row | None:
        mine = [row for row in self.rows if row.number == number]
        return mine[-1] if mine else row_of(self._read(self._sql.entry, number))

    def latest(self, question: str) -> Row | None:
        mine = [row for row in self.rows if row.question == question != ""]
        return max(mine) if mine else row_of(self._read(self._sql.latest, question))

    def link(self) -> Link:
        """The connection, if this transaction still is what it talks about."""
        if self.closed or self._pid != os.getpid():
            fix = "begin a new one, in the process that uses it."
            raise LedgerError(f"A transaction of the ledger {self._name} is over.", fix=fix)
        return self._link

    def _read(self, statement: bytes, *values: Any) -> list[Any]:
        link = self.link()
        try:
            return link.execute(statement, values).fetchall()
        except psycopg.Error as error:
            self.closed = True
            raise failure(self._name, error) from None


def row_of(found: list[Any]) -> Row | None:
    return Row._make(found[0]) if found else None
