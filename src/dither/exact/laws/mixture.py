"""The mixture of laws: one of several laws is chosen with a rational probability, then a value is drawn from it.

    Pr[X = k] = sum over i of weight_i Pr[X_i = k]

Its logarithm is a polynomial where the members' logarithms are polynomials of equal slope and bend: they then differ by
constants, and so does their sum. Elsewhere every output is a piece of its own. Laws with different tails, as Gaussian
ones at different places, have no finite list of pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from flint import arb

from dither.errors import ArgumentError
from dither.exact import numbers
from dither.exact.balls import ball
from dither.exact.laws.base import Law, Piece
from dither.exact.samplers.uniform import below

_MOST_POINTS = 1 << 16
Member = tuple[Fraction, Piece]


@dataclass(frozen=True)
class Mixture(Law):
    """The law of a value of `laws[i]`, with i drawn first by `weights`, which add up to 1.

    >>> from dither.exact.laws.coins import Coin
    >>> float(Mixture((Fraction(1, 2), Fraction(1, 2)), (Coin("1/4"), Coin("3/4"))).probability(1))
    0.5
    """

    weights: tuple[Fraction, ...]
    laws: tuple[Law, ...]

    def __post_init__(self) -> None:
        weights = tuple(numbers.positive(weight, "weights") for weight in self.weights)
        if sum(weights) != 1 or len(weights) != len(self.laws):
            raise ArgumentError("weights must be one for each law and add up to 1, and they do not.", fix="check the weights.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "laws", tuple(self.laws))

    def span(self) -> tuple[int | None, int | None]:
        firsts, lasts = zip(*(law.span() for law in self.laws), strict=True)
        return None if None in firsts else min(firsts), None if None in lasts else max(lasts)

    def _mixed(self, parts: Iterator[arb]) -> arb:
        return sum((ball(weight) * part for weight, part in zip(self.weights, parts, strict=True)), arb(0))

    def pmf(self, k: int) -> arb:
        return self._mixed(law.pmf(k) for law in self.laws)

    def at_most(self, k: int) -> arb:
        return self._mixed(law.at_most(k) for law in self.laws)

    def more_than(self, k: int) -> arb:
        return self._mixed(law.more_than(k) for law in self.laws)

    def _one(self) -> int:
        common = math.lcm(*(weight.denominator for weight in self.weights))
        place = below(common)
        edges = accumulate(int(weight * common) for weight in self.weights)
        return next(law.draw() for edge, law in zip(edges, self.laws, strict=True) if place < edge)

    def pieces(self) -> tuple[Piece, ...]:
        members = [(weight, piece) for weight, law in zip(self.weights, self.laws, strict=True) for piece in law.pieces()]
        pieces = [piece for _, piece in members]
        cuts = sorted({p.first for p in pieces if p.first is not None} | {p.last + 1 for p in pieces if p.last is not None})
        starts: list[int | None] = [None, *cuts]
        ends: list[int | None] = [*(cut - 1 for cut in cuts), None]
        return tuple(piece for first, last in zip(starts, ends, strict=True) for piece in _segment(members, first, last))


def _segment(members: list[Member], first: int | None, last: int | None) -> Iterator[Piece]:
    """Yields the pieces of a stretch on which every member is one piece, or is impossible."""
    here = [member for member in members if _covers(member[1], first, last)]
    if not here:
        return
    piece = here[0][1]
    if len({(each.slope, each.bend) for _, each in here}) == 1:
        yield Piece(first, last, lambda: _log_sum(here, 0, piece), piece.slope, piece.bend)
        return
    if first is None or last is None or last - first >= _MOST_POINTS:
        raise ArgumentError(
            "The members of this mixture have different tails, so its log ratios have no finite list.",
            fix="bound delta over a range of outputs instead.",
        )
    for k in range(first, last + 1):
        yield Piece(k, k, lambda k=k: _log_sum(here, k, None))  # type: ignore[misc]


def _covers(piece: Piece, first: int | None, last: int | None) -> bool:
    starts = piece.first is None or (first is not None and piece.first <= first)
    return starts and (piece.last is None or (last is not None and last <= piece.last))


def _log_sum(members: list[Member], k: int, shared: Piece | None) -> arb:
    """Returns log(sum of weight e^{log pmf(k)}); for members of shared slope and bend, of their constants alone."""
    logs = [(weight, piece.at(k) if shared is None else piece.constant()) for weight, piece in members]
    return sum((ball(weight) * log.exp() for weight, log in logs), arb(0)).log()
