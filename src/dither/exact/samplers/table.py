"""Draws from a law by looking up uniform bits in a table of certified thresholds, exactly.

The unit interval is cut at F(first), F(first + 1), ..., where F is the distribution function. A uniform real u falls into
the cell of the value drawn. There are three looks, each finer than the one before; none guesses:

    16 bits   a table of 65,536 prefixes; a prefix that lies in one cell is the answer (all but about 1 in 100)
    64 bits   a search among certified thresholds t, with t <= F 2^64 < t + 2; decides unless u is t or t + 1
    more      `exact` compares the same u, with further bits as needed, against F by ball arithmetic

Each look only draws further bits of the same u. So the value drawn is the inverse of the distribution function at a
uniform real: the stated law, tails included, with no error.

Thresholds: a table of a few thousand must be ready in a millisecond or two, so the powers and bell curves behind it are
not evaluated one by one. They follow a recurrence in fixed-point numbers with `PLACES` binary places that round down:

    if X - e <= x <= X and Y - f <= y <= Y, all within [0, 1], then XY - e - f - 1 <= floor(xy) <= XY   (in last places)

so after n steps an entry lies at most a stated number of last places below the truth. The start and the ratio come from
balls. A threshold made from it is the floor, or one less where rounding down crossed a whole number: t <= F 2^64 < t + 2.
A test recomputes the thresholds by balls.

Timing: the second look is taken where u is near a cell's edge, by rare and by common values; it touches the caches at
an address that depends on the value drawn. The third has probability about 2^-50.
Arrays hold cells in 16 bits: a value more than 2^15 cells away, of probability below e^-600 in every law drawn here,
raises OverflowError instead of being drawn wrongly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dither.exact import balls, entropy
from dither.exact.laws.base import Integers
from dither.exact.samplers.uniform import Uniform

PLACES = 192
ONE = 1 << PLACES
TOP = (1 << 64) - 1
_UNIT = PLACES - 64
_SETTLED = PLACES - 92  # a bell curve is summed until it falls below 2^-92


def powers(start: balls.Real, ratio: balls.Real) -> list[int]:
    """Returns start ratio^j from below, in last places, until it is below 2^-64. Entry j is short by less than 3(j + 1)."""
    x, r = balls.floor_near(start, PLACES), balls.floor_near(ratio, PLACES)
    terms = [x]
    while x >> (_UNIT - 2):
        x = (x * r) >> PLACES
        terms.append(x)
    return terms


def partial_sums(ratio: balls.Real, factor: balls.Real, count: int) -> list[int]:
    """Returns the thresholds of factor (1 - ratio^(k+1)) for 0 <= k < count, where the factor is at most 2^20."""
    r, f = balls.floor_near(ratio, PLACES), balls.floor_near(factor, PLACES)
    sums, x = [], ONE
    for k in range(count):
        x = (x * r) >> PLACES  # short by less than 3(k + 1), so the product below by less than 2^40 last places
        sums.append(((ONE - x - 3 * (k + 1)) * f) >> PLACES)
    return rising([max(x, 0) for x in sums])


def rising(values: list[int]) -> list[int]:
    """Returns the thresholds of a distribution function that takes these values."""
    return [min(x >> _UNIT, TOP) for x in values]


def falling(tails: list[int], error: int) -> list[int]:
    """Returns the thresholds of one minus these tails, each short by at most `error` last places."""
    return [min(max((ONE - x - error) >> _UNIT, 0), TOP) for x in tails]


def bell(half: Fraction, first: Fraction) -> tuple[list[int], int]:
    """Returns the sums of exp(-half (first + i)^2) over i >= j, for j = 0, 1, ..., from below, and their largest error.

    term(j+1) = term(j) ratio(j) and ratio(j+1) = ratio(j) exp(-2 half). Ratio j is short by less than 3(j + 1),
    term j by less than 4(j + 1)^2, a sum of n by less than 4 n^3. The rest after the last term is at most
    (term + 4 n^2) / (1 - ratio), and the loop goes on until 1 - ratio is at least 2^-10.
    Sizes: up to 2^13 terms, so that all errors together stay far below 2^-64.
    """
    term = balls.floor_near(lambda: balls.exp(-half * first * first), PLACES)
    ratio = balls.floor_near(lambda: balls.exp(-half * (2 * first + 1)), PLACES)
    square = balls.floor_near(lambda: balls.exp(-2 * half), PLACES)
    terms = [term]
    while term >> _SETTLED or (ONE - ratio) >> (PLACES - 9) == 0:
        term = (term * ratio) >> PLACES
        ratio = (ratio * square) >> PLACES
        terms.append(term)
    count = len(terms)
    rest = (term + 4 * count**2 + 4) << 10
    sums, total = [0] * count, 0
    for j in range(count - 1, -1, -1):
        total += terms[j]
        sums[j] = total
    return sums, 4 * count**3 + rest


def shares(tails: list[int], total: int, error: int) -> list[int]:
    """Returns the thresholds of 1 - tail / total up to the first 2^64 - 1; tails and total are short by at most `error`."""
    thresholds = []
    for x in tails:
        # From below: the true tail is at most x + error, the true total at least `total`.
        thresholds.append(min(max(((total - x - error) << 64) // total, 0), TOP))
        if thresholds[-1] == TOP:
            break  # balls decide beyond it
    return thresholds


CHUNK = 1 << 15
UNSURE = -(1 << 15)
Small = NDArray[np.int16]


class Table:
    """Cells in the order of `values`; cell j lies between thresholds j - 1 and j.

    `thresholds` has one entry fewer than `values`, or as many: then the last value stands for "beyond the table",
    which the third look always decides because the last threshold is 2^64 - 1. Where there is no smallest value,
    the first threshold is 0, so that the third look decides there too. `always_look` names a value that the first
    look must not answer, so that `chunk` lists the places where it came out.
    """

    def __init__(
        self,
        thresholds: Sequence[int],
        values: Sequence[int],
        exact: Callable[[Uniform], int],
        always_look: int | None = None,
    ) -> None:
        self.thresholds = list(accumulate(thresholds, max))
        self.values = list(values)
        self.exact = exact
        self._always_look = always_look
        self._arrays: tuple[Small, NDArray[np.uint64], Small] | None = None

    def one(self) -> int:
        return self.at(entropy.word())

    def at(self, u: int) -> int:
        """Returns the value at a uniform real whose first 64 bits are u."""
        j = bisect_right(self.thresholds, u)
        if j and u - self.thresholds[j - 1] < 2:
            return self.exact(Uniform(u, 64))
        return self.values[j]

    def arrays(self) -> tuple[Small, NDArray[np.uint64], Small]:
        """Returns the table of prefixes, the thresholds and the values. Makes them at the first array."""
        if self._arrays is None:
            thresholds = np.array(self.thresholds, dtype=np.uint64)
            values = np.array(self.values, dtype=np.int16)
            self._arrays = self._prefixes(thresholds, values), thresholds, values
        return self._arrays

    def _prefixes(self, thresholds: NDArray[np.uint64], values: Small) -> Small:
        edge = np.concatenate((thresholds, np.minimum(thresholds, np.uint64(2**64 - 2)) + np.uint64(1))) >> np.uint64(48)
        cell = np.cumsum(np.bincount((thresholds >> np.uint64(48)).astype(np.intp), minlength=1 << 16))
        prefixes = values[np.minimum(cell, len(values) - 1)]
        prefixes[edge.astype(np.intp)] = UNSURE
        if self._always_look is not None:
            prefixes[prefixes == self._always_look] = UNSURE
        return prefixes

    def chunk(self, size: int) -> tuple[Small, NDArray[np.intp]]:
        """Draws `size` values, and returns the places that needed a second look too. Meant for sizes up to `CHUNK`."""
        prefixes, thresholds, values = self.arrays()
        first = entropy.words16(size)
        draws = prefixes.take(first)
        unsure = np.flatnonzero(draws == UNSURE)
        if unsure.size:
            u = (first[unsure].astype(np.uint64) << np.uint64(48)) | (entropy.words64(unsure.size) >> np.uint64(16))
            j = np.searchsorted(thresholds, u, side="right")
            draws[unsure] = values.take(j, mode="clip")
            close = np.flatnonzero(u - thresholds[j - 1] < 2)
            for i in close:
                draws[unsure[i]] = self.at(int(u[i]))
        return draws, unsure

    def many(self, size: int) -> Integers:
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, CHUNK):
            part = result[start : start + CHUNK]
            part[:] = self.chunk(len(part))[0]
        return result

    def add_to(self, numbers: Integers) -> None:
        """Adds a draw to each number within +-2^62, without arrays of 64-bit draws: draws of 16 bits cannot overflow."""
        for start in range(0, len(numbers), CHUNK):
            part = numbers[start : start + CHUNK]
            part += self.chunk(len(part))[0]
