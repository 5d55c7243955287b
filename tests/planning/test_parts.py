"""Counts with disjoint FILTERs cost as much as one, mean what SQL says, and are never cheaper than what a row moves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.planning.plan import Plan
from dither.planning.releases.parts import Parts
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal
from dither.query.work import Cell, Quantised, Sums
from planning.hand import ask, planned, query, run
from planning.test_neighbours import moves, rows_of

AGE = Column("age")


def below(value: int) -> Call:
    return Call("lt", (AGE, Literal(value)))


def above(value: int) -> Call:
    return Call("ge", (AGE, Literal(value)))


def counted(name: str, where: Expression, argument: str | None = None) -> Aggregate:
    return replace(ask(name, "count", argument), where=where)


THREE = (
    counted("young", below(18)),
    counted("middle", Call("and", (above(18), below(60)))),
    counted("old", above(60), "wage"),
)


def parts(*aggregates: Aggregate, **more: Any) -> Plan:
    """Plans where each person has one row."""
    return planned(query(*aggregates), 1, one_row=True, **more)


def test_disjoint_counts_are_one_release_at_the_whole_price() -> None:
    (noise,) = parts(*THREE).noises
    assert isinstance(noise.of, Parts)
    assert noise.scale == 1
    assert len(parts(*THREE, ask("n", "count")).noises) == 1  # the count of all rows is their sum
    assert len(parts(THREE[0], ask("n", "count")).noises) == 1  # one part and the rest
    assert not isinstance(parts(THREE[0]).noises[0].of, Parts)


def test_case_is_filter() -> None:
    cases = [replace(one, argument=one.value, where=None) for one in THREE]
    assert parts(*cases).work == parts(*THREE).work


def test_overlapping_counts_are_not() -> None:
    assert len(parts(counted("a", below(18)), counted("b", above(10))).noises) == 2


def test_counts_of_people_with_several_rows_are_one_release_too() -> None:
    """All numbers of a question are cut together (test_one_factor.py), so parts may be cells of one measure."""
    (noise,) = planned(query(*THREE), 1, max_rows=3).noises
    assert noise.scale == 3 * noise.of.row
    assert noise.of.row == 2**16  # a part of a row counts
    (noise,) = planned(query(*THREE), 1, one_row=False).noises
    assert noise.scale == noise.of.row


def test_the_order_of_select_does_not_matter() -> None:
    plans = [parts(*order) for order in (THREE, THREE[::-1])]
    assert plans[0].work == plans[1].work


@given(st.data(), st.booleans(), st.sampled_from(["add-remove", "replace"]))
def test_one_person_moves_one_part_by_one(data: st.DataObject, every: bool, neighbours: str) -> None:
    others = [row for person in range(1, 4) for row in data.draw(rows_of(person))]
    mine, instead = data.draw(rows_of(9)), data.draw(rows_of(9)) if neighbours == "replace" else []
    aggregates = (*THREE, ask("n", "count")) if every else THREE
    plan = parts(*aggregates, neighbours=neighbours)
    moves(plan, run(plan, others + mine), run(plan, others + instead))


def test_that_overlapping_cells_would_move_by_two() -> None:
    plan = parts(*THREE)
    conditions = (below(50), above(10))  # each cell asks for its own condition, not for the first that is true
    cells = tuple(
        Cell(Quantised(Call("case", (each, Literal(1), Literal(0))), Fraction(0), Fraction(1), 1), linear=1)
        for each in conditions
    )
    wrong = replace(plan, work=replace(plan.work, measures=(Sums(cells, 1),)))
    row = {"person": 9, "age": 20, "wage": 1.0, "region": "east", "town": "a"}
    with pytest.raises(AssertionError):
        moves(wrong, run(wrong, [row]), run(wrong, []))


def test_that_the_first_true_condition_counts_whatever_was_proved() -> None:
    release = Parts((below(50), above(10)), 1, ("", ""))  # not disjoint: a wrong proof would cost meaning, not privacy
    plan = parts(*THREE)
    plan = replace(plan, work=replace(plan.work, measures=(release.measure,)))
    row = {"person": 9, "age": 20, "wage": 1.0, "region": "east", "town": "a"}
    assert run(plan, [row])[0].measures == ((1, 0),)


PEOPLE = pd.DataFrame(
    {
        "id": range(400),
        "sex": ["M", "F", None, "X"] * 100,
        "age": [None if n % 7 == 0 else n % 90 for n in range(400)],
        "region": ["north", "south"] * 200,
    }
)


@pytest.mark.parametrize("unit", ["row", "id"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FILTER (WHERE sex = 'M') AS m, COUNT(*) FILTER (WHERE sex = 'F') AS f, COUNT(*) AS n FROM p",
        "SELECT COUNT(*) FILTER (WHERE sex = 'M') AS m, COUNT(age) FILTER (WHERE sex = 'F') AS f FROM p",
        "SELECT region, COUNT(*) FILTER (WHERE age < 18) AS a, COUNT(*) FILTER (WHERE age BETWEEN 18 AND 64) AS b, "
        "COUNT(*) FILTER (WHERE age > 64) AS c, COUNT(*) FILTER (WHERE age IS NULL) AS d, COUNT(*) AS n FROM p GROUP BY region",
        "SELECT COUNT(*) FILTER (WHERE sex IN ('M', 'X')) AS a, COUNT(*) FILTER (WHERE sex IN ('M', 'X')) AS again, "
        "COUNT(*) FILTER (WHERE sex = 'F') AS b, "
        "100 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) AS share, AVG(age) AS g FROM p",
    ],
)
def test_answers_are_those_of_sql(unit: str, text: str) -> None:
    columns: dict[str, Any] = {
        "age": dt.between(0, 120),
        "sex": dt.values("M", "F", "X"),
        "region": dt.values("north", "south"),
    }
    table = dt.Table(PEOPLE, unit=unit, key=None if unit == "row" else unit, columns=columns)
    p = PEOPLE  # noqa: F841 (DuckDB finds it by its name)
    truth = duckdb.sql(text + (" ORDER BY region" if "region" in text else "")).df()
    with dt.open(dt.Catalog(tables={"p": table}, budget=dt.Budget(epsilon=10**4)), ledger=":memory:") as survey:
        answer = survey.ask(text, epsilon=900).to_pandas()
    for name in truth.columns:
        if name == "region":
            assert answer[name].tolist() == truth[name].tolist()
        else:
            assert answer[name].tolist() == pytest.approx(truth[name].tolist(), abs=1e-2)


VISITS = pd.DataFrame({"id": [n // 2 for n in range(800)], "kind": ["a", "b"] * 400})


@pytest.mark.parametrize(("bound", "each"), [(1, 200), (2, 400), ("auto", 400)])
def test_people_with_a_row_in_each_part_count_in_both(bound: int | str, each: int) -> None:
    """With max_rows = 1 for half of a row in each, as a share of COUNT(*) would."""
    table = dt.Table(VISITS, unit="id", columns={"kind": dt.values("a", "b")})
    text = "SELECT COUNT(*) FILTER (WHERE kind = 'a') AS a, COUNT(*) FILTER (WHERE kind = 'b') AS b FROM v"
    with dt.open(dt.Catalog(tables={"v": table}, budget=dt.Budget(epsilon=10**4)), ledger=":memory:") as survey:
        answer = survey.ask(text, epsilon=900, max_rows=bound)
    assert (answer["a"], answer["b"]) == ([each], [each])


def test_conditions_on_the_person_share_a_release() -> None:
    people = dt.Table(PEOPLE, unit="id", key="id", columns={"sex": dt.values("M", "F", "X")})
    visits = dt.Table(VISITS, unit={"column": "id", "references": "p.id"}, max_rows=2, columns={"kind": dt.values("a", "b")})
    text = (
        "SELECT COUNT(*) FILTER (WHERE sex = 'M') AS m, COUNT(*) FILTER (WHERE sex = 'F') AS f, COUNT(*) AS n "
        "FROM v JOIN p USING (id)"
    )
    with dt.open(dt.Catalog(tables={"p": people, "v": visits}, budget=dt.Budget(epsilon=10**4)), ledger=":memory:") as survey:
        answer = survey.ask(text, epsilon=900)
    assert len(answer.plan.noises) == 1
    assert (answer["m"], answer["f"], answer["n"]) == ([200], [200], [800])


def test_nulls_are_a_part_of_the_count() -> None:
    """COUNT(*) - COUNT(x) is the cell of the NULLs: not a difference of two noisy counts."""
    table = dt.Table(PEOPLE, unit="row", columns={"age": dt.between(0, 120)})
    with dt.open(dt.Catalog(tables={"p": table}, budget=dt.Budget(epsilon=10**4)), ledger=":memory:") as survey:
        quote = survey.quote("SELECT COUNT(age) AS x, COUNT(*) - COUNT(age) AS missing FROM p", epsilon=1)
        answer = survey.ask("SELECT COUNT(age) AS x, COUNT(*) - COUNT(age) AS missing FROM p", epsilon=500)
    assert [type(noise.of) for noise in quote.plan.noises] == [Parts]
    assert quote.margins() == {"x": 3, "missing": 3}
    assert list(answer.rows) == [(int(PEOPLE.age.notna().sum()), int(PEOPLE.age.isna().sum()))]


def test_that_two_counts_apart_would_be_farther_off() -> None:
    one, other = parts(ask("n", "count")).noises[0], parts(THREE[0], counted("b", above(10))).noises[0]
    assert other.scale == 2 * one.scale  # overlapping counts share the price
