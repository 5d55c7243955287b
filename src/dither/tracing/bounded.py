"""Whole numbers within declared bounds, with the records that move them: what private values are inside.

A number is `exact` steps of a public grid. Its bounds come from declared bounds and public numbers, never from `exact`, and so
do its moves (influence.py). No rule here can fail for some values and not for others: what might overflow is refused
by the bounds, and nothing divides by a private number.

`joint` bounds the squares of all moves of a vector together. Rows whose norm is bounded have it (rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, positive, rational, show
from dither.mechanisms import base
from dither.tracing.influence import LIMIT, Influence, Load, too_far, too_large, too_many

MOST_POINTS = 1 << 16  # the most values of a number that a function of it is computed for


class Joint(NamedTuple):
    """Replacing one of the records start..stop-1 moves the whole vector by moves whose squares add up to `squares` or less."""

    start: int
    stop: int
    squares: int


@dataclass(frozen=True, eq=False)
class Bounded:
    """A vector of private whole numbers of steps."""

    exact: Integers = field(repr=False)
    low: Integers
    high: Integers
    step: Fraction
    influence: Influence
    joint: tuple[Joint, ...] = ()

    def __post_init__(self) -> None:
        if len(self.low) and max(_most(self.low), _most(self.high)) > LIMIT:
            raise too_large()
        object.__setattr__(self, "influence", self.influence.capped(self.high - self.low))
        self.exact.flags.writeable = False

    @property
    def outputs(self) -> int:
        return len(self.exact)

    @property
    def reach(self) -> Integers:
        """The largest absolute value of each number, by its bounds."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def load(self) -> Load:
        """Returns what each record moves in all, with the joint bounds."""
        load = self.influence.load()
        for start, stop, squares in self.joint:
            here = (load.starts >= start) & (load.stops <= stop)
            least = np.where(here, np.minimum(load.squares, squares), load.squares)
            # Cauchy-Schwarz: k whole numbers with squares of s in all add up to at most the root of k s, rounded down.
            roots = np.array([math.isqrt(int(k) * int(s)) for k, s in zip(load.moving, least, strict=True)], dtype=object)
            total = np.where(here, np.minimum(load.total, roots), load.total)
            load = replace(load, squares=least, total=total)
        return load


def constant(
    whole: Integers, step: Fraction, records: int, low: Integers | None = None, high: Integers | None = None
) -> Bounded:
    """A public vector. `low` and `high` stand for its values where these may differ from run to run."""
    bottom, top = (whole if low is None else low), (whole if high is None else high)
    return Bounded(np.array(whole), bottom, top, step, Influence.none(records, len(whole)))


# --- grids ------------------------------------------------------------------------------------------------------


def on_step(value: Bounded, step: Fraction) -> Bounded:
    """Returns the same numbers in steps of a grid that divides their own."""
    times = value.step / step
    if times == 1:
        return value
    by = int(times)
    if _most(value.reach) * by > LIMIT:
        raise too_large()
    joint = tuple(each._replace(squares=each.squares * by * by) for each in value.joint)
    moved = value.influence.scaled(np.full(value.outputs, by, dtype=np.int64))
    return Bounded(value.exact * by, value.low * by, value.high * by, step, moved, joint)


def floored(value: Bounded, step: Fraction) -> Bounded:
    """Rounds down to multiples of a step."""
    p, q = (value.step / step).as_integer_ratio()
    if max(p, q) > LIMIT:
        raise too_far()
    if q == 1:
        return on_step(value, step)
    if _most(value.reach) * p > LIMIT:
        raise too_large()

    def down(whole: Integers) -> Integers:
        return whole * p // q

    return Bounded(down(value.exact), down(value.low), down(value.high), step, value.influence.rescaled(p, q))


def _same_step(a: Bounded, b: Bounded) -> tuple[Bounded, Bounded]:
    """Returns both in steps of the coarsest grid that has them all."""
    if a.step == b.step:
        return a, b
    (p, q), (r, s) = a.step.as_integer_ratio(), b.step.as_integer_ratio()
    common = Fraction(math.gcd(p * s, r * q), q * s)
    return on_step(a, common), on_step(b, common)


def _aligned(a: Bounded, b: Bounded) -> tuple[Bounded, Bounded]:
    """Returns both in the same steps and with the same number of outputs: a single number goes with each of a vector."""
    return _spread(*_same_step(a, b))


def concatenated(a: Bounded, b: Bounded) -> Bounded:
    """Returns the numbers of both in one vector."""
    a, b = _same_step(a, b)
    exact, low, high = (np.concatenate(pair) for pair in ((a.exact, b.exact), (a.low, b.low), (a.high, b.high)))
    return Bounded(exact, low, high, a.step, a.influence.followed_by(b.influence))


def _spread(a: Bounded, b: Bounded) -> tuple[Bounded, Bounded]:
    if a.outputs == b.outputs:
        return a, b
    if 1 not in (a.outputs, b.outputs):
        raise ArgumentError(
            f"The vectors have {a.outputs} and {b.outputs} numbers.", fix="combine vectors of one length, or a single number."
        )
    most = max(a.outputs, b.outputs)
    return (taken(a, np.zeros(most, dtype=np.int64)), b) if a.outputs == 1 else (a, taken(b, np.zeros(most, dtype=np.int64)))


def taken(value: Bounded, places: Integers, *, once: bool = False) -> Bounded:
    """Returns the numbers at these places. `once`: no place comes twice, so that joint bounds still hold."""
    low, high = value.low[places], value.high[places]
    return Bounded(value.exact[places], low, high, value.step, value.influence.take(places), value.joint if once else ())


# --- arithmetic -------------------------------------------------------------------------------------------------


def negative(value: Bounded) -> Bounded:
    return Bounded(-value.exact, -value.high, -value.low, value.step, value.influence, value.joint)


def plus(a: Bounded, b: Bounded) -> Bounded:
    a, b = _aligned(a, b)
    moved = a.influence.plus(b.influence)
    joint = a.joint if b.influence.is_none else b.joint if a.influence.is_none else ()
    return Bounded(a.exact + b.exact, a.low + b.low, a.high + b.high, a.step, moved, joint)


def times(a: Bounded, b: Bounded) -> Bounded:
    """Multiplies: |a b - a' b'| <= |a| |b - b'| + |b'| |a - a'|."""
    a, b = _spread(a, b)
    if _most(a.reach) * _most(b.reach) > LIMIT:
        raise too_large()
    corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    moved = a.influence.scaled(b.reach).plus(b.influence.scaled(a.reach))
    joint = _scaled_joint(a, b) or _scaled_joint(b, a)
    return Bounded(a.exact * b.exact, low, high, a.step * b.step, moved, joint)


def _scaled_joint(a: Bounded, public: Bounded) -> tuple[Joint, ...]:
    if not a.joint or not public.influence.is_none:
        return ()
    most = _most(public.reach)
    return tuple(each._replace(squares=each.squares * most * most) for each in a.joint)


def either(a: Bounded, b: Bounded, how: Callable[..., Integers]) -> Bounded:
    """Returns the smaller (np.minimum) or larger (np.maximum) of two, number by number."""
    a, b = _aligned(a, b)
    return Bounded(how(a.exact, b.exact), how(a.low, b.low), how(a.high, b.high), a.step, a.influence.either(b.influence))


def clipped(value: Bounded, low: Number, high: Number, step: Number | None = None) -> Bounded:
    """Moves numbers into [low, high], rounded down to multiples of `step` before. The bounds are rounded inwards."""
    on = value if step is None else floored(value, positive(step, "step"))
    bottom, top = math.ceil(rational(low, "low") / on.step), math.floor(rational(high, "high") / on.step)
    if bottom > top:
        raise ArgumentError(
            f"There is no multiple of {show(on.step)} from {show(low)} to {show(high)}.",
            fix="give wider bounds or a finer step.",
        )
    if max(abs(bottom), abs(top)) > LIMIT:
        raise too_large()
    exact, lows, highs = (np.clip(each, bottom, top) for each in (on.exact, on.low, on.high))
    return Bounded(exact, lows, highs, on.step, on.influence)


def looked_up(value: Bounded, function: Callable[[Fraction], float | Fraction], step: Number) -> Bounded:
    """Replaces each number by a function of it, rounded to multiples of `step`.

    The function is computed for every number within the bounds, so that it sees no private number and nothing that it does
    depends on one. If neighbouring points of the grid are at most L steps apart afterwards, a move of m becomes at most L m.
    """
    grid = positive(step, "step")
    if not value.outputs:
        return value
    first, last = int(value.low.min()), int(value.high.max())
    if last - first >= MOST_POINTS:
        raise ArgumentError(
            f"A function is computed for at most {MOST_POINTS} values, and the bounds allow {last - first + 1}.",
            fix="clip to smaller bounds or a coarser step first.",
        )
    points = [base.steps(function(value.step * k), grid) for k in range(first, last + 1)]
    if max(abs(int(each)) for each in points) > LIMIT:
        raise too_large()
    table = np.array(points, dtype=np.int64)
    steepest = int(np.abs(np.diff(table)).max()) if len(table) > 1 else 0
    moves = np.minimum(value.influence.move.astype(object) * steepest, int(table.max() - table.min())).astype(np.int64)
    runs = replace(value.influence, move=moves)
    keep = runs.scaled(np.ones(value.outputs, dtype=np.int64))  # leaves out runs that move nothing
    low, high = np.full(value.outputs, table.min()), np.full(value.outputs, table.max())
    return Bounded(table[value.exact - first], low, high, grid, keep)


# --- over a vector ----------------------------------------------------------------------------------------------


def added(value: Bounded) -> Bounded:
    """Returns the sum of all numbers."""
    _check_sum(value)
    exact, low, high = (np.array([each.sum()], dtype=np.int64) for each in (value.exact, value.low, value.high))
    return Bounded(exact, low, high, value.step, value.influence.added())


def cumulated(value: Bounded) -> Bounded:
    """Returns the sums of the first number, the first two, and so on."""
    _check_sum(value)
    exact, low, high = (np.cumsum(each, dtype=np.int64) for each in (value.exact, value.low, value.high))
    return Bounded(exact, low, high, value.step, value.influence.cumulated())


def _check_sum(value: Bounded) -> None:
    reach = value.reach
    if len(reach) and _most(reach) * len(reach) > LIMIT and sum(map(int, reach)) > LIMIT:
        raise too_large()


def extreme(value: Bounded, how: Callable[..., Integers]) -> Bounded:
    """Returns the smallest (np.minimum) or the largest (np.maximum) number."""
    if not value.outputs:
        raise ArgumentError("An empty vector has no smallest or largest number.", fix="trace at least one record.")
    if len(value.influence.move) and len(np.unique(value.influence.move)) > MOST_POINTS:
        raise too_many(len(value.influence.move))
    exact, low, high = (np.array([how.reduce(each)]) for each in (value.exact, value.low, value.high))  # type: ignore[attr-defined]
    return Bounded(exact, low, high, value.step, value.influence.largest())


def _most(whole: Integers | NDArray[np.int64]) -> int:
    """Returns the largest absolute value, as a Python int."""
    return max(abs(int(whole.max())), abs(int(whole.min()))) if len(whole) else 0
