"""Reading exact answers and writing noisy ones: the only place where private values meet types and widths.

Refused by type and shape, which are public; never by value. Arrays are brought into +-2^62 steps before
noise and saturate at the ends of 64 bits after it: clamping never moves two answers apart, so it is free,
and what happens to a noisy answer is post-processing. One whole number has no limit.
A float stands for its exact binary value, NaN counts as 0, and infinities go to the ends of the clamp.

Arrays on a grid come back as int64 (grid 1), as float64 if the grid is a power of two (steps are kept
within +-2^52, so that every product is exact), and otherwise as an array of Fractions. The grid alone
decides, so nothing about the data shows in the type.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.law import Integers
from dither.mechanisms.norms import Norm

Whole = int | NDArray[np.integer[Any]]
Answer = int | float | Fraction | Decimal | NDArray[Any]

_WIDE = 1 << 62
_NARROW = 1 << 52
_ENDS = np.iinfo(np.int64)
_NUMBERS = (int, float, Fraction, Decimal, np.integer, np.floating)
_FAR = 20_000  # no grid has so many digits


def whole(exact: Whole, norm: Norm | None = None, grid: Fraction | None = None) -> int | Integers:
    """A whole-number answer: an int as it is, an array of integers as int64 within +-2^62."""
    if isinstance(exact, np.ndarray):
        _shape(exact, norm, grid)
        if exact.dtype.kind not in "iu":
            raise _wrong(f"an array of {exact.dtype}", "an array of integers")
        return _held(np.asarray(exact), _WIDE)
    if isinstance(exact, (bool, np.bool_)) or not isinstance(exact, (int, np.integer)):
        raise _wrong(f"a {type(exact).__name__}", "an int")
    return int(exact)


def _held(exact: NDArray[Any], most: int) -> Integers:
    """An array of integers of any width as int64 within +-most."""
    room = np.iinfo(exact.dtype)
    held: Integers = np.clip(exact, max(-most, int(room.min)), min(most, int(room.max))).astype(np.int64)
    return held


def _wrong(found: str, wanted: str) -> ArgumentError:
    return ArgumentError(f"exact must be a whole number or an array of them, and it is {found}.", fix=f"give {wanted}.")


def _shape(exact: NDArray[Any], norm: Norm | None, grid: Fraction | None) -> None:
    if exact.ndim != 1:
        raise ArgumentError(f"exact must have one axis, and it has {exact.ndim}.", fix="flatten the array.")
    longest = None if norm is None else norm.longest(grid)
    if longest is not None and len(exact) > longest:
        raise ArgumentError(
            f"exact has {len(exact)} coordinates, and its sensitivity was declared for {longest}.",
            fix=f"declare the sensitivity with dimension={len(exact)}.",
        )


def limit(grid: Fraction) -> int:
    """The most steps an array may hold."""
    return _NARROW if grid != 1 and _power_of_two(grid) else _WIDE


def _power_of_two(grid: Fraction) -> bool:
    top, bottom = grid.numerator, grid.denominator
    # Far from the ends of a float's range, so that no product is rounded or overflows.
    return top & (top - 1) == 0 and bottom & (bottom - 1) == 0 and top < 2**900 and bottom < 2**900


def steps(exact: Answer, grid: Fraction, norm: Norm | None = None) -> int | Integers:
    """The answer in steps of the grid: rounded to the nearest, halves upwards.

    >>> steps(0.375, Fraction(1, 4)), steps(float("nan"), Fraction(1)), steps(Fraction(-1, 2), Fraction(1))
    (2, 0, 0)
    """
    if isinstance(exact, np.ndarray):
        _shape(exact, norm, grid)
        return _many_steps(np.asarray(exact), grid)
    return _one_step(exact, grid, _WIDE)


def _one_step(exact: Any, grid: Fraction, most: int) -> int:
    # A longdouble would have to be rounded to be read, which can move two answers apart.
    if isinstance(exact, (bool, np.bool_, np.longdouble)) or not isinstance(exact, _NUMBERS):
        raise ArgumentError(
            f"exact must be a number or an array of numbers, and it is a {type(exact).__name__}.",
            fix="give an int, a float, a Fraction or an array.",
        )
    if isinstance(exact, Decimal):
        value = _from_decimal(exact, grid, most)
    elif isinstance(exact, (float, np.floating)):
        value = _from_float(float(exact), grid, most)
    else:
        value = Fraction(int(exact)) if isinstance(exact, np.integer) else Fraction(exact)
    return min(max(math.floor(value / grid + Fraction(1, 2)), -most), most)


def _from_float(exact: float, grid: Fraction, most: int) -> Fraction:
    if math.isfinite(exact):
        return Fraction(exact)
    return Fraction(0) if math.isnan(exact) else grid * most * (1 if exact > 0 else -1)


def _from_decimal(exact: Decimal, grid: Fraction, most: int) -> Fraction:
    if exact.is_nan() or (exact.is_finite() and exact.adjusted() < -_FAR):
        return Fraction(0)
    if exact.is_infinite() or exact.adjusted() > _FAR:  # such digits would fill the memory, and the clamp takes them anyway
        return grid * most * (-1 if exact.is_signed() else 1)
    return Fraction(exact)


def _many_steps(exact: NDArray[Any], grid: Fraction) -> Integers:
    most = limit(grid)
    if exact.dtype.kind in "iu" and grid.numerator == 1 and grid.denominator < most:
        return _held(exact, most // grid.denominator) * np.int64(grid.denominator)
    if exact.dtype.kind not in "iufO" or (exact.dtype.kind == "f" and exact.dtype.itemsize > 8):
        raise ArgumentError(f"exact must be an array of numbers, and it is one of {exact.dtype}.", fix="give ints or floats.")
    if exact.dtype.kind == "f" and _power_of_two(grid):
        return _float_steps(exact.astype(np.float64), grid, most)
    return np.array([_one_step(value, grid, most) for value in exact], dtype=np.int64)


def _float_steps(exact: NDArray[np.float64], grid: Fraction, most: int) -> Integers:
    # Dividing by a power of two is exact, or lands far below half a step. x - floor(x) never crosses one half
    # by rounding, where floor(x + 1/2) would: 0.49999999999999994 + 0.5 is 1.0 in floats.
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.nan_to_num(exact / float(grid), nan=0.0, posinf=np.inf, neginf=-np.inf)
    held = np.clip(scaled, -float(most), float(most))
    down = np.floor(held)
    return (down + (held - down >= 0.5)).astype(np.int64)


def add(exact: Integers, noise: Integers) -> Integers:
    """The sum, saturating at the ends of int64: what the exact sum would be, brought into range."""
    total = exact + noise
    total[(exact > 0) & (noise > 0) & (total < 0)] = _ENDS.max
    total[(exact < 0) & (noise < 0) & (total >= 0)] = _ENDS.min
    return total


def value(k: int, grid: Fraction) -> Fraction:
    """A noisy number of steps as a multiple of the grid."""
    return grid * k


def values(k: Integers, grid: Fraction) -> NDArray[Any]:
    """Noisy steps as multiples of the grid, in the form that the grid alone decides."""
    if grid == 1:
        return k
    if _power_of_two(grid):
        most = limit(grid)
        return np.clip(k, -most, most).astype(np.float64) * float(grid)
    return np.array([grid * int(step) for step in k], dtype=object)


def single(exact: Whole) -> int:
    """One whole number, for a law; the law of a vector is one such law per coordinate, independent."""
    found = whole(exact)
    if not isinstance(found, int):
        raise ArgumentError("law describes one coordinate, and exact is an array.", fix="ask for the law of each coordinate.")
    return found


def single_step(exact: Answer, grid: Fraction) -> int:
    """One answer in steps, for a law; the law of a vector is one such law per coordinate, independent."""
    found = steps(exact, grid)
    if not isinstance(found, int):
        raise ArgumentError("law describes one coordinate, and exact is an array.", fix="ask for the law of each coordinate.")
    return found
