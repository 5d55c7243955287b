"""Rounding, roots, logarithms, and choosing among numbers. Computed in IEEE doubles; what is not a number is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.query.facts import Bound, Facts, as_doubles, double, monotone, outward
from dither.query.function import Cell, Function, any_nullable, either, numeric, together
from dither.query.functions_arithmetic import ARITHMETIC, Number, real
from dither.query.functions_power import POWER


def whole_part(rounding: Callable[[float], int]) -> Callable[[Number], float]:
    def compute(x: Number) -> float:
        value = double(x)
        return value if math.isinf(value) else float(rounding(value))

    return compute


def half_away(x: Any) -> int:
    """The nearest whole number, halves away from zero.

    >>> [half_away(x) for x in (0.5, -0.5, 2.5, 0.49999999999999994)]
    [1, -1, 3, 0]
    """
    cut = int(x)
    if abs(x - cut) < 0.5:  # exact: both lie within one of each other
        return cut
    return cut + (1 if x > 0 else -1)


def _root(x: Number) -> float | None:
    value = double(x)
    return math.sqrt(value) if value >= 0 else None


def _logarithm(x: Number) -> float | None:
    value = double(x)
    return math.log(value) if value > 0 else None


def exponential(x: Number) -> float:
    try:
        return math.exp(double(x))
    except OverflowError:
        return math.inf


def _sign(x: Number) -> float:
    return float((x > 0) - (x < 0))


def _to_whole(rounding: Callable[[Fraction], int]) -> Callable[[list[Facts]], Facts]:
    def infer(a: list[Facts]) -> Facts:
        low, high = as_doubles(a[0])
        interval = (None if low is None else Fraction(rounding(low)), None if high is None else Fraction(rounding(high)))
        return real(interval, a[0].nullable, True)

    return infer


def _rooted(a: list[Facts]) -> Facts:
    low, high = as_doubles(a[0])
    found = monotone(math.sqrt, (max(low or Fraction(0), Fraction(0)), None if high is None else max(high, Fraction(0))))
    return real((max(found[0] or Fraction(0), Fraction(0)), found[1]), a[0].nullable or low is None or low < 0, False)


def _logged(a: list[Facts]) -> Facts:
    low, high = as_doubles(a[0])
    domain = (low if low is not None and low > 0 else None, high if high is None or high > 0 else Fraction(1))
    # Below the smallest double there is no positive value: the logarithm of any value is above -746.
    found = monotone(lambda x: math.log(x) if x > 0 else -746.0, domain)
    bottom = found[0] if found[0] is not None else Fraction(-746)
    return real((bottom, found[1]), a[0].nullable or low is None or low <= 0, False)


def _exponentiated(a: list[Facts]) -> Facts:
    low, high = monotone(exponential, as_doubles(a[0]))
    return real((max(low or Fraction(0), Fraction(0)), high), a[0].nullable, False)


# --- choosing among numbers -------------------------------------------------------------------------------------


def least(*values: Any) -> Cell:
    """The smallest; with an infinity or a fraction among them as a double."""
    smallest: Cell = min(together(values))
    return smallest


def greatest(*values: Any) -> Cell:
    largest: Cell = max(together(values))
    return largest


def clamp(x: Any, low: Any, high: Any) -> Cell:
    return least(greatest(x, low), high)


def _extreme(pick: Callable[..., Fraction], one_bound_is_enough: str) -> Callable[[list[Facts]], Facts]:
    def infer(a: list[Facts]) -> Facts:
        found = either(a, any_nullable(a))
        ends = {end: [getattr(x, end) for x in a] for end in ("low", "high")}
        got: dict[str, Bound] = {}
        for end, bounds in ends.items():
            known = [bound for bound in bounds if bound is not None]
            enough = known if end == one_bound_is_enough else len(known) == len(bounds)
            got[end] = pick(known) if enough else None
        if found.kind == "real":
            got["low"], got["high"] = outward(got["low"], got["high"])
        return replace(found, low=got["low"], high=got["high"])

    return infer


_least = _extreme(min, "high")
_greatest = _extreme(max, "low")


def _clamped(a: list[Facts]) -> Facts:
    found = _least([_greatest([a[0], a[1]]), a[2]])
    return replace(found, step=a[0].step)


def _bad_clamp(constants: list[Any]) -> str | None:
    low, high = constants[1], constants[2]
    return "its lower end is above its upper end" if low is not None and high is not None and low > high else None


NUMBERS = (
    numeric("floor", 1, whole_part(math.floor), _to_whole(math.floor), "the next whole number below"),
    numeric("ceil", 1, whole_part(math.ceil), _to_whole(math.ceil), "the next whole number above"),
    numeric("round", 1, whole_part(half_away), _to_whole(half_away), "the nearest whole number, halves away from zero"),
    numeric("sqrt", 1, _root, _rooted, "the square root; NULL below 0"),
    numeric("ln", 1, _logarithm, _logged, "the natural logarithm; NULL at or below 0"),
    numeric("exp", 1, exponential, _exponentiated, "e to the x; an infinity where it overflows"),
    numeric("sign", 1, _sign, lambda a: real((Fraction(-1), Fraction(1)), a[0].nullable, True), "-1, 0 or 1"),
    Function("least", "the smallest; NULL if any is NULL", ("any",), least, _least, 1, None, alike=True),
    Function("greatest", "the largest; NULL if any is NULL", ("any",), greatest, _greatest, 1, None, alike=True),
    Function(
        "clamp",
        "x moved into [low, high]; NULL stays NULL",
        ("number",),
        clamp,
        _clamped,
        3,
        3,
        constants=(1, 2),
        refuse=_bad_clamp,
    ),
    POWER,
    *ARITHMETIC,
)
