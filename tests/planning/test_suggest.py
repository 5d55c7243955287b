"""A proposal says what it is worth: where 1 % of the rows is less than its ranks may be off by, it is too noisy to use."""

from __future__ import annotations

import datetime
import tomllib
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dither as dt
from dither.planning.proposal import Proposal


def survey(people: int, unit: str = "id", rows: int = 1, max_rows: int = 1) -> dt.Curator:
    """Ages from 0 to 89, `rows` of them for each person."""
    number = np.arange(people * rows)
    columns = {"age": dt.column(), "region": dt.values(0, 1, 2)}
    frame = {"id": number % people, "age": number % 90, "region": number % 3}
    table = dt.Table(frame, unit=unit, max_rows=None if unit == "row" else max_rows, columns=columns)
    return dt.open(dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=1000)), ledger=":memory:")


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("unit", ["id", "row"])
def test_a_proposal_that_is_too_noisy_says_so_and_what_would_do(unit: str) -> None:
    with survey(9000, unit) as curator:
        noisy = curator.suggest("people.age", epsilon="0.1")
        assert noisy.rank > 0.01 * 9000  # a bound may be any number below the least value: 1 % of the rows cannot forbid it
        assert "TOO NOISY" in str(noisy)
        assert noisy.enough is not None
        assert f"ε = {float(noisy.enough):g} or more would do" in str(noisy)
        assert abs(noisy.rows - 9000) < 3000
        sound = curator.suggest("people.age", epsilon=2 * noisy.enough)
        assert sound.enough is None
        assert "TOO NOISY" not in str(sound)
        assert "about 2 % of values would be clipped" in str(sound)
        assert curator.budget.spent.epsilon == Fraction("0.1") + 2 * noisy.enough


def test_what_would_do_is_near_what_just_does() -> None:
    for rank, rows, epsilon in ((672.0, 9000, Fraction("0.1")), (90.1, 9000, Fraction(1)), (5e6, 1000, Fraction("1/1000"))):
        found = Proposal("t", "x", 0, 1, 1, None, rank, "", rows, epsilon).enough
        assert found is not None
        just = float(epsilon) * rank / (0.01 * rows)
        assert 1.2 * just < found < 1.45 * just
    assert Proposal("t", "x", 0, 1, 1, None, 90.0, "", 9000, Fraction(1)).enough is None


@pytest.mark.parametrize("unit", ["id", "row"])
def test_where_noise_hides_even_how_many_there_are(unit: str) -> None:
    with survey(10, unit) as curator:
        found = curator.suggest("people.age", epsilon="0.001")
    assert "TOO NOISY" in str(found)


def test_rows_are_counted_as_far_as_each_person_counts() -> None:
    with survey(1000, rows=40, max_rows=3) as curator:
        assert abs(curator.suggest("people.age", epsilon=500).rows - 3000) < 100
    with survey(1000, rows=3, max_rows=40) as curator:
        assert abs(curator.suggest("people.age", epsilon=500).rows - 2500) < 100  # two or three rows each: half way


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "100"])
def test_a_proposal_can_be_pasted_whatever_it_says(epsilon: str) -> None:
    with survey(9000) as curator:
        found = curator.suggest("people.age", epsilon=epsilon, by="region")
    pasted = tomllib.loads(str(found))["tables"]["people"]
    assert pasted["columns"]["age"]["between"] == [found.low, found.high]
    assert pasted["max_groups"] == found.max_groups


@pytest.mark.parametrize("step", ["7", "0.25", "1/3", "0.1"])
@pytest.mark.parametrize("epsilon", ["0.1", "100"])
def test_a_declared_step_stays_and_the_bounds_fit_it(step: str, epsilon: str) -> None:
    ages = np.arange(9000) % 90 if step == "7" else np.arange(9000) % 90 + 0.3
    length = Fraction(step)
    table = dt.Table(
        {"id": np.arange(9000), "age": ages}, unit="id", max_rows=1, columns={"age": dt.between(0, 700 * length, step=step)}
    )
    catalog = dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=1000))
    with dt.open(catalog, ledger=":memory:") as curator:
        found = curator.suggest("people.age", epsilon=epsilon)
        again = curator.suggest("people.age", epsilon=epsilon)
    pasted = tomllib.loads(str(found), parse_float=str)["tables"]["people"]["columns"]["age"]
    low, high = map(Fraction, map(str, pasted["between"]))
    assert Fraction(pasted["step"]) == length == found.step
    assert ((high - low) / length).denominator == 1
    assert abs(float(high) - found.high) <= 1e-9 * abs(found.high)
    assert dt.between(low, high, step=length).high == high  # the catalog takes it
    assert again.toml == found.toml


def test_rows_are_not_promised_to_be_covered_by_what_is_too_noisy() -> None:
    with survey(9000) as curator:
        noisy, sound = (str(curator.suggest("people.age", epsilon=epsilon)) for epsilon in ("0.1", "100"))
    assert "max_rows covers" not in noisy
    assert "max_rows may be far off, too" in noisy
    assert "max_rows covers about 95 % of people" in sound


def test_names_that_are_nearly_right() -> None:
    with survey(10) as curator:
        for wrong in ("age", "people.agee"):
            with pytest.raises(dt.DitherError, match=r"did you mean people\.age\?(.|\n)*Charged: nothing"):
                curator.suggest(wrong, epsilon="0.1")
        with pytest.raises(dt.DitherError, match=r"regoin is not a column of people(.|\n)*did you mean region"):
            curator.suggest("people.age", epsilon="0.1", by="regoin")
        with pytest.raises(dt.DitherError, match=r"There is no usable column regoin(.|\n)*did you mean region"):
            curator.suggest("people.age", epsilon="0.1", by="regoin / 2")
        with pytest.raises(dt.DitherError, match="7 is not a column of people"):
            curator.suggest("people.age", epsilon="0.1", by=7)  # type: ignore[arg-type]
        assert curator.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("column", "fix"),
    [
        ("t.foo", "The columns of t are: born, name, seen, sure, x."),
        ("t.nam", "did you mean t.name? The columns of t are: born, name, seen, sure, x."),
        ("patients.foo", 'write "table.column", as in "t.x".'),
        ("patients.born", 'did you mean t.born? write "table.column", as in "t.x".'),
        ("t.sure", "it needs no bounds: group by it as it is."),
        (
            "t.name",
            "declare a delta in the budget of the catalog; or declare the `values` of name that everyone knows.",
        ),
    ],
)
def test_a_column_without_bounds_to_propose_gets_a_fix_of_its_own(column: str, fix: str) -> None:
    day = datetime.datetime(2020, 1, 1)
    frame = pd.DataFrame({"x": [1], "name": ["a"], "born": [day.date()], "seen": pd.to_datetime([day]), "sure": [True]})
    kinds = {"x": "int", "name": "text", "born": "date", "seen": "timestamp", "sure": "bool"}
    table = dt.Table(frame, unit="row", columns={name: dt.column(kind=kind) for name, kind in kinds.items()})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(1)), ledger=":memory:") as opened:
        with pytest.raises(dt.DitherError) as refused:
            opened.suggest(column, "0.1")
        assert (refused.value.fix, opened.budget.spent.epsilon) == (fix, 0)


def test_the_price_that_the_pages_name_is_about_enough() -> None:
    """25,000 / number of rows, for numbers of which nothing is declared (docs/queries.md, dither suggest --help)."""
    rows = 9000
    table = dt.Table(
        {"id": range(rows), "x": [i % 90 for i in range(rows)]}, unit="id", max_rows=1, columns={"x": dt.column(kind="int")}
    )
    with dt.open(dt.Catalog({"t": table}, dt.Budget(9)), ledger=":memory:") as survey:
        assert "TOO NOISY" in str(survey.suggest("t.x", epsilon=25_000 / rows / 2))
        assert "TOO NOISY" not in str(survey.suggest("t.x", epsilon=25_000 / rows * 1.2))
