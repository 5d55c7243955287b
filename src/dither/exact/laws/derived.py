"""Laws made from other laws, and laws given by a table.

Moved(law, by)            X + by
Clamped(law, low, high)   min(max(X, low), high): each end takes the probability of its tail
Given(law, above)         X, given that X > above
Finite(probabilities)     Pr[k] = probabilities[k]       0 <= k < len(probabilities)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls, numbers
from dither.exact.laws.base import Integers, Law, Piece
from dither.exact.samplers.table import TOP, Table

_WIDEST = 1 << 62  # values in int64 arrays, with space left for noise
_LARGEST = 4096  # a finite law of at most this many values is drawn by a table


@dataclass(frozen=True)
class Moved(Law):
    """The law of X + by. An array of draws needs values within 2^62; a single draw has no limit.

    >>> from dither.exact.laws.coins import Flat
    >>> Moved(Flat(6), 1).span()
    (1, 6)
    """

    law: Law
    by: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", numbers.whole(self.by, "by"))

    def span(self) -> tuple[int | None, int | None]:
        first, last = self.law.span()
        return None if first is None else first + self.by, None if last is None else last + self.by

    def pmf(self, k: int) -> arb:
        return self.law.pmf(k - self.by)

    def at_most(self, k: int) -> arb:
        return self.law.at_most(k - self.by)

    def more_than(self, k: int) -> arb:
        return self.law.more_than(k - self.by)

    def pieces(self) -> tuple[Piece, ...]:
        return tuple(self._piece(p) for p in self.law.pieces())

    def _piece(self, p: Piece) -> Piece:
        # bend (k - by)^2 + slope (k - by) + constant, multiplied out.
        first = None if p.first is None else p.first + self.by
        last = None if p.last is None else p.last + self.by
        shift = p.bend * self.by**2 - p.slope * self.by
        slope = p.slope - 2 * p.bend * self.by
        return Piece(first, last, lambda: p.constant() + balls.ball(shift), slope, p.bend, p.base, p.offset + shift)

    def tail(self, k: int, *, above: bool) -> tuple[Hashable, Fraction]:
        return self.law.tail(k - self.by, above=above)

    def _one(self) -> int:
        return self.law.draw() + self.by

    def _many(self, size: int) -> Integers:
        ends = (self.by, *(end for end in self.span() if end is not None))
        if any(abs(end) > _WIDEST for end in ends):  # the text shows no value: `by` may be a private answer
            raise ArgumentError("by must keep all values within 2^62 for an array of draws.", fix="draw one at a time.")
        return self.law.draw(size) + np.int64(self.by)


@dataclass(frozen=True)
class Clamped(Law):
    """The law of min(max(X, low), high).

    >>> from dither.exact.laws.geometric import TwoSided
    >>> [float(round(float(Clamped(TwoSided(1), -1, 1).probability(k)), 6)) for k in (-1, 0, 1)]
    [0.268941, 0.462117, 0.268941]
    """

    law: Law
    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", numbers.whole(self.low, "low"))
        object.__setattr__(self, "high", numbers.whole(self.high, "high", least=self.low))

    def _clamp(self, k: int) -> int:
        return min(max(k, self.low), self.high)

    def span(self) -> tuple[int, int]:
        first, last = self.law.span()
        return (self.low if first is None else self._clamp(first)), (self.high if last is None else self._clamp(last))

    def pmf(self, k: int) -> arb:
        if not self.low <= k <= self.high:
            return arb(0)
        if k == self.low:
            return self.at_most(k)
        return self.more_than(k - 1) if k == self.high else self.law.pmf(k)

    def at_most(self, k: int) -> arb:
        return arb(0) if k < self.low else arb(1) if k >= self.high else self.law.at_most(k)

    def more_than(self, k: int) -> arb:
        return arb(1) if k < self.low else arb(0) if k >= self.high else self.law.more_than(k)

    def pieces(self) -> tuple[Piece, ...]:
        first, last = self.span()
        if first == last:
            return (Piece(first, first, lambda: arb(0)),)
        inner = [self._cut(p, first + 1, last - 1) for p in self.law.pieces()]
        ends = self._end(first, above=False), self._end(last, above=True)
        return (ends[0], *(p for p in inner if p is not None), ends[1])

    def _end(self, k: int, *, above: bool) -> Piece:
        base, offset = self.law.tail(k, above=above)
        return Piece(k, k, lambda: self.pmf(k).log(), base=base, offset=offset)

    @staticmethod
    def _cut(p: Piece, low: int, high: int) -> Piece | None:
        first = low if p.first is None else max(p.first, low)
        last = high if p.last is None else min(p.last, high)
        return replace(p, first=first, last=last) if first <= last else None

    def _one(self) -> int:
        return self._clamp(self.law.draw())

    def _many(self, size: int) -> Integers:
        low, high = max(self.low, -_WIDEST), min(self.high, _WIDEST)
        if low > high:
            raise ArgumentError("low and high must reach within 2^62 for an array of draws.", fix="draw one at a time.")
        return np.clip(self.law.draw(size), low, high)


@dataclass(frozen=True)
class Given(Law):
    """The law of X, given that X > above.

    >>> from dither.exact.laws.geometric import OneSided
    >>> law = Given(OneSided(3), 4)
    >>> law.span(), bool(abs(law.probability(7) - OneSided(3).probability(2)) < 1e-30)
    ((5, None), True)
    """

    law: Law
    above: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "above", numbers.whole(self.above, "above"))
        last = self.law.span()[1]
        if last is not None and last <= self.above:
            raise ArgumentError("above must leave some value of the law.", fix="give a smaller number.")

    def span(self) -> tuple[int, int | None]:
        first, last = self.law.span()
        return (self.above + 1 if first is None else max(first, self.above + 1)), last

    def _rest(self) -> arb:
        return self.law.more_than(self.above)

    def pmf(self, k: int) -> arb:
        return self.law.pmf(k) / self._rest() if k > self.above else arb(0)

    def at_most(self, k: int) -> arb:
        return 1 - self.more_than(k) if k > self.above else arb(0)

    def more_than(self, k: int) -> arb:
        return self.law.more_than(k) / self._rest() if k > self.above else arb(1)

    def pieces(self) -> tuple[Piece, ...]:
        found = []
        for p in self.law.pieces():
            if p.last is not None and p.last <= self.above:
                continue
            first = self.above + 1 if p.first is None else max(p.first, self.above + 1)
            found.append(replace(p, first=first, constant=self._constant(p), base=None, offset=Fraction(0)))
        return tuple(found)

    def _constant(self, p: Piece) -> balls.Real:
        return lambda: p.constant() - self._rest().log()


@dataclass(frozen=True)
class Finite(Law):
    """Pr[k] = probabilities[k], reals that add up to 1. A value whose ball is exactly 0 is impossible.

    `names` may state each symbolically: (base, offset) with log Pr[k] = r(base) + offset, as in `Piece`.

    >>> half = lambda: arb(0.5)
    >>> Finite((half, half)).span()
    (0, 1)
    """

    probabilities: tuple[balls.Real, ...] = field(repr=False)
    names: tuple[tuple[Hashable, Fraction], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", tuple(self.probabilities))
        with balls.working(128):
            parts = [real() for real in self.probabilities]
            total = sum(parts, arb(0))
        if not total.contains(1) or any(part < 0 for part in parts):
            raise ArgumentError("probabilities must be at least 0 and add up to 1, and they do not.", fix="check the table.")

    def span(self) -> tuple[int, int]:
        return 0, len(self.probabilities) - 1

    def pmf(self, k: int) -> arb:
        return self.probabilities[k]() if 0 <= k < len(self.probabilities) else arb(0)

    def at_most(self, k: int) -> arb:
        return arb(1) if k >= len(self.probabilities) - 1 else _add(self.probabilities[: max(k + 1, 0)])

    def more_than(self, k: int) -> arb:
        return arb(1) if k < 0 else _add(self.probabilities[k + 1 :])

    def pieces(self) -> tuple[Piece, ...]:
        def piece(k: int, real: balls.Real) -> Piece:
            base, offset = self.names[k] if self.names else (None, Fraction(0))
            return Piece(k, k, lambda: real().log(), base=base, offset=offset)

        return tuple(piece(k, real) for k, real in enumerate(self.probabilities) if not real().is_zero())

    def _one(self) -> int:
        return self.table.one() if len(self.probabilities) <= _LARGEST else super()._one()

    def _many(self, size: int) -> Integers:
        return self.table.many(size) if len(self.probabilities) <= _LARGEST else super()._many(size)

    # Cached in this object only: its probabilities may come from private numbers, and no global cache may keep them.
    @cached_property
    def table(self) -> Table:
        """Returns the sampler. Raises the precision until the running sums' balls are far below the thresholds' unit."""
        bits = 192
        while True:
            with balls.working(bits):
                sums = list(accumulate((real() * arb(2) ** 64 for real in self.probabilities[:-1]), lambda x, y: x + y))
                if all(x.rad() < 0.25 for x in sums):
                    thresholds = [min(max(int(x.lower().floor().unique_fmpz()), 0), TOP) for x in sums]
                    return Table(thresholds, range(len(self.probabilities)), self.value_at)
            bits *= 2


def _add(parts: Sequence[balls.Real]) -> arb:
    return sum((real() for real in parts), arb(0))
