"""The base class of all mechanisms, and the functions that read exact answers and return noisy ones.

    release(exact)      the noisy answer; the only method that draws
    loss()              the price, exact or rounded up
    zcdp()              the price a second way, as zero-concentrated DP
    curve()             the price as a loss curve, for many releases fixed in advance
    law(exact)          the exact distribution of the release, on whole numbers
    outcome(k)          what `release` returns when the law's value is k (a grid multiple, a label, ...)
    margin(confidence)  how far the answer may be off
    sampled(q)          the same on a secret sample of the units, at a smaller price
    record()            its tag and exact parameters, in plain values, for ledgers and receipts
    words(on, who)      a line of a plan: the noise, what it is on, how far one unit moves that, the price

A record outlives the code that wrote it. So `tag` comes from a closed table (tests/mechanisms/test_records.py); it never
changes and is never the name of a class.

Every concrete class enters the registry when it is defined, and the laws in tests/laws run on it automatically.
`examples` gives those laws small instances with an exact input and inputs of neighbouring data.

Exact answers are refused by type and shape, which are public; never by value. Arrays are clamped to +-2^62 steps before
noise and saturate at the ends of 64 bits after it. Clamping never moves two answers apart, so it is free, and changes to a
noisy answer are post-processing. A single whole number has no limit.
A float stands for its exact binary value, NaN counts as 0, and infinities go to the ends of the clamp.
In an array of objects a bool counts as 0 or 1 and a non-number as 0, so that no element decides whether a release is made.
A list or tuple of numbers is read as such an array.
A masked array is refused: it is not clear whether the values under the mask count.

Rounding is exact for answers of any length: with the grid a/b, floor(x b/a + 1/2) = floor((floor(2 b x) + a) / 2a),
since a floor may be taken before dividing by a whole number. So a Decimal of a million digits costs one product
with 2b and a cut at its point, and a long Fraction one division with a short quotient: time linear in the length. Values
beyond the clamp are recognised first, by comparing exponents with the grid.

Arrays on a grid come back as int64 (grid 1), as float64 if the grid is a power of two (steps are clamped
to +-2^52, so that every product is exact), and otherwise as an array of Fractions. The grid alone
decides, so the type reveals nothing about the data.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, Fix
from dither.exact.laws.base import Integers, Law
from dither.exact.numbers import Number, between, show
from dither.exact.numbers import whole as _whole
from dither.mechanisms.norms import Norm
from dither.privacy.losses import ZCDP, Curve, Loss
from dither.privacy.neighbours import Neighbours

if TYPE_CHECKING:
    from dither.mechanisms.sampled import Sampled

Whole = int | NDArray[np.integer[Any]]
Answer = int | float | Fraction | Decimal | NDArray[Any] | list[Any] | tuple[Any, ...]

_WIDE = 1 << 62
_NARROW = 1 << 52
_NUMBERS = (int, float, Fraction, Decimal, np.integer, np.floating)
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # a product of Decimals is never rounded


def whole(exact: Whole, norm: Norm | None = None, grid: Fraction | None = None) -> int | Integers:
    """Reads a whole-number answer: an int as it is, an array of integers as int64 within +-2^62."""
    if isinstance(exact, np.ndarray):
        return _clipped(whole_array(exact, norm, grid), _WIDE)
    if isinstance(exact, (bool, np.bool_)) or not isinstance(exact, (int, np.integer)):
        raise _wrong_type(f"a {type(exact).__name__}", "an int")
    return int(exact)


def whole_array(exact: NDArray[Any], norm: Norm | None = None, grid: Fraction | None = None) -> NDArray[np.integer[Any]]:
    """Checks an array of whole numbers, by its type and shape."""
    _check_array(exact, norm, grid)
    if exact.dtype.kind not in "iu":
        raise _wrong_type(f"an array of {exact.dtype}", "an array of integers")
    return np.asarray(exact)


def listed(exact: Answer) -> Any:
    """Returns a list or tuple as an array of objects, and anything else as it is. Looks at no element."""
    if not isinstance(exact, (list, tuple)):
        return exact
    array = np.empty(len(exact), dtype=object)
    for place, element in enumerate(exact):
        array[place] = element
    return array


def _check_array(exact: NDArray[Any], norm: Norm | None, grid: Fraction | None) -> None:
    refuse_masked(exact, "exact")
    _check_shape(exact, norm, grid)


def _clipped(exact: NDArray[Any], most: int) -> Integers:
    """Returns an array of integers of any width as int64 within +-most."""
    width = np.iinfo(exact.dtype)
    clipped: Integers = np.clip(exact, max(-most, int(width.min)), min(most, int(width.max))).astype(np.int64, copy=False)
    return clipped


def refuse_masked(array: NDArray[Any], name: str) -> None:
    """Refuses masked arrays, by their type: it is not clear whether values under the mask count."""
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            f"{name} must be a plain array, and it is a masked one.", fix="say what missing values count as: array.filled(0)."
        )


def _wrong_type(got: str, expected: str) -> ArgumentError:
    return ArgumentError(f"exact must be a whole number or an array of them, and it is {got}.", fix=f"give {expected}.")


def _check_shape(exact: NDArray[Any], norm: Norm | None, grid: Fraction | None) -> None:
    if exact.ndim != 1:
        raise ArgumentError(f"exact must have one axis, and it has {exact.ndim}.", fix="flatten the array.")
    longest = None if norm is None else norm.longest(grid)
    if longest is not None and len(exact) > longest:
        raise ArgumentError(
            f"exact has {len(exact)} coordinates, and its sensitivity was declared for {longest}.",
            fix=Fix("declare the sensitivity with {dimension}.", dimension=len(exact)),
        )


def limit(grid: Fraction) -> int:
    """Returns the largest number of steps in an array."""
    return _NARROW if grid != 1 and _power_of_two(grid) else _WIDE


def _power_of_two(grid: Fraction) -> bool:
    top, bottom = grid.numerator, grid.denominator
    # Far from the ends of a float's range, so that no product is rounded or overflows.
    return top & (top - 1) == 0 and bottom & (bottom - 1) == 0 and top < 2**900 and bottom < 2**900


def steps(exact: Answer, grid: Fraction, norm: Norm | None = None) -> int | Integers:
    """Returns the answer in steps of the grid: rounded to the nearest, halves upwards.

    >>> steps(0.375, Fraction(1, 4)), steps(float("nan"), Fraction(1)), steps(Fraction(-1, 2), Fraction(1))
    (2, 0, 0)
    """
    if isinstance(exact, np.ndarray):
        _check_array(exact, norm, grid)
        return _many_steps(np.asarray(exact), grid)
    return _one_step(exact, grid, _WIDE)


def _is_number(exact: Any) -> bool:
    # Reading a longdouble would round it, which can move two answers apart.
    return isinstance(exact, _NUMBERS) and not isinstance(exact, (bool, np.longdouble))


def _one_step(exact: Any, grid: Fraction, most: int) -> int:
    if not _is_number(exact):
        raise ArgumentError(
            f"exact must be a number or an array of numbers, and it is a {type(exact).__name__}.",
            fix="give an int, a float, a Fraction or an array.",
        )
    return min(max(_nearest(exact, grid, most), -most), most)


def _element(exact: Any, grid: Fraction, most: int) -> int:
    """Reads one element of an array of objects. Refuses none."""
    if isinstance(exact, (bool, np.bool_)):
        return _one_step(int(exact), grid, most)
    return _one_step(exact, grid, most) if _is_number(exact) else 0


def _nearest(exact: Any, grid: Fraction, most: int) -> int:
    """Returns floor(exact / grid + 1/2), or any number beyond `most` on the same side if that is beyond `most`."""
    if isinstance(exact, Decimal):
        return _from_decimal(exact, grid, most)
    if isinstance(exact, (float, np.floating)):
        read = float(exact)
        if not math.isfinite(read):
            return 0 if math.isnan(read) else _end(read < 0, most)
        top, bottom = read.as_integer_ratio()
    else:
        top, bottom = int(exact.numerator), int(exact.denominator)
    a, b = grid.numerator, grid.denominator
    if top and top.bit_length() - bottom.bit_length() - 1 >= _beyond(grid, most):
        return _end(top < 0, most)
    return (2 * b * top + a * bottom) // (2 * a * bottom)


def _beyond(grid: Fraction, most: int) -> int:
    """Returns an exponent from which on every answer is clamped: |x| >= 2^exponent means |x| / grid > most."""
    return most.bit_length() + grid.numerator.bit_length() - grid.denominator.bit_length() + 1


def _end(negative: bool, most: int) -> int:
    return -most if negative else most


def _from_decimal(exact: Decimal, grid: Fraction, most: int) -> int:
    if exact.is_nan() or exact.is_zero():  # a zero may have any exponent
        return 0
    if exact.is_infinite():
        return _end(exact.is_signed(), most)
    a, b, first = grid.numerator, grid.denominator, exact.adjusted()
    # 10^first <= |exact| < 10^(first + 1), and 2^3 < 10 < 2^4.
    if first * (3 if first >= 0 else 4) >= _beyond(grid, most):
        return _end(exact.is_signed(), most)
    if (first + 1) * (4 if first >= 0 else 3) <= a.bit_length() - b.bit_length() - 2:  # below half a step
        return 0
    floor = _EXACT.multiply(exact, Decimal(2 * b)).to_integral_value(ROUND_FLOOR, _EXACT)
    return (int(floor) + a) // (2 * a)


def _many_steps(exact: NDArray[Any], grid: Fraction) -> Integers:
    most = limit(grid)
    if exact.dtype.kind in "iu" and grid.numerator == 1 and grid.denominator < most:
        clipped = _clipped(exact, most // grid.denominator)
        return clipped if grid == 1 else clipped * np.int64(grid.denominator)
    if exact.dtype.kind not in "iufO" or (exact.dtype.kind == "f" and exact.dtype.itemsize > 8):
        raise ArgumentError(f"exact must be an array of numbers, and it is one of {exact.dtype}.", fix="give ints or floats.")
    if exact.dtype.kind == "f" and _power_of_two(grid):
        return _float_steps(exact.astype(np.float64), grid, most)
    one = _element if exact.dtype.kind == "O" else _one_step
    return np.array([one(value, grid, most) for value in exact], dtype=np.int64)


def _float_steps(exact: NDArray[np.float64], grid: Fraction, most: int) -> Integers:
    # Dividing by a power of two is exact, or lands far below half a step. x - floor(x) never crosses one half
    # by rounding, where floor(x + 1/2) would: 0.49999999999999994 + 0.5 is 1.0 in floats.
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.nan_to_num(exact / float(grid), nan=0.0, posinf=np.inf, neginf=-np.inf)
    clipped = np.clip(scaled, -float(most), float(most))
    down = np.floor(clipped)
    return (down + (clipped - down >= 0.5)).astype(np.int64)


_PART = 1 << 17  # elements whose exact values, noise and sum stay in the caches of a processor


def add_noise(exact: NDArray[Any], noise: Law, grid: Fraction = Fraction(1), norm: Norm | None = None) -> NDArray[Any]:
    """Returns an array of answers with noise, in multiples of the grid. Works in parts: an array that leaves the caches between
    reading, clamping, drawing and adding takes several times as long as drawing its noise."""
    _check_array(exact, norm, grid)
    plain = np.asarray(exact)
    result = np.empty(len(plain), dtype=np.int64 if grid == 1 else np.float64 if _power_of_two(grid) else object)
    for first in range(0, len(plain), _PART):
        given, part = plain[first : first + _PART], result[first : first + _PART]
        if grid == 1 and plain.dtype == np.int64:
            noise.add_to(np.clip(given, -_WIDE, _WIDE, out=part))
            continue
        start = _many_steps(given, grid)
        noise.add_to(start)
        part[:] = values(start, grid)
    return result


def value(k: int, grid: Fraction) -> Fraction:
    """Returns a noisy number of steps as a multiple of the grid."""
    return grid * _whole(k, "k")


def values(k: Integers, grid: Fraction) -> NDArray[Any]:
    """Returns noisy steps as multiples of the grid, in a type that the grid alone decides."""
    if grid == 1:
        return k
    if _power_of_two(grid):
        most = limit(grid)
        return np.clip(k, -most, most).astype(np.float64) * float(grid)
    return np.array([grid * int(step) for step in k], dtype=object)


def single(exact: Whole) -> int:
    """Reads one whole number, for a law. A vector has one such law per coordinate, independent."""
    answer = whole(exact)
    if not isinstance(answer, int):
        raise ArgumentError("law describes one coordinate, and exact is an array.", fix="ask for the law of each coordinate.")
    return answer


def single_step(exact: Answer, grid: Fraction) -> int:
    """Reads one answer in steps, for a law. A vector has one such law per coordinate, independent."""
    answer = steps(exact, grid)
    if not isinstance(answer, int):
        raise ArgumentError("law describes one coordinate, and exact is an array.", fix="ask for the law of each coordinate.")
    return answer


_classes: list[type[Mechanism]] = []


class Mechanism(ABC):
    """Noise and its price in one frozen object; equal fields mean the same mechanism."""

    tag: ClassVar[str]
    gaussian: ClassVar[bool] = False  # whether the noise has normal tails, or exponential ones

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _classes.append(cls)

    @abstractmethod
    def release(self, exact: Any) -> Any:
        """Returns the noisy answer. Refuses by type and shape only, never by the value of the private answer."""

    @abstractmethod
    def loss(self) -> Loss:
        """Returns the loss of one release."""

    def zcdp(self) -> ZCDP:
        """Returns the loss of the same release as zero-concentrated DP, for budgets that add up rho."""
        return self.loss().zcdp()

    def curve(self) -> Curve:
        """Returns the tightest loss curve known, for composition fixed in advance."""
        return self.loss().curve()

    @abstractmethod
    def law(self, exact: Any) -> Law:
        """Returns the exact law of one release at this exact answer."""

    def outcome(self, k: int) -> Any:
        """Returns the answer that `release` gives if the law's value is k."""
        return k

    @abstractmethod
    def margin(self, confidence: Number) -> int | Fraction:
        """Returns how far the release may be off, with at least this confidence."""

    def sampled(self, q: Number, neighbours: Neighbours | None = None) -> Sampled:
        """Returns this mechanism on a secret sample of the units, at a smaller price: `release` takes an entry per unit.

        Each unit is sampled with probability q (add/remove, the default), or q n of n units are (`Replace(n)`).
        """
        from dither.mechanisms.sampled import sampled  # which needs the mechanisms themselves

        return sampled(self, q, neighbours)

    def record(self) -> dict[str, Any]:
        """Returns the tag and the parameters, from which the mechanism can be rebuilt."""
        stated = {name: plain(value) for name, value in self.parameters().items() if value is not None}
        return {"mechanism": self.tag, **stated}

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Returns the parameters of the record, in order; `record` leaves out None."""

    @abstractmethod
    def words(self, on: str = "the answer", who: str = "person") -> str:
        """Describes the noise: what it is, on what, how far one unit moves that, and the price."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Example, ...]:
        """Returns small instances for the laws that run over every mechanism."""


@dataclass(frozen=True)
class Example:
    """A mechanism, an exact input, and inputs that neighbouring data could have had instead."""

    mechanism: Mechanism
    exact: Any
    neighbours: tuple[Any, ...]


def registry() -> tuple[type[Mechanism], ...]:
    """Returns every concrete mechanism, in the order of definition.

    >>> "Geometric" in [kind.__name__ for kind in registry()]
    True
    """
    return tuple(kind for kind in _classes if not inspect.isabstract(kind))


def plain(value: Any) -> Any:
    """Encodes a parameter exactly for JSON: a rational as text, norms and mechanisms as records, labels as texts."""
    if hasattr(value, "record"):
        return value.record()
    if isinstance(value, tuple):
        return [plain(part) if isinstance(part, Mechanism) else str(part) for part in value]
    return str(value) if isinstance(value, Fraction) else value


def change_words(who: str, moved: int | Fraction) -> str:
    return f"one {who} changes them by at most {show(Fraction(moved))} in all"


def epsilon_words(epsilon: Fraction) -> str:
    return f"ε = {show(epsilon)}"


def check_confidence(confidence: Number) -> Fraction:
    """Returns a confidence. Refuses values that are not strictly between 0 and 1."""
    return between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
