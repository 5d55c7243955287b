"""The exponential mechanism: epsilon-DP with bounded range, safe at any gap, with its utility theorem."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact.balls import ball, working
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.mechanisms import Exponential, RandomizedResponse
from dither.privacy.losses import Curve
from dither.privacy.parts import BoundedRange
from dither.privacy.proof import verify
from laws.exactly import Claim, worst_ratio

BITS = 300


def log_ratios(x: Law, y: Law, count: int) -> list[arb]:
    with working(BITS):
        return [x.pmf(i).log() - y.pmf(i).log() for i in range(count)]


@st.composite
def neighbouring_scores(draw: st.DrawFn, monotone: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    scores = draw(st.lists(st.integers(-6, 6), min_size=2, max_size=5))
    moves = [draw(st.integers(0 if monotone else -1, 1)) for _ in scores]
    return tuple(scores), tuple(s + m for s, m in zip(scores, moves, strict=True))


@settings(max_examples=40, deadline=None)
@given(neighbouring_scores())
def test_neighbours_stay_within_epsilon_and_within_its_range(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    choose = Exponential(epsilon=1, sensitivity=1)
    assert verify(choose, [pair]).holds
    found = log_ratios(choose.law(pair[0]), choose.law(pair[1]), len(pair[0]))
    with working(BITS):
        assert not any(a - b > ball(1) for a, b in itertools.permutations(found, 2))


@settings(max_examples=40, deadline=None)
@given(neighbouring_scores(monotone=True))
def test_monotone_scores_need_half_the_noise(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    choose = Exponential(epsilon=1, sensitivity=1, monotone=True)
    assert choose.scale == Exponential(epsilon=1, sensitivity=1).scale / 2
    assert verify(choose, [pair]).holds
    found = log_ratios(choose.law(pair[0]), choose.law(pair[1]), len(pair[0]))
    with working(BITS):
        assert not any(a - b > ball(1) for a, b in itertools.permutations(found, 2))


def test_half_the_noise_breaks_the_price_when_scores_move_apart() -> None:
    half = Claim(1, lambda scores: Categorical(tuple(Fraction(s) for s in scores)))
    assert not verify(half, [((0, 0), (1, -1))]).holds
    assert not verify(Exponential(epsilon=1, sensitivity=1, monotone=True), [((0, 0), (1, -1))]).holds


def test_a_tenth_less_noise_breaks_the_price() -> None:
    # The bound is approached when a candidate far behind its many rivals moves against all of them.
    pair = ((0, *[20] * 30), (1, *[19] * 30))
    assert verify(Exponential(epsilon=1, sensitivity=1), [pair]).holds
    assert not verify(Exponential(epsilon=Fraction(10, 9), sensitivity=1), [pair], claimed=1).holds


def test_it_is_priced_as_bounded_range() -> None:
    choose = Exponential(epsilon="1/10", sensitivity=1)
    assert choose.loss().epsilon() == Fraction(1, 10)
    assert choose.loss().zcdp().rho == Fraction(1, 800)
    assert choose.curve() == Curve.of(BoundedRange("1/10"))


def test_four_nationalities() -> None:
    """With probability at least 1 - e^-3 the chosen one has at least OPT - 2 (ln 4 + 3) / epsilon people."""
    choose = Exponential(epsilon="1/10", sensitivity=1, candidates=("fr", "it", "es", "pt"))
    allowed = choose.margin(1 - Fraction(math.exp(-3)))
    assert abs(float(allowed) - 2 * (math.log(4) + 3) / 0.1) < 1e-6
    counts = (400, 380, 330, 200)
    law = choose.law(counts)
    with working(128):
        good = sum((law.pmf(i) for i, count in enumerate(counts) if count >= max(counts) - allowed), arb(0))
        assert good >= 1 - ball(Fraction(math.exp(-3)))


@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(st.integers(-40, 0), min_size=1, max_size=7),
    confidence=st.fractions(Fraction(1, 10), Fraction(999, 1000), max_denominator=1000),
)
def test_the_utility_theorem_holds(scores: list[int], confidence: Fraction) -> None:
    choose = Exponential(epsilon=1, sensitivity=1)
    allowed = choose.margin(confidence, candidates=len(scores), best=scores.count(max(scores)))
    law = choose.law(scores)
    with working(128):
        bad = sum((law.pmf(i) for i, s in enumerate(scores) if s <= max(scores) - allowed), arb(0))
        assert bad <= ball(1 - confidence)


def test_half_the_theorem_would_be_broken() -> None:
    choose = Exponential(epsilon=1, sensitivity=1)
    allowed = choose.margin("0.95", candidates=1001) / 2
    scores = [0] + [-math.ceil(allowed)] * 1000
    with working(128):
        assert 1 - choose.law(scores).pmf(0) > ball(Fraction(1, 20))


def worst_expected_error(kind: type, candidates: int) -> float:
    """The largest expected error over one best candidate and the others at one gap, times epsilon."""
    choose = kind(epsilon=1, sensitivity=1)

    def error(gap: float) -> float:
        exact = Fraction(round(gap * 10**6), 10**6)
        best = float(choose.law([Fraction(0)] + [-exact] * (candidates - 1)).probability(0))
        return gap * (1 - best)

    low, high = 0.5, 40.0
    for _ in range(40):
        a, b = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (a, high) if error(a) < error(b) else (low, b)
    return error((low + high) / 2)


@pytest.mark.parametrize(("candidates", "anchor"), [(10, 2.2020), (1000, 8.8410)])
def test_the_worst_expected_error(candidates: int, anchor: float) -> None:
    assert round(worst_expected_error(Exponential, candidates), 4) == anchor


def test_randomized_response_is_the_score_of_a_match() -> None:
    """Score 1 for the true category and sensitivity 1: the total weight is the same for every truth, so twice the
    epsilon of randomized response gives exactly its law."""
    for k in (2, 5):
        choose, answer = Exponential(epsilon=2, sensitivity=1), RandomizedResponse(epsilon=1, categories=k)
        for truth in range(k):
            chosen, direct = choose.law([int(o == truth) for o in range(k)]), answer.law(truth)
            with working(BITS):
                for o in range(k):
                    assert chosen.pmf(o).overlaps(direct.pmf(o))
                    assert chosen.pmf(o).rad() < 1e-80
        assert not worst_ratio(choose.law([1] + [0] * (k - 1)), choose.law([0] * (k - 1) + [1])) > 1


def test_that_equality_fails_at_the_same_epsilon() -> None:
    chosen, direct = Exponential(epsilon=1, sensitivity=1).law([1, 0]), RandomizedResponse(epsilon=1).law(0)
    with working(BITS):
        assert not chosen.pmf(0).overlaps(direct.pmf(0))


def test_huge_gaps_are_safe() -> None:
    choose = Exponential(epsilon=1, sensitivity=1)
    law = choose.law([0, 10**9, 10**9 - 2])
    with working(BITS):
        assert law.pmf(0) > 0
        assert law.pmf(0).log().overlaps(ball(Fraction(-(10**9), 2)) + law.pmf(1).log())
    assert choose.release([0, 10**9, -(10**9)]) == 1
    assert choose.release(np.array([-(2**62), 2**62])) == 1


def test_a_large_array_of_scores() -> None:
    scores = np.zeros(10**5, dtype=np.int64)
    scores[777] = 10**6
    assert Exponential(epsilon=1, sensitivity=1).release(scores) == 777


@pytest.mark.long
def test_a_million_scores() -> None:
    scores = np.arange(10**6, dtype=np.int64) % 1000
    assert 0 <= Exponential(epsilon=1, sensitivity=1).release(scores) < 10**6


def test_labels_or_indices() -> None:
    assert Exponential(epsilon=1, sensitivity=1, candidates="ab").release([0, 10**6]) == "b"
    assert Exponential(epsilon=1, sensitivity=1).release([Fraction(1, 3), Fraction(10**6)]) == 1


@pytest.mark.parametrize(
    "scores", [[], [1], [1, 2, 3], [1, 2.0], [1, "2"], [True, 1], np.zeros(2), np.zeros((1, 2), dtype=int)]
)
def test_bad_scores_are_refused(scores: object, no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="scores"):
        Exponential(epsilon=1, sensitivity=1, candidates=("a", "b")).release(scores)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "nan"}, "epsilon"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": -1}, "sensitivity"),
        ({"candidates": ()}, "candidates"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        Exponential(**{"epsilon": 1, "sensitivity": 1, **arguments})


def test_a_margin_needs_to_know_how_many_candidates_there_are() -> None:
    choose = Exponential(epsilon=1, sensitivity=1)
    for arguments in ({}, {"candidates": 0}, {"candidates": 2, "best": 3}, {"candidates": 2, "best": 0}):
        with pytest.raises(ArgumentError, match=r"candidates|best"):
            choose.margin("0.9", **arguments)
