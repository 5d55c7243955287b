"""The smallest discrete Gaussian for a given (epsilon, delta), certified on the discrete law itself.

For noise X with Pr[k] proportional to exp(-k^2 / 2v) and a shift of s > 0 steps,

    delta(epsilon, s) = Pr[X <= t] - e^epsilon Pr[X <= t - s]        t = floor(s/2 - epsilon v / s)

Proof. The log ratio of X against X + s at output k is (s^2 - 2 s k) / 2v: it falls in k and exceeds epsilon exactly
when k < s/2 - epsilon v / s. So the best set to tell them apart by is the half-line {k <= t}, and t may include the
one k where the ratio equals e^epsilon, which adds nothing. For any half-line, Pr[X <= t - s] falls as s grows,
so delta(epsilon, s) = max over t grows with s: shifts below s are covered by s. X is symmetric, so shifts to the left
are covered too.

The continuous formula is not used: at the sigma it gives for (1, 1e-5) the discrete law's delta is 3.5 % too large.
Nor is the textbook's sqrt(2 ln(1.25 / delta)) / epsilon, which is wrong above epsilon = 1.

X has the tails of a Gaussian of variance v, Pr[X <= -t] <= exp(-t^2 / 2v), which decides the easy cases. Variances for
one coordinate have seven significant digits. The one found is certified; on that grid the one before it fails.
Reference: Balle and Wang, ICML 2018 (the continuous law); Canonne, Kamath and Steinke, NeurIPS 2020 (the discrete one).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

from dither.errors import ArgumentError
from dither.exact.balls import Real, above, ball, certainly_at_most, exp
from dither.exact.law import search
from dither.exact.laws import Gaussian
from dither.exact.numbers import show
from dither.privacy.conversion import largest_rho

_DIGITS = 10**6
_DECADE = 9 * _DIGITS
_LOWEST, _HIGHEST = -6, 24
_DECADES = _HIGHEST - _LOWEST
_FAR = 400  # (20 sigma)^2: beyond it a sum would need too many digits, and at 10^7 sigma more than any memory


def delta(epsilon: Fraction, shift: int, variance: Fraction) -> Real:
    """The exact delta of discrete Gaussian noise between answers at most `shift` steps apart.

    >>> from dither.exact.balls import evaluate
    >>> round(float(evaluate(delta(Fraction(1), 1, Fraction("3.7306316348") ** 2), 128)), 9)
    1.0346e-05
    """
    law = Gaussian(variance)
    t = _edge(epsilon, shift, variance)

    def real() -> arb:
        return law.at_most(t) - exp(epsilon) * law.at_most(t - shift)

    return real


def _edge(epsilon: Fraction, shift: int, variance: Fraction) -> int:
    """t, the last output whose ratio is e^epsilon or more."""
    return math.floor(Fraction(shift, 2) - epsilon * variance / shift)


@lru_cache(maxsize=256)
def for_shift(epsilon: Fraction, target: Fraction, shift: int) -> Fraction:
    """The smallest variance (in steps squared) whose delta at `shift` steps is at most the target."""
    return _smallest(lambda v: hides(epsilon, target, shift, v), epsilon, target)


def hides(epsilon: Fraction, target: Fraction, shift: int, variance: Fraction) -> bool:
    """Whether noise of this variance has a delta of at most the target at `shift` steps, for certain.

    >>> hides(Fraction(1), Fraction("1e-6"), 1, Fraction(18)), hides(Fraction(1), Fraction("1e-6"), 1, Fraction("17.8"))
    (True, False)
    """
    t = _edge(epsilon, shift, variance)
    if t > 0 and t * t >= _FAR * variance:
        return False  # both tails together are below 2 exp(-t^2 / 2v): delta is 1 but for 87 digits
    # Far out, Pr[X <= t] <= exp(-t^2 / 2v) says enough, and a sum there would need too many digits.
    if t < 0 and t * t >= 2 * variance * _digits(target):
        return True
    return certainly_at_most(delta(epsilon, shift, variance), target)


@lru_cache(maxsize=64)
def _digits(target: Fraction) -> Fraction:
    """-ln(target), rounded up."""
    return above(lambda: -ball(target).log())


def for_squares(epsilon: Fraction, target: Fraction, squares: int) -> Fraction:
    """The same for vectors whose squared steps add up to at most `squares`, by way of zCDP.

    Coordinate i gives (k_i^2 / 2v)-zCDP, which adds up to rho = squares / 2v; the certified conversion does the rest.
    """
    rho = largest_rho(epsilon, target)
    if not rho or squares > 2 * rho * _variance(_DECADES * _DECADE):
        raise _too_wide(epsilon, target)
    return max(squares / (2 * rho), _variance(0))


def _variance(index: int) -> Fraction:
    """The index-th number with seven significant digits, from 10^-6 upwards."""
    decade, digits = divmod(index, _DECADE)
    return Fraction(_DIGITS + digits) * Fraction(10) ** (decade + _LOWEST - 6)


def _smallest(holds: Callable[[Fraction], bool], epsilon: Fraction, target: Fraction) -> Fraction:
    # First the decade, then the digits: few evaluations, each of them certified.
    if not holds(_variance(_DECADES * _DECADE)):
        raise _too_wide(epsilon, target)
    decade = search(lambda d: holds(_variance(d * _DECADE)), 0, _DECADES)
    return _variance(search(lambda i: holds(_variance(i)), max(decade - 1, 0) * _DECADE, decade * _DECADE))


def _too_wide(epsilon: Fraction, target: Fraction) -> ArgumentError:
    return ArgumentError(
        f"scale must be at most 10^12 steps, and epsilon {show(epsilon)} with delta {show(target)} needs more.",
        fix="use a coarser grid, a smaller sensitivity or a larger epsilon or delta.",
    )
