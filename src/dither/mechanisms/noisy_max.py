"""Noisy max: adds noise to every score and reports which is the largest, never how large.

    release = lowest i with the largest score_i + noise_i        noise two-sided geometric of scale 2 * sensitivity / epsilon

Why it is private: hold the others' noise fixed. Candidate i wins if its own noise is at least some whole number; moving
from data to neighbouring data moves score_i by at most `sensitivity` and the others' best by as much, so that number moves
by at most 2 * sensitivity (by `sensitivity` if all scores move the same way). Pr[noise >= m + d] >= e^(-d / scale)
Pr[noise >= m] for whole d. Ties are settled by index, a rule that does not look at data.
Reporting the winner's noisy score as well costs n * epsilon / 2 instead: a known bug.
Reference: Dwork and Roth 2014, section 3.3 (report noisy max).

`Race` computes the exact probabilities, also for sparse vector:

    sum over all whole k of  Pr[Z = k - c0]  *  product of Pr[Z_j <= k - c_j]  *  product of Pr[Z_j > k - c_j]

where each Z_j has parameter b = exp(-1/scale) and Z has parameter b^power. Between two neighbouring centres every factor is
a constant plus a multiple of b^k or of b^-k:

    Pr[Z <= m] = 1 - b^(m+1) / (1 + b)   for m >= 0          b^-m / (1 + b)   for m < 0

so their product is a polynomial in b^k and b^-k, and each of its terms sums to a geometric series in closed form: the
cost depends on the number of centres, not on their distance or on the scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import arb, arb_poly

from dither.errors import ArgumentError, Blank, Fix, Python
from dither.exact import numbers
from dither.exact.balls import Real, certainly_at_most, exp, one_minus_exp, precision, working
from dither.exact.laws.base import Law, add, search
from dither.exact.laws.derived import Finite
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import Number, flag, positive, show, show_rounded
from dither.mechanisms import base, selection
from dither.mechanisms.base import Example, Mechanism, check_confidence, epsilon_words
from dither.mechanisms.norms import L1
from dither.mechanisms.selection import Scores
from dither.privacy.losses import Pure


@dataclass(frozen=True)
class Race:
    """The sum in the header: `start` is c0, `reached` the c_j of Pr[Z_j <= k - c_j], `missed` those of Pr[Z_j > k - c_j]."""

    scale: Fraction
    start: int
    power: int
    reached: tuple[int, ...]
    missed: tuple[int, ...]

    def probability(self) -> arb:
        """Returns the sum, at about the working precision."""
        # Terms of n factors cancel by at most 2^n; the series of slow terms lose the scale's bits.
        runners = len(self.reached) + len(self.missed)
        extra = 64 + 2 * runners + 2 * int(self.scale).bit_length()
        with working(precision() + extra):
            edges = sorted({self.start, *self.reached, *self.missed})
            lows: list[int | None] = [None, *edges]
            highs: list[int | None] = [*(e - 1 for e in edges), None]
            return sum((self._segment(low, high) for low, high in zip(lows, highs, strict=True)), arb(0))

    def _b(self, exponent: int) -> arb:
        return exp(-exponent / self.scale)

    def _segment(self, low: int | None, high: int | None) -> arb:
        """Sums over low <= k <= high, a range without a centre strictly inside."""
        if low is None:
            return self._falling(high if high is not None else 0)
        polynomial, shift = self._product(low)
        length = None if high is None else high - low + 1
        terms = (c * self._series(i + shift, length) for i, c in enumerate(polynomial.coeffs()))
        return sum(terms, arb(0))

    def _falling(self, high: int) -> arb:
        """Sums over all k <= high: the same with b^-(k - high), which falls to the left."""
        polynomial, shift = self._product(high)
        terms = (c * self._series(-(i + shift), None) for i, c in enumerate(polynomial.coeffs()))
        return sum(terms, arb(0))

    def _product(self, origin: int) -> tuple[arb_poly, int]:
        """(P, s) with the product at k equal to x^s P(x), x = b^(k - origin), on the whole segment of `origin`."""
        top = 1 + self._b(1)
        step = abs(origin - self.start) * self.power
        power = self.power if origin >= self.start else -self.power
        lead = one_minus_exp(self.power / self.scale) / (1 + self._b(self.power)) * self._b(step)
        result, shift = arb_poly([lead]), power
        for centre, count in Counter(self.reached).items():
            if origin >= centre:
                result *= arb_poly([1, -self._b(origin - centre + 1) / top]) ** count
            else:
                result *= (self._b(centre - origin) / top) ** count
                shift -= count
        for centre, count in Counter(self.missed).items():
            if origin >= centre:
                result *= (self._b(origin - centre + 1) / top) ** count
                shift += count
            else:  # 1 - y / x = (x - y) / x
                result *= arb_poly([-self._b(centre - origin) / top, 1]) ** count
                shift -= count
        return result, shift

    def _series(self, rate: int, length: int | None) -> arb:
        """Sums b^(rate j) over 0 <= j < length (None: no end, and rate > 0)."""
        if rate == 0:
            return arb(0 if length is None else length)
        one = one_minus_exp(rate / self.scale)
        return 1 / one if length is None else one_minus_exp(rate * length / self.scale) / one


def winner(scale: Fraction, centres: Iterable[int], index: int) -> arb:
    """Returns Pr[centres[index] plus its noise is the largest; the lowest index wins ties], all noises of one scale."""
    scores = list(centres)
    # Earlier candidates must stay below k, so at most k - 1; later ones may also reach k.
    below = tuple(c + 1 if j < index else c for j, c in enumerate(scores) if j != index)
    return Race(scale, scores[index], 1, below, ()).probability()


_MOST = 10**6  # the most candidates of a margin, which lists them one by one


@dataclass(frozen=True)
class NoisyMax(Mechanism):
    """Chooses one of finitely many public candidates by whole-number scores. Releases its label, or its index.

    Guarantee: epsilon-DP where one unit moves each score by at most `sensitivity`.
    Relies on: the list of candidates being public, and all scores moving the same way if `monotone` is set.

    >>> NoisyMax(epsilon=1, sensitivity=1).margin("0.95", candidates=4)
    9
    """

    tag: ClassVar[str] = "NoisyMax"
    epsilon: Fraction
    sensitivity: Fraction
    candidates: tuple[Hashable, ...] | None
    monotone: bool
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number,
        candidates: Sequence[Hashable] | None = None,
        monotone: bool = False,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", Fraction(L1(sensitivity).total(None)))
        object.__setattr__(self, "candidates", selection.labels(candidates))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))
        object.__setattr__(self, "noise", TwoSided(self.scale))  # refuses a scale out of range

    @classmethod
    def with_scale(
        cls, scale: Number, *, sensitivity: Number, candidates: Sequence[Hashable] | None = None, monotone: bool = False
    ) -> NoisyMax:
        """Builds it from the noise: each score gets noise of this scale, at the resulting price."""
        moved = L1(sensitivity).total(None) * (1 if flag(monotone, "monotone") else 2)
        return cls(epsilon=moved / positive(scale, "scale"), sensitivity=sensitivity, candidates=candidates, monotone=monotone)

    @property
    def scale(self) -> Fraction:
        """Returns the scale of the noise on each score."""
        return 1 / selection.weight(self.epsilon, self.sensitivity, self.monotone)

    def release(self, exact: Scores) -> Any:
        if isinstance(exact, np.ndarray):
            selection.check_size(len(selection.whole_array(exact)), self.candidates)
            start = base.whole(exact)
            return self.outcome(int(np.argmax(add(np.asarray(start), self.noise.draw(len(exact))))))
        noisy = [score + self.noise.draw() for score in selection.read_scores(exact, self.candidates, fractions=False)]
        return self.outcome(noisy.index(max(noisy)))

    def outcome(self, k: int) -> Any:
        return selection.outcome(k, self.candidates)

    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def law(self, exact: Scores) -> Law:
        scores = [int(score) for score in selection.read_scores(exact, self.candidates, fractions=False)]

        def probability(index: int) -> Real:
            return lambda: winner(self.scale, scores, index)

        return Finite(tuple(probability(i) for i in range(len(scores))))

    def margin(self, confidence: Number, *, candidates: int | None = None) -> int:
        """Returns the smallest m such that, for all scores, the chosen one is at least OPT - m with this confidence.

        The worst case for m: one best candidate, last in the list, and all others m + 1 points behind. For candidates
        more than m behind to win, the largest of their noises must exceed the best one's noise by more than m.
        """
        chance = check_confidence(confidence)
        count = len(self.candidates) if candidates is None and self.candidates is not None else candidates
        if count is None:
            raise ArgumentError(
                "candidates must say how many there are.",
                fix=Fix("give {candidates}, as in {call}.", candidates=Blank(), call=Python("margin(0.95, candidates=4)")),
            )
        others = numbers.whole(count, "candidates", least=1) - 1
        if others >= _MOST:
            raise ArgumentError(f"candidates must be at most {_MOST} for a margin.", fix="give a smaller number.")

        def holds(m: int) -> bool:
            worst = [-m - 1] * others + [0]
            return certainly_at_most(lambda: 1 - winner(self.scale, worst, others), 1 - chance)

        return search(holds, 0, None) if others else 0

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "candidates": self.candidates,
            "monotone": self.monotone or None,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved, scale = show(self.sensitivity), show_rounded(float(self.scale))
        noise = f"largest noisy score, noise of scale {scale}, over {on}"
        return f"{noise}: one {who} changes each score by at most {moved}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1), (3, 0, 1, 1), ((2, 1, 0, 2), (4, 1, 2, 2), (2, 1, 2, 2))),
            Example(
                cls(epsilon="1/2", sensitivity=1, candidates=("a", "b", "c"), monotone=True),
                (10, 10, 0),
                ((11, 10, 0), (10, 11, 1), (11, 11, 1)),
            ),
            Example(cls(epsilon=2, sensitivity=3), (0, 10), ((3, 7), (-3, 13), (2, 12))),
        )
