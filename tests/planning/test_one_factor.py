"""All numbers of one SELECT cut a person by the same factor, so quotients are what they are without the bound.

A person with k rows that any aggregate adds up, k > max_rows, adds max_rows / k of every sum (releases/base.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.planning.releases.base import not_null
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal
from dither.query.work import Sums
from planning.hand import ask, planned, query, run
from planning.test_neighbours import moves, rows_of

# Every four rows of a person are alike, so a person's quotients are those of all. Some have 4 rows, some 80.
ROWS = [("a", 5.0, 2), ("a", -3.0, 1), ("b", None, 1), ("c", 1.0, None)]
TIMES = [1, 1, 1, 5, 20]
DATA = pd.DataFrame(
    [(person, "north" if person % 3 else "south", *row) for person in range(500) for row in ROWS * TIMES[person % len(TIMES)]],
    columns=["id", "region", "kind", "x", "y"],
).astype({"y": "Int64"})
COLUMNS: dict[str, Any] = {
    "region": dt.values("north", "south"),
    "kind": dt.values("a", "b", "c"),
    "x": dt.between(-10, 10, step="0.5"),
    "y": dt.between(0, 4),
}
QUOTIENTS = [
    "SUM(y) FILTER (WHERE kind = 'a') / SUM(y)",
    "SUM(x) FILTER (WHERE kind = 'c') / SUM(x)",
    "SUM(x) / SUM(y)",
    "COUNT(*) FILTER (WHERE kind = 'a' AND x > 0) / COUNT(*) FILTER (WHERE kind IN ('a', 'b'))",
    "COUNT(*) FILTER (WHERE kind = 'a') / COUNT(*) FILTER (WHERE kind = 'c')",
    "SUM(x) FILTER (WHERE kind = 'a') / COUNT(*) FILTER (WHERE kind = 'a')",
    "SUM(x) / COUNT(*) FILTER (WHERE kind = 'b')",
    "COUNT(x) / COUNT(*)",
    "COUNT(y) FILTER (WHERE kind = 'a') / COUNT(x)",
    "100 * COUNT(*) FILTER (WHERE kind = 'b') / COUNT(*)",
    "AVG(x) FILTER (WHERE kind = 'a') - AVG(y)",
    "STDDEV_POP(x) FILTER (WHERE kind = 'a') + SUM(y) / COUNT(*)",
]


def survey() -> dt.Curator:
    table = dt.Table(DATA, unit="id", columns=COLUMNS)
    return dt.open(dt.Catalog({"t": table}, dt.Budget(10**6)), ledger=":memory:")


@pytest.mark.usefixtures("recorded")
@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 3, 8, "auto"])
@pytest.mark.parametrize("key", ["", "region"])
def test_quotients_are_those_of_sql(bound: int | str, key: str) -> None:
    t = DATA  # noqa: F841 (DuckDB finds it by its name)
    head, tail = (f"{key}, ", f" GROUP BY {key} ORDER BY {key}") if key else ("", "")
    with survey() as curator:
        for each in QUOTIENTS:
            text = f"SELECT {head}{each} AS q FROM t{tail}"
            truth = duckdb.sql(text).df()["q"].tolist()
            answer = curator.ask(text, epsilon=900, max_rows=bound, max_groups=1 if key else None)
            assert answer["q"] == pytest.approx(truth, rel=2e-2, abs=2e-2), each


@pytest.mark.usefixtures("recorded")
def test_a_margin_holds_around_the_quotient_without_the_bound() -> None:
    with survey() as curator:
        answer = curator.ask(f"SELECT {QUOTIENTS[0]} AS s, {QUOTIENTS[3]} AS c FROM t", epsilon=20, max_rows=2)
    for name, truth in (("s", 3 / 4), ("c", 1 / 3)):
        (margin,) = answer.margins("0.9999")[name]
        assert margin is not None
        assert abs(answer[name][0] - truth) <= margin  # type: ignore[operator]


def test_parts_add_up_to_the_whole() -> None:
    with survey() as curator:
        text = ", ".join(f"COUNT(*) FILTER (WHERE kind = '{kind}') AS {kind}" for kind in "abc")
        answer = curator.ask(f"SELECT {text}, COUNT(*) AS n, SUM(y) AS s FROM t", epsilon=900, max_rows=2)
    (a,), (b,), (c,), (n,) = (answer[name] for name in "abcn")
    assert a + b + c == pytest.approx(n, abs=2)  # type: ignore[operator]
    assert n == pytest.approx(1000, abs=2)
    assert (a, b, c) == pytest.approx((500, 250, 250), abs=2)


def test_a_number_alone_counts_its_own_rows_only() -> None:
    """As a WHERE would: nothing is divided by it."""
    with survey() as curator:
        alone = curator.ask("SELECT COUNT(*) FILTER (WHERE kind = 'b') AS n FROM t", epsilon=900, max_rows=1)
        where = curator.ask("SELECT COUNT(*) AS n FROM t WHERE kind = 'b'", epsilon=900, max_rows=1)
    assert alone["n"] == where["n"] == [500]


# --- by hand ------------------------------------------------------------------------------------------------------

YOUNG = Call("lt", (Column("age"), Literal(30)))
HALF = Call("lt", (Column("age"), Literal(60)))


def filtered(name: str, function: str, argument: str | None, where: Expression) -> Aggregate:
    return replace(ask(name, function, argument), where=where)


MANY = (
    filtered("n", "count", None, YOUNG),
    filtered("h", "count", None, HALF),
    filtered("s", "sum", "wage", YOUNG),
    filtered("m", "avg", "wage", HALF),
    filtered("d", "stddev_pop", "age", HALF),
    ask("a", "sum", "age"),
)


def added(measures: Sequence[object]) -> list[Sums]:
    return [each for each in measures if isinstance(each, Sums)]


def test_every_measure_counts_the_same_rows() -> None:
    measures = added(planned(query(*MANY), max_rows=3).work.measures)
    assert len(measures) == 7  # the deviation has two
    assert len({each.where for each in measures}) == 1
    every = added(planned(query(*MANY, ask("all", "count")), max_rows=3).work.measures)
    assert {each.where for each in every} == {None}  # COUNT(*) adds up all rows
    people = (*MANY, ask("people", "count_units"), ask("middle", "median", "wage"), ask("kinds", "count_distinct", "town"))
    assert set(measures) <= set(planned(query(*people), max_rows=3).work.measures)  # these are cut in ways of their own


def test_the_order_of_select_does_not_matter() -> None:
    first, last = (planned(query(*order), max_rows=3).work.measures for order in (MANY, MANY[::-1]))
    assert set(first) == set(last)


def person(ages: Sequence[int | None]) -> list[dict[str, Any]]:
    return [{"person": 1, "age": age, "wage": 1.0, "region": "east", "town": "a"} for age in ages]


def shares(plan: Any, rows: list[dict[str, Any]]) -> list[Fraction]:
    """Returns each count of rows, in rows."""
    (group,) = run(plan, rows)
    return [Fraction(cells[0], noise.of.row) for noise, cells in zip(plan.noises, group.measures, strict=True)]


def test_a_heavy_person_adds_the_same_part_to_both_counts() -> None:
    plan = planned(query(*MANY[:2]), max_rows=2)
    young, half = shares(plan, person([20] * 5 + [50] * 5 + [90] * 30 + [None] * 20))
    assert half == 2  # rows that neither counts do not matter
    assert young == 1


def test_that_counts_cut_apart_would_be_alike() -> None:
    plan = planned(query(*MANY[:2]), max_rows=2)
    own = [not_null(one.value) for one in MANY[:2] if one.value is not None]
    apart = [replace(each, where=where) for each, where in zip(added(plan.work.measures), own, strict=True)]
    plan = replace(plan, work=replace(plan.work, measures=tuple(apart)))
    young, half = shares(plan, person([20] * 5 + [50] * 5))
    assert young == half == 2  # half of the rows, and all of them


@pytest.mark.slow
@given(st.data(), st.sampled_from([(), ("region",)]), st.integers(1, 3), st.sampled_from(["add-remove", "replace"]))
@settings(max_examples=60)
def test_one_person_moves_each_number_by_at_most_what_its_noise_hides(
    data: st.DataObject, keys: tuple[str, ...], bound: int, neighbours: str
) -> None:
    others = [row for each in range(1, 4) for row in data.draw(rows_of(each))]
    mine, instead = data.draw(rows_of(9)), data.draw(rows_of(9)) if neighbours == "replace" else []
    some = data.draw(st.sets(st.sampled_from(MANY), min_size=1))
    plan = planned(query(*some, keys=keys), neighbours=neighbours, max_rows=bound, max_groups=2, one_row=False)
    moves(plan, run(plan, others + mine), run(plan, others + instead))


def test_that_uncut_rows_would_move_it_by_more() -> None:
    plan = planned(query(*MANY[:2]), max_rows=2)
    loose = tuple(replace(each, max_rows=3) for each in added(plan.work.measures))
    wrong = replace(plan, work=replace(plan.work, measures=loose))
    moves(plan, run(plan, person([20] * 5)), run(plan, []))
    with pytest.raises(AssertionError):
        moves(wrong, run(wrong, person([20] * 5)), run(wrong, []))
