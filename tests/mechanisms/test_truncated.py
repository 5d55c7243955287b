"""Truncated geometric noise: the tails move to the ends, and the price stays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact.balls import ball, exp, working
from dither.exact.laws.base import Law
from dither.exact.laws.derived import Finite, Moved
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import TruncatedGeometric
from dither.privacy.proof import verify
from laws.exactly import Claim


def test_the_ends_carry_what_lay_beyond() -> None:
    noise = TruncatedGeometric(epsilon="1/2", sensitivity=1, n=10)
    with working(300):
        a = exp(Fraction(-1, 2))
        for x in range(11):
            assert noise.law(x).pmf(0).overlaps(a**x / (1 + a))
            assert noise.law(x).pmf(10).overlaps(a ** (10 - x) / (1 + a))
            assert x in (0, 10) or noise.law(x).pmf(x).overlaps((1 - a) / (1 + a))


@settings(max_examples=25, deadline=None)
@given(epsilon=st.fractions(Fraction(1, 20), 4, max_denominator=20), sensitivity=st.integers(1, 4), n=st.integers(1, 8))
def test_every_pair_of_answers_within_the_sensitivity_holds(epsilon: Fraction, sensitivity: int, n: int) -> None:
    noise = TruncatedGeometric(epsilon=epsilon, sensitivity=sensitivity, n=n)
    assert verify(noise, [(x, y) for x in range(n + 1) for y in range(x + 1, min(x + sensitivity, n) + 1)]).holds


def conditioned(x: int, scale: Fraction, n: int) -> Law:
    """The noise given that the sum lies in [0, n]: divides by a total that depends on x."""
    noise = Moved(TwoSided(scale), x)

    def real(k: int) -> arb:
        return noise.pmf(k) / (noise.at_most(n) - noise.at_most(-1))

    return Finite(tuple((lambda k=k: real(k)) for k in range(n + 1)))


def test_conditioning_on_the_range_instead_is_not_epsilon_dp() -> None:
    planted = Claim(1, lambda x: conditioned(x, Fraction(1), 10))
    assert not verify(planted, [(0, 1)]).holds
    assert verify(TruncatedGeometric(epsilon=1, sensitivity=1, n=10), [(0, 1)]).holds


def test_a_tenth_less_noise_breaks_the_price() -> None:
    less = TruncatedGeometric(epsilon=Fraction(10, 9), sensitivity=1, n=5)
    assert not verify(less, [(2, 3)], claimed=1).holds


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 8, 40])
@pytest.mark.parametrize("confidence", ["0.5", "0.7", "0.9", "0.99"])
def test_the_margin_holds_at_every_answer_and_is_the_smallest_that_does(n: int, confidence: str) -> None:
    noise = TruncatedGeometric(epsilon=1, sensitivity=1, n=n)
    m = noise.margin(confidence)

    def everywhere(width: int) -> bool:
        with working(200):
            return all(
                1 - noise.law(x).more_than(x + width) - noise.law(x).at_most(x - width - 1) >= ball(Fraction(confidence))
                for x in range(n + 1)
            )

    assert everywhere(m)
    assert m == 0 or not everywhere(m - 1)


def test_releases_stay_in_range_even_for_answers_outside_it() -> None:
    noise = TruncatedGeometric(epsilon="1/10", sensitivity=1, n=7)
    released = noise.release(np.array([-5, 0, 3, 7, 10**9] * 200))
    assert released.min() == 0
    assert released.max() == 7
    assert 0 <= noise.release(10**30) <= 7
    assert noise.law(-3) == noise.law(0)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [({"n": 0}, "n must"), ({"n": 2.5}, "n must"), ({"epsilon": 0}, "epsilon"), ({"sensitivity": 0}, "sensitivity")],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        TruncatedGeometric(**{"epsilon": 1, "sensitivity": 1, "n": 5, **arguments})


def test_answers_that_are_not_whole_are_refused(no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="exact"):
        TruncatedGeometric(epsilon=1, sensitivity=1, n=5).release(2.0)
