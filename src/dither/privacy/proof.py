"""Verifies claimed prices on exact laws, over all outputs: pure epsilon point by point, (epsilon, delta) for sets.

    epsilon   worst = max over pairs (x, y) and outputs k of |log Pr[M(x) = k] - log Pr[M(y) = k]|
    delta     worst = max over pairs, both ways, and sets S of Pr[M(x) in S] - e^epsilon Pr[M(y) in S]     (hockey.py)

A law is made of pieces on which log Pr is a polynomial of degree at most two. Where a piece of one law
meets a piece of the other the log ratio is again such a polynomial, so its extremes lie at the ends of the
segment or at the two whole numbers beside the vertex: a finite check that covers every output. A tail on
which the polynomial is not constant has no bound, and neither has an output that only one side can give.
The log ratio of a tuple of independent outputs is the sum of theirs, so its extremes are the sums of their
extremes; where the first output decides which law follows, the extremes are those of the worst branch.

Pieces that share a symbolic base differ by an exact rational, which shows that a ratio *equals* the claim.
Other constants are balls, raised in precision until they fall on one side of the claim. A ratio that still
touches the claim at 8192 bits is accepted as a tie, and `slack` bounds its excess.
A claim that can be neither proved nor refuted counts as broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

from dither.errors import ArgumentError, Fix, Python
from dither.exact.laws.base import Law
from dither.exact.laws.joint import Branching, Product, number
from dither.exact.numbers import Number, between, items, rational, show, show_about
from dither.privacy.hockey import hockey_stick
from dither.privacy.losses import Loss
from dither.privacy.parts.base import MOST
from dither.privacy.segments import segments

_PRECISIONS = (128, 512, 2048, 8192)
_SLACK = Fraction(1, 1 << 4096)
_DELTA_SLACK = Fraction(1, 1 << 400)  # balls cannot decide a delta that is reached with equality
_MOST_EPSILONS = 10_000


class Verifiable(Protocol):
    """The methods of a mechanism that `verify` needs: its price, and the exact law of its output."""

    def loss(self) -> Loss: ...

    def law(self, exact: Any) -> Law: ...


@runtime_checkable
class ByDistance(Protocol):
    """A mechanism whose claim depends on the pair: epsilon times its distance. It checks pairs itself."""

    def verify_pairs(self, pairs: Iterable[tuple[Any, Any]]) -> Verified: ...


@dataclass(frozen=True)
class Verified:
    """The certified worst case. `worst` is an upper bound (math.inf if there is none), reached at `pair` and `output`.

    `output` is None where the ratio grows without end along a tail. `holds` means
    worst <= claimed + slack, and slack is 0 unless a tie could not be decided symbolically.
    """

    worst: Fraction | float
    claimed: Fraction
    holds: bool
    pair: tuple[Any, Any] | None
    output: int | None
    slack: Fraction = Fraction(0)

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "is broken"
        worst = "unbounded" if self.worst == math.inf else f"at most {show(self.worst)}"
        return f"claimed {show(self.claimed)}, worst log ratio {worst}: the claim {verdict}"


@dataclass(frozen=True)
class VerifiedDelta:
    """The certified delta at an epsilon. `worst` is an upper bound for sets of outputs, reached on `pair` in this order.

    `at_least` is a lower bound of the same number, and `pointwise` an upper bound of how often an output comes whose log
    ratio is above epsilon. `holds` means worst <= delta + slack, and slack is 0 unless a tie could not be decided.
    """

    epsilon: Fraction
    delta: Fraction
    worst: Fraction
    at_least: Fraction
    pointwise: Fraction
    holds: bool
    pair: tuple[Any, Any] | None
    slack: Fraction = Fraction(0)

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "is broken"
        # Balls stand 2^-400 above a round number, and rounding up would add a digit.
        sets, points = (show_about(max(value - _DELTA_SLACK, _NONE), up=True) for value in (self.worst, self.pointwise))
        claim = f"claimed epsilon {show(self.epsilon)}, delta {show(self.delta)}"
        return f"{claim}; delta at most {sets} for sets of outputs, {points} point by point: the claim {verdict}"


@overload
def verify(
    mechanism: Verifiable | ByDistance, pairs: Iterable[tuple[Any, Any]], claimed: Number | None = None, delta: None = None
) -> Verified: ...
@overload
def verify(
    mechanism: Verifiable, pairs: Iterable[tuple[Any, Any]], claimed: Number | None = None, *, delta: Number
) -> VerifiedDelta: ...
def verify(
    mechanism: Verifiable | ByDistance,
    pairs: Iterable[tuple[Any, Any]],
    claimed: Number | None = None,
    delta: Number | None = None,
) -> Verified | VerifiedDelta:
    """Checks a claim on pairs of neighbouring answers: epsilon point by point, or with a `delta` for sets of outputs.

    Without `claimed` it is the mechanism's own epsilon, at this delta.

    >>> from dither.exact.laws.derived import Moved
    >>> from dither.exact.laws.geometric import TwoSided
    >>> from dither.privacy.losses import Pure
    >>> class Noisy:
    ...     def loss(self): return Pure("1/2")
    ...     def law(self, exact): return Moved(TwoSided(2), exact)
    >>> verify(Noisy(), [(10, 11)]).worst
    Fraction(1, 2)
    >>> verify(Noisy(), [(10, 11)], "1/4", delta="0.13").holds, verify(Noisy(), [(10, 11)], "1/4", delta="0.14").holds
    (False, True)
    """
    if isinstance(mechanism, ByDistance) and not isinstance(mechanism, type) and claimed is None and delta is None:
        return mechanism.verify_pairs(pairs)
    checkable = _verifiable(mechanism)
    if delta is not None:
        return _verify_delta(checkable, _pairs(pairs), claimed, between(delta, "delta", 0, 1))
    bound = checkable.loss().epsilon(0) if claimed is None else rational(claimed, "claimed")
    checked = [(pair, checkable.law(pair[0]), checkable.law(pair[1])) for pair in _pairs(pairs)]
    for bits in _PRECISIONS:
        worst, pair = max(((_worst(x, y, bits), pair) for pair, x, y in checked), key=lambda item: item[0].high)
        if worst.high <= bound:
            return Verified(worst.high, bound, True, pair, worst.output)
        if worst.low > bound:
            return Verified(worst.high, bound, False, pair, worst.output)
    tie = worst.high <= bound + _SLACK
    return Verified(worst.high, bound, tie, pair, worst.output, _SLACK if tie else Fraction(0))


def _verifiable(mechanism: Verifiable | ByDistance) -> Verifiable:
    if isinstance(mechanism, (type, ByDistance)) or not all(
        callable(getattr(mechanism, part, None)) for part in ("loss", "law")
    ):
        what = f"mechanism must have a loss and a law, and it is a {type(mechanism).__name__}."
        raise ArgumentError(
            what, fix=Fix("pass a mechanism, such as {call}.", call=Python("Geometric(epsilon=1, sensitivity=1)"))
        )
    return mechanism


def _verify_delta(
    mechanism: Verifiable, pairs: list[tuple[Any, Any]], claimed: Number | None, delta: Fraction
) -> VerifiedDelta:
    epsilon = mechanism.loss().epsilon(delta) if claimed is None else between(claimed, "claimed", 0, MOST)
    return _delta_at(mechanism, pairs, epsilon, delta)


def _delta_at(mechanism: Verifiable, pairs: list[tuple[Any, Any]], epsilon: Fraction, delta: Fraction) -> VerifiedDelta:
    ways = [way for one, other in pairs for way in ((one, other), (other, one))]
    laws = [(mechanism.law(one), mechanism.law(other), (one, other)) for one, other in ways]
    found = [(hockey_stick(x, y, epsilon), pair) for x, y, pair in laws]
    worst, pair = max(found, key=lambda item: item[0].high)
    pointwise = max(each.pointwise for each, _ in found)
    tie = delta < worst.high <= delta + _DELTA_SLACK
    holds = worst.high <= delta or tie
    return VerifiedDelta(epsilon, delta, worst.high, worst.low, pointwise, holds, pair, _DELTA_SLACK if tie else Fraction(0))


def profile(mechanism: Verifiable, pairs: Iterable[tuple[Any, Any]], epsilons: Iterable[Number]) -> tuple[VerifiedDelta, ...]:
    """Returns the certified delta at each epsilon, for sets of outputs (`worst`) and point by point (`pointwise`).

    The claim in each is the mechanism's own delta at this epsilon.

    >>> from dither.exact.laws.coins import Coin
    >>> from dither.privacy.losses import Approx
    >>> class Told:
    ...     def loss(self): return Approx(0, "1/2")
    ...     def law(self, exact): return Coin(exact)
    >>> [float(each.worst) for each in profile(Told(), [(1, "1/2")], [0, 1])]
    [0.5, 0.5]
    """
    _verifiable(mechanism)
    listed = items(epsilons, "epsilons", fix="give a list of numbers.")
    if not 0 < len(listed) <= _MOST_EPSILONS:
        raise ArgumentError(f"epsilons must hold 1 to {_MOST_EPSILONS} numbers, and it has {len(listed)}.", fix="give a list.")
    exact = [between(epsilon, "epsilons", 0, MOST) for epsilon in listed]
    checked = _pairs(pairs)
    return tuple(_delta_at(mechanism, checked, epsilon, mechanism.loss().delta(epsilon)) for epsilon in exact)


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    fix = "give a list of pairs, as in [(128, 129)]."
    listed = items(pairs, "pairs", fix)
    if not listed:
        raise ArgumentError("pairs must hold at least one pair of neighbouring answers, and it is empty.", fix=fix)
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in listed):
        raise ArgumentError("pairs must hold pairs of neighbouring answers, and one of them is no pair.", fix=fix)
    return [(pair[0], pair[1]) for pair in listed]


class _Worst(NamedTuple):
    """Bounds of a largest log ratio, and the output that reaches the upper one."""

    high: Fraction | float
    low: Fraction | float
    output: int | None


class _Range(NamedTuple):
    """The largest log ratio of two laws, and the largest of the same laws exchanged. Neither is below 0."""

    ahead: _Worst
    behind: _Worst


_UNKNOWN = _Worst(math.inf, Fraction(0), None)  # more bits may decide it
_NONE = Fraction(0)


def _unbounded(output: int | None) -> _Worst:
    return _Worst(math.inf, math.inf, output)


def _worst(x: Law, y: Law, bits: int) -> _Worst:
    """Returns the largest |log ratio| over all outputs, as bounds at this working precision."""
    ahead, behind = _range(x, y, bits)
    worst = max(ahead, behind, key=lambda each: each.high)
    return _Worst(worst.high, max(ahead.low, behind.low), worst.output)


def _range(x: Law, y: Law, bits: int) -> _Range:
    if isinstance(x, Product) and isinstance(y, Product) and len(x.factors) == len(y.factors):
        parts = [_range(one, other, bits) for one, other in zip(x.factors, y.factors, strict=True)]
        return _Range(_sum([part.ahead for part in parts]), _sum([part.behind for part in parts]))
    if isinstance(x, Branching) and isinstance(y, Branching) and x.first.span() == y.first.span():
        return _branching(x, y, bits)
    return _of_pieces(x, y, bits)


def _sum(parts: list[_Worst]) -> _Worst:
    """Returns the extreme of a tuple: the sum of the extremes of its elements."""
    outputs = [part.output for part in parts if part.output is not None]
    output = number(outputs) if len(outputs) == len(parts) else None
    return _Worst(sum((part.high for part in parts), _NONE), sum((part.low for part in parts), _NONE), output)


def _branching(x: Branching, y: Branching, bits: int) -> _Range:
    """Returns the extremes over all first outputs, each with the extremes of what follows it."""
    ahead: list[_Worst] = []
    behind: list[_Worst] = []
    for segment in segments(x.first, y.first):
        for value in range(segment.first or 0, (segment.last or 0) + 1):
            if segment.left is None or segment.right is None:
                (ahead if segment.right is None else behind).append(_unbounded(None))
                continue
            here = segment.bounds(value, bits)
            if here is None:
                return _Range(_UNKNOWN, _UNKNOWN)
            low, high = here
            then = _range(x.branch(value), y.branch(value), bits)
            ahead.append(_after(value, high, low, then.ahead))
            behind.append(_after(value, -low, -high, then.behind))
    return _Range(_largest(ahead), _largest(behind))


def _after(value: int, high: Fraction, low: Fraction, then: _Worst) -> _Worst:
    output = None if then.output is None else number((value, then.output))
    return _Worst(high + then.high, low + then.low, output)


def _of_pieces(x: Law, y: Law, bits: int) -> _Range:
    ahead: list[_Worst] = []
    behind: list[_Worst] = []
    for segment in segments(x, y):
        if segment.left is None or segment.right is None:
            (ahead if segment.right is None else behind).append(_unbounded(segment.first))
        elif segment.endless():
            return _Range(_unbounded(None), _unbounded(None))
        else:
            for k in segment.candidates():
                here = segment.bounds(k, bits)
                if here is None:
                    return _Range(_UNKNOWN, _UNKNOWN)
                low, high = here
                ahead.append(_Worst(high, low, k))
                behind.append(_Worst(-low, -high, k))
    return _Range(_largest(ahead), _largest(behind))


def _largest(found: list[_Worst]) -> _Worst:
    """Returns the largest log ratio. It is never below 0, since both laws add up to 1."""
    if not found:
        return _Worst(_NONE, _NONE, None)
    worst = max(found, key=lambda each: each.high)
    return _Worst(max(worst.high, _NONE), max(_NONE, *(each.low for each in found)), worst.output)
