"""What an answer tells: posteriors, risk, information and leakage by hand on tables, and every one within its bound."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.errors import ArgumentError
from textbook.tables import Table, tables

CLOSE = Fraction(1, 1 << 55)
priors = st.lists(st.integers(1, 9), min_size=3, max_size=3).map(lambda w: [Fraction(each, sum(w)) for each in w])


def channel(table: Table) -> dt.Channel:
    return dt.Channel(table)


def pairs(prior: list[Fraction]) -> list[tuple[int, Fraction]]:
    return list(enumerate(prior))


@given(table=tables(inputs=3), prior=priors, answer=st.integers(0, 2))
def test_the_posterior_is_bayes_rule(table: Table, prior: list[Fraction], answer: int) -> None:
    told = dt.leakage.posterior(channel(table), pairs(prior), answer)
    weights = [p * row[answer] for p, row in zip(prior, table, strict=True)]
    for belief, weight, before in zip(told, weights, prior, strict=True):
        assert belief.before == before
        assert 0 <= belief.after - weight / sum(weights) < CLOSE


def by_hand(table: Table, prior: list[Fraction]) -> tuple[Fraction, float, float]:
    """(risk, mutual information, min-entropy leakage), by the definitions."""
    cells = [[p * each for each in row] for p, row in zip(prior, table, strict=True)]
    columns = list(zip(*cells, strict=True))
    right = sum(max(column) for column in columns)
    told = sum(float(c) * math.log2(c / p / sum(column)) for column in columns for c, p in zip(column, prior, strict=True))
    return 1 - right, told, math.log2(right / max(prior))


@settings(deadline=None)
@given(table=tables(inputs=3), prior=priors)
def test_risk_information_and_leakage_are_their_definitions(table: Table, prior: list[Fraction]) -> None:
    found, (risk, told, leaked) = dt.leakage.measure(channel(table), pairs(prior)), by_hand(table, prior)
    assert 0 <= risk - found.risk < CLOSE
    assert abs(float(found.information) - told) < 1e-12
    assert abs(float(found.min_entropy) - leaked) < 1e-12
    assert found.risk_before == 1 - max(prior)


@settings(deadline=None)
@given(table=tables(inputs=3), prior=priors)
def test_the_price_bounds_all_of_them(table: Table, prior: list[Fraction]) -> None:
    mechanism = channel(table)
    found = dt.leakage.measure(mechanism, pairs(prior))
    assert found.risk_bound is not None
    assert found.risk >= found.risk_bound - CLOSE
    assert found.information_bound is not None
    assert found.information <= min(found.information_bound, found.entropy) + CLOSE
    assert found.min_entropy_bound is not None
    assert found.min_entropy <= found.min_entropy_bound + CLOSE
    for answer in range(3):
        for belief in dt.leakage.posterior(mechanism, pairs(prior), answer):
            assert belief.least is not None
            assert belief.most is not None
            assert belief.least - CLOSE <= belief.after <= belief.most + CLOSE


class Sold:
    """The mechanism, sold at nine tenths of its price."""

    def __init__(self, mechanism: Any) -> None:
        self.law, self.outcome, self._loss = mechanism.law, mechanism.outcome, mechanism.loss()

    def loss(self) -> dt.Pure:
        return dt.Pure(self._loss.epsilon() * Fraction(9, 10))


@pytest.mark.parametrize("categories", [2, 3, 8])
def test_randomized_response_reaches_the_bounds_and_a_smaller_price_breaks_them(categories: int) -> None:
    noise = dt.RandomizedResponse(epsilon=1, categories=categories)
    prior = dt.leakage.flat(range(categories))
    found, sold = dt.leakage.measure(noise, prior), dt.leakage.measure(Sold(noise), prior)
    assert found.risk_bound is not None
    assert abs(found.risk - found.risk_bound) < CLOSE
    assert found.min_entropy_bound is not None
    assert abs(found.min_entropy - found.min_entropy_bound) < CLOSE
    assert sold.risk_bound is not None
    assert found.risk < sold.risk_bound - Fraction(1, 1000)
    assert sold.min_entropy_bound is not None
    assert found.min_entropy > sold.min_entropy_bound + Fraction(1, 1000)
    right = [dt.leakage.posterior(each, prior, 1)[1] for each in (noise, Sold(noise))]
    assert right[0].most is not None
    assert abs(right[0].after - right[0].most) < CLOSE
    assert right[1].most is not None
    assert right[1].after > right[1].most + Fraction(1, 1000)


def test_the_bound_of_information_is_reached_for_rare_values_and_breaks_at_a_smaller_price() -> None:
    """One value has almost no prior: then the information is nearly its share of KL(RR) = E tanh(E / 2)."""
    rare = [(0, 1 - Fraction(1, 10**6)), (1, Fraction(1, 10**6))]
    noise = dt.RandomizedResponse(epsilon=1)
    found, sold = dt.leakage.measure(noise, rare), dt.leakage.measure(Sold(noise), rare)
    assert found.information_bound is not None
    assert sold.information_bound is not None
    assert Fraction(49, 100) < found.information / found.information_bound <= 1
    certain = dt.leakage.measure(dt.Channel([[1, 0], [0, 1]]), rare)  # the twin: no noise, all of the entropy
    assert abs(certain.information - certain.entropy) < CLOSE
    assert certain.information > found.information_bound
    assert certain.information_bound is None


def test_a_count_with_endless_noise_is_summed_to_the_end() -> None:
    noise, scale = dt.Geometric(epsilon="1/2", sensitivity=1), Fraction(2)
    found = dt.leakage.measure(noise, dt.leakage.flat([10, 11]))
    a = math.exp(-1 / scale)
    assert abs(float(found.risk) - a / (1 + a)) < 1e-12  # the threshold test between two counts
    assert found.risk_bound is not None
    assert abs(found.risk - found.risk_bound) < CLOSE
    told = dt.leakage.posterior(noise, dt.leakage.flat(range(8, 14)), 11, steps=5)
    assert max(told, key=lambda belief: belief.after).value == 11
    assert abs(sum(belief.after for belief in told) - 1) < CLOSE


def test_gaussian_noise_has_a_bound_of_information_alone() -> None:
    noise = dt.Gaussian(rho="1/8", sensitivity=1)
    found = dt.leakage.measure(noise, dt.leakage.flat([0, 1]))
    assert (found.risk_bound, found.min_entropy_bound) == (None, None)
    assert found.information_bound is not None
    assert 0 < found.information < found.information_bound
    assert "no bound" in str(found)
    belief = dt.leakage.posterior(noise, dt.leakage.flat([0, 1]), 3)[1]
    assert (belief.least, belief.most) == (None, None)
    assert abs(float(belief.after) - 1 / (1 + math.exp(-(9 - 4) / 8))) < 1e-12


def test_answers_of_every_kind_are_recognised() -> None:
    half = dt.leakage.flat
    laplace = dt.Laplace(epsilon=1, sensitivity=1, grid="1/4")
    assert dt.leakage.posterior(laplace, half([0, 1]), "1.25")[1].after > Fraction(7, 10)
    both = dt.Compose(laplace, dt.Geometric(epsilon=1, sensitivity=1))
    assert dt.leakage.posterior(both, half([0, 1]), (Fraction(5, 4), 3))[1].after > Fraction(88, 100)
    scores = dt.Exponential(epsilon=1, sensitivity=1, candidates=("a", "b"))
    assert dt.leakage.posterior(scores, [((0, 1), "1/2"), ((1, 0), "1/2")], "b")[0].after > Fraction(1, 2)
    asked = dt.Oblivious(sum, both, otherwise=0)
    assert dt.leakage.posterior(asked, [((0, 1), "1/2"), ((1, 1), "1/2")], (2, 2))[1].after > Fraction(1, 2)
    follow = dt.Adaptive(dt.RandomizedResponse(epsilon=1), lambda answer: dt.RandomizedResponse(epsilon=1))
    assert dt.leakage.posterior(follow, half([0, 1]), (1, 1))[1].after > Fraction(88, 100)


def test_an_answer_that_only_one_value_gives_tells_it() -> None:
    told = dt.leakage.posterior(dt.Channel([[1, 0], ["1/2", "1/2"]]), dt.leakage.flat([0, 1]), 1)
    assert [belief.after for belief in told] == [0, 1]


@pytest.mark.parametrize("answer", ["1/3", 0.3, None, (1, 2)])
def test_what_is_no_answer_is_refused(answer: object) -> None:
    with pytest.raises(ArgumentError):
        dt.leakage.posterior(dt.Laplace(epsilon=1, sensitivity=1, grid="1/4"), dt.leakage.flat([0, 1]), answer)
    with pytest.raises(ArgumentError):
        dt.leakage.posterior(dt.RandomizedResponse(epsilon=1), dt.leakage.flat([0, 1]), answer)


def test_noise_too_wide_to_add_up_is_refused_and_its_posterior_is_not() -> None:
    wide = dt.Geometric(epsilon=1, sensitivity=10**6)
    with pytest.raises(ArgumentError, match="too many"):
        dt.leakage.measure(wide, dt.leakage.flat([0, 10**6]))
    assert dt.leakage.posterior(wide, dt.leakage.flat([0, 10**6]), 10**7)[1].after > Fraction(73, 100)
