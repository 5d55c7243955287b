"""A mean or a spread of a group that may be empty is marked: by the noisy numbers alone, and as often as is said. It has a
margin all the same, because a margin that only large-looking groups have would be wrong too often (test_small_groups.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.catalog.values import Rows
from dither.planning.outputs import may_be_empty, release, table
from dither.planning.plan import Plan
from dither.query.nodes import Call, Column, Literal, Named
from planning.hand import ask, planned, query, run
from planning.test_margins import SURE, TIMES, fewest, people

ASKED = (ask("a", "avg", "age"), ask("v", "var_pop", "age"), ask("s", "stddev_samp", "age"), ask("c", "clipped", "age"))
NAMES = ("a", "v", "s", "c")


def doubted(plan: Plan, exact: tuple[Any, ...], name: str, noises: Plan | None = None) -> float:
    """How often the group is marked, over many releases of the same integers."""
    cells = [noise.release([exact[i]] * TIMES) for i, noise in enumerate((noises or plan).noises)]
    reading = plan.reading(name)
    assert reading is not None
    assert all(math.isfinite(value) for value in reading.values(plan.noises, cells))
    assert None not in reading.margins(plan.noises, cells, SURE)
    return float(np.mean(reading.unsure(plan.noises, cells, SURE)))


def nothing(plan: Plan) -> tuple[Any, ...]:
    return tuple((0,) * noise.of.cells for noise in plan.noises)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_group_is_marked_as_often_as_is_said(name: str) -> None:
    plan = planned(query(*ASKED))
    assert doubted(plan, nothing(plan), name) >= fewest(TIMES)


def test_that_a_smaller_reach_would_not_see_it() -> None:
    plan, bold = planned(query(*ASKED)), planned(query(*ASKED), 10)
    assert doubted(bold, nothing(plan), "a", noises=plan) < 0.9


@pytest.mark.parametrize("name", NAMES)
def test_a_large_group_is_never_marked(name: str) -> None:
    plan = planned(query(*ASKED), 4)
    (group,) = run(plan, people(2000))
    assert doubted(plan, group.measures, name) == 0


def test_a_public_minimum_says_that_there_is_somebody() -> None:
    plan = planned(query(ask("a", "avg", "wage")), rows=Rows(at_least=100))
    assert doubted(plan, nothing(plan), "a") == 0


def test_one_row_has_a_variance_and_no_sample_variance() -> None:
    plan = planned(query(ask("p", "var_pop", "age"), ask("s", "var_samp", "age")))
    pop, sample = plan.reading("p"), plan.reading("s")
    steps = plan.noises[0].of.row
    for rows in range(1, 200):  # the first noisy count at which there is somebody for certain
        cells = [np.array([[rows * steps, 0, 0][: noise.of.cells]]) for noise in plan.noises]
        if not pop.unsure(plan.noises, cells, SURE)[0]:  # type: ignore[union-attr]
            break
    assert rows > 1
    assert sample.unsure(plan.noises, cells, SURE) == [True]  # type: ignore[union-attr]


@pytest.mark.usefixtures("recorded")
def test_what_is_computed_from_it_is_marked_too() -> None:
    asked = replace(query(ask("a", "avg", "age")), outputs=(Named("twice", Call("mul", (Literal(2), Column("a")))),))
    plan = planned(asked, Fraction(1, 100))
    noisy = release(plan, [])
    assert may_be_empty(plan, noisy, table(plan, noisy), Fraction(999, 1000)) == {"twice": [True]}


def test_the_answer_says_so() -> None:
    people = {"id": list(range(900)), "x": [50] * 900, "k": ["full"] * 900}
    columns = {"x": dt.between(0, 100), "k": dt.values("full", "void")}
    catalog = dt.Catalog({"t": dt.Table(people, unit="id", max_rows=1, columns=columns)}, dt.Budget(10))
    answer = dt.open(catalog, ledger=":memory:").ask(
        "SELECT k, AVG(x) AS a FROM t GROUP BY k", epsilon=1, confidence="0.999999999"
    )
    assert None not in answer.margins()["a"]
    assert [line.endswith(" ?") for line in str(answer).splitlines()[2:4]] == [False, True]
    assert "?: the group may be empty" in answer.footer()
