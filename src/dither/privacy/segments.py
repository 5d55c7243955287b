"""Segments: the stretches of outputs on which two laws are one piece each, so that their log ratio is one polynomial.

    log Pr[x = k] - log Pr[y = k] = c + slope * k + bend * k^2        first <= k <= last

`c` is an exact rational if both pieces share a symbolic base, and otherwise a ball of any precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dither.exact import balls
from dither.exact.laws.base import Law, Piece


@dataclass(frozen=True)
class Segment:
    """A stretch of outputs on which both laws are one piece each (None: the law cannot give these outputs)."""

    first: int | None
    last: int | None
    left: Piece | None
    right: Piece | None

    @property
    def slope(self) -> Fraction:
        return self.left.slope - self.right.slope if self.left and self.right else Fraction(0)

    @property
    def bend(self) -> Fraction:
        return self.left.bend - self.right.bend if self.left and self.right else Fraction(0)

    def endless(self) -> bool:
        """Returns whether the log ratio has no bound here."""
        if self.left is None or self.right is None:
            return True
        return (self.first is None or self.last is None) and bool(self.slope or self.bend)

    def candidates(self) -> list[int]:
        """Returns the outputs at which the polynomial can be extreme: the segment's ends and beside the vertex."""
        ends = [k for k in (self.first, self.last) if k is not None]
        if not self.bend:
            return ends or [0]
        vertex = math.floor(-self.slope / (2 * self.bend))
        inside = [k for k in (vertex, vertex + 1) if (not ends or ends[0] < k < ends[-1])]
        return ends + inside

    def bounds(self, k: int, bits: int) -> tuple[Fraction, Fraction] | None:
        """Returns bounds of the log ratio at k; None if a probability's ball still touches zero."""
        constants = self.constants(bits)
        if constants is None:
            return None
        moved = self.slope * k + self.bend * k * k
        return constants[0] + moved, constants[1] + moved

    def constants(self, bits: int) -> tuple[Fraction, Fraction] | None:
        """Returns bounds of the difference of the two constants: equal and exact if they share a base."""
        left, right = self.left, self.right
        if left is None or right is None:
            return None
        if left.base is not None and left.base == right.base:
            return left.offset - right.offset, left.offset - right.offset
        with balls.working(bits):  # bounds are rounded at the working precision, so they are taken inside
            difference = left.constant() - right.constant()
            if not difference.is_finite():  # a probability whose ball still touches zero: it needs more bits
                return None
            return balls.lower(difference), balls.upper(difference)


def segments(x: Law, y: Law) -> Iterator[Segment]:
    """Yields the merged segments that at least one law can reach, from left to right."""
    left, right = x.pieces(), y.pieces()
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
            yield Segment(first, last, *here)


def _over(piece: Piece, first: int | None) -> bool:
    return first is not None and piece.last is not None and piece.last < first


def _at(piece: Piece | None, first: int | None) -> Piece | None:
    """Returns the piece if the segment that begins at `first` lies in it (there is a cut at every piece's ends)."""
    if piece is None or piece.first is None:
        return piece
    return piece if first is not None and piece.first <= first else None
