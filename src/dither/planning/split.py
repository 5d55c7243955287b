"""How the price is divided among the noises of one plan.

The objective, stated: the weighted sum over releases of their variance, in units of what one row can move them by. A weight is
the same however many outputs a release serves, and the order of releases does not matter: so the same releases at the same
price are the same question, whatever is computed from them. With w_i the weight of release i, that is

    sum of w_i / epsilon_i^2   under the sum of epsilon_i    smallest at   epsilon_i proportional to w_i^(1/3)
    sum of w_i / rho_i         under the sum of rho_i        smallest at   rho_i     proportional to w_i^(1/2)

A quantile's error is a rank; its weight is the square of its margin over a count's margin at the same price.
Shares are exact rationals and add up to the price exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

_PARTS = 1000  # shares are whole thousandths of the price, which read well


def shares(price: Fraction, weights: Sequence[float], *, squared: bool = False) -> tuple[Fraction, ...]:
    """The price divided by w^(1/3), or by w^(1/2) if `squared` (a price in rho).

    >>> shares(Fraction(1, 10), [1, 1])
    (Fraction(1, 20), Fraction(1, 20))
    >>> sum(shares(Fraction(1, 3), [1, 2, 11.5])) == Fraction(1, 3)
    True
    """
    power = 1 / 2 if squared else 1 / 3
    if len(set(weights)) == 1:
        return (price / len(weights),) * len(weights)
    wanted = [max(weight, 1e-9) ** power for weight in weights]
    whole = math.fsum(wanted)  # the same in any order
    parts = [max(1, int(_PARTS * each / whole)) for each in wanted]
    if wanted.count(max(wanted)) == 1:  # the rest, less than one part each
        parts[wanted.index(max(wanted))] += max(0, _PARTS - sum(parts))
    return tuple(price * Fraction(part, sum(parts)) for part in parts)
