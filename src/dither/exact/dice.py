"""Fair dice: a uniform whole number below n, exactly.

One at a time: as many fair bits as n - 1 has, again while they make n or more (at most every other try fails).
Arrays: w mod n for a 64-bit word w below the largest multiple of n, again for the others (never seen for small n).
The tries that fail are independent of the value kept, so timing tells nothing of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dither.exact import entropy

_TOP = np.uint64(2**64 - 1)


def below(n: int) -> int:
    """Uniform on 0, ..., n - 1."""
    count = (n - 1).bit_length()
    while True:
        found = entropy.bits(count)
        if found < n:
            return found


def below_each(counts: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each n in `counts` (1 <= n <= 2^63) a uniform number below it."""
    spare = (_TOP % counts + np.uint64(1)) % counts  # 2^64 mod n words at the top are one too many
    w = entropy.words64(counts.size)
    result = (w % counts).astype(np.int64)
    again = np.flatnonzero(w > _TOP - spare)
    if again.size:
        result[again] = below_each(counts[again])
    return result
