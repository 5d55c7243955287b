"""Randomized response: its exact range of epsilon-DP, an unbiased estimator, and its variance."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb, prod

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact.balls import ball, exp, less, working
from dither.mechanisms import RandomizedResponse
from dither.privacy.proof import verify

odds = st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=40).filter(lambda p: p != Fraction(1, 2))


@given(p=odds, epsilon=st.fractions(Fraction(1, 10), 3, max_denominator=10))
def test_binary_response_is_epsilon_dp_exactly_in_the_known_range(p: Fraction, epsilon: Fraction) -> None:
    answer = RandomizedResponse(p=p)

    def top() -> arb:
        return exp(epsilon) / (1 + exp(epsilon))

    inside = less(lambda: ball(p), top) and less(lambda: 1 - top(), lambda: ball(p))
    assert verify(answer, [(0, 1)], claimed=epsilon).holds == inside
    assert (answer.loss().epsilon() <= epsilon) == inside


@pytest.mark.parametrize("k", [2, 3, 10])
def test_k_categories_reach_epsilon_and_not_more(k: int) -> None:
    answer = RandomizedResponse(epsilon="1/2", categories=k)
    pairs = [(x, y) for x in range(k) for y in range(x)]
    assert verify(answer, pairs).holds
    assert not verify(answer, pairs, claimed=Fraction(9, 20)).holds


def test_the_grid_of_ten_by_ten() -> None:
    """epsilon = ln 3 on a hundred cells: q = 1/(3 + 99), p = 3/102."""
    answer = RandomizedResponse(p=Fraction(3, 102), categories=100)
    assert answer.law(0).probability(1).overlaps(ball(Fraction(1, 102)))
    with working(128):
        assert arb(3).log() <= ball(answer.loss().epsilon()) <= arb(3).log() + arb(2) ** -60


def test_the_price_of_a_rational_p_is_rounded_up() -> None:
    found = RandomizedResponse(p="3/4").loss().epsilon()
    with working(128):
        assert ball(found) > arb(3).log()
        assert not ball(found - Fraction(1, 2**50)) > arb(3).log()
    assert RandomizedResponse(p="1/4").loss() == RandomizedResponse(p="3/4").loss()


def counts_of(reports: tuple[int, ...], k: int) -> list[int]:
    return [reports.count(v) for v in range(k)]


def all_reports(answer: RandomizedResponse, truths: tuple[int, ...]) -> Iterator[tuple[Fraction, list[int]]]:
    """Every outcome of these people's coins, with its exact probability."""
    k, p = answer.categories, answer.p
    assert p is not None
    q = (1 - p) / (k - 1)
    for reports in product(range(k), repeat=len(truths)):
        yield prod((p if r == t else q) for r, t in zip(reports, truths, strict=True)), counts_of(reports, k)


@pytest.mark.parametrize(("k", "p"), [(2, "3/4"), (2, "1/10"), (3, "1/2"), (4, "2/5")])
def test_the_estimator_is_unbiased_for_any_truths(k: int, p: str) -> None:
    answer = RandomizedResponse(p=p, categories=k)
    truths = (0, 0, 1, k - 1)
    mean = [Fraction(0)] * k
    for weight, counts in all_reports(answer, truths):
        mean = [m + weight * e for m, e in zip(mean, answer.estimate(counts), strict=True)]
    assert mean == [Fraction(truths.count(v), len(truths)) for v in range(k)]


def test_the_raw_share_is_biased() -> None:
    answer = RandomizedResponse(p="3/4")
    raw = sum(weight * Fraction(counts[1], 2) for weight, counts in all_reports(answer, (1, 1)))
    assert raw == Fraction(3, 4) != 1


@given(p=odds, y=st.integers(0, 50))
def test_the_binary_estimate_is_the_textbook_formula(p: Fraction, y: int) -> None:
    assert RandomizedResponse(p=p).estimate([50 - y, y])[1] == (Fraction(y, 50) - (1 - p)) / (2 * p - 1)


@given(p=odds, share=st.fractions(0, 1, max_denominator=20), n=st.integers(1, 1000))
def test_the_binary_variance_is_the_textbook_formula(p: Fraction, share: Fraction, n: int) -> None:
    half = Fraction(1, 2)
    expected = share * (1 - share) / n + (1 / (16 * (p - half) ** 2) - Fraction(1, 4)) / n
    assert RandomizedResponse(p=p).variance(share, n) == expected


@pytest.mark.parametrize(("k", "p"), [(2, "3/4"), (3, "1/2"), (5, "3/5")])
def test_the_variance_is_that_of_the_estimator_over_people_drawn_at_random(k: int, p: str) -> None:
    answer, n, share = RandomizedResponse(p=p, categories=k), 6, Fraction(1, 3)
    q = (1 - answer.p) / (k - 1)
    reported = q + share * (answer.p - q)
    moments = [Fraction(0), Fraction(0)]
    for y in range(n + 1):
        weight = comb(n, y) * reported**y * (1 - reported) ** (n - y)
        estimate = answer.estimate([y, n - y] + [0] * (k - 2))[0]
        moments = [moments[0] + weight * estimate, moments[1] + weight * estimate**2]
    assert moments[0] == share
    assert moments[1] - moments[0] ** 2 == answer.variance(share, n)


@pytest.mark.parametrize("people", [(20, 0), (20, 7), (20, 20)])
def test_the_margin_covers_by_exact_law(people: tuple[int, int]) -> None:
    n, yes = people
    answer = RandomizedResponse(p="9/10")
    m = answer.margin("0.9", respondents=n)
    covered = Fraction(0)
    for a in range(yes + 1):
        for b in range(n - yes + 1):
            weight = comb(yes, a) * Fraction(9, 10) ** a * Fraction(1, 10) ** (yes - a)
            weight *= comb(n - yes, b) * Fraction(1, 10) ** b * Fraction(9, 10) ** (n - yes - b)
            if abs(answer.estimate([n - a - b, a + b])[1] - Fraction(yes, n)) <= m:
                covered += weight
    assert covered >= Fraction(9, 10)


def test_truths_outside_the_categories_go_to_the_nearest() -> None:
    answer = RandomizedResponse(epsilon=1, categories=3)
    assert answer.law(-5) == answer.law(0)
    assert 0 <= answer.release(10**20) <= 2


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "epsilon or p"),
        ({"epsilon": 1, "p": "1/2"}, "not both"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "inf"}, "epsilon"),
        ({"p": 0}, "p must"),
        ({"p": 1}, "p must"),
        ({"p": "1/2"}, "equally likely"),
        ({"p": "1/3", "categories": 3}, "equally likely"),
        ({"epsilon": 1, "categories": 1}, "categories"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        RandomizedResponse(**arguments)


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [0, 0], [1, -1], [1.5, 2]])
def test_bad_counts_are_refused(counts: list[int]) -> None:
    with pytest.raises(ArgumentError, match="counts"):
        RandomizedResponse(epsilon=1).estimate(counts)


def test_a_report_needs_a_whole_number_and_a_margin_needs_the_respondents(no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="exact"):
        RandomizedResponse(epsilon=1).release("yes")
    with pytest.raises(ArgumentError, match="respondents"):
        RandomizedResponse(epsilon=1).margin("0.9")
