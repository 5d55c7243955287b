"""Threshold: show a key only if enough units have it, so that no unit's presence decides.

    optimal     Pr[show | m units] = p_m,  p_0 = 0,  p_{m+1} = min(e^e p_m + d, 1 - e^-e (1 - p_m - d), 1)
    geometric   show if m >= 1 and m + noise >= t, with t the smallest that has Pr[1 + noise >= t] <= d, noise of scale 1/e

with e = epsilon / keys_per_unit and d = delta / keys_per_unit: a unit touches at most keys_per_unit keys, each
decided on its own, and their losses add up to (epsilon, delta).

Why it is private: showing or hiding a key are the two outcomes of a coin, and (e, d)-DP between m and m + 1 says exactly
p_{m+1} <= e^e p_m + d and 1 - p_m <= e^e (1 - p_{m+1}) + d. The recursion takes the largest p_{m+1} allowed, so no rule
shows keys more often. For the geometric rule, from m >= 1 to m + 1 the noise hides the unit, and from 0 to 1 the
chance to show goes from 0 to at most d. The exact tail matters: t one too small has claimed 0.0049 and given 0.0131.

In closed form, with x = e^e: p_m = d (x^m - 1)/(x - 1) while m <= n, where n is the first m with p_m >= (1 - d)/(x + 1);
then 1 - p_m = x^-j (1 - p_n) - d (1 - x^-j)/(x - 1), j = m - n, until that is 0.
Reference: Desfontaines, Voss, Gipson and Mandayam, PoPETs 2022 (optimal); Korolova et al., WWW 2009 (noise and threshold).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import numbers
from dither.exact.balls import ball, certainly_at_most, exp, floor_scaled, missing, precision, working
from dither.exact.law import Law, search
from dither.exact.laws import Coin, Finite, TwoSided
from dither.exact.numbers import Number, between, positive
from dither.mechanisms import answers
from dither.mechanisms.base import Example, Mechanism, sure
from dither.privacy.losses import Approx, Curve
from dither.privacy.parts import Response

Rule = Literal["optimal", "geometric"]


@dataclass(frozen=True)
class Threshold(Mechanism):
    """Decides which keys may be shown, from the number of distinct units behind each.

    Guarantee: (epsilon, delta)-DP for all keys together, where one unit adds one to at most `keys_per_unit` of them.
    Relies on: counts of distinct units, and each unit bounded to `keys_per_unit` keys. Keys with no unit are never shown.

    >>> rule = Threshold(epsilon=1, delta="1e-5")
    >>> rule.margin("0.5"), rule.margin("0.95")
    (12, 14)
    """

    epsilon: Fraction
    delta: Fraction
    keys_per_unit: int
    rule: Rule
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(self, *, epsilon: Number, delta: Number, keys_per_unit: int = 1, rule: Rule = "optimal") -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", between(delta, "delta", 0, 1, open_low=True, open_high=True))
        object.__setattr__(self, "keys_per_unit", numbers.whole(keys_per_unit, "keys_per_unit", least=1))
        if rule not in ("optimal", "geometric"):
            raise ArgumentError(f"rule must be 'optimal' or 'geometric', and it is {rule!r}.", fix="choose one of the two.")
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "noise", TwoSided(1 / self._each[0]))  # refuses a scale out of range

    @property
    def _each(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta) of one key."""
        return self.epsilon / self.keys_per_unit, self.delta / self.keys_per_unit

    @property
    def threshold(self) -> int:
        """The geometric rule's t: 1 plus the smallest s with Pr[noise >= s] <= delta."""
        return 1 + self.noise.upper_tail(self._each[1])

    def shown(self, units: int) -> arb:
        """Pr[the key is shown], exactly, at the working precision."""
        if units <= 0:
            return arb(0)
        if self.rule == "geometric":
            return self.noise.more_than(self.threshold - units - 1)
        return optimal(*self._each, units)

    def release(self, exact: answers.Whole) -> bool | NDArray[np.bool_]:
        """Show this key? Or, for an array of counts, which of these keys?"""
        counts = answers.whole(exact)
        if isinstance(counts, int):
            return bool(self.law(counts).draw())
        if self.rule == "geometric":
            return (counts > 0) & (answers.add(counts, self.noise.draw(len(counts))) >= self.threshold)
        found = np.zeros(len(counts), dtype=np.bool_)
        inside = np.clip(counts, 0, search(lambda m: bool(self.shown(m) == 1), 1, None))  # beyond, all are shown
        for units in np.unique(inside):
            here = inside == units
            found[here] = self.law(int(units)).draw(int(here.sum())) == 1
        return found

    def outcome(self, k: int) -> bool:
        return bool(k)

    def loss(self) -> Approx:
        return Approx(self.epsilon, self.delta)

    def curve(self) -> Curve:
        return Curve.of(Response(*self._each), self.keys_per_unit)

    def law(self, exact: int) -> Law:
        """1 for shown, 0 for hidden."""
        units = answers.single(exact)
        show = self.shown(units)
        if show.is_zero() or show == 1:
            return Coin(Fraction(int(show == 1)))
        return Finite((lambda: self._hidden(units), lambda: self.shown(units)))

    def _hidden(self, units: int) -> arb:
        if self.rule == "geometric":
            return self.noise.at_most(self.threshold - units - 1)
        return 1 - optimal(*self._each, units)

    def margin(self, confidence: Number) -> int:
        """How many units a key needs to be shown with this confidence."""
        allowed = 1 - sure(confidence)
        return search(lambda m: certainly_at_most(lambda: 1 - self.shown(m), allowed), 1, None)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            *(Example(cls(epsilon=1, delta="1e-5"), m, (m + 1, max(m - 1, 0))) for m in (0, 1, 11, 12, 13, 22, 30)),
            *(Example(cls(epsilon=1, delta="1e-2", rule="geometric"), m, (m + 1, max(m - 1, 0))) for m in (0, 1, 4, 5)),
            Example(cls(epsilon=2, delta="0.1", keys_per_unit=3), 2, (1, 3)),
        )


def optimal(epsilon: Fraction, delta: Fraction, units: int) -> arb:
    """p_m of the optimal rule, in closed form."""
    rising = _turn(epsilon, delta)
    with working(precision() + 64):
        grown = missing(epsilon)  # (x - 1)/x

        def rise(m: int) -> arb:
            return ball(delta) * ball(epsilon * m).expm1() / ball(epsilon).expm1()

        if units <= rising:
            return rise(units).min(arb(1))
        j = units - rising
        hidden = exp(-epsilon * j) * (1 - rise(rising)) - ball(delta) * exp(-epsilon) * missing(epsilon * j) / grown
        return arb(1) if hidden <= 0 else 1 - hidden


def _turn(epsilon: Fraction, delta: Fraction) -> int:
    """n, the first m with p_m >= (1 - d)/(x + 1). Equality would make e^epsilon algebraic, so the floor is decided."""

    def real() -> arb:
        grown = ball(epsilon).expm1()
        return (1 + ball((1 - delta) / delta) * grown / (grown + 2)).log() / ball(epsilon)

    return floor_scaled(real, 0) + 1
