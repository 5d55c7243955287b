"""Verifies a claimed epsilon pointwise: the worst log ratio of two output laws, over all outputs, certified.

    worst = max over pairs (x, y) and outputs k of |log Pr[M(x) = k] - log Pr[M(y) = k]|

A law is made of pieces on which log Pr is a polynomial of degree at most two. Where a piece of one law
meets a piece of the other the log ratio is again such a polynomial, so its extremes lie at the ends of the
segment or at the two whole numbers beside the vertex: a finite check that covers every output. A tail on
which the polynomial is not constant has no bound, and neither has an output that only one side can give.

Pieces that share a symbolic base differ by an exact rational, which shows that a ratio *equals* the claim.
Other constants are balls, raised in precision until they fall on one side of the claim. A ratio that still
touches the claim at 8192 bits is accepted as a tie, and `slack` bounds its excess.
A claim that can be neither proved nor refuted counts as broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dither.errors import ArgumentError, Fix, Python
from dither.exact import balls
from dither.exact.laws.base import Law, Piece
from dither.exact.numbers import Number, items, rational, show
from dither.privacy.losses import Loss

_PRECISIONS = (128, 512, 2048, 8192)
_SLACK = Fraction(1, 1 << 4096)


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


def verify(mechanism: Verifiable | ByDistance, pairs: Iterable[tuple[Any, Any]], claimed: Number | None = None) -> Verified:
    """Checks the claim (the mechanism's own pure epsilon unless given) on pairs of neighbouring answers.

    >>> from dither.exact.laws.derived import Moved
    >>> from dither.exact.laws.geometric import TwoSided
    >>> from dither.privacy.losses import Pure
    >>> class Noisy:
    ...     def loss(self): return Pure("1/2")
    ...     def law(self, exact): return Moved(TwoSided(2), exact)
    >>> verify(Noisy(), [(10, 11)]).worst
    Fraction(1, 2)
    """
    if isinstance(mechanism, ByDistance) and not isinstance(mechanism, type) and claimed is None:
        return mechanism.verify_pairs(pairs)
    if isinstance(mechanism, (type, ByDistance)) or not all(
        callable(getattr(mechanism, part, None)) for part in ("loss", "law")
    ):
        what = f"mechanism must have a loss and a law, and it is a {type(mechanism).__name__}."
        raise ArgumentError(
            what, fix=Fix("pass a mechanism, such as {call}.", call=Python("Geometric(epsilon=1, sensitivity=1)"))
        )
    bound = mechanism.loss().epsilon(0) if claimed is None else rational(claimed, "claimed")
    checked = [(pair, mechanism.law(pair[0]), mechanism.law(pair[1])) for pair in _pairs(pairs)]
    for bits in _PRECISIONS:
        worst, pair = max(((_worst(x, y, bits), pair) for pair, x, y in checked), key=lambda item: item[0].high)
        if worst.high <= bound:
            return Verified(worst.high, bound, True, pair, worst.output)
        if worst.low > bound:
            return Verified(worst.high, bound, False, pair, worst.output)
    tie = worst.high <= bound + _SLACK
    return Verified(worst.high, bound, tie, pair, worst.output, _SLACK if tie else Fraction(0))


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    fix = "give a list of pairs, as in [(128, 129)]."
    listed = items(pairs, "pairs", fix)
    if not listed:
        raise ArgumentError("pairs must hold at least one pair of neighbouring answers, and it is empty.", fix=fix)
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in listed):
        raise ArgumentError("pairs must hold pairs of neighbouring answers, and one of them is no pair.", fix=fix)
    return listed


@dataclass(frozen=True)
class _Segment:
    """A stretch of outputs on which both laws are one piece each (None: the law cannot give these outputs)."""

    first: int | None
    last: int | None
    left: Piece | None
    right: Piece | None

    def endless(self) -> bool:
        """Returns whether the log ratio has no bound here."""
        if self.left is None or self.right is None:
            return True
        tail = self.first is None or self.last is None
        return tail and (self.left.slope, self.left.bend) != (self.right.slope, self.right.bend)


def _segments(left: Sequence[Piece], right: Sequence[Piece]) -> Iterator[_Segment]:
    """Yields the merged segments that at least one side can reach, from left to right."""
    pieces = (*left, *right)
    cuts = sorted({p.first for p in pieces if p.first is not None} | {p.last + 1 for p in pieces if p.last is not None})
    starts: list[int | None] = [None, *cuts]
    ends: list[int | None] = [*(cut - 1 for cut in cuts), None]
    lefts, rights = iter(left), iter(right)
    a, b = next(lefts, None), next(rights, None)
    for first, last in zip(starts, ends, strict=True):
        while a is not None and _over(a, first):
            a = next(lefts, None)
        while b is not None and _over(b, first):
            b = next(rights, None)
        here = _at(a, first), _at(b, first)
        if here != (None, None):
            yield _Segment(first, last, *here)


def _over(piece: Piece, first: int | None) -> bool:
    return first is not None and piece.last is not None and piece.last < first


def _at(piece: Piece | None, first: int | None) -> Piece | None:
    """Returns the piece if the segment that begins at `first` lies in it (there is a cut at every piece's ends)."""
    if piece is None or piece.first is None:
        return piece
    return piece if first is not None and piece.first <= first else None


class _Worst(NamedTuple):
    """Bounds of the largest |log ratio|, and the output that reaches the upper one."""

    high: Fraction | float
    low: Fraction | float
    output: int | None


def _worst(x: Law, y: Law, bits: int) -> _Worst:
    """Returns the largest |log ratio| over all outputs, as bounds at this working precision."""
    worst, certain, output = Fraction(0), Fraction(0), None
    for segment in _segments(x.pieces(), y.pieces()):
        if segment.left is None or segment.right is None:
            return _Worst(math.inf, math.inf, segment.first)
        if segment.endless():
            return _Worst(math.inf, math.inf, None)
        bounds = _constants(segment.left, segment.right, bits)
        if bounds is None:
            return _Worst(math.inf, Fraction(0), None)
        slope, bend = segment.left.slope - segment.right.slope, segment.left.bend - segment.right.bend
        for k in _candidates(segment, slope, bend):
            low, high = (end + slope * k + bend * k * k for end in bounds)
            certain = max(certain, low, -high)
            if max(high, -low) > worst:
                worst, output = max(high, -low), k
    return _Worst(worst, certain, output)


def _candidates(segment: _Segment, slope: Fraction, bend: Fraction) -> list[int]:
    """Returns the outputs at which the polynomial can be extreme: the segment's ends and beside the vertex."""
    ends = [k for k in (segment.first, segment.last) if k is not None]
    if not bend:
        return ends or [0]
    vertex = math.floor(-slope / (2 * bend))
    inside = [k for k in (vertex, vertex + 1) if (not ends or ends[0] < k < ends[-1])]
    return ends + inside


def _constants(left: Piece, right: Piece, bits: int) -> tuple[Fraction, Fraction] | None:
    """Returns bounds of the difference of the two constants: equal and exact if they share a base."""
    if left.base is not None and left.base == right.base:
        return left.offset - right.offset, left.offset - right.offset
    with balls.working(bits):  # bounds are rounded at the working precision, so they are taken inside
        difference = left.constant() - right.constant()
        if not difference.is_finite():  # a probability whose ball still touches zero: it needs more bits
            return None
        return balls.lower(difference), balls.upper(difference)
