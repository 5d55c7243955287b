"""The port of the PostgreSQL protocol: who may connect, how many at once, cancelling, and stopping."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from contextlib import suppress
from typing import Any

from dither.errors import DitherError, Fix, Shell
from dither.server.desk import Desk
from dither.server.http import metrics
from dither.server.settings import Settings
from dither.server.wire import protocol
from dither.server.wire.asking import Questions, RefusedError, refused, unexpected
from dither.server.wire.backend import Backend
from dither.server.wire.link import LinkError
from dither.server.wire.opening import Cancel, Encryption, Opened, open_connection
from dither.server.wire.protocol import ProtocolError, message, word
from dither.server.wire.session import check_login
from dither.server.wire.terms import options
from dither.server.wire.twin import Twin, open_twin
from dither.text import folded

EACH = 16  # connections of one person
_GONE = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)


class Listening:
    """The open port. `questions` asks at the desk, `twin` answers the rest."""

    def __init__(self, desk: Desk, settings: Settings, twin: Twin) -> None:
        self.settings = settings
        self.questions = Questions(desk)
        self.twin = twin
        self.tables = frozenset(folded(name) for name in desk.survey.catalog.tables)
        self._accounts = desk.accounts
        self._encryption = None if settings.tls is None else Encryption.load(*settings.tls)
        self._backends: dict[tuple[int, int], tuple[str, Backend]] = {}
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self.stopping = False
        self.faults = 0

    @property
    def port(self) -> int:
        return 0 if self._server is None else int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        several = {"reuse_port": True} if self.settings.workers > 1 else {}
        try:
            self._server = await asyncio.start_server(
                self._connected, self.settings.host, self.settings.wire, limit=self.settings.body, backlog=512, **several
            )
        except OSError:
            fix = Fix("choose another one: {wire}.", wire=Shell("--wire 5434"))
            raise DitherError(f"The port {self.settings.wire} cannot be opened.", fix=fix) from None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks[task] = writer
            task.add_done_callback(lambda ended: self._tasks.pop(ended, None))
        try:
            if len(self._tasks) > self.settings.wire_connections or self.stopping:
                raise RefusedError("The server has too many connections.", "53300", hint="try again later.", severity="FATAL")
            await self._serve(reader, writer)
        except RefusedError as error:
            _tell(writer, error)
        except ProtocolError as error:
            _tell(writer, RefusedError(f"This is not the PostgreSQL protocol: {error}.", "08P01", severity="FATAL"))
        except DitherError as error:
            _tell(writer, refused(error))
        except LinkError:
            _tell(writer, RefusedError("The server of the catalog was lost.", "57P01", hint="connect again.", severity="FATAL"))
        except _GONE:
            pass
        except Exception:
            self.note_fault()
            _tell(writer, unexpected())
        finally:
            with suppress(Exception):
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        async with asyncio.timeout(self.settings.read_time):
            found = await open_connection(reader, writer, self._accounts, self._encryption, address)
        if isinstance(found, Cancel):
            await self._cancel(found)
        elif found is not None:
            await self._talk(reader, writer, found)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, found: Opened) -> None:
        who = found.who
        check_login(who)
        if sum(name == who.name for name, _ in self._backends.values()) >= EACH:
            raise RefusedError(f"A person has at most {EACH} connections.", "53300", hint="close some.", severity="FATAL")
        backend = Backend(reader, writer, self, str(who.token), who.name)
        self._begin(backend, found.parameters)
        key = secrets.randbelow(1 << 31), secrets.randbelow(1 << 31)
        self._backends[key] = who.name, backend
        try:
            writer.write(self._hello(found, key))
            await backend.serve()
        except (RefusedError, ProtocolError):
            await backend.flush()
            raise
        finally:
            del self._backends[key]

    def _begin(self, backend: Backend, parameters: dict[str, str]) -> None:
        """Takes the settings of dither from the startup message. Others are the twin's own."""
        given = [*options(parameters.get("options", "")), *parameters.items()]
        for name, value in given:
            if name.lower().startswith("dither."):
                backend.session.settings.begin(name.lower(), value)
        encoding = parameters.get("client_encoding", "UTF8").strip("'\"").lower().replace("-", "")
        if encoding not in ("utf8", "unicode", "sql_ascii"):
            raise RefusedError("This server speaks UTF-8 only.", "0A000", hint="set client_encoding to UTF8.", severity="FATAL")

    def _hello(self, found: Opened, key: tuple[int, int]) -> bytes:
        told = {
            "server_version": self.twin.version,
            "server_encoding": "UTF8",
            "client_encoding": "UTF8",
            "DateStyle": "ISO, MDY",
            "IntervalStyle": "postgres",
            "TimeZone": "UTC",
            "integer_datetimes": "on",
            "standard_conforming_strings": "on",
            "default_transaction_read_only": "on",
            "in_hot_standby": "off",
            "is_superuser": "off",
            "session_authorization": found.who.name,
            "application_name": found.parameters.get("application_name", "")[:64],
        }
        statuses = b"".join(message(b"S", word(name) + word(value)) for name, value in told.items())
        return statuses + message(b"K", key[0].to_bytes(4, "big") + key[1].to_bytes(4, "big")) + protocol.ready(b"I")

    async def _cancel(self, found: Cancel) -> None:
        known = self._backends.get(found.key)
        if known is not None:
            await known[1].cancel()

    def note(self, kind: str, analyst: str, token: str, outcome: str, question: str) -> None:
        """Counts a question, and writes one line of JSON to stderr, as for a request over HTTP."""
        metrics.count_question(kind, outcome)
        line = {
            "time": round(time.time(), 3),
            "route": "wire",
            "kind": kind,
            "who": analyst,
            "token": token,
            "outcome": outcome,
        }
        told = {"question": question} if self.settings.log_questions else {}
        sys.stderr.write(json.dumps(line | told, ensure_ascii=True) + "\n")

    def note_fault(self) -> None:
        """Counts a fault of our own. Its text may hold a question, so it is not written down."""
        self.faults += 1
        kind = sys.exc_info()[0]
        line = {"time": round(time.time(), 3), "route": "wire", "code": "server", "fault": getattr(kind, "__name__", "")}
        sys.stderr.write(json.dumps(line) + "\n")

    # --- ending -------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Takes no more connections, and ends those that wait for nothing."""
        self.stopping = True
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*(each.end() for _, each in list(self._backends.values()) if not each.busy))

    async def finish(self, seconds: float) -> None:
        """Ends all connections: those that have an answer get it first."""
        tasks = list(self._tasks)
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=seconds)
            for each in left:
                self._tasks[each].transport.abort()
            if left:
                await asyncio.wait(left, timeout=seconds)
        await asyncio.to_thread(self.twin.close)


def _tell(writer: asyncio.StreamWriter, error: RefusedError) -> None:
    with suppress(Exception):
        writer.write(protocol.fields(b"E", error.fields | {"S": "FATAL", "V": "FATAL"}))


async def listen(desk: Desk, settings: Settings) -> Listening | None:
    """Opens the port, if the settings name one."""
    if settings.wire is None:
        return None
    secret = desk.accounts.wire_secret
    twin = await asyncio.to_thread(open_twin, desk.survey, settings.twin, settings.wire_connections + 10, secret)
    made: Any = None
    try:
        made = Listening(desk, settings, twin)
        await made.start()
    except BaseException:
        await asyncio.to_thread(twin.close)
        raise
    found: Listening = made
    return found
