"""Speaking to PostgreSQL: several statements in one message, each of them parsed by the server once for a connection.

A message is a pipeline with one end: the server does its statements in order up to the first that fails, and skips the rest.
This is the driver's documented lower level (psycopg.pq). Its cursors would spend several times as long on such a message as
the server does, all of it while others wait for the ledger's lock.
"""

from __future__ import annotations

import hashlib
import select
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

Link = psycopg.Connection[tuple[Any, ...]]
Value = str | int | Sequence[str]
INERROR = pq.TransactionStatus.INERROR


class Said(NamedTuple):
    """A statement with $1, $2, … and what stands for them."""

    statement: bytes
    values: tuple[Value, ...] = ()


class Result(NamedTuple):
    status: str  # the server's word for what it did: "COMMIT", "INSERT 0 1"
    rows: list[tuple[Any, ...]]  # of texts and None, whatever the type


class Wire:
    """One connection, used by one thread at a time. Errors are psycopg's."""

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
        """Whether the server is in a transaction that an error has ended."""
        return self.link.info.transaction_status == INERROR

    @property
    def busy(self) -> bool:
        """Whether the server is in a transaction."""
        return not self.closed and self.link.info.transaction_status != pq.TransactionStatus.IDLE

    def close(self) -> None:
        self.link.close()

    def together(self, *said: Said) -> list[Result]:
        """One message, one answer for each statement; the error of the first that failed, if one did.

        After an error that the server answered with, the connection can be used again. After anything else that stops this it
        is closed: nobody could tell which answer belongs to which question."""
        written = [(statement, [_written(value) for value in values]) for statement, values in said]
        names = dict(self._names)
        try:
            asked = self._send(names, written)
            found = list(self._answers())
            self._server.exit_pipeline_mode()
        except BaseException:
            self.link.close()
            raise
        for each in found:
            if each.status == pq.ExecStatus.FATAL_ERROR:
                self._tries += 1  # nobody knows how many of the new ones the server has: they get other names
                raise error_from_result(each)
        self._names = names
        return [_read(each) for each, wanted in zip(found, asked, strict=True) if wanted]

    def _send(self, names: dict[bytes, bytes], written: list[tuple[bytes, list[bytes]]]) -> list[bool]:
        """The whole message; of each answer to come, whether it is one that was asked for."""
        asked = []
        self._server.enter_pipeline_mode()
        for statement, values in written:
            if statement not in names:  # just before it is used: BEGIN must come before anything the server has to look up
                names[statement] = self._name(statement)
                self._server.send_prepare(names[statement], statement)
                asked.append(False)
            self._server.send_query_prepared(names[statement], values)
            asked.append(True)
        self._server.pipeline_sync()
        while self._server.flush():
            self._wait(sending=True)
        return asked

    def _name(self, statement: bytes) -> bytes:
        """By what it says: on a connection that others have used, behind a proxy, their name for something else is no name of
        ours, and one that is there already is refused."""
        return f"dither_{hashlib.sha256(statement).hexdigest()[:32]}_{self._tries}".encode()

    def _answers(self) -> Iterable[pq.abc.PGresult]:
        while True:
            while self._server.is_busy():
                self._wait()
            result = self._server.get_result()
            if result is None:  # stands between two statements' answers
                if self._server.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the connection was lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return
            else:
                yield result

    def _wait(self, sending: bool = False) -> None:
        """Until the server has said something, or takes more."""
        if hasattr(select, "poll"):
            ready = select.poll()
            ready.register(self._server.socket, select.POLLIN | (select.POLLOUT if sending else 0))
            ready.poll()
        else:
            select.select([self._server.socket], [self._server.socket] if sending else [], [])
        self._server.consume_input()


def _written(value: Value) -> bytes:
    if isinstance(value, (str, int)):
        text = str(value)
    else:
        parts = (part.replace("\\", "\\\\").replace('"', '\\"') for part in value)
        text = "{{{}}}".format(",".join(f'"{part}"' for part in parts))
    try:
        found = text.encode()
    except UnicodeEncodeError:  # half a character
        found = b"\0"
    if b"\0" in found:  # the driver would cut the text there
        raise psycopg.DataError("this is no text that PostgreSQL holds")
    return found


def _read(result: pq.abc.PGresult) -> Result:
    columns = range(result.nfields)
    rows = [tuple([_text(result.get_value(row, column)) for column in columns]) for row in range(result.ntuples)]
    return Result((result.command_status or b"").decode(), rows)


def _text(value: bytes | None) -> str | None:
    """What somebody else wrote need not be text; whatever reads it finds that it is not what was sealed or hashed."""
    return None if value is None else value.decode("utf-8", "replace")
