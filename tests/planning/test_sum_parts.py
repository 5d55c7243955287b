"""Sums and means with disjoint FILTERs cost as much as one, mean what SQL says, and never move by more than a row may."""

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
from dither.planning.releases.parts import Split
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal
from dither.query.work import Cell, Quantised
from planning.hand import ask, planned, query, run
from planning.test_neighbours import moves, rows_of
from planning.test_parts import above, below


def filtered(name: str, function: str, where: Expression) -> Aggregate:
    return replace(ask(name, function, "wage"), where=where)


MIDDLE = Call("and", (above(18), below(60)))
MEANS = (filtered("young", "avg", below(18)), filtered("middle", "avg", MIDDLE), filtered("old", "sum", above(60)))
TOTALS = tuple(replace(each, function="sum") for each in MEANS)


def parts(*aggregates: Aggregate, **more: Any) -> Plan:
    return planned(query(*aggregates), 1, **more)


@pytest.mark.parametrize("asked", [MEANS, TOTALS])
@pytest.mark.parametrize("more", [{"one_row": True}, {"max_rows": 3}])
def test_disjoint_sums_are_one_release_at_the_price_of_one(asked: tuple[Aggregate, ...], more: dict[str, Any]) -> None:
    (noise,) = parts(*asked, **more).noises
    (alone,) = parts(asked[0], **more).noises
    assert isinstance(noise.of, Split)
    assert not isinstance(alone.of, Split)
    assert noise.scale == alone.scale


def test_the_count_of_all_rows_is_read_from_the_parts() -> None:
    (noise,) = parts(*MEANS, ask("n", "count"), one_row=True).noises
    assert isinstance(noise.of, Split)
    assert noise.of.rest
    assert len(parts(*MEANS, ask("n", "count"), ask("mean", "avg", "age"), one_row=True).noises) == 2


def test_overlapping_sums_are_separate() -> None:
    assert len(parts(filtered("a", "avg", below(18)), filtered("b", "avg", above(10)), one_row=True).noises) == 2


def test_the_order_of_select_does_not_matter() -> None:
    plans = [parts(*order, one_row=True) for order in (MEANS, MEANS[::-1])]
    assert plans[0].work == plans[1].work


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"one_row": True}, {"max_rows": 2}])
@given(data=st.data(), asked=st.sampled_from([MEANS, TOTALS, (*MEANS, ask("n", "count"))]), swapped=st.booleans())
def test_one_person_moves_all_parts_by_no_more_than_one_sum(
    data: st.DataObject, asked: tuple[Aggregate, ...], swapped: bool, more: dict[str, Any]
) -> None:
    others = [row for person in range(1, 4) for row in data.draw(rows_of(person))]
    mine, instead = data.draw(rows_of(9)), data.draw(rows_of(9)) if swapped else []
    plan = parts(*asked, neighbours="replace" if swapped else "add-remove", **more)
    moves(plan, run(plan, others + mine), run(plan, others + instead))


ROW = {"person": 9, "age": 20, "wage": 10**9, "region": "east", "town": "a"}


def overlapping(plan: Plan) -> Split:
    """Returns a release of parts whose conditions overlap, as after a wrong proof."""
    (noise,) = plan.noises
    assert isinstance(noise.of, Split)
    columns = tuple(Call("case", (each, Column("wage"), Literal(None))) for each in (below(50), above(10)))
    return replace(noise.of, columns=columns)


def test_a_row_counts_in_the_first_part_whatever_was_proved() -> None:
    plan = parts(*MEANS[:2], one_row=True)
    wrong = replace(plan, work=replace(plan.work, measures=(overlapping(plan).measure,)))
    first, missing, *others = run(wrong, [ROW])[0].measures[0]
    assert first + missing == plan.noises[0].of.row
    assert others == [0, 0]
    moves(wrong, run(wrong, [ROW]), run(wrong, []))


def test_that_overlapping_cells_would_move_by_two() -> None:
    plan = parts(*MEANS[:2], one_row=True)
    release = overlapping(plan)
    grids = [Quantised(each, release.grid.low, release.grid.step, release.grid.steps) for each in release.columns]
    cells = tuple(cell for q in grids for cell in (Cell(q, linear=1), Cell(q, constant=q.steps, linear=-1)))
    wrong = replace(plan, work=replace(plan.work, measures=(replace(release.measure, cells=cells),)))
    with pytest.raises(AssertionError):
        moves(wrong, run(wrong, [ROW]), run(wrong, []))


PEOPLE = pd.DataFrame(
    {
        "id": [n % 150 for n in range(400)],
        "sex": ["M", "F", None, "X"] * 100,
        "age": [None if n % 7 == 0 else n % 90 for n in range(400)],
        "gain": [n % 41 - 20 for n in range(400)],
        "region": ["north", "south"] * 200,
    }
)
QUESTIONS = [
    "SELECT AVG(age) FILTER (WHERE sex = 'M') AS m, AVG(age) FILTER (WHERE sex = 'F') AS f, COUNT(*) AS n FROM p",
    "SELECT SUM(gain) FILTER (WHERE sex = 'M') AS m, SUM(gain) FILTER (WHERE sex = 'F') AS f FROM p",
    "SELECT region, AVG(gain) FILTER (WHERE age < 18) AS a, SUM(gain) FILTER (WHERE age BETWEEN 18 AND 64) AS b, AVG(gain) "
    "FILTER (WHERE age > 64) - AVG(gain) FILTER (WHERE age < 18) AS c, COUNT(*) AS n, COUNT(*) FILTER (WHERE age < 18) AS k "
    "FROM p GROUP BY region",
    "SELECT SUM(gain) FILTER (WHERE sex = 'M') / COUNT(age) FILTER (WHERE sex = 'M') AS a, COUNT(*) FILTER (WHERE sex = 'F') "
    "AS b, SUM(gain) FILTER (WHERE sex = 'F') AS c, AVG(age) FILTER (WHERE sex = 'M') AS d FROM p",
    "SELECT AVG(age) FILTER (WHERE sex = 'M') AS a, STDDEV(age) FILTER (WHERE sex = 'F') AS b, COUNT(age) FILTER (WHERE sex "
    "= 'M') AS c, SUM(age) FILTER (WHERE sex = 'X') AS d, AVG(age) AS e FROM p",
]


@pytest.mark.parametrize("unit", ["row", "id"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_answers_are_those_of_sql(unit: str, text: str) -> None:
    columns: dict[str, Any] = {
        "age": dt.between(0, 120),
        "gain": dt.between(-30, 30),
        "sex": dt.values("M", "F", "X"),
        "region": dt.values("north", "south"),
    }
    price = 900 if "COUNT" in text else 10**4  # the noise of counts is drawn in whole numbers
    bounds = {} if unit == "row" else {"max_rows": 3, "max_groups": 2}
    table = dt.Table(PEOPLE, unit=unit, columns=columns, **bounds)  # type: ignore[arg-type]
    p = PEOPLE  # noqa: F841 (DuckDB finds it by its name)
    truth = duckdb.sql(text + (" ORDER BY region" if "region" in text else "")).df()
    with dt.open(dt.Catalog(tables={"p": table}, budget=dt.Budget(epsilon=10**6)), ledger=":memory:") as survey:
        answer = survey.ask(text, epsilon=price, left_out=False)
        got, wide = answer.to_pandas(), answer.margins(Fraction(999_999, 10**6))
    for name in truth.columns:
        if name == "region":
            assert got[name].tolist() == truth[name].tolist()
        else:
            assert got[name].tolist() == pytest.approx(truth[name].tolist(), abs=min(max(wide[name]), 3) + 1e-9), name
