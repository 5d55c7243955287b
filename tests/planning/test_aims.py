"""A margin that is asked for: absolute, or a share of a public number, at the smallest price and whatever the budget."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import dither as dt
from dither.errors import ArgumentError, DitherError
from dither.planning.aims import Aim, Earlier
from dither.planning.terms import Terms

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def opened(epsilon: Any = 10, **more: Any) -> dt.Curator:
    people = {"id": list(range(900)), "x": [i % 100 for i in range(900)], "sex": ["F" if i % 3 else "M" for i in range(900)]}
    columns = {"x": dt.between(0, 100), "sex": dt.values("F", "M")}
    table = dt.Table(people, unit="id", max_rows=1, max_groups=1, columns=columns, **more)
    return dt.open(dt.Catalog({"people": table}, dt.Budget(epsilon)), ledger=":memory:")


@pytest.fixture
def survey() -> Iterator[dt.Curator]:
    with opened() as found:
        yield found


def test_a_share_of_a_number(survey: dt.Curator) -> None:
    relative, absolute = survey.quote(COUNT, margin="2 %", of=1000), survey.quote(COUNT, margin=20)
    assert relative.epsilon == absolute.epsilon
    assert relative.further == (("asked for", "n ± 20, 2 % of 1000, as given"),)
    assert "n ± 20, 2 % of 1000, as given" in str(relative)
    assert absolute.further == ()


def test_a_share_of_an_earlier_answer_is_one_of_its_smallest_value(survey: dt.Curator) -> None:
    """A pilot: asked and charged by itself, at a small price; its numbers are noisy, hence public."""
    pilot = survey.ask(BY_SEX, epsilon="0.5")
    smallest = min(pilot["n"])  # type: ignore[type-var]
    spent = survey.budget.spent.epsilon
    quote = survey.quote(BY_SEX, margin="2 %", of=pilot)
    assert quote.epsilon == survey.quote(BY_SEX, margin=Fraction(smallest) / 50).epsilon  # type: ignore[arg-type]
    assert f"2 % of {smallest}, the smallest n of the answer of entry " in str(quote)
    assert survey.budget.spent.epsilon == spent == Fraction(1, 2)
    answer = survey.ask(BY_SEX, margin="2 %", of=pilot)
    assert all(margin <= smallest / 50 for margin in answer.margins()["n"])  # type: ignore[operator]
    assert survey.budget.spent.epsilon == spent + quote.epsilon


def test_a_share_of_declared_rows() -> None:
    with opened(rows={"at_least": 500}) as survey:
        assert (
            dict(survey.quote(COUNT, margin="2 %").further)["asked for"] == "n ± 10, 2 % of 500 rows, as the catalog declares"
        )
        assert "2 % of 500 rows" in str(survey.quote("SELECT MEDIAN(x) AS m FROM people", margin="2 %"))
        for question in (BY_SEX, "SELECT SUM(x) AS n FROM people", f"{COUNT} WHERE x > 5"):
            with pytest.raises(DitherError, match="needs a public number"):
                survey.quote(question, margin="2 %")


def test_a_share_of_nothing_is_refused(survey: dt.Curator) -> None:
    with pytest.raises(DitherError, match=r"needs a public number(.|\n)*at_least(.|\n)*of=12000(.|\n)*Charged: nothing"):
        survey.ask(COUNT, margin="2 %")
    with pytest.raises(DitherError, match="has no m other than 0"):
        survey.quote("SELECT COUNT(*) AS m FROM people", margin="2 %", of=survey.ask(COUNT, epsilon=1))
    assert survey.budget.spent.epsilon == 1


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        ({"margin": 50, "of": 1000}, "not relative to anything"),
        ({"epsilon": 1, "of": 1000}, "Only a margin"),
        ({"margin": "2 %", "of": 0}, "A share of 0"),
        ({"margin": "0 %", "of": 10}, "above 0"),
        ({"margin": "two %", "of": 10}, "must be a finite number"),
        ({"margin": "2 %", "of": "many"}, "of must be a finite number"),
    ],
)
def test_terms_that_make_no_sense(survey: dt.Curator, terms: dict[str, Any], problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        survey.quote(COUNT, **terms)


def test_an_answer_with_a_zero_is_not_a_measure() -> None:
    aim = Aim.read("5%", Earlier({"n": [0, 7]}, 3))
    assert aim.relative
    assert aim.size == Fraction(1, 20)


@pytest.mark.parametrize("budget", [10, 2000, 10**6])
@pytest.mark.parametrize("question", [COUNT, BY_SEX, "SELECT SUM(x) AS s FROM people"])
def test_a_margin_has_its_price_whatever_the_budget(question: str, budget: int) -> None:
    """Above ε = 1,000 the noise of a count would be finer than its mechanism draws: no reason to refuse ± 50."""
    with opened(budget) as survey, opened(10) as small:
        assert survey.quote(question, margin=50).epsilon == small.quote(question, margin=50).epsilon


def test_a_margin_that_no_noise_is_fine_enough_for() -> None:
    with opened(10**9) as survey:
        with pytest.raises(DitherError, match=r"needs more than ε = 1.*its noise cannot be finer"):
            survey.quote("SELECT AVG(x) AS a FROM people", margin="1e-12", assume_rows=10)
        with pytest.raises(DitherError, match="how many rows"):
            survey.quote("SELECT SUM(x) / COUNT(*) AS a FROM people", margin=1)


def test_a_margin_beyond_the_budget(survey: dt.Curator) -> None:
    with pytest.raises(DitherError, match="which is all there is"):
        survey.quote("SELECT SUM(x) AS s FROM people", margin=1)


@pytest.mark.parametrize("rows", [(1 << 40) + 1, 10**310, int("1" * 400)], ids=["2^40 + 1", "10^310", "400 digits"])
def test_more_rows_than_a_table_may_have_are_not_assumed(rows: int) -> None:
    """Beyond the range of doubles this was a fault of the server."""
    with pytest.raises(ArgumentError, match="assume_rows may be at most"):
        Terms.of("1", assume_rows=rows)
    assert Terms.of("1", assume_rows=1 << 40).assume_rows == 1 << 40
