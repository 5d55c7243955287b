"""A table agrees with the specification for every one of the 2^64 words: shown by enumeration, not by sampling.

The tests check all 65,536 prefixes and recompute every threshold by balls. A prefix that answers lies inside its cell; a word
further than 2 from every threshold is on the side that the threshold says; the specification itself decides the others.
So the draws follow exactly the stated law.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.coins import Flat, _flat_table
from dither.exact.laws.derived import Finite
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, TwoSided, _cut_table
from dither.exact.samplers.buckets import Buckets, Sure, Unsure, whole, zigzag
from dither.exact.samplers.digits import Digits, Middle, Top
from dither.exact.samplers.table import UNSURE, Table
from exact.chosen import specified, with_bits

Cell = Callable[[int], int]


def thresholds_hold(table: Table, law: Law, first: int) -> bool:
    """t <= F 2^64 < t + 2 at every threshold; `first` is the cell below the lowest."""
    with balls.working(256):
        for j, t in enumerate(table.thresholds):
            f = law.at_most(first + j) * balls.ball(2**64)
            if not (f >= t and f < t + 2):
                return False
    return True


def prefixes_hold(table: Table) -> bool:
    """Each prefix that answers lies between its cell's thresholds, at least 2 above the lower; others say UNSURE."""
    prefixes, thresholds, values = table.arrays()
    low = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    high = low + np.uint64(2**48 - 1)
    below = np.searchsorted(thresholds, low, side="right")
    inside = below == np.searchsorted(thresholds, high, side="right")
    clear = (below == 0) | (low - thresholds[below - 1] >= 2) if len(thresholds) else inside
    answers = prefixes != UNSURE
    right = values[np.minimum(below, len(values) - 1)] == prefixes
    return bool(np.all(~answers | (inside & clear & right)))


def edges_agree(table: Table, law: Law, name: Cell) -> bool:
    """At and beside thresholds, and at both ends, `at` gives the specification's value, further bits included."""
    some = table.thresholds[:: max(len(table.thresholds) // 6, 1)] + table.thresholds[-1:]
    words = {0, 1, 2**64 - 2, 2**64 - 1} | {t + d for t in some for d in (-1, 0, 1, 2)}
    for u in sorted(w for w in words if 0 <= w < 2**64):
        for then in (b"one", b"two"):
            found = with_bits(b"", lambda u=u: table.at(u), then)
            if found != name(specified(law, u, then)):
                return False
    return True


def same(k: int) -> int:
    return k


def gaussian_case(v: Fraction) -> tuple[Table, Law, int, Cell]:
    law = Gaussian(v)
    table = whole(law.variance, law.value_at)
    return table, law, table.values[0], same


def sure_case(v: Fraction) -> tuple[Table, Law, int, Cell]:
    b = Buckets(v)
    return b.first, Sure(v, b.m), 0, lambda k: zigzag(k - 1) if k else b.first.values[0]


def unsure_case(v: Fraction) -> tuple[Table, Law, int, Cell]:
    b = Buckets(v)
    return b.second, Unsure(Sure(v, b.m)), 0, zigzag


def top_case(scale: Fraction, two_sided: bool) -> tuple[Table, Law, int, Cell]:
    digits = Digits(scale, two_sided)
    return digits.top, Top(scale, digits.m, two_sided), digits.top.values[0], same


def middle_case(scale: Fraction) -> tuple[Table, Law, int, Cell]:
    digits = Digits(scale, True)
    return digits.middle, Middle(scale, digits.m - digits.low, digits.low), 0, same


def third() -> object:
    return balls.ball(Fraction(1, 3))


CASES: list[tuple[str, Callable[[], tuple[Table, Law, int, Cell]]]] = [
    ("two-sided 1/1000", lambda: top_case(Fraction(1, 1000), True)),
    ("two-sided 1", lambda: top_case(Fraction(1), True)),
    ("two-sided 40", lambda: top_case(Fraction(40), True)),
    ("two-sided top digit of 1001/7", lambda: top_case(Fraction(1001, 7), True)),
    ("two-sided top digit of 10^12", lambda: top_case(Fraction(10**12), True)),
    ("one-sided 7/3", lambda: top_case(Fraction(7, 3), False)),
    ("one-sided top digit of 10^6", lambda: top_case(Fraction(10**6), False)),
    ("middle digit of 41", lambda: middle_case(Fraction(41))),
    ("middle digit of 10^4", lambda: middle_case(Fraction(10**4))),
    ("middle digit of 10^12", lambda: middle_case(Fraction(10**12))),
    ("gaussian 1/10^6", lambda: gaussian_case(Fraction(1, 10**6))),
    ("gaussian 1/2", lambda: gaussian_case(Fraction(1, 2))),
    ("gaussian 100", lambda: gaussian_case(Fraction(100))),
    ("cut", lambda: (_cut_table(Cut(3, 300)), Cut(3, 300), 0, same)),
    ("cut, almost flat", lambda: (_cut_table(Cut(10**12, 9)), Cut(10**12, 9), 0, same)),
    ("flat 6", lambda: (_flat_table(6), Flat(6), 0, same)),
    ("flat 512", lambda: (_flat_table(512), Flat(512), 0, same)),
    ("thirds", lambda: (Finite((third,) * 3).table, Finite((third,) * 3), 0, same)),
]
SLOW: list[tuple[str, Callable[[], tuple[Table, Law, int, Cell]]]] = [
    ("sure buckets of sigma 129", lambda: sure_case(Fraction(129**2))),
    ("unsure buckets of sigma 129", lambda: unsure_case(Fraction(129**2))),
    ("sure buckets of sigma 10^12", lambda: sure_case(Fraction(10**24))),
    ("unsure buckets of sigma 10^12", lambda: unsure_case(Fraction(10**24))),
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_each_look_says_what_the_specification_says(name: str, case: Callable[[], tuple[Table, Law, int, Cell]]) -> None:
    table, law, first, cell = case()
    assert thresholds_hold(table, law, first)
    assert prefixes_hold(table)
    assert edges_agree(table, law, cell)


@pytest.mark.parametrize(("name", "case"), SLOW)
def test_buckets_say_what_the_specification_says(name: str, case: Callable[[], tuple[Table, Law, int, Cell]]) -> None:
    table, law, first, cell = case()
    picked = Table(table.thresholds[:9], table.values[:10], table.exact)  # the lowest cells: each ball is a sum of thousands
    assert thresholds_hold(picked, law, first)
    far = len(table.thresholds) * 2 // 3
    for j in (far, len(table.thresholds) - 1):
        assert thresholds_hold(Table(table.thresholds[j : j + 1], table.values[j : j + 2], table.exact), law, j)
    assert prefixes_hold(table)
    u = table.thresholds[1]
    assert with_bits(b"", lambda: table.at(u)) == cell(specified(law, u))


@pytest.mark.long
@pytest.mark.parametrize(("name", "case"), SLOW)
def test_all_thresholds_of_buckets(name: str, case: Callable[[], tuple[Table, Law, int, Cell]]) -> None:
    table, law, first, _ = case()
    assert thresholds_hold(table, law, first)


def test_those_checks_can_fail() -> None:
    table, law, first, _ = top_case(Fraction(10), True)
    for j, error in ((150, -2), (200, 1), (500, 2)):
        wrong = Table([t + error * (i == j) for i, t in enumerate(table.thresholds)], table.values, table.exact)
        assert not thresholds_hold(wrong, law, first)
    assert not thresholds_hold(table, TwoSided(Fraction(10) + Fraction(1, 10**15)), first)
    prefixes = table.arrays()[0]
    prefixes[np.flatnonzero(prefixes == UNSURE)[5]] = 0
    assert not prefixes_hold(table)


@pytest.mark.parametrize(("name", "case"), CASES)
def test_arrays_and_single_draws_read_the_same_word_alike(name: str, case: Callable[[], tuple[Table, Law, int, Cell]]) -> None:
    table, *_ = case()
    edges = [t + d for t in table.thresholds[:: max(len(table.thresholds) // 40, 1)] for d in (-5, -1, 0, 1, 2, 5)]
    words = [w for w in [*edges, 0, 2**63, 2**64 - 1] if 0 <= w < 2**64]
    asks = [w for w in words if table.arrays()[0][w >> 48] == UNSURE]
    rest = [(w & (2**48 - 1)) << 16 for w in asks]
    first = np.array([w >> 48 for w in words], dtype=np.uint16).tobytes() + np.array(rest, dtype=np.uint64).tobytes()
    found = with_bits(first, lambda: table.chunk(len(words))[0])
    close = {w for w in words if any(0 <= w - t < 2 for t in table.thresholds)}
    for w, k in zip(words, found, strict=True):
        if w not in close:
            assert int(k) == table.at(w)


@pytest.mark.parametrize(("name", "case"), CASES)
def test_second_looks_are_rarer_than_one_in_fifty(name: str, case: Callable[[], tuple[Table, Law, int, Cell]]) -> None:
    table, *_ = case()
    assert np.mean(table.arrays()[0] == UNSURE) < 1 / 50


@pytest.mark.parametrize("ratio", [62, 64, 72, 80, 90, 100, 112, 123])
def test_large_noise_rarely_needs_more_than_the_first_look(ratio: int) -> None:
    gaussian = Buckets(Fraction(ratio << 20) ** 2).first
    assert np.mean(gaussian.arrays()[0] == UNSURE) < 1 / 50  # the unsure cell counts as one that needs more
    digits = Digits(Fraction(ratio << 20), True)
    assert sum(np.mean(table.arrays()[0] == UNSURE) for table in (digits.top, digits.middle)) < 1 / 50
