"""Drawing from a law by looking up uniform bits, exactly.

The unit interval is cut at F(first), F(first + 1), ...; a uniform real u falls into the cell of the value drawn.
Three looks, each finer than the one before and each sure of what it says:

    16 bits   a table of 65,536 prefixes; a prefix that lies in one cell is the answer (all but about 1 in 100)
    64 bits   a search among certified thresholds t, with t <= F 2^64 < t + 2; sure unless u is t or t + 1
    more      `exact` compares the same u, with further bits as needed, against F by ball arithmetic

No look changes what the one before has drawn: it only draws further bits of the same u. So the value drawn is
the inverse of the distribution function at a uniform real: the stated law, tails included, with no error.

Timing: the second look depends on u being near a cell's edge and is taken by rare and by common values;
it touches the caches at an address that depends on the value drawn. The third has probability about 2^-50.
Arrays hold cells in 16 bits: a value more than 2^15 cells away, of probability below e^-600 in every law drawn here,
raises OverflowError instead of being drawn wrongly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dither.exact import entropy
from dither.exact.law import Integers
from dither.exact.lazy import Uniform

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
        """The value at a uniform real whose first 64 bits are u."""
        j = bisect_right(self.thresholds, u)
        if j and u - self.thresholds[j - 1] < 2:
            return self.exact(Uniform(u, 64))
        return self.values[j]

    def arrays(self) -> tuple[Small, NDArray[np.uint64], Small]:
        """The table of prefixes, the thresholds and the values, made when an array is first asked for."""
        if self._arrays is None:
            thresholds = np.array(self.thresholds, dtype=np.uint64)
            values = np.array(self.values, dtype=np.int16)
            self._arrays = self._prefixes(thresholds, values), thresholds, values
        return self._arrays

    def _prefixes(self, thresholds: NDArray[np.uint64], values: Small) -> Small:
        edge = np.concatenate((thresholds, np.minimum(thresholds, np.uint64(2**64 - 2)) + np.uint64(1))) >> np.uint64(48)
        cell = np.cumsum(np.bincount((thresholds >> np.uint64(48)).astype(np.intp), minlength=1 << 16))
        found = values[np.minimum(cell, len(values) - 1)]
        found[edge.astype(np.intp)] = UNSURE
        if self._always_look is not None:
            found[found == self._always_look] = UNSURE
        return found

    def chunk(self, size: int) -> tuple[Small, NDArray[np.intp]]:
        """`size` values, and the places that needed a second look. Meant for sizes up to `CHUNK`."""
        prefixes, thresholds, values = self.arrays()
        first = entropy.words16(size)
        found = prefixes.take(first)
        again = np.flatnonzero(found == UNSURE)
        if again.size:
            u = (first[again].astype(np.uint64) << np.uint64(48)) | (entropy.words64(again.size) >> np.uint64(16))
            j = np.searchsorted(thresholds, u, side="right")
            found[again] = values.take(j, mode="clip")
            close = np.flatnonzero(u - thresholds[j - 1] < 2)
            for i in close:
                found[again[i]] = self.at(int(u[i]))
        return found, again

    def many(self, size: int) -> Integers:
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, CHUNK):
            part = result[start : start + CHUNK]
            part[:] = self.chunk(len(part))[0]
        return result
