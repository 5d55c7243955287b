"""What a connection remembers of dither's own statements: settings, prepared statements, portals, cursors; and how they run.

A cursor asks its question at the first FETCH, with the terms that held when it was declared. Until then it costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from dither.errors import AccessError, QueryError
from dither.server.accounts import Who
from dither.server.wire.asking import Questions, RefusedError, Result
from dither.server.wire.lexing import Statement, statements
from dither.server.wire.protocol import TEXT, Column
from dither.server.wire.routing import Route
from dither.server.wire.terms import NAMES, SHOWN, Settings

MOST = 512  # prepared statements, and portals
MOST_CURSORS = 32  # and portals whose rows were not all fetched
MOST_TEXT = 1 << 20  # characters of all prepared statements, and bytes of all portals
_AT_ONCE = 4096  # characters that are read at once; longer texts are read in a thread, while others are answered
PLAN = (Column("QUERY PLAN", TEXT),)
BUDGET = (Column("of", TEXT), Column("budget", TEXT))


@dataclass
class Prepared:
    """A prepared statement. `oids`: the types of its parameters, as the client named them (0: it did not); `known`: all."""

    route: Route
    oids: tuple[int, ...] = ()
    known: tuple[int, ...] | None = None

    @property
    def for_twin(self) -> bool:
        return self.route.kind == "twin"


@dataclass
class Portal:
    """A statement with the values of its parameters. `size`: of the message that bound it; `sent`: rows that were sent."""

    prepared: Prepared
    size: int
    params: Sequence[Any] | None = None
    formats: Sequence[int] = ()
    columns: tuple[Column, ...] | None = None  # as the client was told
    done: Done | None = None
    sent: int = 0

    @property
    def waits(self) -> bool:
        """Whether it holds rows that the client has not fetched yet."""
        return self.done is not None and self.done.result is not None and self.sent < len(self.done.result.rows)

    def forget(self) -> None:
        """Lets go of rows that were all sent. Executed again it has none, as in PostgreSQL."""
        if self.done is not None and self.done.result is not None:
            tag = f"{self.done.tag.partition(' ')[0]} 0" if self.done.tag[-1:].isdigit() else self.done.tag
            self.done, self.sent = replace(self.done, tag=tag, result=Result(self.done.result.columns)), 0


@dataclass
class Cursor:
    """An open cursor on a question."""

    statement: Statement
    params: Sequence[Any] | None
    settings: Settings
    columns: tuple[Column, ...]
    hold: bool
    formats: Sequence[int]
    fresh: bool = True  # its transaction has not ended yet
    result: Result | None = None
    at: int = 0


@dataclass(frozen=True)
class Done:
    """What a statement did: its rows if it has some, and its tag. `style`: the format, if the rows are copied."""

    tag: str
    result: Result | None = None
    style: str | None = None
    header: bool = False
    formats: Sequence[int] = ()


@dataclass
class Session:
    """The statements of one connection that are dither's own."""

    questions: Questions
    token: str
    still: Callable[[], Awaitable[bool]]
    settings: Settings = field(default_factory=Settings)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    in_transaction: bool = False
    undone: bool = False  # the transaction that ends next is undone

    def who(self) -> Who:
        return self.questions.who(self.token)

    async def statements(self, text: str) -> list[Statement]:
        """Returns the statements of a text. One that is too long is refused unread."""
        most = self.questions.desk.settings.question
        if len(text) > most:
            raise RefusedError(
                f"A text has at most {most:,} characters.", "54000", detail="Charged: nothing.", hint="send less."
            )
        return statements(text) if len(text) <= _AT_ONCE else await asyncio.to_thread(statements, text)

    def end_transaction(self, undone: bool) -> None:
        """Forgets what lasts until the end of a transaction, or was made in one that is undone."""
        self.settings.end_transaction()
        self.cursors = {name: each for name, each in self.cursors.items() if each.hold and not (undone and each.fresh)}
        for each in self.cursors.values():
            each.fresh = False

    def reset(self) -> None:
        self.settings.reset()
        self.cursors.clear()

    def starts(self, found: Route) -> None:
        """Takes note of a statement for the twin."""
        self.undone = self.undone or found.rolls_back

    async def settled(self, route: Route, oids: Sequence[int]) -> Route:
        """Returns what a look at names and types is: dither answers it without rows if it could answer the question itself,
        and otherwise the twin does."""
        if route.kind != "probe" or route.question is None:
            return route
        try:
            text, number = route.question.text, route.question.parameters()
            await self.questions.describe_unbound(self.who(), text, [*oids, *[TEXT] * number][:number], self.settings)
        except QueryError:
            return Route("twin", route.statement)
        return route

    async def describe(self, route: Route, params: Sequence[Any] | None, oids: Sequence[int] = ()) -> tuple[Column, ...] | None:
        """Returns the columns of a statement, or None if it has none. Nothing is run. `oids`: if the parameters have no values
        yet, their types."""
        if route.kind in ("question", "probe") and route.question is not None:
            if params is None and oids:
                return await self.questions.describe_unbound(self.who(), route.question.text, oids, self.settings)
            return await self.questions.describe(self.who(), route.question.text, params, self.settings)
        if route.kind == "explain":
            return PLAN
        if route.kind == "show":
            return BUDGET if route.name in ("dither.budget", "dither") else (Column(route.name, TEXT),)
        if route.kind == "fetch" and route.value == "FETCH":
            return self.cursors[route.name].columns if route.name in self.cursors else None
        return None

    async def run(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None = None) -> Done:
        """Runs a statement."""
        if route.kind == "refused":
            raise RefusedError(route.value, "0A000", detail="Charged: nothing.", hint=_hint(route))
        runs: dict[str, Callable[..., Awaitable[Done]]] = {
            "question": self._ask,
            "probe": self._probe,
            "explain": self._explain,
            "declare": self._declare,
            "fetch": self._fetch,
            "copy": self._copy,
            "show": self._show,
        }
        if route.kind in runs:
            return await runs[route.kind](route, params, columns)
        return self._set(route)

    async def _ask(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        result = await self._answer(route.question, params, self.settings, columns)
        return Done(f"SELECT {len(result.rows)}", result)

    async def _answer(
        self, question: Statement | None, params: Sequence[Any] | None, settings: Settings, columns: Sequence[Column] | None
    ) -> Result:
        text = "" if question is None else question.text
        return await self.questions.ask(self.who(), text, params, settings, self.still, columns)

    async def _probe(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        found = await self.describe(route, params)
        return Done("SELECT 0", Result(found or ()))

    async def _explain(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        text = "" if route.question is None else route.question.text
        return Done("EXPLAIN", await self.questions.quote(self.who(), text, params, self.settings))

    async def _declare(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        if not self.in_transaction and not route.hold:
            raise RefusedError("DECLARE CURSOR can only be used in transaction blocks", "25P01", hint="BEGIN, or WITH HOLD.")
        if route.name in self.cursors:
            raise RefusedError(f'cursor "{route.name}" already exists', "42P03")
        if len(self.cursors) >= MOST_CURSORS or route.question is None:
            raise RefusedError("This connection has too many cursors.", "54000", hint="close some.")
        settings = deepcopy(self.settings)
        found = await self.questions.describe(self.who(), route.question.text, params, settings)
        formats = (1,) if route.style == "binary" else ()
        self.cursors[route.name] = Cursor(route.question.compact(), params, settings, found, route.hold, formats)
        return Done("DECLARE CURSOR")

    async def _fetch(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        cursor = self.cursors.get(route.name)
        if cursor is None:
            raise RefusedError(f'cursor "{route.name}" does not exist', "34000")
        if cursor.result is None:
            cursor.result = await self._answer(cursor.statement, cursor.params, cursor.settings, cursor.columns)
            said = cursor.result.said
        else:
            said = None
        end = len(cursor.result.rows) if route.most is None else cursor.at + route.most
        rows = cursor.result.rows[cursor.at : end]
        cursor.at += len(rows)
        if route.value == "MOVE":
            return Done(f"MOVE {len(rows)}")
        return Done(f"FETCH {len(rows)}", Result(cursor.columns, rows, said), formats=cursor.formats)

    async def _copy(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        text = "" if route.question is None else route.question.text
        found = await self.questions.describe(self.who(), text, params, self.settings)
        result = await self._answer(route.question, params, self.settings, found)
        return Done(f"COPY {len(result.rows)}", result, route.style, route.header)

    async def _show(self, route: Route, params: Sequence[Any] | None, columns: Sequence[Column] | None) -> Done:
        if route.name in ("dither.budget", "dither"):
            return Done("SHOW", await self.questions.budget(self.who()))
        value = self.who().name if route.name in SHOWN else self.settings.show(route.name)
        return Done("SHOW", Result((Column(route.name, TEXT),), [[value]]))

    def _set(self, route: Route) -> Done:
        """Runs what changes this connection only."""
        match route.kind:
            case "set":
                self.settings.set(route.name, route.value, route.local)
                return Done("SET")
            case "reset":
                self.settings.reset(route.name)
                return Done("RESET")
            case "discard":
                self.reset()
                return Done("DISCARD ALL")
            case "close":
                self.cursors = {} if route.name == "all" else {n: c for n, c in self.cursors.items() if n != route.name}
                return Done("CLOSE CURSOR")
            case _:
                return Done(route.statement.words[0].upper if route.statement.words else "")


def check_login(who: Who) -> None:
    """Refuses a login that could do nothing here."""
    if not who.may("replay"):
        raise AccessError("This login may not read answers.", status=403, fix="use a token of an analyst or a curator.")


def _hint(route: Route) -> str:
    return f"ask with SELECT; SET {NAMES[0]} = 0.1 names the price, and EXPLAIN shows what it buys."
