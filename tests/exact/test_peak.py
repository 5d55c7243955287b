"""A place on a rise and fall is drawn by its exact law, for any number of places and any slope."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from distribution.allowance import share
from distribution.fit import fits
from dither.exact.laws.categorical import Categorical
from dither.exact.samplers.peak import draw_peak

CASES = [
    (-5, 2, 9, Fraction(1, 3)),  # both sides
    (3, 2, 7, Fraction(1, 10)),  # falls from the first place on
    (-90, 7, 8, Fraction(1, 20)),  # rises to the last place
    (-4, 1, 40, Fraction(1, 50)),  # nearly flat
    (-6, 3, 5, Fraction(2)),  # steep, and the peak is a place
    (-1, 0, 6, Fraction(1)),  # flat
]


def law(start: int, slope: int, count: int, rate: Fraction) -> Categorical:
    return Categorical(tuple(-rate * abs(start + slope * u) for u in range(count)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_places_follow_the_law_of_all_of_them(case: tuple[int, int, int, Fraction]) -> None:
    start, slope, count, rate = case
    sample = np.array([draw_peak(*case) for _ in range(20_000)])
    assert fits(sample, law(*case), share("peak", len(CASES)))
    if slope:  # the twin: half of the rate
        assert not fits(sample, law(start, slope, count, rate / 2), share("peak", len(CASES)))


def test_a_side_that_is_forgotten_would_be_noticed() -> None:
    sample = np.array([draw_peak(-5, 2, 9, Fraction(1, 3)) for _ in range(20_000)])
    assert not fits(sample[sample > 2], law(-5, 2, 9, Fraction(1, 3)), share("peak"))


def test_any_size_is_drawn() -> None:
    many = 1 << 40
    spread = [draw_peak(-(many << 40), 1 << 41, many, Fraction(1, 1 << 75)) for _ in range(50)]
    assert all(0 <= place < many for place in spread)
    assert max(spread) - min(spread) > 1 << 30
    assert all(abs(draw_peak(-(many << 40), 1 << 41, many, Fraction(1)) - many // 2) <= 1 for _ in range(20))
    assert draw_peak(10**400, 10**300, 7, Fraction(1)) == 0
