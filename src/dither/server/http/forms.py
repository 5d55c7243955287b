"""What the bodies of requests may hold. Unknown names are refused: a misspelt term must not change a price in silence."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from dither.errors import ArgumentError
from dither.server.desk import Asked

Number = str | int | float


class Form(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A JSON object."""


class QuoteForm(Form, frozen=True):
    """A question with its terms, as `survey.quote` takes them. Numbers may be text, such as "1/3"."""

    question: str | list[str]
    epsilon: Number | None = None
    delta: Number | None = None
    margin: Number | None = None
    of: Number | None = None
    params: dict[str, Any] | list[Any] | None = None
    confidence: Number = "0.95"
    assume_rows: int | None = None
    max_rows: int | str | None = None
    max_groups: int | str | None = None
    left_out: bool | None = None
    weights: list[Number] | None = None
    sample: Number | None = None

    def asked(self) -> Asked:
        names = (*("epsilon", "delta", "margin", "of", "confidence", "assume_rows"), *("max_rows", "max_groups", "left_out"))
        terms = {name: getattr(self, name) for name in (*names, "weights", "sample")}
        question = self.question if isinstance(self.question, str) else tuple(self.question)
        return Asked(question, terms | {"params": _params(self.params)})


class AskForm(QuoteForm, frozen=True):
    """A question with its terms, as `survey.ask` takes them. `payload`: also send the numbers as the ledger stores them."""

    fresh: bool = False
    free: bool = False
    payload: bool = False

    def asked(self) -> Asked:
        plain = super().asked()
        terms = dict(plain.terms)
        return Asked(plain.question, terms, self.fresh, self.free, self.payload)


class SuggestForm(Form, frozen=True):
    """A column to propose bounds for, and the price."""

    column: str
    epsilon: Number
    delta: Number | None = None
    by: str | None = None
    fresh: bool = False


class LoginForm(Form, frozen=True):
    """Name and password; or a token; or a code that works once."""

    name: str | None = None
    password: str | None = None
    token: str | None = None
    code: str | None = None


class TokenForm(Form, frozen=True):
    """Name and password of whoever wants a token, and how many days it works. `label`: what it is for."""

    name: str
    password: str
    days: float = 90
    label: str = ""


class EmptyForm(Form, frozen=True):
    """Nothing."""


class DecisionForm(Form, frozen=True):
    """A curator's decision on a question that waits. `days`: how long the approval may be used."""

    decision: str
    words: str = ""
    days: float = 7


def _params(given: dict[str, Any] | list[Any] | None) -> dict[str, Any] | list[Any] | None:
    """Returns the values of parameters. JSON has no dates and decimals: {"date": …}, {"timestamp": …}, {"decimal": …}."""
    if isinstance(given, dict):
        return {name: _param(value) for name, value in given.items()}
    return None if given is None else [_param(value) for value in given]


def _param(value: Any) -> Any:
    """Returns a value, or a list of values; what is nested deeper is none of either."""
    return [_single(each) for each in value] if isinstance(value, list) else _single(value)


def _single(value: Any) -> Any:
    if not isinstance(value, dict | list):
        return value
    readers: dict[str, Callable[[str], Any]] = {
        "date": datetime.date.fromisoformat,
        "timestamp": datetime.datetime.fromisoformat,
        "decimal": Decimal,
    }
    try:
        ((kind, text),) = dict(value).items()
        return readers[kind](text)
    except (ValueError, TypeError, KeyError, ArithmeticError, AttributeError):
        raise ArgumentError(
            "A parameter is a text, a number, true, false, null, an object with one date, timestamp or decimal, or a list.",
            fix='write {"date": "2026-01-31"}.',
        ) from None
