"""Two-sided geometric noise: epsilon-DP on whole numbers, by exact law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact import replay
from dither.exact.balls import ball, exp, working
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import L1, L2, Geometric, PerCoordinate
from dither.privacy.proof import verify
from laws.exactly import Claim, worst_ratio

epsilons = st.fractions(Fraction(1, 50), 5, max_denominator=50)


def test_the_constant_is_one_minus_a_over_one_plus_a() -> None:
    noise = Geometric(epsilon="1/2", sensitivity=3)
    with working(300):
        a = exp(Fraction(-1, 6))
        for k in (-7, 0, 1, 40):
            assert noise.law(10).pmf(10 + k).overlaps((1 - a) / (1 + a) * a ** abs(k))


def test_the_variance_of_one_count_at_epsilon_one() -> None:
    law = Geometric(epsilon=1, sensitivity=1).law(0)
    with working(200):
        variance = sum((law.pmf(k) * k * k for k in range(-300, 301)), arb(0))
    assert round(float(variance), 6) == 1.841347


@settings(max_examples=30, deadline=None)
@given(epsilon=epsilons, sensitivity=st.integers(1, 6), move=st.integers(-6, 6))
def test_neighbours_are_within_epsilon_and_reach_it(epsilon: Fraction, sensitivity: int, move: int) -> None:
    noise = Geometric(epsilon=epsilon, sensitivity=sensitivity)
    move = max(-sensitivity, min(move, sensitivity))
    found = verify(noise, [(100, 100 + move)])
    assert found.holds
    assert found.worst == epsilon * abs(move) / sensitivity


@settings(max_examples=20, deadline=None)
@given(epsilon=epsilons)
def test_a_tenth_less_noise_is_not_worth_the_price(epsilon: Fraction) -> None:
    planted = Claim(epsilon, lambda x: Moved(TwoSided(Fraction(9, 10) / epsilon), x))
    assert not verify(planted, [(0, 1)]).holds


def test_a_sensitivity_declared_too_small_breaks_the_price() -> None:
    noise = Geometric(epsilon=1, sensitivity=1)
    assert not verify(noise, [(0, 2)]).holds


def test_a_vector_pays_for_the_sum_of_its_moves() -> None:
    noise = Geometric(epsilon=1, sensitivity=L1(3, dimension=3))
    with working(300):
        joint = sum((worst_ratio(noise.law(0), noise.law(move)) for move in (2, -1)), arb(0))
        assert not joint > ball(1)
        too_far = sum((worst_ratio(noise.law(0), noise.law(move)) for move in (2, -1, 1)), arb(0))
        assert too_far > ball(1)


@pytest.mark.parametrize(
    ("sensitivity", "scale"),
    [(1, 1), (L1("7/2"), 3), (PerCoordinate(2, 3), 6), (L2(2), 4), (L2(2, dimension=2), 2), (L2(3, dimension=4), 6)],
)
def test_the_scale_follows_from_how_far_whole_numbers_can_move(sensitivity: object, scale: int) -> None:
    assert Geometric(epsilon=1, sensitivity=sensitivity).scale == scale


def test_coordinates_that_move_alike_cost_less_under_composition() -> None:
    split = Geometric(epsilon=1, sensitivity=PerCoordinate(4, 1)).loss()
    whole = Geometric(epsilon=1, sensitivity=4).loss()
    assert split.epsilon() == whole.epsilon() == 1
    assert split.zcdp().rho == Fraction(1, 8)
    assert whole.zcdp().rho == Fraction(1, 2)


def test_an_int_has_no_limit_and_an_array_keeps_its_length() -> None:
    noise = Geometric(epsilon=1, sensitivity=1)
    assert abs(noise.release(10**40) - 10**40) < 10**6
    for kind in (np.int8, np.uint64, np.int64):
        released = noise.release(np.zeros(7, dtype=kind))
        assert released.dtype == np.int64
        assert released.shape == (7,)
    assert noise.release(np.zeros(0, dtype=np.int64)).shape == (0,)


def test_ends_of_the_range_saturate_and_never_wrap() -> None:
    noise = Geometric(epsilon="1e-12", sensitivity=1)
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max] * 500)
    released = noise.release(ends)
    assert (np.sign(released) == np.sign(ends)).all()
    assert noise.release(np.full(3, 2**64 - 1, dtype=np.uint64)).min() > 2**61


def test_the_same_stream_moves_with_the_answer() -> None:
    noise = Geometric(epsilon="1/10", sensitivity=1)
    drawn = []
    for start in (0, 1):
        with replay.stream(b"the same coins for both answers!"):
            drawn.append(noise.release(np.full(100, start)))
    assert (drawn[1] - drawn[0] == 1).all()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"epsilon": 0, "sensitivity": 1}, "epsilon"),
        ({"epsilon": -1, "sensitivity": 1}, "epsilon"),
        ({"epsilon": float("nan"), "sensitivity": 1}, "epsilon"),
        ({"epsilon": float("inf"), "sensitivity": 1}, "epsilon"),
        ({"epsilon": "one", "sensitivity": 1}, "epsilon"),
        ({"epsilon": True, "sensitivity": 1}, "epsilon"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": -2}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": "1/2"}, "sensitivity"),
        ({"epsilon": "1e-13", "sensitivity": 1}, "scale"),
        ({"epsilon": 1001, "sensitivity": 1}, "scale"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        Geometric(**arguments)


@pytest.mark.parametrize(
    "exact",
    [0.5, 1.0, "3", None, True, Fraction(1, 2), [1, 2], np.zeros(3), np.zeros((2, 2), dtype=int), np.zeros(1, dtype=bool)],
)
def test_answers_that_are_not_whole_numbers_are_refused_and_nothing_is_drawn(exact: object, no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="exact"):
        Geometric(epsilon=1, sensitivity=1).release(exact)


def test_a_vector_longer_than_declared_is_refused(no_dice: None) -> None:
    noise = Geometric(epsilon=1, sensitivity=L1(1, dimension=2))
    with pytest.raises(ArgumentError, match="dimension=3"):
        noise.release(np.zeros(3, dtype=int))


def test_that_no_dice_would_notice_a_draw(no_dice: None) -> None:
    with pytest.raises(AssertionError, match="drawn"):
        Geometric(epsilon=1, sensitivity=1).release(0)
