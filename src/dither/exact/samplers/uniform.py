"""Uniform draws, exactly: a whole number below n, and a real in [0, 1) whose bits are drawn only when a comparison needs them.

One whole number: draw as many fair bits as n - 1 has, and repeat while they make n or more (at most half of the tries fail).
Arrays: w mod n for a 64-bit word w below the largest multiple of n; other words are drawn again (very rare for small n).
Failed tries are independent of the returned value, so timing reveals nothing about it.
"""

from __future__ import annotations

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.exact import balls, entropy

_TOP = np.uint64(2**64 - 1)


def below(n: int) -> int:
    """Draws a uniform number from 0 to n - 1."""
    count = (n - 1).bit_length()
    while True:
        k = entropy.bits(count)
        if k < n:
            return k


def below_each(counts: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Draws a uniform number below each n in `counts` (1 <= n <= 2^63)."""
    spare = (_TOP % counts + np.uint64(1)) % counts  # reject the top 2^64 mod n words: they would favour small values
    w = entropy.words64(counts.size)
    result = (w % counts).astype(np.int64)
    rejected = np.flatnonzero(w > _TOP - spare)
    if rejected.size:
        result[rejected] = below_each(counts[rejected])
    return result


_STEP = 64
MARGIN = 2.0**-30  # over a thousand times the error of any float64 estimate in this package


class Uniform:
    """An exactly uniform real. After any number of comparisons, the bits not yet drawn are still fair.

    `prefix` and `count` state the bits already drawn: the real lies in [prefix, prefix + 1) / 2^count.
    All comparisons are consistent, because they concern one and the same real.
    """

    def __init__(self, prefix: int = 0, count: int = 0) -> None:
        self.prefix = prefix
        self.count = count

    def _extend(self, count: int) -> None:
        self.prefix = (self.prefix << count) | entropy.bits(count)
        self.count += count

    def below(self, threshold: balls.Real) -> bool:
        """Returns whether this real is below the threshold.

        Ends with probability one for every threshold, also if its ball never becomes exact: each further
        round has probability at most about 2^-62.
        """
        if self.count < _STEP:
            self._extend(_STEP - self.count)
        bits = self.count + _STEP
        while True:
            with balls.working(bits):
                scaled = threshold() * arb(2) ** self.count
                if scaled >= self.prefix + 1:
                    return True
                if scaled <= self.prefix:
                    return False
                sharp = bool(scaled.rad() < 1)
            if sharp:
                self._extend(_STEP)
            bits = max(self.count + _STEP, bits if sharp else 2 * bits)

    def below_about(self, estimate: float, threshold: balls.Real) -> bool:
        """Returns the same as `below`, if `estimate` is within MARGIN of the threshold. Uses balls only if it is close."""
        if self.count < _STEP:
            self._extend(_STEP - self.count)
        gap = (self.prefix >> (self.count - 53)) * 2.0**-53 - estimate
        return gap < 0 if abs(gap) > MARGIN else self.below(threshold)
