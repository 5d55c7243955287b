"""Where a law's distribution function crosses: certified 64-bit thresholds, by whole-number arithmetic.

A table of a few thousand thresholds must be ready in a millisecond or two, so the powers and bell
curves behind it are not evaluated one by one. They follow a recurrence in fixed-point numbers with
`PLACES` binary places that always round down:

    if X - e <= x <= X and Y - f <= y <= Y, all within [0, 1], then XY - e - f - 1 <= floor(xy) <= XY   (in last places)

so after n steps an entry lies at most a stated number of last places below the truth. The start and the
ratio come from balls. A threshold made from it is the floor or, where rounding down crossed a whole number, one less:

    t <= F 2^64 < t + 2,

which is all that `table.py` relies on. A test recomputes the thresholds by balls.
"""

from __future__ import annotations

from fractions import Fraction

from dither.exact import balls

PLACES = 192
ONE = 1 << PLACES
TOP = (1 << 64) - 1
_UNIT = PLACES - 64
_SETTLED = PLACES - 92  # a bell curve is followed until it falls below 2^-92


def powers(start: balls.Real, ratio: balls.Real) -> list[int]:
    """start ratio^j for j = 0, 1, ... from below, in last places, until below 2^-64; entry j is short by less than 3(j + 1)."""
    x, r = balls.floor_near(start, PLACES), balls.floor_near(ratio, PLACES)
    found = [x]
    while x >> (_UNIT - 2):
        x = (x * r) >> PLACES
        found.append(x)
    return found


def partial(ratio: balls.Real, factor: balls.Real, count: int) -> list[int]:
    """Thresholds of factor (1 - ratio^(k+1)) for 0 <= k < count, where the factor is at most 2^20."""
    r, f = balls.floor_near(ratio, PLACES), balls.floor_near(factor, PLACES)
    found, x = [], ONE
    for k in range(count):
        x = (x * r) >> PLACES  # short by less than 3(k + 1), so the product below by less than 2^40 last places
        found.append(((ONE - x - 3 * (k + 1)) * f) >> PLACES)
    return rising([max(x, 0) for x in found])


def rising(values: list[int]) -> list[int]:
    """Thresholds of a distribution function that takes these values."""
    return [min(x >> _UNIT, TOP) for x in values]


def falling(tails: list[int], error: int) -> list[int]:
    """Thresholds of one minus these tails, each short by at most `error` last places."""
    return [min(max((ONE - x - error) >> _UNIT, 0), TOP) for x in tails]


def bell(half: Fraction, first: Fraction) -> tuple[list[int], int]:
    """The sums of exp(-half (first + i)^2) over i >= j, for j = 0, 1, ..., from below; and by how much they fall short.

    term(j+1) = term(j) ratio(j) and ratio(j+1) = ratio(j) exp(-2 half). Ratio j is short by less than 3(j + 1),
    term j by less than 4(j + 1)^2, a sum of n by less than 4 n^3. What follows the last term is at most
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
    """Thresholds of 1 - tail / total, where each tail and the total fall short by at most `error`, up to the first 2^64 - 1."""
    found = []
    for x in tails:
        # From below: the true tail is at most x + error, the true total at least `total`.
        found.append(min(max(((total - x - error) << 64) // total, 0), TOP))
        if found[-1] == TOP:
            break  # what lies beyond is decided by balls
    return found
