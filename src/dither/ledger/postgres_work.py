"""One transaction of the PostgreSQL store, between its lock and its commit."""

from __future__ import annotations

from typing import Any

import psycopg

from dither.errors import LedgerError
from dither.ledger.postgres_link import failure
from dither.ledger.postgres_sql import Statements, written
from dither.ledger.postgres_wire import Said, Value, Wire
from dither.ledger.store import Row
from dither.process import Origin


class Work:
    """Between the lock and the commit. Writes are kept here until the commit; reads see them."""

    def __init__(
        self, name: str, statements: Statements, wire: Wire, known: dict[str, str | None], asked: dict[str, Row | None]
    ) -> None:
        self._name = name
        self._sql = statements
        self._wire = wire
        self._known = known
        self._asked = asked
        self._origin = Origin()
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
        self.wire()
        self.states[key] = value

    def append(self, row: Row) -> None:
        self.wire()
        self.rows.append(row)

    def entry(self, number: int) -> Row | None:
        mine = [row for row in self.rows if row.number == number]
        return mine[-1] if mine else first(self._read(self._sql.entry, number))

    def latest(self, question: str) -> Row | None:
        mine = [row for row in self.rows if row.question == question != ""]
        if mine:
            return max(mine)
        if question not in self._asked:
            self._asked[question] = first(self._read(self._sql.latest, question))
        return self._asked[question]

    def wire(self) -> Wire:
        """The connection, if this transaction still is what it talks about."""
        if self.closed or not self._origin.here:
            fix = "begin a new one, in the process that uses it."
            raise LedgerError(f"A transaction of the ledger {self._name} is over.", fix=fix)
        return self._wire

    def _read(self, statement: bytes, *values: Value) -> list[tuple[Any, ...]]:
        wire = self.wire()
        try:
            return wire.together(Said(statement, values))[0].rows
        except psycopg.Error as error:
            self.closed = True
            raise failure(self._name, error) from None


def row_of(found: tuple[Any, ...]) -> Row:
    return Row(int(found[0]), *found[1:])


def first(found: list[tuple[Any, ...]]) -> Row | None:
    return row_of(found[0]) if found else None
