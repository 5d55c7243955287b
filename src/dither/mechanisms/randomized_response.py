"""Randomized response: each person reports their own category, truly with probability p, else one of the others.

    Pr[report = truth] = p = e^epsilon / (e^epsilon + k - 1)
    Pr[report = v] = q = (1 - p) / (k - 1)                        for each of the k - 1 other v

Why it is private: any report is at most p/q = e^epsilon times as likely for one truth as for another. Given p as a
rational, epsilon = |ln(p/q)| is rounded up; for two categories that is |ln(p / (1 - p))|, so a p is epsilon-DP exactly
when 1/(1 + e^epsilon) <= p <= e^epsilon/(1 + e^epsilon).

Estimate: with y_v of N reports saying v, (y_v/N - q) / (p - q) is unbiased for the share pi of v. Over people drawn at
random a report says v with probability r = q + pi (p - q), so its variance is r (1 - r) / (N (p - q)^2). For two categories
the estimate is (y/N - (1 - p)) / (2p - 1) and the variance pi (1 - pi)/N + (1/(16 (p - 1/2)^2) - 1/4)/N.
Reference: Warner 1965; k categories: Kairouz, Bonawitz and Ramage, ICML 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dither.errors import ArgumentError, Blank, Fix
from dither.exact import numbers
from dither.exact.balls import Real, above, ball, exp
from dither.exact.laws.base import Integers, Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Coin, Flat
from dither.exact.laws.derived import Finite
from dither.exact.numbers import Number, between, positive
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, check_confidence, epsilon_words
from dither.privacy.losses import Curve, Pure
from dither.privacy.parts import KaryResponse

_MOST_CATEGORIES = 1 << 62  # a truth and an offset add up within int64


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Hides one person's category, without a trusted curator. Categories are 0, 1, ..., categories - 1.

    Guarantee: epsilon-DP for each report between any two truths (replacing one person's value).
    Relies on: each person reporting once. A truth outside the categories becomes the nearest one.

    >>> RandomizedResponse(p="3/4").loss().epsilon() > Fraction("1.0986")
    True
    >>> RandomizedResponse(p="3/4").estimate([400, 600])
    (Fraction(3, 10), Fraction(7, 10))
    """

    tag: ClassVar[str] = "RandomizedResponse"
    epsilon: Fraction | None
    p: Fraction | None
    categories: int
    noise: Categorical | Coin = field(init=False, repr=False, compare=False)

    def __init__(self, *, epsilon: Number | None = None, p: Number | None = None, categories: int = 2) -> None:
        if (epsilon is None) == (p is None):
            raise ArgumentError("RandomizedResponse needs epsilon or p, and not both.", fix="give one of the two.")
        count = numbers.whole(categories, "categories", least=2)
        if count > _MOST_CATEGORIES:
            raise ArgumentError("categories must be at most 2^62.", fix="group the values into fewer categories.")
        truth = None if p is None else between(p, "p", 0, 1, open_low=True, open_high=True)
        if truth == Fraction(1, count):
            raise ArgumentError(
                f"p must differ from 1/{count}, where every report is equally likely.",
                fix="give another p, above it to be useful.",
            )
        object.__setattr__(self, "epsilon", None if epsilon is None else positive(epsilon, "epsilon"))
        object.__setattr__(self, "p", truth)
        object.__setattr__(self, "categories", count)
        object.__setattr__(self, "noise", Coin(truth) if truth is not None else self._around(0))

    def _p(self) -> arb:
        return ball(self.p) if self.p is not None else self._weight() / (self._weight() + self.categories - 1)

    def _q(self) -> arb:
        if self.p is not None:
            return ball((1 - self.p) / (self.categories - 1))
        return 1 / (self._weight() + self.categories - 1)

    def _weight(self) -> arb:
        return exp(self.epsilon or Fraction(0))

    def _shares(self) -> tuple[Fraction, Fraction]:
        """Returns (p, q) as rationals: exact if p was given, else within 2^-128."""
        p = self.p if self.p is not None else above(self._p, bits=128)
        return p, (1 - p) / (self.categories - 1)

    def release(self, exact: base.Whole) -> int | Integers:
        """Draws one report, or independent reports of an array of people."""
        truth = base.whole(exact)
        if isinstance(truth, int):
            return (min(max(truth, 0), self.categories - 1) + int(self._offsets(1)[0])) % self.categories
        return (np.clip(truth, 0, self.categories - 1) + self._offsets(len(truth))) % self.categories

    def _offsets(self, size: int) -> Integers:
        """Draws how far to move around the circle of categories: 0 with probability p, else uniformly."""
        if isinstance(self.noise, Categorical):
            return self.noise.draw(size)
        others = Flat(self.categories - 1).draw(size) + 1
        return np.where(self.noise.draw(size) == 1, 0, others)

    def _around(self, truth: int) -> Categorical:
        """Returns the law of a report, given epsilon: the truth weighs e^epsilon, every other category 1."""
        return Categorical(tuple((self.epsilon or Fraction(0)) * (k == truth) for k in range(self.categories)))

    def loss(self) -> Pure:
        if self.epsilon is not None:
            return Pure(self.epsilon)
        p, q = self._shares()
        ratio = max(p / q, q / p)
        return Pure(above(lambda: ball(ratio).log()))

    def curve(self) -> Curve:
        """Returns the loss curve: of the k reports, a replaced truth leaves k - 2 as likely as before."""
        epsilon = self.loss().epsilon()
        truthful = self.p is None or self.p * self.categories > 1
        return Curve.of(KaryResponse(epsilon, self.categories, truthful))

    def law(self, exact: int) -> Law:
        truth = min(max(base.single(exact), 0), self.categories - 1)
        if self.epsilon is not None:
            return self._around(truth)
        table: list[Real] = [self._q] * self.categories
        table[truth] = self._p
        return Finite(tuple(table))

    def estimate(self, counts: Sequence[int] | Integers) -> tuple[Fraction, ...]:
        """Returns unbiased shares of the categories from the counts of reports. They add up to 1 and may be negative."""
        reports = [
            numbers.whole(count, "counts", least=0) for count in numbers.items(counts, "counts", fix="count every category.")
        ]
        if len(reports) != self.categories or sum(reports) == 0:
            raise ArgumentError(
                f"counts must hold {self.categories} numbers, not all 0, and it holds {len(reports)}.",
                fix="count every category.",
            )
        p, q = self._shares()
        return tuple((Fraction(count, sum(reports)) - q) / (p - q) for count in reports)

    def variance(self, share: Number, respondents: int) -> Fraction:
        """Returns the variance of one estimated share, over people drawn at random and their coins."""
        pi, n = between(share, "share", 0, 1), numbers.whole(respondents, "respondents", least=1)
        p, q = self._shares()
        reported = q + pi * (p - q)
        return reported * (1 - reported) / (n * (p - q) ** 2)

    def margin(self, confidence: Number, *, respondents: int | None = None) -> Fraction:
        """Returns how far an estimate may be from these people's true share: sqrt(ln(2/(1-c)) / 2N) / |p - q|, rounded up.

        By Hoeffding's inequality over the coins; it holds for all truths.
        """
        chance = check_confidence(confidence)
        if respondents is None:
            raise ArgumentError(
                "respondents must say how many reports there are.", fix=Fix("give {respondents}.", respondents=Blank())
            )
        n = numbers.whole(respondents, "respondents", least=1)
        return above(lambda: (ball(2 / (1 - chance)).log() / (2 * n)).sqrt() / abs(self._p() - self._q()))

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "p": self.p, "categories": self.categories}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        price = epsilon_words(self.loss().epsilon())
        return f"randomized response over {self.categories} categories, on {on}: each {who} answers once, {price}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1), 0, (1,)),
            Example(cls(p="1/10"), 1, (0,)),
            Example(cls(epsilon="1/2", categories=5), 3, (0, 1, 2, 4)),
            Example(cls(p="3/102", categories=100), 0, (99,)),
        )
