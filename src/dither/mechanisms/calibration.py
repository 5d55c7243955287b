"""Calibrates discrete Gaussian noise on vectors: the smallest variance, or the largest rho, that is (epsilon, delta)-DP.

    for_squares   squared moves add up to at most S           the smaller of two certified variances: by the bound of
                                                              privacy/parts/vector.py, or by rho = S / 2v and its conversion
    for_alike     c numbers that move by s each               the same, then on the exact curve of c such releases
    rho_together  several vectors with fixed shares of rho    the largest rho by that bound, or by the conversion

For a given delta the bound needs 7 % less noise than the conversion at epsilon = 1. What is returned is certified: the search
only decides how small it is. Variances have seven significant digits (five where the exact curve is used), rho has seven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dither.errors import ArgumentError
from dither.exact.balls import certainly_at_most
from dither.exact.laws.base import search
from dither.exact.numbers import show
from dither.privacy.accountant import closed
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import Curve
from dither.privacy.parts import DiscreteGaussian, Gaussian
from dither.privacy.parts.base import unchecked
from dither.privacy.parts.vector import LEAST_VARIANCE, Moves, smooth

LOWEST, HIGHEST = -6, 24  # the decades of variances, in steps squared
_LEAST = Fraction(1, 20)  # of variances on the exact curve: with less, nearly all noise is 0
_ROUGH = 1000  # variances from which on the bound is as good as the exact curve, to 1e-3


class Grid(NamedTuple):
    """Numbers with so many significant digits, from 10^lowest upwards, by their places."""

    digits: int
    lowest: int = LOWEST

    @property
    def first(self) -> int:
        """The smallest whole number with all digits."""
        return int(10 ** (self.digits - 1))

    @property
    def decade(self) -> int:
        return 9 * self.first

    @property
    def last(self) -> int:
        """The place of the largest variance."""
        return (HIGHEST - self.lowest) * self.decade

    def value(self, place: int) -> Fraction:
        """Returns the number at a place.

        >>> Grid(7).value(0), Grid(7).value(Grid(7).above(Fraction(20, 3)))
        (Fraction(1, 1000000), Fraction(6666667, 1000000))
        """
        decade, digits = divmod(place, self.decade)
        return Fraction(self.first + digits) * Fraction(10) ** (decade + self.lowest + 1 - self.digits)

    def above(self, value: Fraction) -> int:
        """Returns the place of the smallest number that is not below this one."""
        decade = search(lambda d: Fraction(10) ** (d + 1 + self.lowest) > value, 0, None)
        scale = Fraction(10) ** (decade + self.lowest + 1 - self.digits)
        return max(decade * self.decade + math.ceil(value / scale) - self.first, 0)


SEVEN, _FIVE, _RHOS = Grid(7), Grid(5), Grid(7, -100)


def too_wide(epsilon: Fraction, delta: Fraction) -> ArgumentError:
    """Returns the refusal of noise beyond the range of samplers."""
    return ArgumentError(
        f"scale must be at most 10^12 steps, and epsilon {show(epsilon)} with delta {show(delta)} needs more.",
        fix="use a coarser grid, a smaller sensitivity or a larger epsilon or delta.",
    )


@lru_cache(maxsize=256)
def for_squares(epsilon: Fraction, delta: Fraction, squares: int, moving: int) -> Fraction:
    """Returns a variance for vectors of which at most `moving` numbers move, by squares that add up to at most `squares`.

    >>> float(for_squares(Fraction(1), Fraction("1e-6"), 4, 2)), round(float(2 / largest_rho(Fraction(1), Fraction("1e-6"))), 5)
    (71.94901, 82.11539)
    """
    rho = largest_rho(epsilon, delta)
    if not rho or squares > 2 * rho * SEVEN.value(SEVEN.last):
        raise too_wide(epsilon, delta)
    by_rho = max(squares / (2 * rho), SEVEN.value(0))

    first = SEVEN.above(max(squares / (2 * _RHOS.value(_continuous(epsilon, delta))), LEAST_VARIANCE))
    found = search(lambda place: _bounded(epsilon, delta, [Moves(squares, moving, SEVEN.value(place))]), first, None)
    return min(by_rho, SEVEN.value(found))


@lru_cache(maxsize=256)
def for_alike(epsilon: Fraction, delta: Fraction, count: int, each: int) -> Fraction:
    """Returns a variance for vectors of which at most `count` numbers move, by at most `each`."""
    found = for_squares(epsilon, delta, count * each * each, count)
    if found >= _ROUGH:
        return found

    def log_excess(variance: Fraction) -> float:
        """Returns ln(delta of this variance / delta), whose sign is certain above 0; infinite below the least variance."""
        if variance < _LEAST:
            return math.inf
        exact = Curve.of(DiscreteGaussian(each, variance), count).delta(epsilon)
        return _log(exact / delta) if exact <= delta else max(_log(exact / delta), 1e-15)

    place = _near(log_excess, found)
    return min(found, _FIVE.value(search(lambda i: log_excess(_FIVE.value(place + i)) <= 0, None, None) + place))


def _near(log_excess: Callable[[Fraction], float], start: Fraction) -> int:
    """Returns a place near the root, by three secant steps: ln delta is nearly a line in v."""
    before, at = start, start * Fraction(99, 100)
    off, now = log_excess(before), log_excess(at)
    for _ in range(3):
        if now == off or not math.isfinite(now):
            break
        moved = Fraction(now * float(before - at) / (off - now)) if math.isfinite(off) else Fraction(0)
        step = min(max(at - moved, at / 2), 2 * at)
        before, off, at = at, now, step
        now = log_excess(at)
    return _FIVE.above(at)


def _log(ratio: Fraction) -> float:
    if not ratio:
        return -math.inf
    return math.log(ratio.numerator) - math.log(ratio.denominator)


class Share(NamedTuple):
    """One of several vectors: its share of rho, the largest sum of its squared moves, and how many numbers move."""

    share: Fraction
    squares: int
    moving: int


@lru_cache(maxsize=256)
def rho_together(epsilon: Fraction, delta: Fraction, shares: tuple[Share, ...]) -> Fraction:
    """Returns the largest rho of seven digits such that all vectors together are (epsilon, delta)-DP, each with the variance
    squares / (2 share rho). At least what the conversion of rho allows; 0 if that allows none."""
    least = largest_rho(epsilon, delta)
    if not least or any(each.squares < 2 * each.share * least * LEAST_VARIANCE for each in shares):  # no lemma
        return least

    def holds(below: int) -> bool:
        rho = _RHOS.value(top - below)
        moves = [Moves(each.squares, each.moving, each.squares / (2 * each.share * rho)) for each in shares]
        return rho <= least or _bounded(epsilon, delta, moves)

    top = _continuous(epsilon, delta)
    return max(least, _RHOS.value(top - search(holds, 0, None)))


@lru_cache(maxsize=256)
def _continuous(epsilon: Fraction, delta: Fraction) -> int:
    """Returns the place of the largest rho of one number with continuous noise, which no vector exceeds."""

    def fails(place: int) -> bool:
        return not _within(epsilon, delta, unchecked(Gaussian, mu2=2 * _RHOS.value(place), slack=Fraction(0)))

    return search(fails, _RHOS.above(largest_rho(epsilon, delta)), None) - 1


def _bounded(epsilon: Fraction, delta: Fraction, moves: Sequence[Moves]) -> bool:
    """Returns whether the bound of privacy/parts/vector.py certainly stays within (epsilon, delta)."""
    return all(each.variance >= LEAST_VARIANCE for each in moves) and _within(epsilon, delta, smooth(moves))


def _within(epsilon: Fraction, delta: Fraction, noise: Gaussian) -> bool:
    """Returns whether continuous noise certainly stays within (epsilon, delta)."""
    bound = closed.delta(((noise, 1),))
    return bound is not None and certainly_at_most(lambda: bound(epsilon), delta)
