"""Rigorous real numbers: every computed value is a ball that provably contains the true one.

A *real* here is a function without arguments that computes a ball at the working precision;
evaluating it again at a higher precision gives a smaller ball. Two different reals are told apart by
raising the precision until their balls separate. Equal ones never separate, so a comparison gives up
with ArithmeticError after `_PATIENCE` bits; `certainly_at_most` answers no instead, and `below` and
`above` need no comparison at all and always end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

Real = Callable[[], arb]

_PATIENCE = 1 << 15
_TIE = 1 << 12

_lock = threading.RLock()


def _renew_lock() -> None:
    """A forked child may have inherited the lock held by a thread that does not exist there."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def working(bits: int) -> Iterator[None]:
    """Compute with `bits` bits. One thread at a time: the library's precision is a process-wide setting."""
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def precision() -> int:
    """The working precision in bits."""
    return int(ctx.prec)


def ball(value: Fraction | int) -> arb:
    """The ball around a rational at the working precision (exact if it fits)."""
    if isinstance(value, int):
        return arb(fmpz(value))
    return arb(fmpq(value.numerator, value.denominator))


def exp(exponent: Fraction | int) -> arb:
    """e to a rational power."""
    return ball(exponent).exp()


def one_minus_exp(exponent: Fraction | int) -> arb:
    """1 - e^-exponent, without losing digits where the exponent is small."""
    return -ball(-exponent).expm1()


def evaluate(real: Real, bits: int) -> arb:
    """The real's ball at a given working precision."""
    with working(bits):
        return real()


def fraction(x: arb) -> Fraction:
    """The exact value of a ball of radius zero."""
    mantissa, exponent = x.man_exp()
    m, e = int(mantissa), int(exponent)
    return Fraction(m << e) if e >= 0 else Fraction(m, 1 << -e)


def lower(x: arb) -> Fraction:
    """A rational certainly not above the real inside the ball."""
    return fraction(x.lower())


def upper(x: arb) -> Fraction:
    """A rational certainly not below the real inside the ball."""
    return fraction(x.upper())


def floor_scaled(real: Real, shift: int) -> int:
    """floor(real * 2^shift), exactly.

    The real must not be a multiple of 2^-shift unless its ball is exact: no ball can tell such a real
    from its neighbours, and ArithmeticError says so.

    >>> floor_scaled(lambda: exp(1), 8)
    695
    """
    bits = max(64, shift + 64)
    while bits <= _PATIENCE + 2 * shift:
        with working(bits):
            whole = (real() * arb(2) ** shift).floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        bits *= 2
    raise ArithmeticError("the floor of a real that may be a whole number cannot be decided")


def floor_near(real: Real, shift: int) -> int:
    """A whole t with t <= real * 2^shift < t + 1 + 2^-16. Always ends; mostly t is the floor."""
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
    """The shift that gives the real about `bits` significant bits (`bits` itself for a real that is zero)."""
    x = evaluate(real, 64)
    if x.is_zero():
        return bits
    size = float(abs(x).upper().log() / arb(2).log())
    return max(bits - int(size), 0)


def below(real: Real, bits: int = 64) -> Fraction:
    """A dyadic rational with about `bits` significant bits that is certainly not above the real.

    It is the largest such one, unless the real lies within 2^-16 of a step of one: then it may be the next.

    >>> below(lambda: exp(1), bits=8)
    Fraction(347, 128)
    """
    shift = _shift_for(real, bits)
    return Fraction(floor_near(real, shift), 1 << shift)


def above(real: Real, bits: int = 64) -> Fraction:
    """A dyadic rational with about `bits` significant bits that is certainly not below the real.

    It is the smallest such one, unless the real lies within 2^-16 of a step of one: then it may be the next.

    >>> above(lambda: exp(1), bits=8)
    Fraction(87, 32)
    """
    shift = _shift_for(real, bits)
    return Fraction(-floor_near(lambda: -real(), shift), 1 << shift)


def less(left: Real, right: Real) -> bool:
    """Is left < right? Both must differ: for equal reals ArithmeticError says that they do not separate."""
    bits = 64
    while bits <= _PATIENCE:
        with working(bits):
            x, y = left(), right()
            if x < y:
                return True
            if x >= y:
                return False
        bits *= 2
    raise ArithmeticError("two reals agree to thousands of digits and cannot be told apart")


def certainly_at_most(real: Real, bound: Fraction) -> bool:
    """Is real <= bound for certain? A tie that no ball can decide (to 2^-4096) counts as no."""
    bits = 64
    while bits <= _TIE:
        with working(bits):
            x, y = real(), ball(bound)
            if x <= y:
                return True
            if x > y:
                return False
        bits *= 2
    return False
