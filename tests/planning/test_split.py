"""Shares add up to the price exactly, and no other split has a smaller objective."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dither.planning.price import shares
from planning.hand import ask, planned, query

weights = st.lists(st.floats(0.01, 100), min_size=1, max_size=8)
prices = st.fractions(Fraction(1, 10**6), 50)


@given(prices, weights, st.booleans())
def test_shares_add_up_exactly(price: Fraction, given_weights: list[float], squared: bool) -> None:
    found = shares(price, given_weights, squared=squared)
    assert sum(found) == price
    assert all(share > 0 for share in found)


@given(st.lists(st.floats(0.5, 20), min_size=2, max_size=5), st.data())
def test_no_other_split_is_better(given_weights: list[float], data: st.DataObject) -> None:
    best = shares(Fraction(1), given_weights)
    other = data.draw(st.lists(st.integers(1, 100), min_size=len(best), max_size=len(best)))

    def error(parts: list[Fraction]) -> float:
        return sum(w / float(p) ** 2 for w, p in zip(given_weights, parts, strict=True))

    assert error(list(best)) <= error([Fraction(part, sum(other)) for part in other]) * 1.001


def test_a_release_weighs_the_same_however_many_outputs_are_read_from_it() -> None:
    """Wages are never NULL, so COUNT(wage) is read from what COUNT(*) releases."""
    few = planned(query(ask("n", "count"), ask("towns", "count_distinct", "town")))
    many = planned(query(ask("n", "count"), ask("m", "count", "wage"), ask("towns", "count_distinct", "town")))
    assert len(few.noises) == 2
    assert many.noises == few.noises


def test_a_plan_costs_its_price_and_nothing_else() -> None:
    asked = query(
        ask("n", "count"), ask("a", "avg", "age"), ask("w", "avg", "wage"), ask("m", "median", "wage"), keys=("region",)
    )
    for price in (Fraction(1, 3), Fraction("0.1"), Fraction(7)):
        assert planned(asked, price).loss.epsilon() == price
    loss = planned(query(ask("n", "count"), keys=("town",)), Fraction(1, 3), Fraction(1, 10**6), max_groups=30).loss
    assert loss.pair() == (Fraction(1, 3), Fraction(1, 10**6))
