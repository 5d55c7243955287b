"""Real numbers with certified error bounds: every computed value is a ball that provably contains the true value.

A *real* here is a function without arguments that computes a ball at the working precision. A higher
precision gives a smaller ball. To compare two reals, the precision is raised until their balls separate.
Equal reals never separate, so a comparison raises ArithmeticError after `_MOST_BITS` bits.
`certainly_at_most` answers no instead. `below` and `above` need no comparison and always end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

Real = Callable[[], arb]

_MOST_BITS = 1 << 15
_TIE_BITS = 1 << 12

_lock = threading.RLock()


def _renew_lock() -> None:
    """Replaces the lock in a forked child, where the thread that held it does not exist."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def working(bits: int) -> Iterator[None]:
    """Sets the working precision inside the block. Locks: the library's precision is a process-wide setting."""
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def precision() -> int:
    """Returns the working precision in bits."""
    return int(ctx.prec)


def ball(value: Fraction | int) -> arb:
    """Returns the ball around a rational at the working precision (exact if it fits)."""
    if isinstance(value, int):
        return arb(fmpz(value))
    return arb(fmpq(value.numerator, value.denominator))


def exp(exponent: Fraction | int) -> arb:
    """Returns e^exponent."""
    return ball(exponent).exp()


def one_minus_exp(exponent: Fraction | int) -> arb:
    """Returns 1 - e^-exponent, accurate also for a small exponent."""
    return -ball(-exponent).expm1()


def evaluate(real: Real, bits: int) -> arb:
    """Returns the real's ball at this working precision."""
    with working(bits):
        return real()


def fraction(x: arb) -> Fraction:
    """Returns the exact value of a ball of radius zero."""
    mantissa, exponent = x.man_exp()
    m, e = int(mantissa), int(exponent)
    return Fraction(m << e) if e >= 0 else Fraction(m, 1 << -e)


def lower(x: arb) -> Fraction:
    """Returns a rational that is certainly not above the real inside the ball."""
    return fraction(x.lower())


def upper(x: arb) -> Fraction:
    """Returns a rational that is certainly not below the real inside the ball."""
    return fraction(x.upper())


def floor_scaled(real: Real, shift: int) -> int:
    """Returns floor(real * 2^shift), exactly.

    Raises ArithmeticError if the real is a multiple of 2^-shift and its ball is not exact: no ball can
    decide on which side such a real lies.

    >>> floor_scaled(lambda: exp(1), 8)
    695
    """
    bits = max(64, shift + 64)
    while bits <= _MOST_BITS + 2 * shift:
        with working(bits):
            whole = (real() * arb(2) ** shift).floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        bits *= 2
    raise ArithmeticError("the floor of a real that may be a whole number cannot be decided")


def floor_near(real: Real, shift: int) -> int:
    """Returns a whole t with t <= real * 2^shift < t + 1 + 2^-16, which is mostly the floor. Always ends."""
    bits = max(64, shift + 64)
    while True:
        with working(bits):
            scaled = real() * arb(2) ** shift
            if scaled.rad() < arb(2) ** -18:
                whole = scaled.lower().floor().unique_fmpz()
                if whole is not None:
                    return int(whole)
        bits *= 2


def _shift_for(real: Real, bits: int) -> int:
    """Returns the shift that gives the real about `bits` significant bits (`bits` itself if the real is zero)."""
    x = evaluate(real, 64)
    if x.is_zero():
        return bits
    size = float(abs(x).upper().log() / arb(2).log())
    return max(bits - int(size), 0)


def below(real: Real, bits: int = 64) -> Fraction:
    """Returns a dyadic rational of about `bits` significant bits that is certainly not above the real.

    It is the largest one, or the next smaller if the real is within 2^-16 of a step of it.

    >>> below(lambda: exp(1), bits=8)
    Fraction(347, 128)
    """
    shift = _shift_for(real, bits)
    return Fraction(floor_near(real, shift), 1 << shift)


def above(real: Real, bits: int = 64) -> Fraction:
    """Returns a dyadic rational of about `bits` significant bits that is certainly not below the real.

    It is the smallest one, or the next larger if the real is within 2^-16 of a step of it.

    >>> above(lambda: exp(1), bits=8)
    Fraction(87, 32)
    """
    shift = _shift_for(real, bits)
    return Fraction(-floor_near(lambda: -real(), shift), 1 << shift)


def less(left: Real, right: Real) -> bool:
    """Returns whether left < right. Raises ArithmeticError if the reals are equal: their balls never separate."""
    bits = 64
    while bits <= _MOST_BITS:
        with working(bits):
            x, y = left(), right()
            if x < y:
                return True
            if x >= y:
                return False
        bits *= 2
    raise ArithmeticError("two reals agree to thousands of digits and cannot be told apart")


def certainly_at_most(real: Real, bound: Fraction) -> bool:
    """Returns whether real <= bound for certain. A tie that no ball decides (to 2^-4096) counts as no."""
    bits = 64
    while bits <= _TIE_BITS:
        with working(bits):
            x, y = real(), ball(bound)
            if x <= y:
                return True
            if x > y:
                return False
        bits *= 2
    return False
