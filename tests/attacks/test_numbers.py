"""Numbers: arithmetic that reveals people (PITFALLS, Numbers)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dither as dt
from dither.errors import ArgumentError
from dither.exact import replay

KEY = b"attack on the low bits, 32 bytes"


def outputs(answer: float, grid: Fraction, times: int) -> list[Fraction]:
    noise = dt.Laplace(epsilon=1, sensitivity=1, grid=grid)
    return [noise.release(answer) for _ in range(times)]


def test_low_bits_do_not_tell_answers_apart() -> None:
    grid = Fraction(1, 1024)
    for answer in (0.0, 1.0, 0.1, 1e-300, -0.0, 2.0**52 + 1):
        assert all((value / grid).denominator == 1 for value in outputs(answer, grid, 200))


def test_that_float_noise_does_tell_them_apart() -> None:
    noise = np.random.default_rng(1).laplace(size=20_000)
    off_the_grid = [float(np.mean((answer + noise) * 2.0**53 % 1 != 0)) for answer in (0.0, 1.0)]
    assert off_the_grid[0] > 0.2
    assert off_the_grid[1] == 0.0


def test_two_answers_of_one_grid_cell_give_the_same_draws() -> None:
    noise = dt.Laplace(epsilon=1, sensitivity=1, grid="1/4")
    drawn = []
    for answer in (0.30, Fraction(3, 10), np.float32(0.30), 0.2500001):
        with replay.stream(KEY):
            drawn.append(noise.release(answer))
    assert len(set(drawn)) == 1


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324])
def test_no_value_of_a_private_float_is_refused(answer: float) -> None:
    noise = dt.Laplace(epsilon=1, sensitivity=1, grid="1/8")
    assert isinstance(noise.release(answer), Fraction)
    assert noise.release(np.array([answer])).shape == (1,)


def test_nan_counts_as_zero_and_minus_zero_is_zero() -> None:
    noise = dt.Laplace(epsilon=1, sensitivity=1, grid="1/8")
    drawn = []
    for answer in (float("nan"), 0.0, -0.0):
        with replay.stream(KEY):
            drawn.append(noise.release(np.array([answer]))[0])
    assert drawn[0] == drawn[1] == drawn[2]


def test_integer_sums_with_noise_saturate_and_never_wrap() -> None:
    top = np.full(1000, np.iinfo(np.int64).max)
    released = dt.Geometric.with_scale(10**12, sensitivity=1).release(top)
    assert released.min() > 2**61


def test_that_plain_integer_sums_do_wrap() -> None:
    top = np.full(1, np.iinfo(np.int64).max)
    assert (top + 1)[0] < 0


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-13", 5e-324, "1e6", 10**30])
def test_scales_that_are_zero_denormal_or_overflow_are_refused_before_anything_is_drawn(epsilon: object) -> None:
    with pytest.raises(ArgumentError, match="scale"):
        dt.Geometric(epsilon=epsilon, sensitivity=1)


def test_float32_answers_are_taken_at_their_own_value() -> None:
    noise = dt.Laplace(epsilon=1, sensitivity=1, grid=Fraction(1, 2**30))
    x = np.float32(0.1)
    assert noise.law(x).at_most(0) is not None
    with replay.stream(KEY):
        a = noise.release(x)
    with replay.stream(KEY):
        b = noise.release(Fraction(float(x)))
    assert a == b


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-5"), ("1/10", "1e-6"), (10, "1e-6"), (4, "1e-9")])
def test_gaussian_calibration_is_rounded_the_right_way(epsilon: object, delta: str) -> None:
    noise = dt.Gaussian(epsilon=epsilon, delta=delta, sensitivity=1)
    assert noise.curve().delta(epsilon) <= Fraction(delta)


def test_textbook_sigma_at_large_epsilon_would_not_pass_that_check() -> None:
    textbook = dt.Gaussian(scale="0.52988", sensitivity=1, grid="1/1024")
    assert textbook.curve().delta(10) > Fraction("1e-6")
