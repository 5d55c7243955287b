"""One connection, message by message.

    Q                    a text of statements, answered one after the other
    P B D E C S          prepare, bind, describe, execute, close, sync: after an error everything is skipped until the sync

Statements of dither run here; those for the twin are passed on to it, and its messages come back unchanged. The transaction of
a connection is that of its twin. If a question fails inside one, the twin's fails too, so both agree.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dither.errors import DitherError
from dither.server.line import GoneError
from dither.server.wire import protocol
from dither.server.wire.asking import RefusedError, refused, unexpected
from dither.server.wire.lexing import Statement
from dither.server.wire.link import Link, LinkError
from dither.server.wire.protocol import TEXT, Body, Column, ProtocolError, message
from dither.server.wire.routing import Route, route
from dither.server.wire.session import MOST, MOST_CURSORS, MOST_TEXT, Done, Portal, Prepared, Session

if TYPE_CHECKING:
    from dither.server.wire.listening import Listening

_FLUSH_AT = 1 << 16  # bytes that are collected before they are sent


class Backend:
    """One connection that has logged in."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, home: Listening, token: str, analyst: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._home = home
        self._analyst = analyst
        self._link: Link | None = None
        self._out = bytearray()
        self._skipping = False  # until the next Sync
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._cancelled = False
        self.session = Session(home.questions, token, self._still)
        self.busy = False

    # --- messages -----------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Answers messages until the client ends, or is silent for too long."""
        try:
            while True:
                kind, body = await self._receive()
                if kind == b"X":
                    return
                self.busy = True
                await self._handle(kind, body)
                self.busy = False
                if kind in b"QSH" or len(self._out) > _FLUSH_AT:
                    await self.flush()
                await asyncio.sleep(0)  # whoever sends many messages at once waits for others after each
                if self._home.stopping and kind in b"QS":
                    raise _stopped()
        finally:
            if self._link is not None:
                self._link.close()

    async def _receive(self) -> tuple[bytes, bytes]:
        limits = self._home.settings
        try:
            async with asyncio.timeout(limits.wire_idle):
                head = await self._reader.readexactly(5)
            size = struct.unpack("!i", head[1:])[0] - 4
            if not 0 <= size <= limits.body:
                raise RefusedError(f"A message has at most {limits.body:,} bytes.", "54000", severity="FATAL")
            async with asyncio.timeout(limits.read_time):
                return head[:1], await self._reader.readexactly(size)
        except TimeoutError:
            raise RefusedError("The connection was silent for too long.", "57P05", severity="FATAL") from None

    async def flush(self) -> None:
        if self._out:
            self._writer.write(bytes(self._out))
            self._out.clear()
            async with asyncio.timeout(self._home.settings.wire_idle):
                await self._writer.drain()

    def _send(self, data: bytes) -> Awaitable[None] | None:
        self._out += data
        return self.flush() if len(self._out) > _FLUSH_AT else None

    async def _handle(self, kind: bytes, body: bytes) -> None:
        if self._skipping and kind not in (b"S", b"Q"):
            return
        handlers: dict[bytes, Callable[[Body], Awaitable[None]]] = {
            b"Q": self._query,
            b"P": self._parse,
            b"B": self._bind,
            b"D": self._describe,
            b"E": self._execute,
            b"C": self._close,
            b"S": self._sync,
            b"H": self._nothing,
            b"d": self._nothing,  # the rest of a COPY that was refused
            b"c": self._nothing,
            b"f": self._nothing,
        }
        if kind not in handlers:
            raise ProtocolError("a message of this kind is not known")
        self._cancelled = False
        reading = Body(body)
        try:
            if kind in b"QP":
                self.session.who()  # a token that was revoked does nothing more, not even in the twin
            await handlers[kind](reading)
        except (RefusedError, DitherError, GoneError) as error:
            await self._fail(_fields(error), kind)
        except (ProtocolError, LinkError, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            raise
        except Exception:  # a fault of our own: its text must not reach the client
            self._home.note_fault()
            await self._fail(unexpected().fields, kind)

    async def _fail(self, told: dict[str, str], kind: bytes) -> None:
        self._send(protocol.fields(b"E", told))
        if self._link is not None:
            await self._link.fail()
        if kind == b"Q":
            self._ready()
        elif kind != b"S":
            self._skipping = True

    def _ready(self) -> None:
        self._skipping = False
        status = self.status
        self.session.in_transaction = status != b"I"
        self.session.undone = self.session.undone or status == b"E"
        if status == b"I":
            self.session.end_transaction(self.session.undone)
            self.session.undone = False
            self._portals.clear()
        self._send(protocol.ready(status))

    @property
    def status(self) -> bytes:
        return b"I" if self._link is None else self._link.status

    async def _nothing(self, body: Body) -> None:
        """Takes note of a message that needs no answer."""

    # --- the simple protocol ------------------------------------------------------------------------------------

    async def _query(self, body: Body) -> None:
        text = body.text()
        body.end()
        if self._link is not None:
            await self._link.synced()
        found = await self.session.statements(text)
        if not found:
            self._send(message(b"I"))
        routes = [self._route(each) for each in found]
        if found and all(each.kind == "twin" for each in routes):
            for one in routes:
                self.session.starts(one)
            await self._pass(b"Q", text)
        else:
            for each in found:
                if not await self._run_simple(self._route(each)):  # what a cursor's name means may have changed
                    break
        self._ready()

    async def _run_simple(self, given: Route) -> bool:
        """Runs one statement of a text. Returns whether the next one may follow."""
        self.session.in_transaction = self.status != b"I"
        found = await self.session.settled(given, ())
        if found.kind == "deallocate":
            found = self._deallocated(found)
        if found.kind == "twin":
            self.session.starts(found)
            kinds: list[bytes] = []
            await self._pass(b"Q", found.statement.text, kinds)
            return b"E" not in kinds
        done = await self._run(found, None)
        self._say(done)
        if done.result is not None and done.style is None:
            self._send(protocol.description(done.result.columns, done.formats))
            await self._rows(done.result.columns, done.result.rows, done.formats)
        self._complete(done)
        return True

    def _deallocated(self, found: Route) -> Route:
        """Forgets prepared statements. Returns what is left to do: nothing, or the same in the twin."""
        if not found.name:
            self._prepared.clear()
            return Route("twin", found.statement)
        known = self._prepared.pop(found.name, None)
        return Route("twin", found.statement) if known is None or known.for_twin else found

    def _route(self, statement: Statement) -> Route:
        return route(statement, self._home.tables, self.session.cursors)

    async def _pass(self, kind: bytes, text: str, kinds: list[bytes] | None = None) -> None:
        """Passes a text on to the twin, and its messages back."""
        link = await self._linked()

        def send(data: bytes) -> Awaitable[None] | None:
            if kinds is not None:
                kinds.append(data[:1])
            return self._send(data)

        await link.exchange(kind, text.encode() + b"\0", send)

    async def _linked(self) -> Link:
        if self._link is None:
            twin = self._home.twin
            self._link = await Link.open(lambda: twin.connect(self._analyst), twin.seconds * 2)
        return self._link

    # --- dither's own statements --------------------------------------------------------------------------------

    async def _run(self, found: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None = None) -> Done:
        """Runs a statement of dither's own. Errors say where in the text their reason stands."""
        if self.status == b"E":
            raise RefusedError("current transaction is aborted, commands ignored until end of transaction block", "25P02")
        try:
            done = await self.session.run(found, params, columns)
        except DitherError as error:
            self._note(found, error.code)
            raise refused(error, 0 if found.question is None else found.question.start) from None
        self._note(found, "quoted" if found.kind == "explain" else "answered")
        if found.kind in ("reset", "discard") and found.name in ("", "all") and self._link is not None:
            await self._link.synced()
            await self._link.quietly(b"Q", b"RESET ALL\0" if found.kind == "reset" else b"DISCARD ALL\0")
        if found.kind == "discard":
            self._prepared.clear()
        if found.kind == "ignored" and found.statement.words[0].upper == "SET" and found.name != "application_name":
            self._send(protocol.notice(f"{found.name} is not changed here."))
        return done

    def _note(self, found: Route, outcome: str) -> None:
        """Logs a question: asked or quoted. Looks at types and settings are not logged."""
        if found.kind in ("question", "copy", "fetch", "explain"):
            kind = "quote" if found.kind == "explain" else "ask"
            text = "" if found.question is None else found.question.text
            self._home.note(kind, self._analyst, self.session.token, outcome, text)

    def _say(self, done: Done) -> None:
        if done.result is not None and done.result.said is not None and self.session.settings["notices"]:
            self._send(protocol.notice(*done.result.said))

    async def _rows(self, columns: Sequence[Column], rows: Sequence[Sequence[Any]], formats: Sequence[int]) -> None:
        for each in rows:
            waiting = self._send(protocol.row(each, columns, formats))
            if waiting is not None:
                await waiting

    def _complete(self, done: Done) -> None:
        if done.style is not None and done.result is not None:
            self._send(protocol.copied(done.result.rows, done.result.columns, done.style, done.header))
        self._send(protocol.complete(done.tag) if done.tag else message(b"I"))

    # --- the extended protocol ----------------------------------------------------------------------------------

    async def _parse(self, body: Body) -> None:
        name, text, oids = body.text(), body.text(), body.ints()
        body.end()
        found = await self.session.statements(text)
        if len(found) > 1:
            raise RefusedError("cannot insert multiple commands into a prepared statement", "42601")
        own = self._route(found[0] if found else Statement("", ()))
        if own.kind == "deallocate":
            own = self._deallocated(own)
        own = await self.session.settled(own, [oid or TEXT for oid in oids])
        if name and name in self._prepared:
            raise RefusedError(f'prepared statement "{name}" already exists', "42P05")
        others = sum(len(each.route.statement.text) for each in self._prepared.values())
        if len(self._prepared) >= MOST or others + len(text) > MOST_TEXT:
            raise RefusedError("This connection has too many prepared statements.", "54000", hint="close some.")
        if own.kind == "twin":
            link = await self._linked()
            if (
                await link.exchange(b"P", protocol.word(name) + protocol.word(text) + protocol.counted(oids), self._send)
                == b"E"
            ):
                self._skipping = True
                return
        else:
            self._send(message(b"1"))
        self._prepared[name] = Prepared(own.compact(), oids)

    async def _bind(self, body: Body) -> None:
        whole = body.rest()
        body = Body(whole)
        name, statement = body.text(), body.text()
        prepared = self._found(statement)
        others = [each.size for portal, each in self._portals.items() if portal != name]
        if len(others) >= MOST or sum(others) + len(whole) > MOST_TEXT:
            raise RefusedError("This connection has too many portals.", "54000", hint="close some.")
        if prepared.for_twin:
            if await self._to_twin(b"B", whole):
                self._portals[name] = Portal(prepared, len(whole))
            return
        coded, given, formats = body.shorts(), body.cells(), body.shorts()
        body.end()
        if any(each not in (0, 1) for each in formats):
            raise ProtocolError("a result has an unknown format")
        number = prepared.route.statement.parameters()
        if len(given) != number:
            raise RefusedError(f"bind message supplies {len(given)} parameters, but {number} are needed", "08P01")
        oids = await self._types(prepared)
        try:
            params = [
                protocol.parameter(cell, protocol.format_of(coded, place), oid)
                for place, (cell, oid) in enumerate(zip(given, oids, strict=True))
            ]
        except ProtocolError as error:
            raise RefusedError(f"{str(error).capitalize()}.", "22P02", detail="Charged: nothing.") from None
        self._portals[name] = Portal(prepared, len(whole), params, formats)
        self._send(message(b"2"))

    async def _describe(self, body: Body) -> None:
        whole = body.rest()
        name = Body(whole[1:]).text()
        if whole[:1] == b"S":
            prepared = self._found(name)
            if prepared.for_twin:
                await self._to_twin(b"D", whole)
                return
            oids = await self._types(prepared)
            columns = await self._columns(prepared.route, None if oids else [], oids)
            self._send(protocol.parameters(oids))
            self._send(message(b"n") if columns is None else protocol.description(columns))
            return
        portal = self._portals.get(name)
        if portal is None and name in self.session.cursors:
            self._send(protocol.description(self.session.cursors[name].columns))
            return
        if portal is None or portal.prepared.for_twin:
            await self._to_twin(b"D", whole)
            return
        portal.columns = await self._columns(portal.prepared.route, portal.params, ())
        self._send(message(b"n") if portal.columns is None else protocol.description(portal.columns, portal.formats))

    async def _columns(self, found: Route, params: Sequence[Any] | None, oids: Sequence[int]) -> tuple[Column, ...] | None:
        try:
            return await self.session.describe(found, params, oids)
        except DitherError as error:
            raise refused(error, 0 if found.question is None else found.question.start) from None

    async def _execute(self, body: Body) -> None:
        whole = body.rest()
        body = Body(whole)
        name, most = body.text(), body.long()
        body.end()
        portal = self._portals.get(name)
        if portal is None or portal.prepared.for_twin:
            if portal is not None:
                self.session.starts(portal.prepared.route)
            await self._to_twin(b"E", whole)
            return
        if portal.done is None:
            if sum(each.waits for each in self._portals.values()) >= MOST_CURSORS:
                raise RefusedError("This connection has too many unfinished portals.", "54000", detail="Charged: nothing.")
            self.session.in_transaction = self.status != b"I"
            columns = portal.columns
            if columns is None and portal.prepared.route.kind == "question":
                columns = await self._columns(portal.prepared.route, portal.params, ())
            portal.done = await self._run(portal.prepared.route, portal.params, columns)
            self._say(portal.done)
        done = portal.done
        if done.result is not None and done.style is None:
            end = portal.sent + most if most > 0 else len(done.result.rows)
            rows = done.result.rows[portal.sent : end]
            await self._rows(done.result.columns, rows, portal.formats)
            portal.sent += len(rows)
            if portal.sent < len(done.result.rows):
                self._send(message(b"s"))
                return
        self._complete(done)
        portal.forget()

    async def _close(self, body: Body) -> None:
        whole = body.rest()
        kind, name = whole[:1], Body(whole[1:]).text()
        own: dict[str, Any] = self._prepared if kind == b"S" else self._portals
        found = own.pop(name, None)
        prepared = found.prepared if isinstance(found, Portal) else found
        if prepared is not None and prepared.for_twin:
            await self._to_twin(b"C", whole)
        else:
            self._send(message(b"3"))

    async def _sync(self, body: Body) -> None:
        if self._link is not None:
            await self._link.synced()
        self._ready()

    async def _to_twin(self, kind: bytes, body: bytes) -> bool:
        """Passes a message on to the twin. Returns whether it did what was asked."""
        link = await self._linked()
        if await link.exchange(kind, body, self._send) == b"E":
            self._skipping = True
            return False
        return True

    def _found(self, name: str) -> Prepared:
        found = self._prepared.get(name)
        if found is None:
            raise RefusedError(f'prepared statement "{name}" does not exist', "26000")
        return found

    async def _types(self, prepared: Prepared) -> tuple[int, ...]:
        """Returns the types of a question's parameters: as the client named them, or as the twin finds them in the text."""
        number = prepared.route.statement.parameters()
        if number > 1000:
            raise RefusedError("A statement has at most 1000 parameters.", "54000")
        if prepared.known is None:
            given = (*prepared.oids, *(0 for _ in range(number)))[:number]
            if 0 in given:
                text = prepared.route.statement.text if prepared.route.question is None else prepared.route.question.text
                found = await (await self._linked()).types(text, prepared.oids)
                given = tuple(one or (found[place] if place < len(found) else TEXT) for place, one in enumerate(given))
            prepared.known = given
        return prepared.known

    # --- cancelling and ending ----------------------------------------------------------------------------------

    async def _still(self) -> bool:
        """Whether somebody still waits: a question in the line is given up, one that is being answered is not."""
        return not (self._cancelled or self._writer.is_closing() or self._reader.at_eof())

    async def cancel(self) -> None:
        """Gives up what this connection waits for. A question that is being answered goes on: it is charged already."""
        self._cancelled = True
        if self._link is not None and self.busy:
            await self._link.cancel()

    async def end(self) -> None:
        """Says that the server stops, and ends the connection."""
        with suppress(ConnectionError, TimeoutError):
            self._send(protocol.fields(b"E", _stopped().fields))
            await self.flush()
        self._writer.close()


def _stopped() -> RefusedError:
    return RefusedError("terminating connection due to administrator command", "57P01", severity="FATAL")


def _fields(error: RefusedError | DitherError | GoneError) -> dict[str, str]:
    if isinstance(error, GoneError):
        return RefusedError("canceling statement due to user request", "57014", detail="Charged: nothing.").fields
    return error.fields if isinstance(error, RefusedError) else refused(error).fields
