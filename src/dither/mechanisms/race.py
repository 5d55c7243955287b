"""Exact probabilities of races between two-sided geometric noises.

    sum over all whole k of  Pr[Z = k - c0]  *  product of Pr[Z_j <= k - c_j]  *  product of Pr[Z_j > k - c_j]

where each Z_j has parameter b = exp(-1/scale) and Z has parameter b^power. Between two neighbouring centres every factor is
a constant plus a multiple of b^k or of b^-k:

    Pr[Z <= m] = 1 - b^(m+1) / (1 + b)   for m >= 0          b^-m / (1 + b)   for m < 0

so their product is a polynomial in b^k and b^-k, and each of its terms sums to a geometric series in closed form: the
cost depends on the number of centres, not on their distance or on the scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_poly

from dither.exact.balls import exp, missing, precision, working


@dataclass(frozen=True)
class Race:
    """`start` is c0, `reached` the c_j of factors Pr[Z_j <= k - c_j], `missed` those of Pr[Z_j > k - c_j]."""

    scale: Fraction
    start: int
    power: int
    reached: tuple[int, ...]
    missed: tuple[int, ...]

    def probability(self) -> arb:
        """The sum, at about the working precision."""
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
        """The sum over low <= k <= high, a range without a centre strictly inside."""
        if low is None:
            return self._falling(high if high is not None else 0)
        polynomial, shift = self._product(low)
        length = None if high is None else high - low + 1
        terms = (c * self._series(i + shift, length) for i, c in enumerate(polynomial.coeffs()))
        return sum(terms, arb(0))

    def _falling(self, high: int) -> arb:
        """The sum over all k <= high: the same with b^-(k - high), which falls to the left."""
        polynomial, shift = self._product(high)
        terms = (c * self._series(-(i + shift), None) for i, c in enumerate(polynomial.coeffs()))
        return sum(terms, arb(0))

    def _product(self, origin: int) -> tuple[arb_poly, int]:
        """(P, s) with the product at k equal to x^s P(x), x = b^(k - origin), on the whole segment of `origin`."""
        top = 1 + self._b(1)
        step = abs(origin - self.start) * self.power
        power = self.power if origin >= self.start else -self.power
        lead = missing(self.power / self.scale) / (1 + self._b(self.power)) * self._b(step)
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
        """The sum of b^(rate j) over 0 <= j < length (None: without end, and rate > 0)."""
        if rate == 0:
            return arb(0 if length is None else length)
        one = missing(rate / self.scale)
        return 1 / one if length is None else missing(rate * length / self.scale) / one


def winner(scale: Fraction, centres: Iterable[int], index: int) -> arb:
    """Pr[centres[index] plus its noise is the largest, the lowest index winning ties], all noises of one scale."""
    found = list(centres)
    # Earlier ones must stay below k, so at most k - 1; later ones may also reach k.
    below = tuple(c + 1 if j < index else c for j, c in enumerate(found) if j != index)
    return Race(scale, found[index], 1, below, ()).probability()
