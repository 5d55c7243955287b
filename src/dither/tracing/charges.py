"""What each record has paid: releases add up record by record, and the largest total is the price of the run.

A release adds noise of one kind to each number of a vector. Let `one` be its loss for a move of a single step. A record
that moves coordinate j by m_j steps pays one.group(m_j) there, and the coordinates add up:

    epsilon = epsilon_1 * sum of m_j          rho = rho_1 * sum of m_j^2

So per kind of noise a record has two whole numbers, and totals are exact rationals. Neighbours differ in one record, so no
record pays for another's: the price of the run is the largest total (parallel composition is a consequence, not a rule).

A mechanism that chooses (the largest, the first above a threshold) hides score vectors that differ by `sensitivity` in each
score. Whole scores that differ by up to m are ceil(m / sensitivity) such steps apart, as a straight line rounded down shows.

With a limit, the next release is refused if some record would exceed it. What a record pays depends on bounds and on earlier
noise, never on values, so this is a filter per record; it holds for every program (Feldman and Zrnic, NeurIPS 2021, for rho).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, BudgetError, Fix, Python
from dither.exact.laws.base import Integers
from dither.exact.numbers import show
from dither.mechanisms import Exponential, Gaussian, Geometric, Laplace, NoisyMax, PermuteAndFlip, SparseVector
from dither.mechanisms.base import Mechanism
from dither.mechanisms.norms import L1, L2, Norm, PerCoordinate
from dither.privacy.filters import ApproxFilter, Filter, PureFilter, ZCDPFilter
from dither.privacy.losses import ZCDP, Curve, Loss, Pure
from dither.privacy.parts.base import MOST
from dither.tracing.influence import LIMIT, Load, Wide
from dither.tracing.refusals import Place, place

Choosing = Exponential | NoisyMax | PermuteAndFlip | SparseVector
CHOOSING = (Exponential, NoisyMax, PermuteAndFlip, SparseVector)


@dataclass(frozen=True)
class Release:
    """One use of noise: where, what noise for the record that moves most, how many numbers, and who pays.

    `spans` has (start, stop, move) of each number if each is moved alike by one stretch of records, for the report.
    """

    place: Place
    mechanism: Mechanism
    loss: Loss
    numbers: int
    records: tuple[tuple[int, int], ...]
    grid: Fraction = Fraction(1)
    spans: tuple[Integers, Integers, Integers] | None = field(default=None, repr=False, compare=False)

    @property
    def curve(self) -> Curve:
        """The loss curve of the record that moves most; it covers every record's."""
        return self.mechanism.curve() if isinstance(self.mechanism, (Geometric, Gaussian)) else self.loss.curve()


def noise_grid(mechanism: Mechanism) -> Fraction:
    """Returns the grid on which a mechanism adds noise; whole numbers for those without one."""
    return getattr(mechanism, "grid", None) or Fraction(1)


def of_one_step(mechanism: Mechanism) -> Geometric | Gaussian:
    """Returns the same noise on whole steps, with the price of a move of one step. Refuses other mechanisms."""
    if isinstance(mechanism, (Geometric, Laplace)):
        return Geometric.with_scale(mechanism.noise.scale, sensitivity=1)
    if isinstance(mechanism, Gaussian):
        return Gaussian(rho=1 / (2 * mechanism.variance), sensitivity=1)
    raise ArgumentError(
        f"A traced value is not released by {getattr(mechanism, 'tag', type(mechanism).__name__)}.",
        fix="use Geometric, Laplace or Gaussian for numbers; Exponential, NoisyMax, PermuteAndFlip or SparseVector to choose.",
    )


def at_worst(one: Geometric | Gaussian, load: Load, numbers: int, largest: int) -> Geometric | Gaussian | None:
    """Returns the same noise at the sensitivity of the record that moves most; None if no record moves anything."""
    total, squares, moving = load.most()
    if not total:
        return None
    price, unit = (total / one.noise.scale, "ε") if isinstance(one, Geometric) else (squares / (2 * one.variance), "ρ")
    if price > MOST:
        raise ArgumentError(
            f"This release would cost a record {unit} = {show(price)}, and the largest price is {show(Fraction(MOST))}.",
            where=str(place()),
            fix="add more noise, or clip to smaller bounds.",
        )
    if isinstance(one, Geometric):
        norm: Norm = PerCoordinate(moving, largest) if moving * largest == total else L1(total, dimension=numbers)
        return Geometric.with_scale(one.noise.scale, sensitivity=norm)
    norm = PerCoordinate(moving, largest) if moving * largest**2 == squares else L2.of_squares(squares, dimension=numbers)
    return Gaussian(rho=norm.squares(None) / (2 * one.variance), sensitivity=norm)


def steps_apart(mechanism: Choosing, move: int) -> int:
    """Returns how many neighbours lie between score vectors that differ by up to `move` in each score."""
    if getattr(mechanism, "monotone", False):
        raise ArgumentError(
            "A traced record may move some scores up and others down, and the mechanism was promised otherwise (monotone).",
            fix="leave monotone out.",
        )
    whole = math.floor(Fraction(mechanism.sensitivity))
    if whole < 1:
        raise ArgumentError("Traced scores are whole numbers.", fix="give the mechanism a sensitivity of 1 or more.")
    return -(-move // whole)


class _Kind:
    """What all records have moved under noise of one kind: sums of moves and of squares, as differences between records."""

    def __init__(self, records: int) -> None:
        self.total: Wide = np.zeros(records + 1, dtype=np.int64)
        self.squares: Wide = np.zeros(records + 1, dtype=np.int64)
        self.bounds = [0, 0]  # on both sums

    def add(self, load: Load, sign: int = 1) -> None:
        total, squares, _ = load.most()
        self.bounds = [self.bounds[0] + total, self.bounds[1] + squares]
        if max(self.bounds) > LIMIT and self.total.dtype != object:
            self.total, self.squares = self.total.astype(object), self.squares.astype(object)
        for sums, amounts in ((self.total, load.total), (self.squares, load.squares)):
            more = (sign * amounts).astype(sums.dtype)
            sums[load.starts] += more  # stretches are disjoint, so no place comes twice
            sums[load.stops] -= more


class Charges:
    """The totals of all records, for each kind of noise, and the limit."""

    def __init__(self, records: int, limit: Filter | None) -> None:
        if limit is not None and not isinstance(limit, (PureFilter, ZCDPFilter, ApproxFilter)):
            raise ArgumentError(
                f"limit must be a filter, and it is a {type(limit).__name__}.",
                fix=Fix("give a filter such as {call}.", call=Python("dt.PureFilter(1)")),
            )
        self._records, self._limit = records, limit
        self._kinds: dict[tuple[Fraction | None, Fraction], _Kind] = {}
        self._before = (Fraction(0), Fraction(0))
        self.promised = None if limit is None else limit.left  # the most that the run can cost

    def charge(self, one: Loss, load: Load, place: Place) -> None:
        """Adds what a release costs each record, where a move of one step costs `one`. Refuses what exceeds the limit."""
        epsilon = one.epsilon(0) if isinstance(one, Pure) else None
        kind = self._kinds.setdefault((epsilon, one.zcdp().rho), _Kind(self._records))
        kind.add(load)
        if self._limit is None:
            return
        try:
            admitted = self._admitted(self._limit, one)
        except BaseException:
            kind.add(load, -1)
            raise
        if not admitted:
            kind.add(load, -1)
            raise BudgetError(
                f"The limit of this run does not allow the release in {place}. {self._limit!r}.",
                fix="stop here, add more noise, or give a larger limit. Nothing was drawn or charged for this release.",
            )

    def _admitted(self, limit: Filter, one: Loss) -> bool:
        """Spends the increase of the largest total. So all increases together are the largest total."""
        (epsilon, rho), before = self.largest(), self._before
        if isinstance(limit, ZCDPFilter):
            more: Loss = ZCDP(rho - before[1])
        elif isinstance(one, Pure):
            more = Pure(epsilon - before[0])
        else:
            more = one  # no pure epsilon: the filter says so
        if limit.try_spend(more):
            self._before = (epsilon, rho)
            return True
        return False

    def largest(self) -> tuple[Fraction, Fraction]:
        """Returns the largest epsilon of any record, by noise that has one, and the largest rho, by all noise."""
        pure = [(key[0], kind.total, kind.bounds[0]) for key, kind in self._kinds.items() if key[0] is not None]
        every = [(key[1], kind.squares, kind.bounds[1]) for key, kind in self._kinds.items()]
        return _largest(pure), _largest(every)

    def paid(self) -> NDArray[np.float64]:
        """Returns about what each record paid, for pictures: epsilon, or rho if some noise has no epsilon."""
        pure = all(key[0] is not None for key in self._kinds)
        parts = [
            float((key[0] or 0) if pure else key[1]) * np.cumsum(kind.total if pure else kind.squares).astype(float)
            for key, kind in self._kinds.items()
        ]
        return np.asarray(sum(parts, np.zeros(self._records + 1)))[:-1]

    def loss(self) -> Pure | ZCDP:
        """Returns the price of the run so far: of the record that paid most."""
        epsilon, rho = self.largest()
        pure = all(key[0] is not None for key in self._kinds)
        parts = max(1, math.ceil(epsilon / MOST), math.ceil(rho / MOST))  # a sum may exceed what a single loss may state
        return Pure(epsilon / parts, rho / parts).repeat(parts) if pure else ZCDP(rho / parts).repeat(parts)


def _largest(weighted: list[tuple[Fraction, Wide, int]]) -> Fraction:
    """Returns the largest weighted sum of any record, exactly."""
    if not weighted:
        return Fraction(0)
    common = math.lcm(*(weight.denominator for weight, _, _ in weighted))
    whole = [(int(weight * common), sums, bound) for weight, sums, bound in weighted]
    fits = sum(by * bound for by, _, bound in whole) <= LIMIT
    total = sum(by * np.cumsum(sums if fits else sums.astype(object)) for by, sums, _ in whole)
    return Fraction(int(np.max(total)), common)
