"""A plan as one text, the same for equal plans: what a replay of an answer goes by. Questions that mean the same may well
have different plans (another alias, swapped conditions): docs/queries.md says which are told apart.

JSON with sorted keys. An object has the name of its class under "is" (a word that no field can have) and those of its fields
that count in equality, so places in the question's text are left out. Numbers are written by their exact value: a whole
number as itself, any other as {"is": "number", "value": "1/10"}. TRUE is not 1 here, whatever Python says. Whatever has no
spelling here is refused: two different plans must never share a text.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from dither.planning.plan import Plan

FORMAT = 1  # a text is for ever: change what it says, and this number changes
_PLAIN_DIGITS = 4000  # Python writes and reads whole numbers up to 4300 digits


def canonical(plans: Sequence[Plan], purpose: str = "answer") -> str:
    """The text of plans that are run together, for a purpose: an answer, or a proposal of bounds."""
    return json.dumps(
        {"format": FORMAT, "purpose": purpose, "plans": [spelled(plan) for plan in plans]},
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
    )


def spelled(value: Any) -> Any:
    """A value in a form that JSON writes in one way only.

    >>> spelled((1, Fraction(2), Fraction(1, 2), 0.5, True, None, "1"))
    [1, 2, {'is': 'number', 'value': '1/2'}, {'is': 'number', 'value': '1/2'}, True, None, '1']
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        return _number(value)
    if isinstance(value, tuple):
        return [spelled(each) for each in value]
    if isinstance(value, datetime.datetime):
        return {"is": "timestamp", "value": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"is": "date", "value": value.isoformat()}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        return {"is": kind.__name__, **{name: spelled(getattr(value, name)) for name in _counted(kind)}}
    raise TypeError(f"a plan holds a {type(value).__name__}, which has no spelling")


@cache
def _counted(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.compare)


def _number(value: Any) -> Any:
    if type(value) is int and _short(value):
        return value
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise TypeError("a plan holds a number that is not finite")
    exact = Fraction(int(value)) if isinstance(value, (int, np.integer)) else Fraction(value)
    if exact.denominator == 1 and _short(exact.numerator):
        return exact.numerator
    return {"is": "number", "value": f"{digits(exact.numerator)}/{digits(exact.denominator)}"}


def digits(value: int) -> str:
    """A whole number of any size as text that int(text, 0) reads back."""
    return str(value) if _short(value) else hex(value)


def _short(value: int) -> bool:
    return value.bit_length() < 3 * _PLAIN_DIGITS
