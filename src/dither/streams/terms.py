"""What a running sum was made with: its horizon, its price, and the most that one unit contributes.

Without a horizon, the stream is cut into segments of 64, 256, 1024, ... steps, each with noise of its own; a sum adds up the
last sums of the segments before and the current one. One changed step is in one segment, so the price is that of
one segment. A unit with k changed steps may be in several; each segment is priced so that m changed steps cost at most the
share m / k, which adds up to the whole. The noise of all segments before is in every sum; with lengths that only double
there would be twice as many, and a quarter more error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, positive, show, whole
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Loss, Pure
from dither.streams.constants import LONGEST
from dither.streams.feedback import Feedback
from dither.streams.tree import Tree

FIRST = 64  # steps of the first segment
GROWTH = 2  # bits: each segment is four times as long as the one before
MOST_SEGMENTS = 40  # more than there can be
MOST_STEPS = 1 << 22  # without a horizon
MOST_LARGEST = 1 << 40

Design = Feedback | Tree


@dataclass(frozen=True)
class Terms:
    """The public facts of a running sum. Exactly one of `epsilon` and `rho` is given; with `delta` the price is a rho."""

    horizon: int | None
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    contributions: int
    largest: int

    @classmethod
    def of(
        cls,
        horizon: int | None,
        epsilon: Number | None,
        delta: Number | None,
        rho: Number | None,
        contributions: int,
        largest: int,
    ) -> Terms:
        if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
            raise ArgumentError("A running sum needs one price.", fix="give epsilon, or epsilon with delta, or rho.")
        made = cls(
            None if horizon is None else _at_most(horizon, "horizon", LONGEST),
            None if epsilon is None else positive(epsilon, "epsilon"),
            None if delta is None else between(delta, "delta", 0, 1, open_low=True, open_high=True),
            None if rho is None else positive(rho, "rho"),
            _at_most(contributions, "contributions", LONGEST),
            _at_most(largest, "largest", MOST_LARGEST),
        )
        made.loss()
        made.segment(0 if horizon is not None or made.gaussian else MOST_SEGMENTS)  # a long tree needs more noise
        return made

    @property
    def gaussian(self) -> bool:
        return self.epsilon is None or self.delta is not None

    @property
    def steps(self) -> int:
        """The most steps."""
        return MOST_STEPS if self.horizon is None else self.horizon

    def length(self, number: int) -> int:
        """Returns how many steps a segment has."""
        return min(FIRST << min(GROWTH * number, 20), LONGEST) if self.horizon is None else self.horizon

    def before(self, number: int) -> int:
        """Returns how many steps there are before a segment."""
        return sum(map(self.length, range(number)))

    def segment(self, number: int) -> Design:
        """Returns the noise of a segment."""
        return _design(self, self.length(number))

    def loss(self) -> Loss:
        """Returns the price of the whole stream, at any length."""
        if self.horizon is not None:
            return self.segment(0).loss()
        return ZCDP(self.gaussian_rho()) if self.gaussian else Pure(Fraction(self.epsilon or 0))

    def gaussian_rho(self) -> Fraction:
        """Returns rho. Given (epsilon, delta), the largest one whose conversion holds: streams are adaptive."""
        if self.rho is not None:
            return self.rho
        rho = _largest_rho(Fraction(self.epsilon or 0), Fraction(self.delta or 0))
        if not rho:
            raise ArgumentError(
                f"epsilon {show(self.epsilon)} with delta {show(self.delta)} allows no rho.", fix="give larger ones, or rho."
            )
        return rho

    def record(self) -> dict[str, Any]:
        """Returns the terms in plain values."""
        prices = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        stated = {name: str(value) for name, value in prices.items() if value is not None}
        return {"horizon": self.horizon, **stated, "contributions": self.contributions, "largest": self.largest}

    def words(self) -> str:
        """Shows the terms as arguments."""
        return ", ".join(f"{name}={value!r}" for name, value in self.record().items())


def _at_most(value: int, name: str, most: int) -> int:
    exact = whole(value, name, least=1)
    if exact > most:
        raise ArgumentError(f"{name} must be at most {most}, and it is {show(Fraction(exact))}.", fix="give a smaller one.")
    return exact


@lru_cache(maxsize=64)
def _largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    return largest_rho(epsilon, delta)


@lru_cache(maxsize=64)
def _design(terms: Terms, length: int) -> Design:
    if terms.gaussian:
        return Feedback.of(length, terms.gaussian_rho(), terms.contributions, terms.largest, terms.horizon is None)
    return Tree.of(length, Fraction(terms.epsilon or 0), terms.contributions, terms.largest)
