"""Casts. A value that does not cast is NULL. Text is read only in plain spellings, the same in every engine."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from fractions import Fraction

from dither.query.functions.base import Cell, Facts, Function, as_doubles, double, fixed
from dither.query.functions.dates import day

# The whole text must match these patterns (ASCII digits only). Engines use the same ones.
WHOLE_TEXT = "-?[0-9]{1,18}"
REAL_TEXT = "-?[0-9]{1,18}([.][0-9]{1,18})?"
_TIME_TEXT = "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
DATE_TEXT = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({_TIME_TEXT})?"
MOMENT_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{0,5}[1-9])?"  # one for each moment
DATE_LETTERS = 10  # of them are the date
LIMIT = 1 << 62  # larger integers are NULL, also as keys


def to_int(x: Cell) -> int | None:
    """Casts to the nearest whole number, halves to the even one (as DuckDB does); NULL beyond 2^62 and for other text.

    >>> to_int(2.5), to_int(-3.5), to_int("12"), to_int("12.0"), to_int(1e300)
    (2, -4, 12, None, None)
    """
    if isinstance(x, str):
        return int(x) if re.fullmatch(WHOLE_TEXT, x) else None
    if isinstance(x, float):
        return round(x) if abs(x) <= LIMIT else None
    return int(x) if isinstance(x, int) else None


def to_real(x: Cell) -> float | None:
    """Casts to the nearest double; text must be a plain decimal without exponent."""
    if isinstance(x, str):
        return float(x) if re.fullmatch(REAL_TEXT, x) else None
    return double(x) if isinstance(x, (int, float)) else None


def to_text(x: Cell) -> str | None:
    """Casts an int, bool ('true', 'false'), date (yyyy-mm-dd) or text to text."""
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, datetime.date):
        return day(x).isoformat()
    return str(x) if isinstance(x, (int, str)) else None


def to_date(x: Cell) -> datetime.date | None:
    """Casts text yyyy-mm-dd (a valid day from year 1 on, also with a time) or a timestamp to a date.

    >>> to_date("2024-02-29 08:15"), to_date("2024-02-29 25:15")
    (datetime.date(2024, 2, 29), None)
    """
    if isinstance(x, str):
        try:
            return datetime.date.fromisoformat(x[:DATE_LETTERS]) if re.fullmatch(DATE_TEXT, x) else None
        except ValueError:
            return None
    return day(x) if isinstance(x, datetime.date) else None


def to_bool(x: Cell) -> bool | None:
    """Casts text 'true' or 'false' (in any ASCII case) or a number (true unless zero) to a bool."""
    if isinstance(x, str):
        return {"true": True, "false": False}.get(x.lower()) if x.isascii() else None
    return bool(x) if isinstance(x, (int, float)) else None


def as_key(x: Cell) -> bool | int | str | datetime.date | None:
    """Converts a value to a group's key: a whole double becomes an integer, NULL beyond 2^62.

    >>> as_key(30.0), as_key(-0.0), as_key(float("inf")), as_key("north")
    (30, 0, None, 'north')
    """
    if isinstance(x, float):
        return int(x) if abs(x) <= LIMIT else None
    return x


def _int(a: list[Facts]) -> Facts:
    x = a[0]
    if x.kind == "bool":
        return Facts("int", Fraction(0), Fraction(1), x.nullable, True, None, Fraction(1))
    if x.kind == "text":
        return Facts("int", None, None, True, True, None, Fraction(1))
    low, high = (x.low, x.high) if x.kind == "int" else _halves(as_doubles(x))
    too_wide = x.kind != "int" and (low is None or high is None or low < -LIMIT or high > LIMIT)
    return Facts("int", low, high, x.nullable or too_wide, True, None, Fraction(1))


def _halves(interval: tuple[Fraction | None, Fraction | None]) -> tuple[Fraction | None, Fraction | None]:
    low, high = interval
    return (None if low is None else Fraction(round(low)), None if high is None else Fraction(round(high)))


def _real(a: list[Facts]) -> Facts:
    x = a[0]
    if x.kind == "bool":
        return Facts("real", Fraction(0), Fraction(1), x.nullable, True, None, Fraction(1))
    low, high = as_doubles(x) if x.numeric else (None, None)
    return Facts("real", low, high, x.nullable or x.kind == "text", x.whole, None, x.step)


def _date(a: list[Facts]) -> Facts:
    x = a[0]
    low = None if x.low is None else Fraction(math.floor(x.low))
    high = None if x.high is None else Fraction(math.floor(x.high))
    return Facts("date", low, high, x.nullable or x.kind == "text")


def _bool(a: list[Facts]) -> Facts:
    return Facts("bool", nullable=a[0].nullable or a[0].kind == "text")


def _cast(
    name: str, accepts: str, compute: Callable[[Cell], Cell], infer: Callable[[list[Facts]], Facts], meaning: str
) -> Function:
    return Function(name, meaning, (accepts,), compute, infer, 1, 1)


CASTS = (
    _cast("to_int", "castable", to_int, _int, "the nearest whole number, halves to the even one; NULL beyond 2^62"),
    _cast("to_real", "castable", to_real, _real, "the nearest double; text must be a plain decimal"),
    _cast("to_text", "plain", to_text, fixed("text"), "the usual spelling"),
    _cast("to_date", "datelike", to_date, _date, "text yyyy-mm-dd, also with a time, or a timestamp's date"),
    _cast("to_bool", "castable", to_bool, _bool, "'true' or 'false'; a number other than zero is true"),
)
