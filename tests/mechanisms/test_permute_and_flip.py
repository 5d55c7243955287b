"""Permute and flip: epsilon-DP, better in expectation than the exponential mechanism, and without its bounded range."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact.balls import ball, exp, working
from dither.mechanisms import Exponential, PermuteAndFlip
from dither.privacy.losses import Curve
from dither.privacy.parts import Response
from dither.privacy.proof import verify
from laws.exactly import renyi
from mechanisms.test_exponential import log_ratios, neighbouring_scores, worst_expected_error

BITS = 300


@settings(max_examples=30, deadline=None)
@given(neighbouring_scores())
def test_neighbours_stay_within_epsilon(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert verify(PermuteAndFlip(epsilon=1, sensitivity=1), [pair]).holds


@settings(max_examples=30, deadline=None)
@given(neighbouring_scores(monotone=True))
def test_monotone_scores_need_half_the_noise(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert verify(PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True), [pair]).holds


def test_half_the_noise_or_a_tenth_less_breaks_the_price() -> None:
    pair = ((0, -2), (-1, -1))
    assert verify(PermuteAndFlip(epsilon=1, sensitivity=1), [pair]).holds
    assert not verify(PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True), [pair]).holds
    assert not verify(PermuteAndFlip(epsilon=Fraction(10, 9), sensitivity=1), [pair], claimed=1).holds


def by_enumeration(behind: list[Fraction], index: int) -> arb:
    """Pr[index wins], over all orders of the candidates."""
    total = arb(0)
    for order in itertools.permutations(range(len(behind))):
        place = order.index(index)
        term = exp(-behind[index])
        for earlier in order[:place]:
            term *= 1 - exp(-behind[earlier])
        total += term
    return total / math.factorial(len(behind))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-8, 0), min_size=1, max_size=5))
def test_the_law_is_the_average_over_all_orders(scores: list[int]) -> None:
    law = PermuteAndFlip(epsilon=1, sensitivity=1).law(scores)
    behind = [Fraction(max(scores) - s, 2) for s in scores]
    with working(BITS):
        for i in range(len(scores)):
            assert law.pmf(i).overlaps(by_enumeration(behind, i))
            assert law.pmf(i).rad() < 1e-80


def test_it_must_not_be_charged_as_bounded_range() -> None:
    """A known bug: rho = epsilon^2 / 8 belongs to the exponential mechanism only."""
    choose = PermuteAndFlip(epsilon=1, sensitivity=1)
    assert choose.loss().zcdp().rho == Fraction(1, 2)
    assert choose.curve() == Curve.of(Response(1))
    x, y = choose.law((0, -1)), choose.law((-1, 0))
    found = log_ratios(x, y, 2)
    with working(BITS):
        assert found[0] - found[1] > ball(Fraction(3, 2))  # a range of 1 was claimed
        assert renyi(x, y, Fraction(2)) > ball(2 * Fraction(1, 8))  # and rho = 1/8
        assert not renyi(x, y, Fraction(2)) > ball(2 * Fraction(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize(("candidates", "anchor"), [(10, 1.7865), (1000, 8.5308)])
def test_the_worst_expected_error(candidates: int, anchor: float) -> None:
    assert round(worst_expected_error(PermuteAndFlip, candidates), 4) == anchor


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-12, 0), min_size=2, max_size=6))
def test_it_never_does_worse_than_the_exponential_mechanism(scores: list[int]) -> None:
    ours, theirs = PermuteAndFlip(epsilon=1, sensitivity=1).law(scores), Exponential(epsilon=1, sensitivity=1).law(scores)
    for reached in set(scores):
        with working(BITS):
            here, there = (sum((law.pmf(i) for i, s in enumerate(scores) if s < reached), arb(0)) for law in (ours, theirs))
            assert not here > there


@settings(max_examples=20, deadline=None)
@given(scores=st.lists(st.integers(-40, 0), min_size=1, max_size=6), tail=st.fractions(Fraction(1, 500), Fraction(9, 10)))
def test_the_utility_theorem_holds(scores: list[int], tail: Fraction) -> None:
    choose = PermuteAndFlip(epsilon=1, sensitivity=1)
    allowed = choose.margin(1 - tail, candidates=len(scores), best=scores.count(max(scores)))
    law = choose.law(scores)
    with working(128):
        assert sum((law.pmf(i) for i, s in enumerate(scores) if s <= max(scores) - allowed), arb(0)) <= ball(tail)


def test_huge_gaps_are_safe() -> None:
    choose = PermuteAndFlip(epsilon=1, sensitivity=1, candidates=("a", "b"))
    assert choose.release([0, 10**9]) == "b"
    with working(BITS):
        law = choose.law([0, 10**9])
        assert law.pmf(0) > 0
        assert law.pmf(0).log().overlaps(ball(-(10**9) // 2) - arb(2).log())


@pytest.mark.parametrize("scores", [[], [1, 2, 3], [1, 2.5], [None, 1]])
def test_bad_scores_are_refused(scores: object, no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="scores"):
        PermuteAndFlip(epsilon=1, sensitivity=1, candidates=("a", "b")).release(scores)


@pytest.mark.parametrize(("epsilon", "sensitivity", "word"), [(0, 1, "epsilon"), (1, 0, "sensitivity"), ("inf", 1, "epsilon")])
def test_bad_parameters_are_refused(epsilon: object, sensitivity: object, word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity)
