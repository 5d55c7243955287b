"""The exponential mechanism and randomized response: the worked examples, by exact law and full enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st

from dither.exact import balls
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.randomized_response import RandomizedResponse
from dither.privacy.proof import verify

NATIONALITIES = ("Danish", "German", "Polish", "Swedish")
counts = st.lists(st.integers(0, 60), min_size=4, max_size=4)


def chance_of_at_least(mechanism: Exponential, people: list[int], least: float) -> arb:
    """Pr[the chosen nationality has at least this many people], exactly."""
    law = mechanism.law(people)
    return sum((law.pmf(i) for i, n in enumerate(people) if n >= least), arb(0))


@given(people=counts, epsilon=st.fractions("1/10", 2, max_denominator=10))
def test_the_most_frequent_of_four_nationalities(people: list[int], epsilon: Fraction) -> None:
    """With probability at least 1 - e^-3 the chosen one has at least OPT - 2 (ln 4 + 3) / epsilon people."""
    mechanism = Exponential(epsilon=epsilon, sensitivity=1, candidates=NATIONALITIES)
    least = max(people) - 2 * (math.log(4) + 3) / float(epsilon)
    with balls.working(128):
        assert chance_of_at_least(mechanism, people, least) >= 1 - balls.exp(-3)


def test_the_nationalities_theorem_needs_its_logarithm() -> None:
    """The twin: without ln 4 the promise is broken by three candidates just below the bound."""
    mechanism = Exponential(epsilon="1/10", sensitivity=1, candidates=NATIONALITIES)
    people = [61, 0, 0, 0]
    with balls.working(128):
        assert chance_of_at_least(mechanism, people, 61 - 2 * 3 / 0.1) < 1 - balls.exp(-3)
        assert chance_of_at_least(mechanism, people, 61 - 2 * (math.log(4) + 3) / 0.1) >= 1 - balls.exp(-3)


@given(people=counts, who=st.integers(0, 3))
def test_choosing_a_nationality_is_private(people: list[int], who: int) -> None:
    joined = [n + (i == who) for i, n in enumerate(people)]
    assert verify(Exponential(epsilon="1/2", sensitivity=1), [(people, joined)]).holds
    assume(sum(people) > 0)
    assert not verify(
        Exponential(epsilon="1/2", sensitivity=1), [(people, [n + 9 * (i == who) for i, n in enumerate(people)])]
    ).holds


@pytest.mark.parametrize("move", [1, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_the_score_minus_distance_gives_geometric_noise(move: int, epsilon: Fraction) -> None:
    """score(o) = -|f(D) - o|: two-sided geometric noise of parameter 2 sensitivity / epsilon, cut to the candidates."""
    answer, candidates = 40, range(81)
    law = Exponential(epsilon=epsilon, sensitivity=move).law([-abs(answer - o) for o in candidates])
    noise = TwoSided(2 * move / epsilon)
    slopes = {piece.slope for piece in noise.pieces()}
    assert slopes == {epsilon / (2 * move), -epsilon / (2 * move)}
    weights = [piece.offset for piece in law.pieces()]
    assert weights == [-abs(answer - o) * epsilon / (2 * move) for o in candidates]  # log Pr up to one constant, exactly
    with balls.working(160):
        kept = 1 - noise.more_than(40) - noise.at_most(-41)
        assert all((law.pmf(o) * kept - noise.pmf(o - answer)).contains(0) for o in candidates)
        assert not (law.pmf(41) * kept - TwoSided(move / epsilon).pmf(1)).contains(0)  # the twin: half the scale


@given(p=st.fractions("1/50", "49/50", max_denominator=50), epsilon=st.fractions("1/20", 4, max_denominator=20))
def test_binary_randomized_response_is_private_exactly_in_its_interval(p: Fraction, epsilon: Fraction) -> None:
    """epsilon-DP if and only if 1/(1 + e^epsilon) <= p <= e^epsilon/(1 + e^epsilon)."""
    assume(p != Fraction(1, 2))
    with balls.working(128):
        inside = bool(1 / (1 + balls.exp(epsilon)) <= balls.ball(p) <= 1 / (1 + balls.exp(-epsilon)))
    assert verify(RandomizedResponse(p=p), [(0, 1)], claimed=epsilon).holds == inside


def binomial(n: int, rate: Fraction) -> list[Fraction]:
    return [math.comb(n, y) * rate**y * (1 - rate) ** (n - y) for y in range(n + 1)]


@given(
    p=st.fractions("1/20", "19/20", max_denominator=20),
    share=st.fractions(0, 1, max_denominator=10),
    n=st.integers(1, 12),
)
def test_the_estimate_is_unbiased_and_has_its_variance(p: Fraction, share: Fraction, n: int) -> None:
    """(y/N - (1-p)) / (2p-1), with variance pi (1-pi)/N + (1/(16 (p - 1/2)^2) - 1/4)/N: all outcomes, exactly."""
    assume(p != Fraction(1, 2))
    mechanism = RandomizedResponse(p=p)
    chances = binomial(n, share * p + (1 - share) * (1 - p))
    estimates = [(Fraction(y, n) - (1 - p)) / (2 * p - 1) for y in range(n + 1)]
    assert [mechanism.estimate([n - y, y])[1] for y in range(n + 1)] == estimates
    assert sum(c * e for c, e in zip(chances, estimates, strict=True)) == share
    variance = sum(c * (e - share) ** 2 for c, e in zip(chances, estimates, strict=True))
    formula = share * (1 - share) / n + (1 / (16 * (p - Fraction(1, 2)) ** 2) - Fraction(1, 4)) / n
    assert variance == formula == mechanism.variance(share, n)
    assert formula > share * (1 - share) / n  # the twin: noise is not free


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_randomized_response_on_a_grid(k: int, epsilon: Fraction) -> None:
    """On k x k cells: q = 1 / (e^epsilon + k^2 - 1) for every wrong cell."""
    mechanism = RandomizedResponse(epsilon=epsilon, categories=k * k)
    law = mechanism.law(1)
    with balls.working(160):
        q = 1 / (balls.exp(epsilon) + k * k - 1)
        assert (law.pmf(0) - q).contains(0)
        assert (law.pmf(1) - q * balls.exp(epsilon)).contains(0)
    assert verify(mechanism, [(0, 1), (0, k * k - 1)]).holds
    assert not verify(mechanism, [(0, 1)], claimed=epsilon * Fraction(9, 10)).holds


def test_ln_3_on_a_10_by_10_grid_reports_the_truth_with_probability_3_in_102() -> None:
    mechanism = RandomizedResponse(p="3/102", categories=100)
    with balls.working(128):
        assert (mechanism.law(7).pmf(8) - balls.ball(Fraction(1, 102))).contains(0)
        assert (mechanism.law(7).pmf(7) - balls.ball(Fraction(3, 102))).contains(0)
        truth, price = arb(3).log(), balls.ball(mechanism.loss().epsilon())
        assert truth <= price <= truth + arb(2) ** -50
    assert verify(mechanism, [(7, 8)]).holds
    assert not verify(mechanism, [(7, 8)], claimed="1.0986").holds
