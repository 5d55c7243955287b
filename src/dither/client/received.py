"""Answers and quotes as the server sent them, where the plan cannot be made here.

That is so for a free answer, which is made of stored ones, and for a question that public tables decide: the client has
neither. They have the same methods; margins are those that were sent.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from dither.answer import Answer, Quote
from dither.errors import ArgumentError, DitherError, LedgerError
from dither.exact.numbers import Number
from dither.ledger.receipts import Receipt
from dither.ledger.records import hash_of
from dither.planning.left_out import LeftOut
from dither.planning.outputs import Table, Value
from dither.planning.plan import Field, Plan
from dither.planning.price import Price
from dither.planning.program import Batch

_NOTHING = Batch((), (), "answer")
_BESIDES = ("id", "entry", "notes", "cells", "payload", "committed", "left", "terms")  # what only a server's answers have


def _cannot(what: str) -> NoReturn:
    raise DitherError(f"The server planned this answer, so {what} here.", fix="ask again with other terms.")


def committed_numbers(data: Mapping[str, Any], receipt: Receipt, question: str) -> str:
    """Returns the noisy numbers of the entry that the receipt names. `question`: the digest of what was asked.

    The receipt has the hash of the whole entry, signed, and the entry has the numbers and the digest of their question.
    """
    entry, place = data.get("committed"), receipt.body["entry"]
    found: dict[str, Any] = json.loads(entry) if isinstance(entry, str) and hash_of(entry) == place["hash"] else {}
    if found.get("number") == place["number"] and found.get("digest") == question and isinstance(found.get("payload"), str):
        return str(found["payload"])
    other = "another question" if found else "another entry"
    raise LedgerError(
        f"The numbers that the server returned are those of {other} than the receipt says.",
        fix="do not use the answer; tell the auditor. If dither was updated here or there, update both.",
        charged="the price of the question, on the server",
    )


@dataclass(frozen=True, repr=False)
class ReceivedAnswer(Answer):
    """An answer as the server sent it."""

    sent: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def plan(self) -> Plan:
        _cannot("there is no plan")

    @property
    def schema(self) -> tuple[Field, ...]:
        noisy = self.sent["margins"]
        return tuple(
            Field(name, kind, name in noisy) for name, kind in zip(self.sent["columns"], self.sent["kinds"], strict=True)
        )

    def margins(self, confidence: Number | None = None) -> dict[str, list[float | None]]:
        if self.at_confidence(confidence) != self.confidence:
            _cannot("its margins have one confidence")
        return {name: list(each) for name, each in self.sent["margins"].items()}

    def ranks(self, confidence: Number | None = None) -> dict[str, float]:
        if self.at_confidence(confidence) != self.confidence:
            _cannot("its margins have one confidence")
        return dict(self.sent["ranks"])

    def may_be_empty(self) -> dict[str, list[bool]]:
        _cannot("it is not known which groups may be empty")

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return ()

    @property
    def warning(self) -> str:
        return self.sent.get("warning") or ""

    def consistent(self) -> Answer:
        _cannot("it cannot be made consistent")

    def explain(self) -> str:
        _cannot("there is no plan")

    def cells(self) -> list[list[str]]:
        return [list(row) for row in self.sent["cells"]]

    def notes(self) -> list[str]:
        return list(self.sent["notes"])

    def as_data(self) -> dict[str, Any]:
        return {name: value for name, value in self.sent.items() if name not in _BESIDES}


def received_answer(data: Mapping[str, Any]) -> ReceivedAnswer:
    """Returns an answer as it was sent."""
    receipt = None if data["receipt"] is None else Receipt.from_json(json.dumps(data["receipt"]))
    rows = tuple(tuple(_value(cell, kind) for cell, kind in zip(row, data["kinds"], strict=True)) for row in data["rows"])
    table = Table(tuple(data["columns"]), rows, tuple(range(len(rows))))
    price = Price(Fraction(data["price"]["epsilon"]), Fraction(data["price"]["delta"]))
    shown = (_NOTHING, (), table, Fraction(data["confidence"]), receipt, price, bool(data["replayed"]))
    return ReceivedAnswer(*shown, sent=data)


def _value(cell: Any, kind: str) -> Value:
    if cell is not None and kind == "date":
        return datetime.date.fromisoformat(cell)
    if cell is not None and kind == "timestamp":
        return datetime.datetime.fromisoformat(cell)
    value: Value = cell
    return value


@dataclass(frozen=True, repr=False)
class ReceivedQuote(Quote):
    """A quote as the server sent it."""

    sent: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def plan(self) -> Plan:
        _cannot("there is no plan")

    @property
    def assumed_rows(self) -> int | None:
        rows: int | None = self.sent["assumed_rows"]
        return rows

    @property
    def schema(self) -> tuple[Field, ...]:
        return tuple(Field(name, kind) for name, kind in zip(self.sent["columns"], self.sent["kinds"], strict=True))

    def margins(self) -> dict[str, float | None]:
        return dict(self.sent["margins"])

    def explain(self) -> str:
        return str(self.sent["plan"])

    def as_data(self) -> dict[str, Any]:
        return dict(self.sent)


def received_quote(data: Mapping[str, Any]) -> ReceivedQuote:
    """Returns a quote as it was sent."""
    if "quotes" in data:
        raise ArgumentError("A list with such a question is quoted by the server only.", fix="quote each question alone.")
    price = Price(Fraction(data["price"]["epsilon"]), Fraction(data["price"]["delta"]))
    found = (_NOTHING, Fraction(data["confidence"]), price, data["refused"] or "", data["entry"])
    return ReceivedQuote(*found, waits=data["waits"] or "", sent=data)
