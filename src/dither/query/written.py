"""Numbers as a person writes them: read exactly, and written back so that they read the same.

A float such as 0.1 means the decimal it prints as, 1/10, and not the nearest binary fraction.
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

Number = int | float | str | Fraction | Decimal

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$|[+-]?\d+/\d*[1-9]\d*$")
_LARGEST = 10**300  # beyond it a double could not hold the number


def number(value: Any) -> Fraction | None:
    """The exact rational that `value` spells, or None if it spells no finite number of a size that can be meant.

    >>> number(0.1), number("1/3"), number("nan"), number(True)
    (Fraction(1, 10), Fraction(1, 3), None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, numbers.Rational):
        found = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, numbers.Real):
        if not math.isfinite(value):
            return None
        found = Fraction(str(value))  # the shortest decimal that reads back, for float32 as for float64
    elif isinstance(value, (str, Decimal)):
        text = str(value).strip().replace("_", "")
        if len(text) > 1000 or not _PLAIN.match(text):
            return None
        found = Fraction(text)
    else:
        return None
    return found if abs(found) <= _LARGEST and found.denominator <= _LARGEST else None


def written(value: Fraction) -> str:
    """The number as TOML text that reads back exactly: a whole number, a decimal, or a quoted fraction.

    >>> written(Fraction(3)), written(Fraction(1, 8)), written(Fraction(1, 3)), written(Fraction(1, 10**9))
    ('3', '0.125', '"1/3"', '1e-9')
    """
    if value.denominator == 1:
        return str(value.numerator)
    places = _decimal_places(value.denominator)
    if places is None:
        return f'"{value}"'
    digits = abs(value.numerator) * 10**places // value.denominator
    sign = "-" if value < 0 else ""
    if places > 6 and len(str(digits)) == 1:
        return f"{sign}{digits}e-{places}"
    whole, rest = divmod(digits, 10**places)
    return f"{sign}{whole}.{rest:0{places}d}"


def _decimal_places(denominator: int) -> int | None:
    """How many decimals 1/denominator needs; None if no number of them is enough."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    return places if rest == 1 and places <= 300 else None
