"""Asks at the desk, and turns what it returns into typed rows: answers, quotes, names and types, and errors.

Names and types follow from the plan, so describing a question never runs it: `describe` is free, and remembered per text.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dither.errors import AccessError, BusyError, DitherError, QueryError
from dither.server.accounts import Who
from dither.server.desk import Asked, Desk
from dither.server.requests import ANSWERING, FAILED
from dither.server.wire.protocol import BOOL, DATE, FLOAT8, INT8, NUMERIC, TEXT, TIMESTAMP, Column
from dither.server.wire.terms import Settings, sql

OIDS = {"int": INT8, "real": FLOAT8, "text": TEXT, "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP}
STATES = {
    "query": "42000",
    "argument": "22023",
    "price": "22023",
    "budget": "53400",
    "approval": "55000",
    "access": "42501",
    "busy": "53000",
    "ledger": "57P03",
    "closed": "57P03",
    "engine": "58000",
}
LONGEST_ANSWER = 24 * 3600.0  # seconds that a connection waits for an answer
_REMEMBERED = 1024  # descriptions
_LONGEST_KEY = 8192  # characters of a question and its parameters whose description is remembered
_PRICES = ("epsilon", "delta", "margin", "of", "confidence")  # names and types do not depend on them
_SAMPLES: Mapping[int, Any] = {
    BOOL: True,
    DATE: datetime.date(2000, 1, 1),
    TIMESTAMP: datetime.datetime(2000, 1, 1),
    TEXT: "",
    FLOAT8: 1,
}
Key = tuple[Any, ...]


class RefusedError(Exception):
    """An error in PostgreSQL's own fields."""

    def __init__(
        self, message: str, code: str, *, detail: str = "", hint: str = "", position: int = 0, severity: str = "ERROR"
    ):
        super().__init__(message)
        place = str(position) if position else ""
        self.fields = {"S": severity, "V": severity, "C": code, "M": message, "D": detail, "H": hint, "P": place}


def refused(error: DitherError, start: int = 0) -> RefusedError:
    """Returns an error of dither as PostgreSQL has them. `start`: where its question begins in the text that was sent."""
    hint = error.fix.spell(sql)
    if isinstance(error, QueryError) and error.forms:
        hint += " You can ask:" + "".join(f"\n{words}: {question}" for words, question, _ in error.forms)
    span = error.span if isinstance(error, QueryError) else None
    position = 0 if span is None else start + span[0] + 1
    detail = f"Charged: {error.charged}."
    return RefusedError(error.what, STATES.get(error.code, "42000"), detail=detail, hint=hint, position=position)


def unexpected() -> RefusedError:
    """Returns the error for a fault of the server itself. Its text is constant."""
    return RefusedError(
        "The server could not do this.",
        "XX000",
        detail="Charged: nothing, unless your history shows a new entry.",
        hint="tell the curator.",
    )


@dataclass(frozen=True)
class Result:
    """Typed rows, and what to say about them."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]] = ()
    said: tuple[str, str] | None = None  # a notice, and its detail


class Questions:
    """Asks the questions of all connections at the desk, and remembers descriptions."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._known: OrderedDict[Key, tuple[tuple[Column, bool], ...]] = OrderedDict()

    def who(self, token: str) -> Who:
        """Returns who asks, looked up again for every statement, so that a revocation holds at once."""
        found = self.desk.accounts.by_token_id(token)
        if found is None:
            raise AccessError("This token was revoked or has expired.", status=401, fix="connect with another token.")
        return found

    async def describe(self, who: Who, text: str, params: Sequence[Any] | None, settings: Settings) -> tuple[Column, ...]:
        """Returns the columns of a question's answer. It is not run, and nothing is charged."""
        who.require("replay")
        terms = settings.terms()
        others = sorted((name, str(value)) for name, value in terms.items() if name not in _PRICES)
        key = (text, tuple(map(repr, params or ())), tuple(others))
        found = self._known.get(key)
        if found is None:
            terms = terms if {"epsilon", "margin"} & terms.keys() else terms | {"epsilon": "0.1"}
            asked = Asked(text, terms | _params(params))
            fields = await self.desk.schema(who, asked)
            oids = [NUMERIC if field.long else OIDS[field.kind] for field in fields]
            found = tuple((Column(field.name, oid), field.noisy) for field, oid in zip(fields, oids, strict=True))
            if sum(len(str(part)) for part in key) <= _LONGEST_KEY:
                self._known[key] = found
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return with_margins(found) if settings["margins"] else tuple(column for column, _ in found)

    async def describe_unbound(self, who: Who, text: str, oids: Sequence[int], settings: Settings) -> tuple[Column, ...]:
        """Returns the columns of a question whose parameters have no values yet: types do not depend on them."""
        if not oids:
            return await self.describe(who, text, None, settings)
        try:
            return await self.describe(who, text, [_SAMPLES.get(oid, 1) for oid in oids], settings)
        except QueryError as error:
            try:
                return await self.describe(who, text, [None] * len(oids), settings)
            except QueryError:
                raise error from None

    async def ask(
        self,
        who: Who,
        text: str,
        params: Sequence[Any] | None,
        settings: Settings,
        still: Callable[[], Awaitable[bool]],
        columns: Sequence[Column] | None = None,
    ) -> Result:
        """Asks a question at the desk: charged as everywhere, or replayed. `columns`: as the client was told before."""
        terms = settings.terms()
        free = bool(settings["free"])
        if free:
            for name in ("epsilon", "delta", "margin", "of", "sample", "left_out"):
                terms.pop(name, None)
        asked = Asked(text, terms | _params(params), fresh=bool(settings["fresh"]) and not free, free=free)
        key = secrets.token_hex(16) if asked.fresh else None  # every execution of a fresh question is one of its own
        job = await self.desk.ask(who, asked, key, wait=LONGEST_ANSWER, still=still)
        if job.state in (ANSWERING, FAILED) or job.body is None:
            raise BusyError("The question is still being answered.")
        return self._result(json.loads(job.body), columns, bool(settings["margins"]))

    def _result(self, data: Mapping[str, Any], columns: Sequence[Column] | None, margins: bool) -> Result:
        parts = list(zip(*data["rows"], strict=True)) or [()] * len(data["columns"])
        each = zip(data["columns"], data["kinds"], parts, strict=True)
        wide: list[Sequence[Any]] = []
        own: list[tuple[Column, bool]] = []
        for name, kind, values in each:
            typed = _values(kind, values)
            wide.append(typed)
            own.append((Column(name, _oid(kind, typed)), margins and name in data["margins"]))
            if own[-1][1]:
                wide.append(_values("real", data["margins"][name]))
        if columns is None or len(columns) != len(wide):
            columns = with_margins(own)
        _check_sizes(columns, wide)
        notes = list(data.get("notes") or [])
        said = (notes[-1], "\n".join(notes[:-1])) if notes else None
        return Result(tuple(columns), list(zip(*wide, strict=True)), said)

    async def quote(self, who: Who, text: str, params: Sequence[Any] | None, settings: Settings) -> Result:
        """Returns a quote as the rows of EXPLAIN. It is free."""
        data = await self.desk.quote(who, Asked(text, settings.terms() | _params(params)))
        lines = str(data["plan"]).splitlines()
        if data["refused"]:
            lines.append(f"{'asked now':<14} it would be refused: {data['refused']}")
        elif data["entry"] is not None:
            lines.append(f"{'asked now':<14} it is the answer of entry {data['entry']} again: charged nothing")
        return Result((Column("QUERY PLAN", TEXT),), [[line] for line in lines])

    async def budget(self, who: Who) -> Result:
        """Returns what SHOW dither.budget shows: total, spent and left."""
        who.require("replay")
        survey = self.desk.survey

        def read() -> list[list[str]]:
            rows = [["everyone", str(survey.budget)]]
            own = survey.catalog.budget.per_analyst is not None
            return rows + ([[who.name, str(survey.quota(who.name))]] if own else [])

        rows = await self.desk.read(who, read)
        return Result((Column("of", TEXT), Column("budget", TEXT)), rows)


def with_margins(columns: Sequence[tuple[Column, bool]]) -> tuple[Column, ...]:
    """Returns columns with those of margins: `n_margin` after a noisy `n`, with underscores if the name is taken."""
    taken = {column.name for column, _ in columns}
    found: list[Column] = []
    for column, noisy in columns:
        found.append(column)
        if noisy:
            label = f"{column.name}_margin"
            while label in taken:
                label += "_"
            taken.add(label)
            found.append(Column(label, FLOAT8))
    return tuple(found)


def _check_sizes(columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> None:
    """Refuses to send a whole number as one of 64 bits that it does not fit into."""
    for column, each in zip(columns, values, strict=True):
        if column.oid == INT8 and _oid("int", each) == NUMERIC:
            raise DitherError(
                f"A number in {column.name} does not fit into 64 bits.",
                fix="divide it in the question, or ask over HTTP.",
                charged="nothing more: the answer is kept",
            )


def _oid(kind: str, values: Sequence[Any]) -> int:
    large = kind == "int" and any(value is not None and not -(1 << 63) <= value < 1 << 63 for value in values)
    return NUMERIC if large else OIDS[kind]


def _params(params: Sequence[Any] | None) -> dict[str, Any]:
    return {} if not params else {"params": list(params)}


def _values(kind: str, values: Sequence[Any]) -> list[Any]:
    """Returns the values of a column from JSON, which has no dates."""
    if kind == "date":
        return [None if value is None else datetime.date.fromisoformat(value) for value in values]
    if kind == "timestamp":
        return [None if value is None else datetime.datetime.fromisoformat(value) for value in values]
    return [None if value is None else float(value) for value in values] if kind == "real" else list(values)
