"""Threshold: shows a key only if enough units have it, so that no unit's presence decides.

    optimal     Pr[show | m units] = p_m,  p_0 = 0,  p_{m+1} = min(e^e p_m + d, 1 - e^-e (1 - p_m - d), 1)
    geometric   show if m >= 1 and m + noise >= t, with t the smallest that has Pr[1 + noise >= t] <= d, noise of scale 1/e

with e = epsilon / keys_per_unit and d = delta / keys_per_unit: a unit touches at most keys_per_unit keys, each
decided on its own, and their losses add up to (epsilon, delta).

Why it is private: showing or hiding a key are the two outcomes of a coin, and (e, d)-DP between m and m + 1 says exactly
p_{m+1} <= e^e p_m + d and 1 - p_m <= e^e (1 - p_{m+1}) + d. The recursion takes the largest p_{m+1} allowed, so no rule
shows keys more often. For the geometric rule, from m >= 1 to m + 1 the noise hides the unit, and from 0 to 1 the
chance to show goes from 0 to at most d. The exact tail matters: t one too small has claimed 0.0049 and given 0.0131.

In closed form, with x = e^e: p_m = d (x^m - 1)/(x - 1) while m <= n, where n is the first m with p_m >= (1 - d)/(x + 1);
then 1 - p_m = x^-j (1 - p_n) - d (1 - x^-j)/(x - 1), j = m - n, until that is 0. Both sides of n are one formula:

    q_j = x^-j q_n - (1 - x^-j) d/(x - 1)        j = |m - n|, with q = p up to n and q = 1 - p beyond

Neither of its terms exceeds 1 where q_j >= 0, and float64 gives each to a few units of its last place, so q_j to 2^-45.
A key is shown if a uniform real lies below p_m. Its first 64 bits are compared with floats; if they are within 2^-30, balls
decide. One word per key, no table and no cache: the time does not depend on the counts.
Reference: Desfontaines, Voss, Gipson and Mandayam, PoPETs 2022 (optimal); Korolova et al., WWW 2009 (noise and threshold).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.exact import entropy, numbers
from dither.exact.balls import ball, certainly_at_most, exp, floor_scaled, one_minus_exp, precision, working
from dither.exact.laws.base import Integers, Law, add, search
from dither.exact.laws.coins import Coin
from dither.exact.laws.derived import Finite
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import Number, between, positive, show
from dither.exact.samplers.uniform import MARGIN, Uniform
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, check_confidence, epsilon_words
from dither.privacy.losses import ZCDP, Approx, Curve
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

    tag: ClassVar[str] = "Threshold"
    epsilon: Fraction
    delta: Fraction
    keys_per_unit: int
    rule: Rule
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(self, *, epsilon: Number, delta: Number, keys_per_unit: int = 1, rule: Rule = "optimal") -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", between(delta, "delta", 0, 1, open_low=True, open_high=True))
        object.__setattr__(self, "keys_per_unit", numbers.whole(keys_per_unit, "keys_per_unit", least=1))
        object.__setattr__(self, "rule", numbers.one_of(rule, "rule", "optimal", "geometric"))
        object.__setattr__(self, "noise", TwoSided(1 / self._each[0]))  # refuses a scale out of range

    @property
    def _each(self) -> tuple[Fraction, Fraction]:
        """Returns (epsilon, delta) of one key."""
        return self.epsilon / self.keys_per_unit, self.delta / self.keys_per_unit

    @property
    def threshold(self) -> int:
        """Returns the geometric rule's t: 1 plus the smallest s with Pr[noise >= s] <= delta."""
        return _threshold(self.noise, self._each[1])

    def shown(self, units: int) -> arb:
        """Returns Pr[the key is shown], exactly, at the working precision."""
        if numbers.whole(units, "units") <= 0:
            return arb(0)
        if self.rule == "geometric":
            return self.noise.more_than(self.threshold - units - 1)
        return optimal(*self._each, units)

    def release(self, exact: base.Whole) -> bool | NDArray[np.bool_]:
        """Decides whether to show this key, or, for an array of counts, which of these keys."""
        counts = base.whole(exact)
        if isinstance(counts, int):
            return bool(self._decide(np.array([_clamped(counts)], dtype=np.int64))[0])
        return self._decide(counts)

    def _decide(self, counts: Integers) -> NDArray[np.bool_]:
        present: NDArray[np.bool_] = counts > 0
        if self.rule == "geometric":
            noisy = add(counts, self.noise.draw(len(counts)))
            return present & (noisy >= _threshold(self.noise, self._each[1]))
        u = entropy.words64(len(counts))
        # 53 bits, as in `Uniform.below_about`.
        gap = (u >> np.uint64(11)).astype(np.float64) * 2.0**-53 - estimates(*self._each, counts)
        decisions = present & (gap < 0)
        for i in np.flatnonzero(present & (np.abs(gap) <= MARGIN)):
            decisions[i] = Uniform(int(u[i]), 64).below(partial(self.shown, int(counts[i])))
        return decisions

    def outcome(self, k: int) -> bool:
        return numbers.whole(k, "k") != 0

    def loss(self) -> Approx:
        return Approx(self.epsilon, self.delta)

    def zcdp(self) -> ZCDP:
        """Adds rho key by key, which is less than the rho of the summed epsilon."""
        return self.curve().zcdp()

    def curve(self) -> Curve:
        return Curve.of(Response(*self._each), self.keys_per_unit)

    def law(self, exact: int) -> Law:
        """Returns the law: 1 for shown, 0 for hidden. More than 2^62 units count as 2^62."""
        units = _clamped(base.single(exact))
        show = self.shown(units)
        if show.is_zero() or show == 1:
            return Coin(Fraction(int(show == 1)))
        return Finite((lambda: self._hidden(units), lambda: self.shown(units)))

    def _hidden(self, units: int) -> arb:
        if self.rule == "geometric":
            return self.noise.at_most(self.threshold - units - 1)
        return 1 - optimal(*self._each, units)

    def margin(self, confidence: Number) -> int:
        """Returns how many units a key needs to be shown with this confidence."""
        allowed = 1 - check_confidence(confidence)
        return search(lambda m: certainly_at_most(lambda: 1 - self.shown(m), allowed), 1, None)

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "keys_per_unit": self.keys_per_unit,
            "rule": self.rule,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        price = f"{epsilon_words(self.epsilon)}, δ = {show(self.delta)}"
        return f"{on} is shown if enough people have it (at {price}; {self.margin('0.95')} people are shown with 95 %)"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            *(Example(cls(epsilon=1, delta="1e-5"), m, (m + 1, max(m - 1, 0))) for m in (0, 1, 11, 12, 13, 22, 30)),
            *(Example(cls(epsilon=1, delta="1e-2", rule="geometric"), m, (m + 1, max(m - 1, 0))) for m in (0, 1, 4, 5)),
            Example(cls(epsilon=2, delta="0.1", keys_per_unit=3), 2, (1, 3)),
        )


def _clamped(units: int) -> int:
    return min(max(units, 0), 1 << 62)


@lru_cache(maxsize=64)
def _threshold(noise: TwoSided, delta: Fraction) -> int:
    return 1 + noise.upper_tail(delta)


@lru_cache(maxsize=64)
def _constants(epsilon: Fraction, delta: Fraction) -> tuple[int, float, float, float]:
    """Returns (n, p_n, 1 - p_n, d/(x - 1)), each the nearest float or next to it: public, the same for every count."""
    n = _turn(epsilon, delta)
    with working(256):
        p = optimal(epsilon, delta, n)
        return n, float(p), float(1 - p), float(ball(delta) / ball(epsilon).expm1())


def estimates(epsilon: Fraction, delta: Fraction, counts: Integers) -> NDArray[np.float64]:
    """Returns p_m for each count m >= 1, to 2^-45; it may exceed 1 where the rule always shows a key."""
    n, shown, hidden, slope = _constants(epsilon, delta)
    # Counts end at 2^62. A turn beyond int64 is so far from all of them that x^-j is 0 in floats, as it is at its end.
    distance = np.maximum(counts, 0) - np.int64(min(n, (1 << 63) - 1))
    late = distance > 0
    exponent = np.abs(distance) * -float(epsilon)
    with np.errstate(under="ignore"):
        q = np.where(late, hidden, shown) * np.exp(exponent) + slope * np.expm1(exponent)
    return np.where(late, 1 - q, q)


def optimal(epsilon: Fraction, delta: Fraction, units: int) -> arb:
    """Returns p_m of the optimal rule, in closed form."""
    rising = _turn(epsilon, delta)
    with working(precision() + 64):
        grown = one_minus_exp(epsilon)  # (x - 1)/x

        def rise(m: int) -> arb:
            return ball(delta) * ball(epsilon * m).expm1() / ball(epsilon).expm1()

        if units <= rising:
            return rise(units).min(arb(1))
        j = units - rising
        hidden = exp(-epsilon * j) * (1 - rise(rising)) - ball(delta) * exp(-epsilon) * one_minus_exp(epsilon * j) / grown
        return arb(1) if hidden <= 0 else 1 - hidden


def _turn(epsilon: Fraction, delta: Fraction) -> int:
    """Returns n, the first m with p_m >= (1 - d)/(x + 1). Equality would make e^epsilon algebraic: the floor is decidable."""

    def real() -> arb:
        grown = ball(epsilon).expm1()
        return (1 + ball((1 - delta) / delta) * grown / (grown + 2)).log() / ball(epsilon)

    return floor_scaled(real, 0) + 1
