"""Every question has a least price, in every form and by each sum, so that nobody can ask without end."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.curator import Curator
from dither.errors import BudgetError
from dither.ledger.verify.report import verify
from dither.planning.program import charge
from dither.privacy.filters import GRID, Caps

COUNT = "SELECT COUNT(*) AS n FROM people"
KINDS = (
    COUNT,
    "SELECT AVG(age) AS a FROM people",
    "SELECT MEDIAN(age) AS m FROM people",
    "SELECT age, COUNT(*) AS n FROM people GROUP BY age",
)
ROWS = {"person": list(range(300)), "age": [i % 90 for i in range(300)]}


def opened(epsilon: Any = 1, delta: Any = 0, **budget: Any) -> Curator:
    table = dt.Table(ROWS, unit="person", max_rows=1, columns={"age": dt.between(0, 99, kind="int")})
    regions = dt.Table({"name": ["north", "south"]}, public=True, key="name")
    catalog = dt.Catalog({"people": table, "regions": regions}, dt.Budget(epsilon, delta, **budget))
    return dt.open(catalog, ledger=":memory:")


@pytest.mark.parametrize(("epsilon", "least"), [(1, "1/10000"), ("0.1", "1/100000"), (10, "1/1000"), (10**6, "1/1000")])
def test_the_least_price_is_a_ten_thousandth_of_the_budget_or_a_thousandth(epsilon: Any, least: str) -> None:
    assert dt.Budget(epsilon).least_epsilon == Fraction(least)
    assert dt.Budget(epsilon, least_epsilon="0.05").least_epsilon == Fraction("0.05")


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("question", KINDS)
def test_less_is_refused_uncharged_and_the_least_price_is_answered(question: str, delta: str) -> None:
    with opened(delta=delta) as survey:
        with pytest.raises(BudgetError) as refused:
            survey.ask(question, epsilon="0.0000999")
        assert "One question costs at least ε = 0.0001 in this catalog, and it costs ε = 0.0000999" in str(refused.value)
        assert "Fix: spend ε = 0.0001 or more.   Charged: nothing." in str(refused.value)
        assert "it would be refused: One question costs at least ε = 0.0001" in str(survey.quote(question, epsilon="0.0000999"))
        assert survey.budget.spent.epsilon == 0
        survey.ask(question, epsilon="0.0001")
        assert survey.budget.spent.epsilon == Fraction(1, 10_000)
        assert verify(survey.ledger.store).problems == ()


def test_suggestions_have_the_same_least_price() -> None:
    with opened() as survey:
        with pytest.raises(BudgetError, match=r"at least ε = 0\.0001"):
            survey.suggest("people.age", epsilon="0.00009")
        survey.suggest("people.age", epsilon="0.0001")


def test_a_margin_is_rounded_up_to_the_least_price_and_says_so() -> None:
    said = "(the least price of a question; less would give this margin)"
    with opened(least_epsilon="0.01") as survey:
        quote = survey.quote(COUNT, margin=100_000)
        assert quote.epsilon == Fraction("0.01")
        assert said in str(quote)
        answer = survey.ask(COUNT, margin=100_000)
        assert said in str(answer)
        assert said not in str(survey.quote(COUNT, margin=20))
        assert said not in str(survey.quote(COUNT, epsilon="0.01"))
        assert survey.ask(COUNT, epsilon="0.01").replayed  # the same question at the same price
        assert survey.budget.spent.epsilon == Fraction("0.01")


def test_what_is_public_stays_free() -> None:
    table = dt.Table(ROWS, unit="person", max_rows=1, rows={"public": 300}, columns={"age": dt.between(0, 99)})
    catalog = dt.Catalog({"people": table}, dt.Budget(1), neighbours="replace")
    with dt.open(catalog, ledger=":memory:") as survey:
        assert survey.ask(COUNT, epsilon="1e-9")["n"] == [300]
        assert survey.budget.spent.epsilon == 0
        assert verify(survey.ledger.store).problems == ()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.fractions(Fraction(1, 20_000), Fraction(1, 50)),
    st.sampled_from(KINDS),
    st.sampled_from(["0", "1e-9", "1e-6", "1/1000"]),
    st.sampled_from(["1/10", "1", "50"]),
)
def test_neither_sum_admits_more_than_ten_thousand_questions(price: Fraction, question: str, delta: str, epsilon: str) -> None:
    """Whatever is charged is at least a ten-thousandth of the budget by the sum that admits it, so no more of them fit."""
    caps = Caps.of(Fraction(epsilon), Fraction(delta))
    with opened(epsilon, delta, least_epsilon=Fraction(epsilon) / 10_000) as survey:
        try:
            survey.ask(question, epsilon=price)
        except BudgetError:
            assert price < Fraction(epsilon) / 10_000
            return
        sums = survey.budget.sums
        assert 10_000 * Fraction(sums.epsilon, GRID) >= caps.epsilon
        assert 10_000 * Fraction(sums.rho, GRID) >= caps.rho_max
        assert verify(survey.ledger.store).problems == ()


def test_without_rounding_the_sum_of_rho_would_admit_more() -> None:
    """The twin: the noise of a cheap question costs less than a ten-thousandth of the largest rho."""
    with opened(delta="1e-6") as survey:
        plan = survey.quote(COUNT, epsilon="0.0001").plan
    rho = charge([plan]).rho
    assert rho is not None
    assert rho * 100_000 < Caps.of(1, "1e-6").rho_max


def test_a_later_catalog_may_change_it() -> None:
    first = opened()
    first.ask(COUNT, epsilon="0.0001")
    catalog = replace(first.catalog, budget=dt.Budget(1, least_epsilon="0.1"))
    later = Curator(catalog, first.engine, first.ledger)
    with pytest.raises(BudgetError, match=r"at least ε = 0\.1"):
        later.ask("SELECT SUM(age) AS s FROM people", epsilon="0.05")
    later.ask("SELECT SUM(age) AS s FROM people", epsilon="0.1")
    assert verify(first.ledger.store).problems == ()
    first.close()
