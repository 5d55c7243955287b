"""Chances of coins as multiples of 2^-32: exact on every machine, and rounded so that the price is kept.

A randomiser needs some chance that depends on e^epsilon, which is not rational. Any chance on the safe side of it keeps the
price: so the nearest multiple of 2^-32 on that side is taken, by certified arithmetic. Clients then need whole numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.exact import balls, entropy

WHOLE = 1 << 32
_BYTE = 1 << 8


def at_most(chance: Callable[[arb], arb], epsilon: Fraction) -> int:
    """Returns the largest k with k / 2^32 <= chance(e^epsilon), or one less if that cannot be decided."""
    return balls.floor_near(lambda: chance(balls.exp(epsilon)), 32)


def at_least(chance: Callable[[arb], arb], epsilon: Fraction) -> int:
    """Returns the smallest k with k / 2^32 >= chance(e^epsilon), or one more if that cannot be decided."""
    return -balls.floor_near(lambda: -chance(balls.exp(epsilon)), 32)


def flips(size: int, chance: int) -> NDArray[np.bool_]:
    """Draws coins that are true with probability chance / 2^32, exactly."""
    if chance >= WHOLE:
        return np.ones(size, dtype=np.bool_)
    return entropy.words32(size) < np.uint32(chance)


def many_flips(rows: int, columns: int, chance: int) -> NDArray[np.bool_]:
    """Draws a table of coins. One byte decides each unless it equals the first byte of the chance; then three more do."""
    high, low = divmod(chance, 1 << 24)
    first = entropy.words8(rows * columns).reshape(rows, columns)
    found = first < np.uint8(high) if high < _BYTE else np.ones((rows, columns), dtype=np.bool_)
    if low and high < _BYTE:
        close = np.flatnonzero(first.ravel() == np.uint8(high))
        found.ravel()[close] = (entropy.words32(close.size) >> np.uint32(8)) < np.uint32(low)
    return found


def flips_each(chances: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Draws a coin for each chance, 1 with probability chance / 2^32; 2^32 is certain."""
    return (entropy.words32(len(chances)).astype(np.uint64) < chances).astype(np.int64)
