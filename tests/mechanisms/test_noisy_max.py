"""Noisy max: which score is the largest, never how large; its law is exact, ties included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact.balls import ball, working
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import Exponential, NoisyMax
from dither.privacy.proof import verify
from mechanisms.test_exponential import neighbouring_scores


@settings(max_examples=25, deadline=None)
@given(neighbouring_scores())
def test_neighbours_stay_within_epsilon(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert verify(NoisyMax(epsilon=1, sensitivity=1), [pair]).holds


@settings(max_examples=25, deadline=None)
@given(neighbouring_scores(monotone=True))
def test_monotone_scores_need_half_the_noise(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert verify(NoisyMax(epsilon=1, sensitivity=1, monotone=True), [pair]).holds


def test_half_the_noise_breaks_the_price_when_scores_move_apart() -> None:
    pair = ((0, -9, -9), (-1, -8, -8))
    assert verify(NoisyMax(epsilon=1, sensitivity=1), [pair]).holds
    assert not verify(NoisyMax(epsilon=1, sensitivity=1, monotone=True), [pair]).holds


def test_a_tenth_less_noise_breaks_the_price() -> None:
    pair = ((0, *[30] * 40), (1, *[29] * 40))
    assert verify(NoisyMax(epsilon=1, sensitivity=1), [pair]).holds
    assert not verify(NoisyMax(epsilon=Fraction(10, 9), sensitivity=1), [pair], claimed=1).holds


def by_summation(scores: list[int], scale: int, index: int) -> arb:
    """Pr[index wins] term by term, the tails beyond 600 steps left out."""
    noise, total = TwoSided(scale), arb(0)
    for k in range(min(scores) - 600, max(scores) + 600):
        term = noise.pmf(k - scores[index])
        for j, score in enumerate(scores):
            if j != index:
                term *= noise.at_most(k - score - (1 if j < index else 0))
        total += term
    return total


@pytest.mark.parametrize("scores", [[5], [0, 0], [0, 0, 0], [3, 0, 1, 1], [0, 7, -20]])
def test_the_law_is_the_sum_over_the_winning_value(scores: list[int]) -> None:
    law = NoisyMax(epsilon=1, sensitivity=1).law(scores)
    with working(200):
        for i in range(len(scores)):
            assert abs(law.pmf(i) - by_summation(scores, 2, i)) < 1e-50
            assert law.pmf(i).rad() < 1e-50


def test_the_lowest_index_wins_ties() -> None:
    law = NoisyMax(epsilon=1, sensitivity=1).law([0, 0])
    with working(200):
        both = sum((TwoSided(2).pmf(k) ** 2 for k in range(-400, 401)), arb(0))
        assert abs(law.pmf(0) - law.pmf(1) - both) < 1e-50


def winner_and_value(scores: tuple[int, ...], index: int, value: int, scale: int) -> arb:
    noise = TwoSided(scale)
    result = noise.pmf(value - scores[index])
    for j, score in enumerate(scores):
        if j != index:
            result *= noise.at_most(value - score - (1 if j < index else 0))
    return result


def test_returning_the_winning_value_as_well_costs_n_epsilon_over_two() -> None:
    """A known bug: with four scores, the same noise and the value shown, the ratio reaches e^(2 epsilon)."""
    with working(200):
        ratio = winner_and_value((0, 0, 0, 0), 0, -50, 2) / winner_and_value((1, 1, 1, 1), 0, -50, 2)
        assert ratio.log().overlaps(ball(2))
        assert ratio.log() > ball(1)


@pytest.mark.parametrize("candidates", [1, 2, 5, 30])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999"])
def test_the_margin_holds_at_the_worst_scores_and_is_the_smallest(candidates: int, confidence: str) -> None:
    choose = NoisyMax(epsilon=1, sensitivity=1)
    m = choose.margin(confidence, candidates=candidates)

    def reached(gap: int) -> arb:
        with working(200):
            return choose.law([-gap] * (candidates - 1) + [0]).pmf(candidates - 1)

    with working(200):
        wanted = ball(Fraction(confidence))
        assert reached(m + 1) >= wanted
        assert m == 0 or reached(m) < wanted


@settings(max_examples=15, deadline=None)
@given(scores=st.lists(st.integers(-20, 0), min_size=2, max_size=5))
def test_no_scores_break_the_margin(scores: list[int]) -> None:
    choose = NoisyMax(epsilon=1, sensitivity=1)
    m, law = choose.margin("0.9", candidates=len(scores)), choose.law(scores)
    with working(128):
        assert sum((law.pmf(i) for i, s in enumerate(scores) if s < max(scores) - m), arb(0)) <= ball(Fraction(1, 10))


def test_the_exponential_mechanisms_theorem_does_not_hold_for_it() -> None:
    """Why its margin is its own: two-sided noise on two scores can miss by more than the theorem allows."""
    choose, theorem = NoisyMax(epsilon=1, sensitivity=1), Exponential(epsilon=1, sensitivity=1).margin("0.999", candidates=2)
    law = choose.law([-int(theorem) - 1, 0])
    with working(128):
        assert law.pmf(0) > ball(Fraction(1, 1000))


def test_far_scores_and_wide_noise_cost_no_more_time() -> None:
    law = NoisyMax(epsilon="1e-11", sensitivity=1).law([0, 10**12, 10**9])
    with working(128):
        assert (law.pmf(0) + law.pmf(1) + law.pmf(2)).contains(1)
        assert law.pmf(0) < law.pmf(2) < law.pmf(1)


@pytest.mark.parametrize("scores", [[], [1], [1, 2.0], [1, Fraction(1, 2)], np.zeros(2), np.zeros((2, 1), dtype=int)])
def test_bad_scores_are_refused(scores: object, no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="scores"):
        NoisyMax(epsilon=1, sensitivity=1, candidates=("a", "b")).release(scores)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"sensitivity": "1/2"}, "sensitivity"),
        ({"candidates": ()}, "candidates"),
        ({"epsilon": "1e-15"}, "scale"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        NoisyMax(**{"epsilon": 1, "sensitivity": 1, **arguments})
