"""The accountant: certified prices of compositions fixed in advance.

May import: `exact`, and the parts. Law kept: a reported epsilon or delta is never below the exact one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dither.errors import PriceError
from dither.privacy.conversion import delta_of_zcdp, epsilon_of_zcdp
from dither.privacy.parts import Part

Parts = tuple[tuple[Part, int], ...]


def canonical(pairs: Iterable[tuple[Part, int]]) -> Parts:
    """The sorted multiset: equal parts merged, absent ones dropped."""
    counts: dict[Part, int] = {}
    for part, count in pairs:
        counts[part] = counts.get(part, 0) + count
    present = [(part, count) for part, count in counts.items() if count]
    return tuple(sorted(present, key=lambda pair: pair[0].order()))


def epsilon(parts: Parts, allowed: Fraction) -> Fraction:
    """The smallest certified epsilon at delta `allowed`."""
    if allowed == 0:
        if any(part.pure is None for part, _ in parts):
            raise PriceError("This curve has no pure epsilon.", fix="ask at a delta above 0, such as 1e-6.")
        return sum((part.pure * count for part, count in parts if part.pure is not None), Fraction(0))
    rho = sum((part.zcdp()[0] * count for part, count in parts), Fraction(0))
    return epsilon_of_zcdp(rho, allowed)


def delta(parts: Parts, at: Fraction) -> Fraction:
    """The smallest certified delta at epsilon `at`."""
    rho = sum((part.zcdp()[0] * count for part, count in parts), Fraction(0))
    return delta_of_zcdp(rho, at)
