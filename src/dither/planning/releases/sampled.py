"""Counts, sums and means of a secret sample of units, read as estimates of the whole table, with the sampling error in ±.

A unit i adds v_i to a cell in a group, 0 <= v_i <= m, m being what the engine bounds it to. T = sum of v_i is the truth; the
sample has S = sum of b_i v_i, with a coin b_i for each unit that is 1 with probability q. The release is S with noise. The
estimate of T is the release divided by q: on average it is T.

Counts and sums. S - q T is a sum of independent terms (b_i - q) v_i, each within b = m max(q, 1 - q), of mean 0 and with
variance sum V <= q (1 - q) m T, because v_i^2 <= m v_i. With L = ln(2 / a), Bernstein's inequality is

    |S - q T| <= bL/3 + sqrt((bL/3)^2 + 2 L V)        but for a probability of at most a.

It holds for every table, also for small groups. T is unknown, and V grows with it, so the inequality is solved for T: with
c = bL/3 and k = (1 - q) m L,

    s + c + k + sqrt((c + k)^2 + 2 k s)    >=    q T    >=    s - c + k - sqrt((c - k)^2 + 2 k s)

at S = s. Both ends grow with s, so at the ends of the interval for S that noise allows they hold for S. T >= S besides. Weights
of either sign: the sum of the positive terms and that of the negative ones are two such numbers.

Means. With A and B as in sums.py and r = A / (A + B) the truth, unit i adds d_i = (1 - r) a_i - r b_i to (1 - r) A - r B, and
the d_i add up to 0 over all units. Those above 0 are at most (1 - r) m and add up to at most (1 - r) A; the others are at
least -r m and add up to at least -r B = -(1 - r) A. So the sum of d_i^2 is at most m (1 - r) A = m r (1 - r) (A + B), and the
sample's part of (1 - r) A - r B is within Bernstein's bound for V = q (1 - q) m r (1 - r) (A + B), A + B at its upper end. As
in sums.py, the r that noise and sample allow are found by narrowing [0, 1].

1 - confidence is divided evenly over what must hold at once (union bound): noise and sample of each number. The bounds allow
for the worst table: one in which units add m or nothing. So margins are wider than those of textbooks, which estimate a
variance or assume a normal law; they hold as often as they say.
Reference: Bernstein's inequality, as in Boucheron, Lugosi and Massart, Concentration Inequalities, 2013, theorem 2.10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import show_rounded
from dither.planning.releases.base import Bounds, Cells, Linear, Noise, Number, Reading, Term, noise_reach, weighted_sum
from dither.planning.releases.sums import Ratio, fieller
from dither.query.nodes import Aggregate

Floats = NDArray[np.float64]
_UP = 1 + 1e-9  # covers the rounding of a few dozen float operations
_NARROWINGS = 6
_EXAMPLE = 1000  # rows


class Spread(NamedTuple):
    """How far a sample may be from its mean: the probability q, the most one unit adds, and L = ln(2 / a)."""

    q: float
    most: float
    doubt: float

    @classmethod
    def of(cls, q: Fraction, most: float, allowed: Fraction) -> Spread:
        return cls(float(q), most * _UP, math.log(2 / float(allowed)) * _UP)

    @property
    def _c(self) -> float:
        return self.most * max(self.q, 1 - self.q) * self.doubt / 3

    def reach(self, expected: Floats, part: Floats | float = 1.0) -> Floats:
        """Returns Bernstein's bound for q T = `expected`, if the squares add up to at most `part` of m T."""
        variance = (1 - self.q) * self.most * np.maximum(expected, 0.0) * part
        wide: Floats = (self._c + np.sqrt(self._c**2 + 2 * self.doubt * variance)) * _UP
        return wide

    def highest(self, s: Floats) -> Floats:
        """Returns the largest q T for which the sample may have s."""
        c, k, s = self._c, (1 - self.q) * self.most * self.doubt, np.maximum(s, 0.0)
        high: Floats = (s + c + k + np.sqrt((c + k) ** 2 + 2 * k * s)) * _UP
        return high

    def lowest(self, s: Floats) -> Floats:
        """Returns the smallest q T for which the sample may have s. T is at least s, and so is q T / q."""
        c, k, s = self._c, (1 - self.q) * self.most * self.doubt, np.maximum(s, 0.0)
        low: Floats = (s - c + k - np.sqrt((c - k) ** 2 + 2 * k * s)) * (2 - _UP)
        return np.maximum(np.maximum(low, self.q * s * (2 - _UP)), 0.0)


def most_of(terms: Sequence[Term], noises: Sequence[Noise]) -> float:
    """Returns the most that one unit adds to a weighted sum of cells in one group: all its cells of a release together are at
    most `row` for each row that counts."""
    each: dict[int, Fraction] = {}
    for term in terms:
        each[term.noise] = max(each.get(term.noise, Fraction(0)), abs(term.weight))
    return float(sum(weight * noises[place].of.row * noises[place].of.rows_per_unit for place, weight in each.items()))


@dataclass(frozen=True)
class SampledSum(Reading):
    """A count or a sum over a sample, divided by q. `of`: the same reading of the whole table; a Linear or a Combined."""

    aggregate: Aggregate
    of: Reading
    q: Fraction
    by_rows = True

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.of.whole

    @property
    def title(self) -> str:
        return self.of.title

    def inner(self, noises: Sequence[Noise]) -> Linear:
        """Returns the reading of the sample as a weighted sum of cells."""
        found = self.of.linear(noises)
        if found is None:
            raise TypeError("a sum over a sample is a weighted sum of cells")
        return found

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        inner = self.inner(noises)
        scaled = tuple(term._replace(weight=term.weight / self.q) for term in inner.terms)
        return replace(inner, terms=scaled).values(noises, noisy)

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        inner = self.inner(noises)
        sides = [tuple(term for term in inner.terms if (term.weight < 0) == negative) for negative in (False, True)]
        allowed = (1 - confidence) / (sum(map(bool, sides)) + bool(inner.counted) or 1)
        low = high = np.full(len(noisy[0]) if noisy else 1, float(inner.constant))
        for side, negative in zip(sides, (False, True), strict=True):
            least, most = _interval(side, self.q, noises, noisy, allowed)
            low, high = (low - most, high - least) if negative else (low + least, high + most)
        moved: Floats | float = float(inner.slack)
        if inner.counted:
            moved = moved + float(inner.each) * _interval(inner.counted, self.q, noises, noisy, allowed)[1]
        return low - moved, high + moved

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        low, high = self.bounds(noises, noisy, confidence)
        value = np.array(self.values(noises, noisy), dtype=np.float64)
        return [self._rounded(each) for each in np.maximum(high - value, value - low)]

    def _rounded(self, wide: float) -> float:
        return float(math.ceil(wide)) if self.whole else float(wide)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin for a group of so many rows that all add the most they can."""
        if rows is None:
            return None
        inner, total = self.inner(noises), np.zeros(1)
        allowed = (1 - confidence) / (2 if any(term.weight < 0 for term in inner.terms) else 1)
        for negative in (False, True):
            side = tuple(term for term in inner.terms if (term.weight < 0) == negative)
            if side:
                row = most_of(side, noises) / max(noises[term.noise].of.rows_per_unit for term in side)
                spread = Spread.of(self.q, most_of(side, noises), allowed / 2)
                total = (
                    total + noise_reach(side, noises, 1 - allowed / 2) + spread.reach(np.array([float(self.q) * rows * row]))
                )
        return self._rounded(float(total[0]) / float(self.q) + float(inner.slack) + float(inner.each) * rows)

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        if rows is not None:
            return super().expected(noises, rows, confidence)
        few, many = (self.predicted(noises, n, confidence) or 0.0 for n in (_EXAMPLE, 100 * _EXAMPLE))
        return f"± {show_rounded(few)} in a group of {_EXAMPLE} rows, {show_rounded(many)} in one of {100 * _EXAMPLE}"

    def smallest(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Floats:
        return self.of.smallest(noises, noisy, confidence)

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        return self.inner(noises).largest(noises, rows) / self.q


def _interval(
    terms: Sequence[Term], q: Fraction, noises: Sequence[Noise], noisy: Cells, allowed: Fraction
) -> tuple[Floats, Floats]:
    """Returns the least and the most that a weighted sum over all units can be. The weights all count as positive."""
    if not terms:
        return np.zeros(1), np.zeros(1)
    upward = tuple(term._replace(weight=abs(term.weight)) for term in terms)
    s, wide = weighted_sum(upward, noisy), noise_reach(upward, noises, 1 - allowed / 2)
    spread = Spread.of(q, most_of(upward, noises), allowed / 2)
    return spread.lowest(s - wide) / float(q), spread.highest(s + wide) / float(q)


@dataclass(frozen=True)
class SampledMean(Reading):
    """A mean over a sample: the mean of the sample, with the interval of the whole table's."""

    aggregate: Aggregate
    of: Ratio
    q: Fraction
    by_rows = True

    @property
    def title(self) -> str:
        return self.of.title

    @cached_property
    def _width(self) -> float:
        return float(self.of.grid.step * self.of.grid.steps)

    @property
    def _terms(self) -> tuple[Term, Term]:
        return Term(self.of.noise, self.of.first, Fraction(1)), Term(self.of.noise, self.of.first + 1, Fraction(1))

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        return self.of.values(noises, noisy)

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        low, high = self._shares(noises, noisy, confidence)
        start, slack = float(self.of.grid.low), float(self.of.slack)
        end = start + self._width
        return np.maximum(start + self._width * low - slack, start), np.minimum(start + self._width * high + slack, end)

    def _shares(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> tuple[Floats, Floats]:
        """Returns the lowest and the highest place between the bounds that the mean can have."""
        allowed = (1 - confidence) / 3  # the noise of the mean, its sample, and A + B
        a, b = self.of.parts(noisy)
        total = _interval(self._terms, self.q, noises, noisy, allowed)[1] * float(self.q)
        spread = Spread.of(self.q, most_of(self._terms, noises), allowed)
        noise = noises[self.of.noise]
        low, high = self._narrowed(noise, a, b, total, spread, 1 - allowed)
        held = self._narrowed(noise, np.maximum(a, 0), np.maximum(b, 0), total, spread, 1 - allowed)
        return np.minimum(low, held[0]), np.maximum(high, held[1])

    def _narrowed(
        self, noise: Noise, a: Floats, b: Floats, total: Floats, spread: Spread, confidence: Fraction
    ) -> tuple[Floats, Floats]:
        """Returns the ends of the possible shares; all of [0, 1] where there is none."""
        low, high = np.zeros_like(a), np.ones_like(a)
        for _ in range(_NARROWINGS):
            ends = np.maximum(self.of.reach(noise, low, confidence), self.of.reach(noise, high, confidence))
            nearest = np.clip(0.5, low, high)  # r (1 - r) is largest there
            wide = ends + spread.reach(total, nearest * (1 - nearest))
            down, up = fieller(a, a + b, (wide, wide), low, high)
            low, high = np.nan_to_num(down, nan=0.0), np.nan_to_num(up, nan=1.0)
        return low, high

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        low, high = self.bounds(noises, noisy, confidence)
        value = np.array(self.values(noises, noisy), dtype=np.float64)
        return [float(each) for each in np.maximum(high - value, value - low)]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin at `rows` rows in the group, for any mean within the bounds."""
        if rows is None:
            return None
        allowed, steps = (1 - confidence) / 3, self.of.grid.steps
        spread = Spread.of(self.q, most_of(self._terms, noises), allowed)
        expected = np.array([float(self.q) * rows * steps])
        most = spread.highest(expected + spread.reach(expected) + noise_reach(self._terms, noises, 1 - allowed / 2))
        wide = self.of.reach(noises[self.of.noise], np.zeros(1), 1 - allowed) + spread.reach(most, 0.25)
        return self._width * min(1.0, float(wide[0] / expected[0])) + float(self.of.slack)

    def smallest(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Floats:
        """Returns the lower bound of values if it is above 0; else nothing is known."""
        low = float(self.of.grid.low)
        return np.full(len(noisy[self.of.noise]), low if low > 0 else -math.inf)

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.bool_]:
        return self.of.unsure(noises, noisy, confidence)
