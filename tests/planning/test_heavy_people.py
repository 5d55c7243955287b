"""People with more rows than count add a part of their sum. On a grid of few steps that part must not be cut to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dither as dt
from planning.hand import ask, planned, query, run

PEOPLE, ROWS = 1000, 10
DATA = {
    "person": np.repeat(np.arange(PEOPLE), ROWS),
    "flag": np.tile([1] + [0] * (ROWS - 1), PEOPLE),
    "rating": np.tile(np.arange(ROWS) % 5, PEOPLE),
}
COLUMNS = {"flag": dt.between(0, 1, kind="int"), "rating": dt.between(0, 4)}


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("bound", [1, 3, 5, 9])
def test_means_and_sums_of_narrow_columns_keep_the_share_of_heavy_people(bound: int) -> None:
    table = dt.Table(DATA, unit="person", max_rows=bound, max_groups=1, columns=COLUMNS)
    text = "SELECT COUNT(*) AS n, AVG(flag) AS f, SUM(flag) AS s, AVG(rating) AS r, STDDEV_POP(rating) AS d FROM visits"
    with dt.open(dt.Catalog({"visits": table}, dt.Budget(10**4)), ledger=":memory:") as survey:
        answer = survey.ask(text, epsilon=500)
        alone = survey.ask("SELECT SUM(flag) AS s, COUNT(*) AS n FROM visits", epsilon=500)
    margins = answer.margins("0.9999")
    truth = {"n": PEOPLE * bound, "f": 1 / ROWS, "s": PEOPLE * bound / ROWS, "r": 2.0, "d": float(np.sqrt(2))}
    for name, true in truth.items():
        (wide,) = margins[name]
        assert wide is not None
        assert abs(answer[name][0] - true) <= wide + 1e-4 * true  # type: ignore[operator]
    assert abs(alone["s"][0] - truth["s"]) <= 2  # type: ignore[operator]


def rows(flags: list[int]) -> list[dict[str, Any]]:
    return [{"person": 1, "age": flag, "wage": 0.0, "region": "east", "town": "a"} for flag in flags]


def test_that_whole_steps_would_lose_it() -> None:
    """The grid of people with one row each: of ten rows with a single 1, one row's worth is 0 of 1 step."""
    flag = ask("s", "sum", "age")
    coarse, fine = planned(query(flag), one_row=True), planned(query(flag), one_row=False)
    heavy = rows([1] + [0] * 9)
    assert run(coarse, heavy)[0].measures == ((0,),)
    (((sum_of_steps,),),) = (run(fine, heavy)[0].measures,)  # type: ignore[misc]
    (grid,) = (cell.argument for cell in fine.work.measures[0].cells)  # type: ignore[union-attr]
    assert abs(sum_of_steps * float(grid.step) - 0.1) < 1e-2  # type: ignore[union-attr]


@pytest.mark.parametrize("bound", [1, 4, 16, "auto"])
def test_a_share_is_cut_like_what_it_is_a_share_of(bound: int | str) -> None:
    """Of each person's 60 rows 15 are fives: bounded apart, 15 of 16 rows would be."""
    data = {"person": np.repeat(np.arange(300), 60), "rating": np.tile([5] * 15 + [3] * 45, 300)}
    table = dt.Table(data, unit="person", max_groups=1, columns={"rating": dt.between(1, 5)})
    text = (
        "SELECT COUNT(*) FILTER (WHERE rating = 5) / COUNT(*) AS s, COUNT(*) FILTER (WHERE rating > 2) / COUNT(*) AS t FROM r"
    )
    with dt.open(dt.Catalog({"r": table}, dt.Budget(10**4)), ledger=":memory:") as survey:
        answer = survey.ask(text, epsilon=900, max_rows=bound)
    assert answer["s"][0] == pytest.approx(0.25, abs=0.01)
    assert answer["t"][0] == pytest.approx(1, abs=0.01)


def test_conditions_inside_a_subquery_can_be_averaged() -> None:
    table = dt.Table(DATA, unit="person", columns=COLUMNS)
    text = (
        "SELECT AVG(CASE WHEN i THEN 1 ELSE 0 END) AS s FROM (SELECT person, BOOL_OR(flag = 1) AS i FROM v GROUP BY person) t"
    )
    with dt.open(dt.Catalog({"v": table}, dt.Budget(10**4)), ledger=":memory:") as survey:
        assert survey.ask(text, epsilon=500)["s"][0] == pytest.approx(1, abs=0.01)
