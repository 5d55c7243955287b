"""Truncated geometric noise: a count that stays within [0, n].

    release = min(max(exact + noise, 0), n)        noise two-sided geometric, a = exp(-epsilon / sensitivity)

so 0 and n take the probability of their tails: Pr[0] = a^x / (1 + a) and Pr[n] = a^(n - x) / (1 + a) at exact answer x.
Why it is private: it is a function of the geometric release alone (post-processing). The tails must move to the
ends: *conditioning* the noise on [0, n] instead divides by a total that depends on x, and is not epsilon-DP.
Reference: Ghosh, Roughgarden and Sundararajan, STOC 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dither.exact import numbers
from dither.exact.laws.base import Integers, Law, add
from dither.exact.laws.derived import Clamped, Moved
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import Number, positive, show_rounded
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, change_words, check_confidence, epsilon_words
from dither.mechanisms.geometric import separate_curve, separate_loss
from dither.mechanisms.norms import Norm, Sensitivity, as_l1
from dither.privacy.losses import Curve, Pure


@dataclass(frozen=True)
class TruncatedGeometric(Mechanism):
    """Hides one unit's share of a count that is publicly known to lie in [0, n].

    Guarantee: epsilon-DP between exact answers at most `sensitivity` apart.
    Relies on: n being public. An exact answer outside [0, n] is clamped first.

    >>> TruncatedGeometric(epsilon=1, sensitivity=1, n=100).margin("0.95")
    3
    """

    tag: ClassVar[str] = "TruncatedGeometric"
    epsilon: Fraction
    sensitivity: Norm
    n: int
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(self, *, epsilon: Number, sensitivity: Sensitivity, n: int) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", as_l1(sensitivity))
        object.__setattr__(self, "n", numbers.whole(n, "n", least=1))
        object.__setattr__(self, "noise", TwoSided(self.scale))  # refuses a scale out of range

    @classmethod
    def with_scale(cls, scale: Number, *, sensitivity: Sensitivity, n: int) -> TruncatedGeometric:
        """Builds it from the noise: a = exp(-1 / scale), at the resulting price."""
        norm = as_l1(sensitivity)
        return cls(epsilon=norm.total(None) / positive(scale, "scale"), sensitivity=norm, n=n)

    @property
    def scale(self) -> Fraction:
        """Returns the scale of the noise before truncation."""
        return self.sensitivity.total(None) / self.epsilon

    def release(self, exact: base.Whole) -> int | Integers:
        start = base.whole(exact, self.sensitivity)
        if isinstance(start, int):
            return self.law(start).draw()
        top = min(self.n, int(np.iinfo(np.int64).max))
        inside = np.clip(start, 0, top)
        return np.clip(add(inside, self.noise.draw(len(start))), 0, top)

    def loss(self) -> Pure:
        return separate_loss(self.epsilon, self.sensitivity, None)

    def curve(self) -> Curve:
        return separate_curve(self.epsilon, self.sensitivity, None)

    def law(self, exact: int) -> Law:
        inside = min(max(base.single(exact), 0), self.n)
        return Clamped(Moved(self.noise, inside), 0, self.n)

    def margin(self, confidence: Number) -> int:
        """Returns the smallest m that holds for every exact answer in [0, n].

        An answer more than m from both ends can be missed on both sides, one near an end only on the other.
        """
        chance = check_confidence(confidence)
        both = self.noise.radius(chance)
        middle = (self.n - 2) // 2  # the largest m that leaves some answer more than m from both ends
        if both <= middle:
            return both
        one = max(self.noise.upper_tail(1 - chance) - 1, middle + 1, 0)
        return min(one, self.n)

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity, "n": self.n}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved, range_words = self.sensitivity.total(None), f"kept within 0 and {self.n}"
        scale = show_rounded(float(self.scale))
        return f"geometric, scale {scale}, {range_words}, on {on}: {change_words(who, moved)}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1, n=10), 0, (1,)),
            Example(cls(epsilon="1/2", sensitivity=3, n=4), 4, (1, 2, 3)),
            Example(cls(epsilon="0.1", sensitivity=1, n=1), 0, (1,)),
        )
