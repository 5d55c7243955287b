"""Canonical text: one value, one spelling, for ever. What is hashed and signed is written here.

JSON with sorted keys, ASCII only, no spaces; a rational is a text such as "1/10" in lowest terms. No floats.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode
_RATIONAL = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)
_DIGITS = 1000  # of a numerator or denominator; nothing meant is longer, and longer ones cost time to read
_TOO_LONG = 10**_DIGITS


def canonical(value: Any) -> str:
    """
    >>> canonical({"b": [1, None], "a": "ε"})
    '{"a":"\\\\u03b5","b":[1,null]}'
    """
    return _encode(value)


def parsed(text: Any) -> Any:
    """JSON in which every name stands once; a ValueError for anything else, however deep."""
    if not isinstance(text, str):
        raise ValueError("no text")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("too deep") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and the infinities, which JSON does not have


def digest(purpose: str, text: str) -> str:
    """SHA-256 in hex. The purpose keeps a hash made for one thing from passing for another."""
    return hashlib.sha256(f"dither {purpose}\n{text}".encode("ascii")).hexdigest()


def written(value: Fraction) -> str:
    """
    >>> written(Fraction(2, 20)), written(Fraction(3))
    ('1/10', '3')
    """
    if not 0 <= value.numerator < _TOO_LONG or value.denominator >= _TOO_LONG:
        raise ArgumentError(
            f"A rational in a ledger is not negative and has at most {_DIGITS} digits above and below the line.",
            fix="round the price up to fewer digits.",
        )
    return str(value)


def read(text: Any) -> Fraction:
    """The rational of a canonical text; a ValueError for any other spelling."""
    if not isinstance(text, str) or len(text) > 2 * _DIGITS + 1 or not _RATIONAL.fullmatch(text):
        raise ValueError("no rational")
    value = Fraction(text)
    if str(value) != text:
        raise ValueError("not in lowest terms")
    return value


def plain(value: Any, name: str) -> Any:
    """A value made of what canonical text can say: texts, whole numbers, truth values, null, lists and mappings of them."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): plain(part, name) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part, name) for part in value]
    raise ArgumentError(
        f"{name} may hold texts, whole numbers, rationals and lists of them, and there is a {type(value).__name__} in it.",
        fix="write a float as the decimal text that is meant.",
    )
