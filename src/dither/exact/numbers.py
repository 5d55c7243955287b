"""Reads numbers as exact rationals, checks them, and shows them.

A float such as 0.1 means the decimal it prints as, 1/10, and not the nearest binary fraction.
"""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, SupportsIndex, TypeVar

from dither.errors import Argument, ArgumentError, Fix, Name, Python

Number = int | float | str | Fraction | Decimal
T = TypeVar("T")

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$|[+-]?\d+/\d+$")
_LONGEST = 2000  # characters; a longer text is not a number
_LARGEST = 10**400
_TINY = Fraction(1, 10**300)  # below it, and above its inverse, a float may underflow or overflow
_MOST_BITS = 12_000  # of a whole number that Python prints in full


def parse_number(value: Any) -> Fraction | None:
    """Returns `value` as an exact rational, or None if it is not a finite number of at most 1e400.

    >>> [parse_number(each) for each in (0.1, "1/3", "nan", True)], parse_number("1e-301") == Fraction(1, 10**301)
    ([Fraction(1, 10), Fraction(1, 3), None, None], True)
    """
    if type(value) is Fraction:
        exact = value
    elif _is_bool(value):
        return None
    elif isinstance(value, numbers.Integral):
        exact = Fraction(int(value))
    elif isinstance(value, Fraction):
        # A subclass may override arithmetic, so it is copied into a plain Fraction.
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif _is_float(value) and math.isfinite(value):
        exact = Fraction(str(value))  # the shortest decimal that reads back, for float32 as for float64
    elif isinstance(value, (str, Decimal)):
        text = _stripped(value)
        if len(text) > _LONGEST or not _PLAIN.match(text) or _divides_by_zero(text):
            return None
        exact = Fraction(text)
    else:
        return None
    return exact if abs(exact) <= _LARGEST else None


def _is_bool(value: Any) -> bool:
    """Returns whether it is Python's or numpy's bool. Compares the name, so that numpy need not be imported."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (type(value).__module__ == "numpy" and isinstance(value, numbers.Real))


def _stripped(value: str | Decimal) -> str:
    return str(value).strip().replace("_", "")


def _divides_by_zero(text: str) -> bool:
    below = text.partition("/")[2]
    return bool(below) and not below.strip("0")


def rational(value: Number, name: str) -> Fraction:
    """Returns `value` as an exact rational. Refuses anything else; `name` says which argument it is.

    >>> rational(0.1, "epsilon"), rational("1/3", "epsilon"), rational("1e-6", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    """
    exact = parse_number(value)
    if exact is None:
        raise _not_a_number(value, name)
    return exact


def _not_a_number(value: Any, name: str) -> ArgumentError:
    """Returns the error that says why this is not a number."""
    it = Name(name)
    if _is_bool(value):
        what, fix = f"must be a number, and it is {value!r}", "write {it} as a number such as 1/2."
        return ArgumentError(f"{name} {what}.", fix=Fix(fix, it=it))
    if _is_float(value) and not math.isfinite(value):
        return ArgumentError(f"{name} must be finite, and it is {value!r}.", fix=Fix("give {it} a finite value.", it=it))
    text = _stripped(value) if isinstance(value, (str, Decimal)) else None
    if text is not None and text.endswith("%") and (share := parse_number(text[:-1])) is not None:
        what = f"{name} must be a number without a sign for percent, and it is {text[:60]!r}."
        return ArgumentError(what, fix=Fix(f"write {{it}} as in '{share / 100}'.", it=it))
    if text is not None and (len(text) > _LONGEST or not _PLAIN.match(text)):
        what = f"{name} must be a finite number, and it is {text[:60]!r}."
        return ArgumentError(what, fix=Fix("write {it} as in '0.5', '1/2' or '1e-6'.", it=it))
    if text is not None and _divides_by_zero(text):
        return ArgumentError(f"{name} divides by zero: {text!r}.", fix=Fix("write {it} as in '1/2'.", it=it))
    if text is None and not (isinstance(value, (numbers.Integral, Fraction)) or _is_float(value)):
        what = f"{name} must be a number, and it is a {type(value).__name__}."
        return ArgumentError(what, fix=Fix("write {it} as an int, a Fraction, a float or text such as '1/2'.", it=it))
    return ArgumentError(f"{name} is too large to be meant: more than 1e400.", fix=Fix("give {it} a smaller value.", it=it))


def positive(value: Number, name: str) -> Fraction:
    """Returns the exact rational. Refuses 0 and less."""
    exact = rational(value, name)
    if exact <= 0:
        raise ArgumentError(
            f"{name} must be above 0, and it is {show(exact)}.", fix=Fix("give {it} a value above 0.", it=Name(name))
        )
    return exact


def not_negative(value: Number, name: str) -> Fraction:
    """Returns the exact rational. Refuses less than 0."""
    exact = rational(value, name)
    if exact < 0:
        raise ArgumentError(
            f"{name} must be at least 0, and it is {show(exact)}.", fix=Fix("give a {it} of 0 or more.", it=Name(name))
        )
    return exact


def between(
    value: Number, name: str, low: Number, high: Number, *, open_low: bool = False, open_high: bool = False
) -> Fraction:
    """Returns the exact rational. Refuses values outside [low, high]; `open_low` and `open_high` exclude an end."""
    exact, bottom, top = rational(value, name), rational(low, "low"), rational(high, "high")
    fits = (bottom < exact if open_low else bottom <= exact) and (exact < top if open_high else exact <= top)
    if not fits:
        left, right = ("(" if open_low else "["), (")" if open_high else "]")
        rule = f"{left}{show(bottom)}, {show(top)}{right}"
        raise ArgumentError(
            f"{name} must lie in {rule}, and it is {show(exact)}.", fix=Fix(f"give {{it}} a value in {rule}.", it=Name(name))
        )
    return exact


def whole(value: SupportsIndex, name: str, *, least: int | None = None) -> int:
    """Returns a Python int. Refuses floats, bools and anything below `least`."""
    try:
        integer = operator.index(value)
    except TypeError:  # also for a class or an array, whose __index__ does not return an int
        integer = None
    if integer is None or _is_bool(value):
        raise ArgumentError(
            f"{name} must be a whole number, and it is a {type(value).__name__}.",
            fix=Fix("give {it} as an int.", it=Name(name)),
        )
    if least is not None and integer < least:
        shown = show(Fraction(integer))
        raise ArgumentError(
            f"{name} must be at least {least}, and it is {shown}.",
            fix=Fix(f"give {{it}} a value of {least} or more.", it=Name(name)),
        )
    return int(integer)


def flag(value: bool, name: str) -> bool:
    """Returns a bool. Refuses other values, also those that count as true or false."""
    if not _is_bool(value):
        raise ArgumentError(
            f"{name} must be True or False, and it is a {type(value).__name__}.",
            fix=Fix("write {it}.", it=Argument(name, True)),
        )
    return bool(value)


def one_of(value: str, name: str, *choices: str) -> str:
    """Returns the word. Refuses a word that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        got = repr(value[:40]) if isinstance(value, str) else f"a {type(value).__name__}"
        listed = " or ".join(repr(choice) for choice in choices)
        raise ArgumentError(
            f"{name} must be {listed}, and it is {got}.", fix=Fix("write {it}.", it=Python(f"{name}={choices[0]!r}"))
        )
    return value


def items(values: Iterable[T], name: str, fix: str) -> list[T]:
    """Returns the members of a list or another iterable. Refuses a text, whose members would be its letters."""
    if isinstance(values, (str, bytes)) or not hasattr(type(values), "__iter__"):
        raise ArgumentError(f"{name} must be a list, and it is a {type(values).__name__}.", fix=fix)
    return list(values)


def show(value: Any) -> str:
    """Shows a rational: the decimal if it is short, else the fraction.

    >>> show(Fraction(1, 8)), show(Fraction(1, 3)), show(Fraction(1, 3**50)), show(Fraction(1, 10**9999))
    ('0.125', '1/3', '1.3929555691e-24', '1e-9999')
    """
    if not isinstance(value, Fraction):
        return str(value)
    whole = value.denominator == 1
    beyond = value.numerator.bit_length() > _MOST_BITS if whole else not _TINY <= abs(value) < 1 / _TINY
    if beyond:
        return _short_exponent(f"{Context(prec=12).divide(Decimal(value.numerator), Decimal(value.denominator)).normalize():e}")
    if whole:
        text = str(value.numerator)
        return text if len(text) <= 24 else f"{text[0]}.{text[1:7]}e{len(text) - 1}" if value > 0 else f"-{show(-value)}"
    decimal = _short_exponent(f"{float(value):.12g}")
    if Fraction(decimal) == value or value.denominator > 10**24:
        return decimal
    text = str(value)
    return text if len(text) <= 24 else decimal


def encode_toml(value: Fraction) -> str:
    """Encodes the number as TOML text that reads back exactly: a whole number, a decimal, or a quoted fraction.

    >>> encode_toml(Fraction(3)), encode_toml(Fraction(1, 8)), encode_toml(Fraction(1, 3)), encode_toml(Fraction(1, 10**9))
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
    """Returns how many decimals 1/denominator needs, or None if it has no finite decimal form."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    return places if rest == 1 and places <= 300 else None


def show_rounded(value: float) -> str:
    """Shows about three digits, with a power of ten only for very small and very large values.

    >>> show_rounded(4.23111), show_rounded(250000.0), show_rounded(1e-9)
    ('4.23', '250000', '1e-9')
    """
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    return _short_exponent(f"{value:.3g}")


def _short_exponent(text: str) -> str:
    """Shortens 1e-09 to 1e-9 and 1e+20 to 1e20."""
    return re.sub(r"e(-?)[+]?0*(?=[0-9])", r"e\1", text)


def show_about(value: Fraction, *, up: bool, digits: int = 6) -> str:
    """Shows a few digits, rounded up or down. Round a cost up and a remainder down: then neither promises too much.

    >>> show_about(Fraction(1, 3), up=True), show_about(Fraction(1, 10), up=False)
    ('0.333334', '0.1')
    >>> show_about(Fraction(1, 3 * 10**9), up=False, digits=2)
    '3.3e-10'
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR, Emax=10**9, Emin=-(10**9))
    short = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return f"{short:f}" if short == 0 or abs(short.adjusted()) < 6 else _short_exponent(f"{short:e}")


def show_decimal(value: Fraction) -> str:
    """Shows a bound: a whole number, or up to ten digits.

    >>> show_decimal(Fraction(120)), show_decimal(Fraction(1, 3))
    ('120', '0.3333333333')
    """
    return str(value.numerator) if value.denominator == 1 else _short_exponent(f"{float(value):.10g}")


def show_percent(p: Fraction) -> str:
    """Shows 0.5 as "50 %". Never rounds a share below 1 to 100 %.

    >>> show_percent(Fraction(19, 20)), show_percent(1 - Fraction(1, 10**18))
    ('95 %', '99.9999 %')
    """
    text = f"{float(100 * p):g}"
    return f"{text if text != '100' or p >= 1 else '99.9999'} %"
