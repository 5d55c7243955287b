"""The hockey-stick divergence, certified: the delta that two laws need at an epsilon, for sets of outputs and point by point.

    sets        delta(epsilon) = max over sets S of Pr[x in S] - e^epsilon Pr[y in S]
                               = Pr[x in E] - e^epsilon Pr[y in E]       E = {k : Pr[x = k] > e^epsilon Pr[y = k]}
    pointwise   Pr[x in E]: how often an output comes that is more than e^epsilon times as likely under x

(epsilon, delta)-DP is the first. The second is a stronger demand, since it does not subtract e^epsilon Pr[y in E]: whoever
meets it meets the first, and not the other way round (docs/textbook.md has an example).

On each segment (segments.py) the log ratio is a polynomial of degree at most two, so E is a few stretches of outputs. Their
ends are found by bisection with exact or certified comparisons, and their probabilities come from the laws' distribution
functions: no window, no sampling, and the time does not grow with the scale of the noise.
A mixture whose members have different tails has no finite list of segments. Its outputs are gone through one by one over a
window, and all mass beyond it counts towards `high`.
A comparison that 8192 bits do not decide is a tie: P = e^epsilon Q up to a factor of 1 + 2^-8000, which `high` covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Law, search
from dither.exact.laws.mixture import Mixture
from dither.privacy.segments import Segment, segments

_PRECISIONS = (128, 512, 2048, 8192)
_BITS = 512
_TIES = Fraction(1, 1 << 4096)
_BEYOND = arb(2) ** -420
_WIDEST = 1 << 16

Stretch = tuple[int | None, int | None]


@dataclass(frozen=True)
class HockeyStick:
    """Bounds of delta and of its event's probabilities: seen <= Pr[x in E] <= pointwise, and Pr[y in E] <= other."""

    low: Fraction
    high: Fraction
    seen: Fraction
    other: Fraction
    pointwise: Fraction

    def epsilon(self, delta: Fraction) -> Fraction | float:
        """Returns a lower bound of the epsilon that holds at this delta, from the event."""
        if self.seen <= delta:
            return Fraction(0)
        if not self.other:
            return math.inf
        with balls.working(64):
            return balls.lower(balls.ball((self.seen - delta) / self.other).log())


def hockey_stick(x: Law, y: Law, epsilon: Fraction) -> HockeyStick:
    """Bounds how far x exceeds e^epsilon times y, over the best set of outputs.

    >>> from dither.exact.laws.coins import Coin
    >>> float(hockey_stick(Coin(1), Coin("1/2"), Fraction(0)).high)
    0.5
    """
    try:
        cut = list(segments(x, y))
    except ArgumentError:
        if not isinstance(x, Mixture) and not isinstance(y, Mixture):
            raise
        return _over_window(x, y, epsilon)  # members with different tails
    seen = other = unsure = arb(0)
    for segment in cut:
        event = _Event(segment, epsilon)
        stretches = list(event.stretches())
        with balls.working(_BITS):
            seen += sum((mass(x, *stretch) for stretch in stretches), arb(0))
            if segment.right is not None:
                other += sum((mass(y, *stretch) for stretch in stretches), arb(0))
            if event.unknown:  # a probability that no precision tells from zero: all of it counts
                unsure += mass(x, segment.first, segment.last)
    with balls.working(_BITS):
        over = seen - balls.exp(epsilon) * other
        high = min(balls.upper(over + unsure) + _TIES, Fraction(1))
        point = min(balls.upper(seen + unsure) + _TIES, Fraction(1))
        low = max(balls.lower(over), Fraction(0))
        return HockeyStick(low, max(high, low), max(balls.lower(seen), Fraction(0)), balls.upper(other), point)


def mass(law: Law, first: int | None, last: int | None) -> arb:
    """Returns Pr[first <= X <= last], by the end of the distribution function that loses fewer digits."""
    if first is not None and first == last:
        return law.pmf(first)
    if first is None:
        return arb(1) if last is None else law.at_most(last)
    if last is None:
        return law.more_than(first - 1)
    ways = law.at_most(last) - law.at_most(first - 1), law.more_than(first - 1) - law.more_than(last)
    return min(ways, key=lambda way: float(way.rad()))


def _over_window(x: Law, y: Law, epsilon: Fraction) -> HockeyStick:
    """Bounds delta by going through the outputs of x that have nearly all of its mass."""
    with balls.working(_BITS):
        (first, last), factor, zero = _window(x), balls.exp(epsilon), arb(0)
        both = [(x.pmf(k), y.pmf(k)) for k in range(first, last + 1)]
        over = sum(((p - factor * q).max(zero) for p, q in both), zero)
        event = [(p, q) for p, q in both if p > factor * q]
        seen, other = sum((p for p, _ in event), zero), sum((q for _, q in event), zero)
        beyond = x.at_most(first - 1) + x.more_than(last)
        unsure = sum((p for p, q in both if not (p > factor * q or p <= factor * q)), zero)
        return HockeyStick(
            max(balls.lower(seen - factor * other), Fraction(0)),
            min(balls.upper(over + beyond), Fraction(1)),
            max(balls.lower(seen), Fraction(0)),
            balls.upper(other),
            min(balls.upper(seen + unsure + beyond), Fraction(1)),
        )


def _window(law: Law) -> tuple[int, int]:
    """Returns a range of outputs with all but a tiny share of the mass."""
    first, last = law.span()
    low = search(lambda k: not law.at_most(k) < _BEYOND, None, None) if first is None else first
    high = search(lambda k: bool(law.more_than(k) < _BEYOND), None, None) if last is None else last
    if high - low > _WIDEST:
        raise ArgumentError(
            f"This mixture is spread over more than {_WIDEST} outputs, and its tails differ.", fix="verify it with less noise."
        )
    return low, high


class _Event:
    """The outputs of a segment whose log ratio is above epsilon."""

    def __init__(self, segment: Segment, epsilon: Fraction) -> None:
        self._segment = segment
        self._epsilon = epsilon
        self._constants: dict[int, tuple[Fraction, Fraction] | None] = {}
        self.unknown = False

    def stretches(self) -> Iterator[Stretch]:
        """Yields the event as stretches of outputs."""
        segment = self._segment
        if segment.left is None:
            return
        if segment.right is None:
            yield segment.first, segment.last
            return
        if not segment.bend:
            yield from self._monotone(segment.first, segment.last, rising=segment.slope >= 0)
            return
        vertex = math.floor(-segment.slope / (2 * segment.bend))
        if segment.first is None or segment.first <= vertex:
            last = vertex if segment.last is None else min(vertex, segment.last)
            yield from self._monotone(segment.first, last, rising=segment.bend < 0)
        if segment.last is None or segment.last > vertex:
            first = vertex + 1 if segment.first is None else max(vertex + 1, segment.first)
            yield from self._monotone(first, segment.last, rising=segment.bend > 0)

    def _monotone(self, first: int | None, last: int | None, *, rising: bool) -> Iterator[Stretch]:
        """Yields the part of the stretch that is in the event: its upper part if the log ratio rises, else its lower part."""
        flat = not self._segment.slope and not self._segment.bend
        start, end = (first, last) if rising else (_minus(last), _minus(first))

        def above(k: int) -> bool:
            return self._above(k if rising else -k)

        if flat:
            inside = self._above(first if first is not None else last if last is not None else 0)
            if inside:
                yield first, last
            return
        if end is not None and not above(end):
            return
        if start is not None and above(start):
            yield first, last
            return
        edge = search(above, start, end)
        yield (edge, last) if rising else (first, -edge)

    def _above(self, k: int) -> bool:
        """Returns whether the log ratio at k is certainly above epsilon."""
        segment = self._segment
        moved = segment.slope * k + segment.bend * k * k - self._epsilon
        for bits in _PRECISIONS:
            if bits not in self._constants:
                self._constants[bits] = segment.constants(bits)
            bounds = self._constants[bits]
            if bounds is not None and bounds[0] + moved > 0:
                return True
            if bounds is not None and bounds[1] + moved <= 0:
                return False
        self.unknown = self.unknown or self._constants[_PRECISIONS[-1]] is None
        return False


def _minus(k: int | None) -> int | None:
    return None if k is None else -k
