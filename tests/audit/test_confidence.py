"""Confidence bounds: exact coverage, never too tight, equal to an independent implementation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import floats, integers
from scipy.stats import beta

from dither.audit.blackbox.confidence import bounds, lower, upper, wilson
from dither.errors import ArgumentError

ERRORS = (0.3, 0.05, 1e-3, 1e-6, 1e-9)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("trials", [1, 2, 17, 1000, 64_000, 4_000_000])
def test_bounds_are_those_of_clopper_and_pearson(trials: int, error: float) -> None:
    for successes in sorted({0, 1, 2, trials // 3, trials // 2, trials - 1, trials} & set(range(trials + 1))):
        low = beta.ppf(error, successes, trials - successes + 1) if successes else 0.0
        high = beta.ppf(1 - error, successes + 1, trials - successes) if successes < trials else 1.0
        assert lower(successes, trials, error) == pytest.approx(low, rel=1e-8)
        assert upper(successes, trials, error) == pytest.approx(high, rel=1e-6)


def tail(successes: int, trials: int, chance: Fraction) -> Fraction:
    """Pr[Bin(trials, chance) >= successes], exactly."""
    terms = (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(successes, trials + 1))
    return sum(terms, Fraction(0))


@given(trials=integers(1, 60), share=floats(0, 1), error=floats(1e-9, 0.5))
@settings(max_examples=150, deadline=None)
def test_no_rounding_makes_a_bound_too_good(trials: int, share: float, error: float) -> None:
    successes = round(share * trials)
    low, high = Fraction(lower(successes, trials, error)), Fraction(upper(successes, trials, error))
    assert tail(successes, trials, low) <= Fraction(error) or successes == 0
    assert 1 - tail(successes + 1, trials, high) <= Fraction(error) or successes == trials


def wrong_bounds(bound: object, trials: int, error: float) -> float:
    """Returns the largest probability, over all true values, that a lower bound exceeds the truth."""
    found = 0.0
    lows = [bound(k, trials, error) for k in range(trials + 1)]  # type: ignore[operator]
    for chance in np.linspace(0.01, 0.99, 99):
        weights = [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
        found = max(found, sum(weight for weight, low in zip(weights, lows, strict=True) if low > chance))
    return found


def test_a_bound_is_wrong_no_more_often_than_stated() -> None:
    assert wrong_bounds(lower, 30, 0.05) <= 0.05


def test_that_check_can_fail() -> None:
    """The quick bound used for ranking is not good enough for a verdict."""

    def quick(successes: int, trials: int, error: float) -> float:
        return float(wilson(np.array([float(successes)]), trials, 1.6449)[0][0])

    assert wrong_bounds(quick, 30, 0.05) > 0.05


def test_what_epsilon_is_at_least() -> None:
    epsilon, advantage = bounds((5000, 10_000), (1000, 10_000), 0.0, 0.01)
    assert 1.4 < epsilon < math.log(5)
    assert 0.37 < advantage < 0.4
    assert bounds((5000, 10_000), (1000, 10_000), 0.2, 0.01)[0] < math.log(3)


def test_nothing_is_shown_where_delta_explains_it_or_counts_agree() -> None:
    assert bounds((400, 10_000), (0, 10_000), 0.05, 0.01)[0] == 0
    assert bounds((500, 1000), (500, 1000), 0.0, 0.01) == (0.0, 0.0)


@pytest.mark.parametrize(("successes", "trials", "error"), [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0.0), (1, 5, 1.0)])
def test_senseless_counts_are_refused(successes: int, trials: int, error: float) -> None:
    with pytest.raises(ArgumentError):
        lower(successes, trials, error)
