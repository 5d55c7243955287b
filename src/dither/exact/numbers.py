"""Reading numbers exactly: what a person writes is what is computed with.

A float such as 0.1 means the decimal it prints as, 1/10, and not the nearest binary fraction.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from dither.errors import ArgumentError

Number = int | float | str | Fraction | Decimal
T = TypeVar("T")

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?$|[+-]?\d+/\d+$")
_LARGEST = 10**400


def rational(value: Number, name: str) -> Fraction:
    """The exact rational that `value` spells.

    >>> rational(0.1, "epsilon"), rational("1/3", "epsilon"), rational("1e-6", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    """
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be a number, and it is {value!r}.", fix=f"write {name} as a number such as 1/2.")
    if isinstance(value, (int, np.integer)):
        found = Fraction(int(value))
    elif isinstance(value, Fraction):
        # A subclass may bring arithmetic of its own; what is computed with from here on is a plain Fraction.
        found = value if type(value) is Fraction else Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ArgumentError(f"{name} must be finite, and it is {value!r}.", fix=f"give {name} a finite value.")
        found = Fraction(str(value))  # the shortest decimal that reads back, for float32 as for float64
    elif isinstance(value, (str, Decimal)):
        found = _from_text(str(value).strip().replace("_", ""), name)
    else:
        raise ArgumentError(
            f"{name} must be a number, and it is a {type(value).__name__}.",
            fix=f"write {name} as an int, a Fraction, a float or text such as '1/2'.",
        )
    if abs(found) > _LARGEST:
        raise ArgumentError(f"{name} is too large to be meant: more than 1e400.", fix=f"give {name} a smaller value.")
    return found


def _from_text(text: str, name: str) -> Fraction:
    if len(text) > 2000 or not _PLAIN.match(text):
        raise ArgumentError(
            f"{name} must be a finite number, and it is {text[:60]!r}.", fix=f"write {name} as in '0.5', '1/2' or '1e-6'."
        )
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ArgumentError(f"{name} divides by zero: {text!r}.", fix=f"write {name} as in '1/2'.") from None


def positive(value: Number, name: str) -> Fraction:
    """The exact rational, refused unless it is above zero."""
    found = rational(value, name)
    if found <= 0:
        raise ArgumentError(f"{name} must be above 0, and it is {show(found)}.", fix=f"give {name} a value above 0.")
    return found


def not_negative(value: Number, name: str) -> Fraction:
    """The exact rational, refused below zero."""
    found = rational(value, name)
    if found < 0:
        raise ArgumentError(f"{name} must be at least 0, and it is {show(found)}.", fix=f"give a {name} of 0 or more.")
    return found


def between(
    value: Number, name: str, low: Number, high: Number, *, open_low: bool = False, open_high: bool = False
) -> Fraction:
    """The exact rational, refused unless it lies from `low` to `high` (either end excluded on request)."""
    found, bottom, top = rational(value, name), rational(low, "low"), rational(high, "high")
    fits = (bottom < found if open_low else bottom <= found) and (found < top if open_high else found <= top)
    if not fits:
        left, right = ("(" if open_low else "["), (")" if open_high else "]")
        rule = f"{left}{show(bottom)}, {show(top)}{right}"
        raise ArgumentError(f"{name} must lie in {rule}, and it is {show(found)}.", fix=f"give {name} a value in {rule}.")
    return found


def whole(value: SupportsIndex, name: str, *, least: int | None = None) -> int:
    """A Python int, refused for floats, bools and anything below `least`."""
    try:
        found = operator.index(value)
    except TypeError:  # also of a class or an array, which have an __index__ that is none
        found = None
    if found is None or isinstance(value, (bool, np.bool_)):
        raise ArgumentError(
            f"{name} must be a whole number, and it is a {type(value).__name__}.", fix=f"give {name} as an int."
        )
    if least is not None and found < least:
        shown = show(Fraction(found))
        raise ArgumentError(
            f"{name} must be at least {least}, and it is {shown}.", fix=f"give {name} a value of {least} or more."
        )
    return int(found)


def flag(value: bool, name: str) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be True or False, and it is a {type(value).__name__}.", fix=f"write {name}=True.")
    return bool(value)


def word(value: str, name: str, *choices: str) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        given = repr(value[:40]) if isinstance(value, str) else f"a {type(value).__name__}"
        listed = " or ".join(repr(choice) for choice in choices)
        raise ArgumentError(f"{name} must be {listed}, and it is {given}.", fix=f"write {name}={choices[0]!r}.")
    return value


def items(values: Iterable[T], name: str, fix: str) -> list[T]:
    """The members of a list or another iterable; a text is none, for its letters are never meant."""
    if isinstance(values, (str, bytes)) or not hasattr(type(values), "__iter__"):
        raise ArgumentError(f"{name} must be a list, and it is a {type(values).__name__}.", fix=fix)
    return list(values)


def show(value: Any) -> str:
    """A short text for a rational: the decimal where it is short, else the fraction."""
    if not isinstance(value, Fraction):
        return str(value)
    if value.denominator == 1:
        text = str(value.numerator)
        return text if len(text) <= 24 else f"{text[0]}.{text[1:7]}e{len(text) - 1}" if value > 0 else f"-{show(-value)}"
    short = Fraction(f"{float(value):.12g}") if abs(value) < 10**300 else None
    if short == value:
        return f"{float(value):.12g}"
    text = str(value)
    return text if len(text) <= 24 else f"{float(value):.12g}"


def rounded(value: float) -> str:
    """Three digits, never in powers of ten where a plain number is short.

    >>> rounded(4.23111), rounded(250000.0), rounded(1e-9)
    ('4.23', '250000', '1e-09')
    """
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    return f"{value:.3g}"
