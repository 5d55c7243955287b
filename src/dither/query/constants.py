"""The constants of a question are values that SQL could have written, also where it is built by hand from nodes.

What a plan cannot say, a ledger cannot keep and an engine cannot compare is refused here, before anything is charged.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from dither.errors import QueryError
from dither.query.nodes import Aggregate, Literal, Query

_LARGEST = 2**63  # an engine's whole numbers lie below it
_LONGEST = 4096  # bits of a fraction's two parts: more is no number of a question
_KINDS = (type(None), bool, int, float, Fraction, str, datetime.date, datetime.datetime)


def check_constants(query: Query) -> None:
    """Refuses literals, quantiles' shares and limits that are no values.

    >>> from dither.query.nodes import Call, Column, Filter, Scan
    >>> adult = Call("ge", (Column("p.age"), Literal(b"18")))
    >>> check_constants(Query(Filter(Scan("people", "p"), adult), (), (), ()))
    Traceback (most recent call last):
    dither.errors.QueryError: A constant cannot be of the kind bytes.
      Fix: write a number, a text, a date, a timestamp without a zone, TRUE, FALSE or NULL.   Charged: nothing.
    """
    for node in _walk(query):
        if isinstance(node, Literal):
            _value(node.value, node.span)
        elif isinstance(node, Aggregate) and node.parameter is not None:
            _number(node.parameter, node.span)
    for name, rows in (("limit", query.limit), ("offset", query.offset)):
        if not (type(rows) is int and 0 <= rows < _LARGEST) and not (name == "limit" and rows is None):
            raise QueryError(f"The {name} is a whole number of rows.", fix=f"give {name} a number such as 10.")


def _walk(node: Any) -> Iterator[Any]:
    """The nodes of a question, itself first."""
    if isinstance(node, tuple):
        for part in node:
            yield from _walk(part)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        for each in fields(node):
            if each.name != "span":
                yield from _walk(getattr(node, each.name))


def _value(value: Any, span: tuple[int, int] | None) -> None:
    if type(value) not in _KINDS:  # a subclass may compare, hash or print as it likes
        raise QueryError(
            f"A constant cannot be of the kind {type(value).__name__}.",
            span=span,
            fix="write a number, a text, a date, a timestamp without a zone, TRUE, FALSE or NULL.",
        )
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise QueryError("A timestamp has no zone here.", span=span, fix="write it without one, as in the data.")
    if isinstance(value, str):
        _text(value, span)
    elif isinstance(value, (int, float, Fraction)):
        _number(value, span)


def _text(value: str, span: tuple[int, int] | None) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise QueryError("A text of the question is no Unicode text.", span=span, fix="leave lone surrogates out.") from None


def _number(value: Any, span: tuple[int, int] | None) -> None:
    if type(value) not in (bool, int, float, Fraction):
        raise QueryError(
            f"A number is needed here, and this is {type(value).__name__}.", span=span, fix="write one such as 1/2."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryError("A constant is a finite number.", span=span, fix="write a number such as 16 or 1.5.")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise QueryError("This number is too large.", span=span, fix="write a smaller number.")
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > _LONGEST:
        raise QueryError("This number has too many digits.", span=span, fix="write a number such as 16 or 1.5.")
