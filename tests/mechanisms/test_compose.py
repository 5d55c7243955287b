"""Composition as a mechanism: the joint law, its exact worst ratio, and the price of choosing by what came before."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from distribution.allowance import share
from distribution.fit import fits
from dither.errors import ArgumentError
from dither.exact.balls import working
from dither.exact.laws.base import Law
from dither.exact.laws.coins import Coin, Flat
from dither.exact.laws.geometric import Cut
from dither.exact.laws.joint import Branching, Product, number, values
from laws.exactly import BITS, Claim, total, worst_ratio


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6))
def test_every_tuple_has_its_own_number(elements: list[int]) -> None:
    assert values(number(elements), len(elements)) == tuple(elements)
    assert number(elements) >= 0


def test_every_number_has_its_own_tuple() -> None:
    assert len({values(k, 3) for k in range(4096)}) == 4096
    assert all(number(values(k, 3)) == k for k in range(4096))


JOINT: list[Law] = [
    Product((Coin("1/3"), Cut(2, 2), Flat(2))),
    Branching(Cut(2, 2), (Coin("1/3"), Flat(5), Product((Coin("1/2"), Coin("1/4"))))),
]


@pytest.mark.parametrize("law", JOINT, ids=["product", "branching"])
def test_a_joint_law_adds_up_from_both_ends(law: Law) -> None:
    with working(BITS):
        assert total(law).contains(1)
        for k in range(law.span()[1] + 1):  # type: ignore[operator]
            assert (law.at_most(k) + law.more_than(k)).contains(1)
            assert (law.at_most(k) - law.at_most(k - 1) - law.pmf(k)).contains(0)


@pytest.mark.parametrize("law", JOINT, ids=["product", "branching"])
def test_a_joint_law_is_drawn_as_stated(law: Law) -> None:
    drawn = np.array([law.draw() for _ in range(1500)])
    assert fits(drawn, law, share("joint laws", 3))


def test_that_other_branches_would_be_noticed() -> None:
    other = Branching(Cut(2, 2), (Coin("1/3"), Flat(5), Product((Coin("1/4"), Coin("1/2")))))
    assert not fits(np.array([other.draw() for _ in range(4000)]), JOINT[1], share("joint laws", 3))


# --- fixed in advance -------------------------------------------------------------------------------------------

SMALL = dt.TruncatedGeometric(epsilon="1/2", sensitivity=1, n=3)
COIN = dt.RandomizedResponse(epsilon=1)


def test_the_worst_ratio_is_exactly_the_sum() -> None:
    both = dt.Compose(SMALL, COIN)
    assert dt.verify(both, [(0, 1)]).worst == Fraction(3, 2) == both.loss().epsilon()
    with working(BITS):
        assert abs(worst_ratio(both.law(0), both.law(1)) - arb("1.5")) < arb(2) ** -250  # listed, tuple by tuple


def test_a_price_below_the_sum_is_broken_and_the_tuple_is_named() -> None:
    both = dt.Compose(SMALL, COIN)
    found = dt.verify(both, [(0, 1)], "1.49")
    assert not found.holds
    assert found.output is not None
    assert both.outcome(found.output) in {(0, 0), (1, 1), (2, 1), (3, 1)}


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_the_n_fold_composition_costs_n_times_one(n: int) -> None:
    many = dt.Compose.repeat(dt.Geometric(epsilon="1/10", sensitivity=1), n)
    assert many.loss() == dt.Pure(Fraction(n, 10))
    assert dt.verify(many, [(5, 6)]).worst == Fraction(n, 10)
    assert not dt.verify(many, [(5, 6)], Fraction(n, 10) - Fraction(1, 10**9)).holds
    assert len(many.release(5)) == n


def test_extremes_are_added_with_their_signs() -> None:
    """Two coins that move in opposite directions: adding the largest absolute log ratios would say log(9/4)."""

    def coin(bit: int) -> Coin:
        return Coin(Fraction(2, 3) if bit else Fraction(1, 2))

    alike = dt.verify(Claim(1, lambda x: Product((coin(x), coin(x)))), [(0, 1)])
    opposite = dt.verify(Claim(1, lambda x: Product((coin(x), coin(1 - x)))), [(0, 1)])
    constant = dt.verify(Claim(1, lambda x: Product((coin(x), coin(0)))), [(0, 1)])
    found = [round(float(each.worst), 6) for each in (alike, opposite, constant)]
    assert found == [0.81093, 0.693147, 0.405465]  # log(9/4), log(2), log(3/2)


def test_endless_parts_have_a_joint_law_too() -> None:
    both = dt.Compose(dt.Geometric(epsilon=1, sensitivity=1), dt.Laplace(epsilon=1, sensitivity=1, grid="1/4"))
    law = both.law(0)
    k = number((2, -3))
    assert both.outcome(k) == (2, Fraction(-3, 4))
    with working(BITS):
        assert (law.pmf(k) - both.parts[0].law(0).pmf(2) * both.parts[1].law(0).pmf(-3)).contains(0)
        assert law.at_most(3000) > 0.9
        assert law.at_most(3000) < 1
    with pytest.raises(ArgumentError, match="not listed"):
        dt.verify(both, [(0, 1)], 1, delta="1/10")


def test_a_gaussian_beside_a_pure_release_has_no_pure_price() -> None:
    both = dt.Compose(dt.Geometric(epsilon=1, sensitivity=1), dt.Gaussian(rho="1/8", sensitivity=1))
    assert both.loss() == dt.ZCDP(Fraction(1, 2) + Fraction(1, 8))
    assert not dt.verify(both, [(0, 1)], 100).holds


def test_the_curve_of_fixed_releases_is_cheaper_than_the_sum() -> None:
    many = dt.Compose.repeat(dt.RandomizedResponse(epsilon="1/10"), 100)
    assert many.curve().epsilon("1e-6") < many.loss().epsilon() / 2
    few = dt.Compose.repeat(dt.RandomizedResponse(epsilon="1/10"), 8)
    price = few.curve().epsilon("1/100")
    assert dt.verify(few, [(0, 1)], price, delta="1/100").holds
    assert not dt.verify(few, [(0, 1)], price * Fraction(9, 10), delta="1/100").holds


def test_margins_hold_together() -> None:
    both = dt.Compose(dt.Geometric(epsilon=1, sensitivity=1), dt.Geometric(epsilon="1/2", sensitivity=1))
    m = both.margin("0.9")
    assert m == dt.Geometric(epsilon="1/2", sensitivity=1).margin("0.95")
    with working(BITS):
        chances = [1 - part.law(0).more_than(m) - part.law(0).at_most(-m - 1) for part in both.parts]
        assert chances[0] * chances[1] >= arb("0.9")


# --- the second chosen by the first -----------------------------------------------------------------------------


def follow(answer: int) -> dt.RandomizedResponse:
    return dt.RandomizedResponse(epsilon="1/2" if answer == 0 else 2)


def test_the_price_of_a_choice_is_that_of_the_dearest() -> None:
    chosen = dt.Adaptive(COIN, follow)
    assert chosen.loss() == dt.Pure(3)
    assert dt.verify(chosen, [(0, 1)]).worst == 3
    assert not dt.verify(chosen, [(0, 1)], "2.99").holds
    with working(BITS):
        assert abs(worst_ratio(chosen.law(0), chosen.law(1)) - 3) < arb(2) ** -250


def test_the_average_choice_is_too_little() -> None:
    """The twin: the dear choice is rare, and still decides."""
    rare = dt.Adaptive(dt.Channel([["99/100", "1/100"]] * 2), follow)
    assert dt.verify(rare, [(0, 1)], 2).holds
    assert not dt.verify(rare, [(0, 1)], Fraction(99, 100) * Fraction(1, 2) + Fraction(1, 100) * 2).holds


def test_a_choice_with_endless_outcomes_is_verified_branch_by_branch() -> None:
    chosen = dt.Adaptive(COIN, lambda answer: dt.Geometric(epsilon="1/2" if answer else "1/3", sensitivity=1))
    assert dt.verify(chosen, [(0, 1)]).worst == Fraction(3, 2) == chosen.loss().epsilon()


def test_releases_of_a_choice_follow_the_joint_law() -> None:
    chosen = dt.Adaptive(COIN, follow)
    law = chosen.law(1)
    place = {chosen.outcome(k): k for k in range(law.span()[1] + 1) if not law.pmf(k).is_zero()}
    assert fits(np.array([place[chosen.release(1)] for _ in range(1500)]), law, share("joint laws", 3))


def test_a_choice_dearer_than_declared_is_refused_before_it_runs() -> None:
    ran: list[Any] = []

    class Dear(dt.RandomizedResponse):
        def release(self, exact: Any) -> Any:
            ran.append(exact)
            return super().release(exact)

    capped = dt.Adaptive(dt.Geometric(epsilon=1, sensitivity=1), lambda answer: Dear(epsilon=2), second=dt.Pure(1))
    assert capped.loss() == dt.Pure(2)
    with pytest.raises(ArgumentError, match="costs more"):
        capped.release(5)
    assert ran == []


def test_equal_epsilon_with_more_rho_is_dearer() -> None:
    allowed = dt.Adaptive(COIN, lambda answer: COIN, second=dt.Pure(1, rho="1/8"))
    with pytest.raises(ArgumentError, match="costs more"):
        allowed.release(1)


def test_without_few_answers_the_price_must_be_stated() -> None:
    endless = dt.Adaptive(dt.Geometric(epsilon=1, sensitivity=1), lambda answer: COIN)
    for call in (endless.loss, lambda: endless.release(3)):
        with pytest.raises(ArgumentError, match="second=Pure"):
            call()


def test_a_choice_that_changes_its_mind_is_refused() -> None:
    """The price was found by asking about every answer; what is chosen later must stay within it."""
    asked: list[int] = []

    def fickle(answer: int) -> dt.RandomizedResponse:
        asked.append(answer)
        return dt.RandomizedResponse(epsilon=1 if len(asked) <= 2 else 5)

    chosen = dt.Adaptive(COIN, fickle)
    assert chosen.loss() == dt.Pure(2)
    with pytest.raises(ArgumentError, match="costs more"):
        chosen.release(1)


def test_what_is_no_composition_is_refused() -> None:
    for parts in ((), (dt.Geometric,), (COIN, 3)):
        with pytest.raises(ArgumentError):
            dt.Compose(*parts)
    with pytest.raises(ArgumentError, match="1 to 1000"):
        dt.Compose.repeat(COIN, 10**6)


def test_mechanisms_of_data_are_composed_over_the_same_data() -> None:
    count = dt.Oblivious(len, dt.TruncatedGeometric(epsilon=1, sensitivity=1, n=3))
    ones = dt.Oblivious(sum, dt.TruncatedGeometric(epsilon="1/2", sensitivity=1, n=3))
    both = dt.Compose(count, ones)
    pairs = dt.AddRemove().pairs([0, 1], rows=3)
    assert dt.verify(both, pairs).worst == Fraction(3, 2)
    assert len(both.release((0, 1))) == 2
    with pytest.raises(ArgumentError, match="no record"):
        both.record()
