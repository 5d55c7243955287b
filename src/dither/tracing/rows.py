"""A table of private records: one row of whole numbers per record, which no other record moves.

Every operation here keeps rows apart, so replacing a record changes its own row and nothing else. `sum` adds the rows up; then
a record moves column j by at most high_j - low_j, and all columns together, if the squares of a row add up to S or less, by

    |u - u'|^2  <=  (|u| + |u'|)^2  <=  4 S.

`clip_norm` enforces S in whole numbers: a row that is too long is multiplied by s and divided by c, rounded towards zero,
where s is the root of S rounded down and c its length rounded up. Rounding towards zero never makes a row longer, and neither
does `truncate`. Floats occur only in `map`, each in a function of one row, which is rounded before it is added up.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, positive, rational, show
from dither.mechanisms import base
from dither.tracing.bounded import Bounded, Joint
from dither.tracing.influence import LIMIT, Influence, too_far, too_large
from dither.tracing.noisy import plain
from dither.tracing.private import Private, Running, as_private, inside
from dither.tracing.refusals import Secret, refused


class Rows(Secret):
    """Private rows, one per record: `rows[:, j]`, `rows * v`, `rows @ w`, `clip_norm`, `truncate`, `map` and `sum`."""

    __slots__ = ("_exact", "_first", "_high", "_low", "_squares", "_step", "run")

    def __init__(
        self,
        run: Running,
        exact: Integers,
        low: Integers,
        high: Integers,
        step: Fraction,
        first: int,
        squares: int | None = None,
    ) -> None:
        self.run, self._exact, self._low, self._high = run, exact, low, high
        self._step, self._first, self._squares = step, first, squares

    def __repr__(self) -> str:
        norm = "" if self._squares is None else f", squares of each add up to {self._squares} steps or less"
        return f"<{len(self)} private rows of {len(self._low)} numbers in steps of {show(self._step)}{norm}>"

    def __len__(self) -> int:
        return len(self._exact)

    @property
    def columns(self) -> int:
        return len(self._low)

    def _with(self, exact: Integers, low: Integers, high: Integers, step: Fraction, squares: int | None) -> Rows:
        if len(low) and max(_most(low), _most(high)) > LIMIT:
            raise too_large()
        return Rows(self.run, exact, low, high, step, self._first, squares)

    def __getitem__(self, key: Any) -> Private | Rows:
        """Returns one column as a private vector, or some columns: rows[:, 0], rows[:, 1:]. Rows are not chosen."""
        if not isinstance(key, tuple) or len(key) != 2 or key[0] != slice(None) or isinstance(key[1], Secret):
            raise ArgumentError(
                "Columns are chosen by public places, and rows are not.", fix="write rows[:, 0] or rows[:, 1:]."
            )
        try:
            places = np.arange(self.columns)[key[1]]
        except (IndexError, TypeError, ValueError, OverflowError):
            raise ArgumentError(f"There are {self.columns} columns, counted from 0.", fix="name one of them.") from None
        if np.ndim(places) == 0:
            return self._column(int(places))
        squares = self._squares if isinstance(key[1], slice) else None
        return self._with(self._exact[:, places], self._low[places], self._high[places], self._step, squares)

    def _column(self, place: int) -> Private:
        low, high = int(self._low[place]), int(self._high[place])
        return self._vector(self._exact[:, place].copy(), low, high, self._step)

    def _vector(self, exact: Integers, low: int, high: int, step: Fraction) -> Private:
        """A private number per record, within these bounds."""
        count = len(exact)
        moves = Influence.own(self.run.records, self._first, np.full(count, high - low))
        return Private(self.run, Bounded(exact, np.full(count, low), np.full(count, high), step, moves), scalar=False)

    # --- row by row -------------------------------------------------------------------------------------------------

    def __mul__(self, other: Any) -> Any:
        """Multiplies each row by a public number, or by a private number of the same record."""
        read = as_private(self.run, other)
        if read is None:
            return NotImplemented
        by = inside(read)
        self._check_own(by)
        most = max(_most(by.low), _most(by.high))
        if max(_most(self._low), _most(self._high), 1) * most > LIMIT:
            raise too_large()
        lowest, highest = int(by.low.min()), int(by.high.max())
        corners = [end * k for end in (self._low, self._high) for k in (lowest, highest)]
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
        squares = None if self._squares is None else self._squares * most * most
        return self._with(self._exact * by.exact[:, None], low, high, self._step * by.step, squares)

    __rmul__ = __mul__

    def _check_own(self, by: Bounded) -> None:
        """Refuses a vector that other records move too: rows would no longer be apart."""
        if by.outputs not in (1, len(self)):
            raise ArgumentError(f"There are {len(self)} rows, and {by.outputs} numbers.", fix="give one number per row.")
        if not by.influence.is_none and (by.outputs != len(self) or by.influence.owned_from() != self._first):
            raise refused("Each row is multiplied by numbers that other records move.", "use a number of the same record.")

    def __matmul__(self, weights: Any) -> Private:
        """Returns the product of each row with a public vector (a noisy one needs `clip`, for its bounds)."""
        read = as_private(self.run, weights)
        by = None if read is None else inside(read)
        if by is None or by.outputs != self.columns or not by.influence.is_none:
            raise ArgumentError(f"Rows of {self.columns} numbers need as many public weights.", fix="give a public vector.")
        reach = np.maximum(np.abs(self._low), np.abs(self._high)).astype(object)
        if int((reach * by.reach).sum()) > LIMIT:
            raise too_large()
        corners = [one * other for one in (self._low, self._high) for other in (by.low, by.high)]
        low, high = int(np.minimum.reduce(corners).sum()), int(np.maximum.reduce(corners).sum())
        return self._vector(self._exact @ by.exact, low, high, self._step * by.step)

    def truncate(self, step: Number) -> Rows:
        """Rounds towards zero to multiples of a step."""
        grid = positive(step, "step")
        p, q = (self._step / grid).as_integer_ratio()
        if max(p, q) > LIMIT:
            raise too_far()
        if max(_most(self._low), _most(self._high), 1) * p > LIMIT:
            raise too_large()
        squares = None if self._squares is None else self._squares * p * p // (q * q)
        low, high = (_towards_zero(end * p, q) for end in (self._low, self._high))
        return self._with(_towards_zero(self._exact * p, q), low, high, grid, squares)

    def clip_norm(self, norm: Number) -> Rows:
        """Shortens rows that are longer than a public number (root of the sum of squares)."""
        squares = math.floor((positive(norm, "norm") / self._step) ** 2)
        root, reach = math.isqrt(squares), max(_most(self._low), _most(self._high), 1)
        if reach * max(root, 1) > LIMIT or reach * reach * self.columns > LIMIT:
            raise too_large()
        lengths = (self._exact * self._exact).sum(axis=1)
        ups = _root_up(np.maximum(lengths, 1))
        shorter = _towards_zero(self._exact * root, ups[:, None])
        exact = np.where((lengths <= squares)[:, None], self._exact, shorter)
        low, high = np.clip(self._low, -root, root), np.clip(self._high, -root, root)
        low, high = np.minimum(low, 0), np.maximum(high, 0)  # a shortened row comes closer to zero
        least = squares if self._squares is None else min(squares, self._squares)
        return self._with(exact, low, high, self._step, least)

    def map(self, function: Callable[[NDArray[np.float64]], Number], low: Number, high: Number, step: Number) -> Private:
        """Returns a function of each row, clipped to [low, high] in multiples of `step`.

        The function gets one row of floats. True counts as 1. Where it fails, or returns no number, its value counts as `low`:
        nobody learns that it did. It is trusted to look at its row alone, and to leave nothing behind.
        """
        grid = positive(step, "step")
        bottom, top = math.ceil(rational(low, "low") / grid), math.floor(rational(high, "high") / grid)
        if bottom > top or max(abs(bottom), abs(top)) > LIMIT:
            raise ArgumentError("low must not be above high, with a multiple of step between them.", fix="give low and high.")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a warning may depend on a row
            called = [_called(function, row, bottom, grid) for row in self._exact * float(self._step)]
        found = np.array(called, dtype=np.int64)
        return self._vector(np.clip(found, bottom, top), bottom, top, grid)

    # --- all rows ---------------------------------------------------------------------------------------------------

    def sum(self) -> Private:
        """Returns the sums of the columns."""
        count = len(self)
        if max(_most(self._low), _most(self._high), 1) * max(count, 1) > LIMIT:
            raise too_large()
        moves = Influence.alike(self.run.records, self._first, self._first + count, self._high - self._low)
        joint = () if self._squares is None else (Joint(self._first, self._first + count, 4 * self._squares),)
        inner = Bounded(self._exact.sum(axis=0), self._low * count, self._high * count, self._step, moves, joint)
        return Private(self.run, inner, scalar=False)


def _called(function: Callable[..., Any], row: NDArray[np.float64], otherwise: int, grid: Fraction) -> int:
    try:
        value = plain(function(row.copy()))  # a noisy result is public, and the price counts with the declared bounds
        number = int(value) if isinstance(value, (bool, np.bool_)) else value
        return otherwise if number is None or number != number else int(base.steps(number, grid))
    except KeyboardInterrupt:
        raise
    except BaseException:  # whether a function fails may depend on the row
        return otherwise


def _towards_zero(top: Integers, bottom: int | Integers) -> Integers:
    return np.asarray(np.sign(top) * (np.abs(top) // bottom), dtype=np.int64)


def _root_up(squares: Integers) -> Integers:
    """Returns the roots rounded up, exactly: floats only guess."""
    guess = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    for _ in range(2):
        guess += guess * guess < squares
        guess -= (guess - 1) * (guess - 1) >= squares
    return guess


def _most(whole: Integers) -> int:
    return max(abs(int(whole.max())), abs(int(whole.min()))) if whole.size else 0
