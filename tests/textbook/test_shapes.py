"""The pictures of the textbook page, as statements: a mean between its bounds, inverting, and tails without memory."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from distribution.allowance import share
from distribution.fit import fits
from dither import plots
from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.derived import Given, Moved
from dither.exact.laws.exponential import Exponential
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import OneSided, TwoSided
from dither.exact.samplers.uniform import Uniform
from laws.exactly import Claim

# --- the mean ---------------------------------------------------------------------------------------------------

values = st.fractions(-50, 150, max_denominator=8)


def clipped_mean(records: list[Fraction]) -> Fraction:
    return sum(min(max(each, Fraction(0)), Fraction(100)) for each in records) / len(records)


@given(others=st.lists(values, min_size=1, max_size=8), moved=st.lists(values, min_size=2, max_size=5))
def test_a_record_moves_the_mean_by_at_most_its_range_over_n(others: list[Fraction], moved: list[Fraction]) -> None:
    means = [clipped_mean([*others, each]) for each in (*moved, Fraction(-1), Fraction(101))]
    most = dt.sensitivity.mean(0, 100, dt.Replace(n=len(others) + 1))
    assert max(means) - min(means) == most  # from bound to bound, and no farther


def test_without_bounds_it_moves_as_far_as_it_likes() -> None:
    """The twin: the same records without clipping."""
    plain = [sum([Fraction(1), each]) / 2 for each in (Fraction(0), Fraction(10**6))]
    assert plain[1] - plain[0] > dt.sensitivity.mean(0, 100, dt.Replace(n=2))
    assert isinstance(dt.sensitivity.mean(), dt.sensitivity.Unbounded)


# --- inverting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [TwoSided(2), OneSided(3), Gaussian(4)], ids=repr)
def test_the_inverse_at_uniform_numbers_follows_the_law_as_direct_draws_do(law: Law) -> None:
    inverted = np.array([law.value_at(Uniform()) for _ in range(1500)])
    assert fits(inverted, law, share("inverses", 6))
    assert fits(law.draw(1500), law, share("inverses", 6))


def test_an_inverse_of_another_scale_is_seen() -> None:
    inverted = np.array([TwoSided(2).value_at(Uniform()) for _ in range(4000)])
    assert not fits(inverted, TwoSided(3), share("inverses", 6))


def test_the_inverse_is_monotone_and_exact_where_it_jumps() -> None:
    """For the real exponential law: survivor(quantile(u)) = 1 - u."""
    law = Exponential("7/3")
    with balls.working(128):
        for u in (Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(999, 1000)):
            back = (-law.quantile(u) / balls.ball(law.scale)).exp()
            assert (back - balls.ball(1 - u)).contains(0)
        assert law.quantile("1/2") < law.quantile("2/3")


# --- no memory --------------------------------------------------------------------------------------------------


def same(x: Law, y: Law) -> bool:
    """Whether two laws agree at every output, certified up to a factor of 1 + 2^-4096."""
    return dt.verify(Claim(0, lambda first: x if first else y), [(True, False)]).holds


@settings(max_examples=20, deadline=None)
@given(scale=st.fractions("1/10", 50), past=st.integers(0, 200))
def test_given_that_it_is_past_t_exponential_noise_has_the_same_shape_moved(scale: Fraction, past: int) -> None:
    moved = Moved(OneSided(scale), past + 1)
    assert same(Given(OneSided(scale), past), moved)
    assert same(Given(TwoSided(scale), past), moved)


def test_a_bell_and_the_inner_half_of_two_sided_noise_do_not() -> None:
    """The twins: normal tails get steeper, and before its peak two-sided noise still rises."""
    assert not same(Given(Gaussian(9), 4), Moved(Given(Gaussian(9), -1), 5))
    assert not same(Given(TwoSided(3), -5), Moved(OneSided(3), -4))


def test_the_real_exponential_law_has_no_memory_either() -> None:
    law = Exponential(3)
    with balls.working(128):
        for t in (Fraction(0), Fraction(1, 3), Fraction(10)):
            for past in (Fraction(0), Fraction(5, 2), Fraction(40)):
                assert (law.survivor_given(past + t, past) - law.survivor(t)).contains(0)
        assert law.survivor_given(1, 2) == 1


@pytest.mark.parametrize("grid", ["1/10", 1, "7/3"])
def test_rounded_down_to_a_grid_it_is_the_geometric_law(grid: str | int) -> None:
    """Pr[g k <= X < g (k + 1)] = survivor(g k) - survivor(g (k + 1)), and a grid a tenth off is another law."""
    law, step = Exponential(2), Fraction(grid)
    on, off = law.on_grid(step), law.on_grid(step * Fraction(11, 10))
    with balls.working(128):
        for k in range(30):
            between = law.survivor(step * k) - law.survivor(step * (k + 1))
            assert (on.pmf(k) - between).contains(0)
        assert abs(off.pmf(0) - (1 - law.survivor(step))) > arb("0.001")
    assert (law.draw(step) / step).denominator == 1
    assert law.density(0) * balls.ball(law.scale) == 1


# --- the pictures are drawn -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_picture_of_the_page_is_drawn(tmp_path: Path) -> None:
    noise = dt.Laplace(epsilon=1, sensitivity=dt.sensitivity.mean(0, 100, dt.Replace(n=3)), grid="1/10")
    points = dt.profile(dt.Gaussian(epsilon=1, delta="1e-5", sensitivity=1), [(0, 1)], [0, "1/2", 1])
    drawn = [
        plots.profile_picture(points, tmp_path / "profile.png"),
        plots.mean_picture([20, 70], 0, 100, noise, tmp_path / "mean.png"),
        plots.inverse_picture(TwoSided(2), tmp_path / "inverse.png", draws=50),
        plots.survivor_picture(3, 6, tmp_path / "survivors.png"),
    ]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in drawn)
    with pytest.raises(ArgumentError, match="past"):
        plots.survivor_picture(3, -1, tmp_path / "wrong.png")
