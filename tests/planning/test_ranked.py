"""Which quantiles of a question share a release, that they pay once, and that earlier answers stay in their ledger."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import dither as dt
from dither.planning.releases import ranked
from dither.planning.releases.quantile import Choice
from dither.planning.releases.quantiles import Several
from dither.planning.releases.ranked import fit_together
from planning.test_identity import canonical, of

LIST = "SELECT QUANTILE(age, [0.25, 0.5, 0.75]) AS q FROM people"
APART = "SELECT QUANTILE(age, 0.75) AS c, MEDIAN(age) AS b, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS a FROM people"


def test_a_list_and_its_members_one_by_one_are_one_question() -> None:
    assert canonical([of(LIST)]) == canonical([of(APART)])
    other = of(LIST.replace("0.75", "0.8"))
    assert canonical([of(LIST)]) != canonical([other])


@pytest.mark.parametrize(
    ("outputs", "kinds"),
    [
        ("MEDIAN(age), MAX(age)", [Choice, Choice]),
        ("QUANTILE(age, [0.1, 0.9]) AS q", [Choice, Choice]),
        ("MIN(age), MEDIAN(age), MAX(age)", [Several]),
        ("MIN(age), MEDIAN(age), MAX(income)", [Choice, Choice, Choice]),
        ("MIN(age), MEDIAN(age), MAX(age) FILTER (WHERE active)", [Choice, Choice, Choice]),
        ("QUANTILE(age, [0.1, 0.9]) AS q, MEDIAN(age) AS m, MEDIAN(income) AS i", [Several, Choice]),
        ("QUANTILE(age, 0.5), MEDIAN(age), PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age)", [Choice]),
        ("QUANTILE(age, 0.0001), QUANTILE(age, 0.0002), MEDIAN(age)", [Choice, Choice]),
    ],
)
def test_three_quantiles_of_a_column_are_released_together(outputs: str, kinds: list[type]) -> None:
    made = of(f"SELECT {outputs} FROM people")
    assert [type(noise.of) for noise in made.noises] == kinds
    assert made.loss.epsilon() == made.price.epsilon


def test_shares_without_a_common_denominator_are_rounded_and_said_so() -> None:
    thirds = fit_together([Fraction("0.3333333"), Fraction(2, 7), Fraction("0.123")])
    assert [p.denominator for p in thirds.values()] == [1000, 500, 1000]
    made = of("SELECT QUANTILE(age, [0.3333333333, 0.2857142857, 0.123]) AS q FROM people")
    assert [reading.notes for reading in made.readings] == [("the 33.3 % quantile",), ("the 28.6 % quantile",), ()]


def catalog() -> dt.Catalog:
    people = pa.table({"person": list(range(400)), "age": [20 + i % 61 for i in range(400)]})
    return dt.Catalog(
        tables={"people": dt.Table(people, unit="person", columns={"age": dt.between(0, 120)})}, budget=dt.Budget(epsilon=10)
    )


def test_the_same_quantiles_asked_in_another_way_are_not_paid_for_again() -> None:
    with dt.open(catalog(), ledger=":memory:") as survey:
        first, again = (survey.ask(text, epsilon=1) for text in (LIST, APART))
        assert (first.replayed, again.replayed) == (False, True)
        assert first.rows[0] == again.rows[0][::-1]
        assert survey.budget.spent.epsilon == 1
        quoted = str(survey.quote(LIST, epsilon=1))
        assert "ε = 1," in quoted
        assert "for each of 2 levels" in quoted


def test_answers_of_quantiles_that_were_split_stay_in_their_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger from before lists were one release opens, keeps its charges, and gives answers of single quantiles again."""
    ledger, single = str(tmp_path / "ledger.db"), "SELECT MEDIAN(age) AS m FROM people"
    with monkeypatch.context() as before, dt.open(catalog(), ledger=ledger, make=True) as survey:
        before.setattr(ranked, "FEWEST", 100)
        old = survey.ask(LIST, epsilon=1)
        assert len(old.plan.noises) == 3
        median = survey.ask(single, epsilon=1)
    with dt.open(catalog(), ledger=ledger) as survey:
        assert survey.budget.spent.epsilon == 2
        assert [json.loads(entry.body).get("question") for entry in survey.ledger.history()].count(LIST) == 1
        again = survey.ask(single, epsilon=1)
        assert (again.replayed, again.rows) == (True, median.rows)
        new = survey.ask(LIST, epsilon=1)  # another release: another question
        assert (new.replayed, len(new.plan.noises)) == (False, 1)
        assert survey.budget.spent.epsilon == 3
