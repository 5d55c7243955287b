"""Secret samples of units: the amplified price by exact enumeration of all samples, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.exact.balls import ball, working
from dither.exact.laws.derived import Moved
from dither.exact.laws.mixture import Mixture
from dither.mechanisms.sampled import amplified
from dither.privacy.proof import verify
from laws.exactly import BITS, Claim, spill, worst_ratio

COUNT = dt.Geometric(epsilon=1, sensitivity=1)
TENTH = COUNT.sampled("1/10")


def test_the_price_is_the_formula_and_is_reached() -> None:
    assert amplified(Fraction(1), Fraction(1, 10)) == TENTH.loss().epsilon(0)
    reached = worst_ratio(TENTH.law((1, 1)), TENTH.law((1, 1, 1)))
    with working(BITS):
        assert 0 <= ball(TENTH.loss().epsilon(0)) - reached < ball(Fraction(1, 2**60))
    assert verify(TENTH, [((1, 1), (1, 1, 1))]).holds


def test_a_price_slightly_lower_is_refuted() -> None:
    assert not verify(TENTH, [((1, 1), (1, 1, 1))], claimed=TENTH.loss().epsilon(0) - Fraction(1, 10**12)).holds


def test_rows_instead_of_units_break_the_price() -> None:
    """The twin: a person counts if any of three rows is sampled, each by its own coin. That is likelier than q."""
    missed = Fraction(9, 10) ** 3
    absent, present = COUNT.law(0), Mixture((missed, 1 - missed), (COUNT.law(0), COUNT.law(1)))
    by_rows = Claim(TENTH.loss().epsilon(0), lambda there: present if there else absent)
    assert not verify(by_rows, [(False, True)]).holds
    by_units = Claim(TENTH.loss().epsilon(0), lambda there: TENTH.law((1,) if there else ()))
    assert verify(by_units, [(False, True)]).holds


def test_telling_the_size_of_the_sample_breaks_the_price() -> None:
    """The twin: whoever knows that one unit was sampled compares the mechanism without a sample."""
    told = Claim(TENTH.loss().epsilon(0), lambda units: Moved(COUNT.noise, sum(units)))
    assert not verify(told, [((0,), (1,))]).holds


def test_a_replaced_unit_is_not_hidden_by_coins() -> None:
    """Poisson sampling is priced under add/remove only: a unit that goes from -1 to 1 moves the sum by 2."""
    assert not verify(TENTH, [((-1,), (1,))]).holds


@pytest.mark.parametrize(("q", "n"), [("1/2", 4), ("1/4", 4), ("2/3", 3)])
def test_every_replacement_stays_within_the_price_without_replacement(q: str, n: int) -> None:
    noise = COUNT.sampled(q, dt.Replace(n))
    pairs = [(table, (other, *table[1:])) for table in product((0, 1), repeat=n) for other in (0, 1) if other != table[0]]
    proof = verify(noise, pairs)
    assert proof.holds
    assert float(proof.worst) == pytest.approx(float(noise.loss().epsilon(0)))


def test_a_sample_without_replacement_has_the_law_of_all_subsets() -> None:
    units, noise = (1, 0, 1, 1), COUNT.sampled("1/2", dt.Replace(4))
    sums = [sum(chosen) for chosen in combinations(units, 2)]
    law = noise.law(units)
    with working(BITS):
        for k in range(-3, 6):
            by_hand = sum((COUNT.law(each).pmf(k) for each in sums), start=ball(0)) / len(sums)
            assert abs(law.pmf(k) - by_hand) < ball(Fraction(1, 2**200))


def test_delta_shrinks_with_epsilon() -> None:
    inner = dt.Gaussian(epsilon=1, delta="1e-3", sensitivity=1)
    noise = inner.sampled("1/5")
    epsilon, delta = noise.loss().pair()
    assert delta == Fraction(1, 5000)
    found = [spill(noise.law(a), noise.law(b), epsilon) for a, b in (((1,), ()), ((), (1,)))]
    with working(BITS):
        assert all(over <= ball(delta) for over in found)
        assert max(float(over) for over in found) > 0.99 * float(delta)  # so a delta 1 % lower is wrong


def test_rho_stays_the_unsampled_one_unless_the_pure_price_certifies_less() -> None:
    assert dt.Gaussian(rho="1/8", sensitivity=1).sampled("1/10").loss() == dt.ZCDP("1/8")
    assert (
        dt.Gaussian(epsilon=1, delta="1e-6", sensitivity=1).sampled("1/10").zcdp()
        == dt.Gaussian(epsilon=1, delta="1e-6", sensitivity=1).zcdp()
    )
    assert TENTH.zcdp().rho == TENTH.loss().epsilon(0) ** 2 / 2 < COUNT.zcdp().rho
    choose = dt.Exponential(epsilon=1, sensitivity=1)
    assert choose.sampled("9/10").zcdp().rho == choose.zcdp().rho


def test_the_whole_sample_is_the_mechanism_itself() -> None:
    assert COUNT.sampled(1).loss() == COUNT.loss()
    assert COUNT.sampled(1).curve() == COUNT.curve()


@pytest.mark.parametrize(
    "odd", [[], ["x", None, 2.5, float("nan")], [[1, 2], [3]], (1,), np.array([], dtype=int), np.array([10**18, -(10**18)])]
)
def test_no_entry_and_no_number_of_units_decides_whether_a_release_is_made(odd: Any) -> None:
    assert isinstance(TENTH.release(odd), int)


def test_each_unit_is_cut_to_the_sensitivity() -> None:
    assert COUNT.sampled(1).law((10**9,)) == COUNT.sampled(1).law((1,))
    choose = dt.Exponential(epsilon=1, sensitivity=1, candidates="ab", monotone=True).sampled(1)
    assert choose.law([(-7, 9), "no row"]) == choose.law([(0, 1)])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: COUNT.sampled("1/2", dt.Replace()), "public n"),
        (lambda: COUNT.sampled("1/2", dt.Group(dt.AddRemove(), 2)), "public n"),
        (lambda: COUNT.sampled("1/3", dt.Replace(10)), "whole number of units"),
        (lambda: dt.TruncatedGeometric(epsilon=1, sensitivity=1, n=9).sampled("1/2"), "uses a public n"),
        (lambda: dt.RandomizedResponse(epsilon=1).sampled("1/2"), "no sum over units"),
        (lambda: dt.Exponential(epsilon=1, sensitivity=1, monotone=True).sampled("1/2", dt.Replace(2)), "not monotone"),
        (lambda: COUNT.sampled("1/2").sampled("1/2"), "no sum over units"),
        (lambda: COUNT.sampled("1/2", dt.Replace(4)).release([1, 1]), "must have 4 units"),
        (lambda: COUNT.sampled(0), "q must lie in"),
        (lambda: dt.NoisyMax(epsilon=1, sensitivity=1).sampled("1/2").release([1, 2]), "two axes"),
    ],
)
def test_what_has_no_proof_is_refused(make: Any, words: str) -> None:
    with pytest.raises(dt.ArgumentError, match=words):
        make()


def test_nothing_tells_who_was_sampled_or_how_many() -> None:
    """A release is the mechanism's own output, and neither object nor record changes with the data."""
    before = (repr(TENTH), TENTH.record(), dict(vars(TENTH)))
    TENTH.release([1] * 1000)
    assert (repr(TENTH), TENTH.record(), dict(vars(TENTH))) == before


def test_scores_in_an_array_are_sampled_by_rows() -> None:
    votes = np.array([[1, 0, 0]] * 5000 + [[0, 1, 0]] * 100)
    choose = dt.NoisyMax(epsilon=1, sensitivity=1).sampled("1/2")
    assert choose.release(votes) == 0
    assert TENTH.estimate(7) == 70
