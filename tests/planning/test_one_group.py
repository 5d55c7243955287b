"""Keys with one value per person: each person is in one group, so `max_groups` loses nothing and nothing is spent on it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pandas as pd
import pytest

import dither as dt
from dither.planning.auto import Auto
from dither.planning.terms import Terms, plan_answer
from dither.query.read import read

PEOPLE = pd.DataFrame({"id": range(600), "bats": [["L", "R", "B", None][n % 4] for n in range(600)]})
AWARDS = pd.DataFrame(
    [(person, ["mvp", "gold", "rookie"][n % 3], n % 5) for person in range(600) for n in range(1 + person % 9)],
    columns=["id", "award", "points"],
)
BY_BATS = "SELECT p.bats, COUNT(DISTINCT a.id) AS n FROM awards a JOIN people p USING (id) GROUP BY p.bats"
BY_AWARD = "SELECT a.award, COUNT(DISTINCT a.id) AS n FROM awards a JOIN people p USING (id) GROUP BY a.award"
ROWS_BY_BATS = "SELECT p.bats, COUNT(*) AS n FROM awards a JOIN people p USING (id) GROUP BY p.bats"


@pytest.fixture
def curator() -> Iterator[dt.Curator]:
    people = dt.Table(PEOPLE, unit="id", key="id", columns={"bats": dt.values("B", "L", "R")})
    awards = dt.Table(
        AWARDS,
        unit={"column": "id", "references": "people.id"},
        columns={"award": dt.values("gold", "mvp", "rookie"), "points": dt.between(0, 4)},
    )
    catalog = dt.Catalog({"people": people, "awards": awards}, dt.Budget(10**6))
    with dt.open(catalog, ledger=":memory:") as opened:
        yield opened


def truth(sql: str) -> dict[str, int]:
    people, awards = PEOPLE, AWARDS  # noqa: F841 (DuckDB finds them by their names)
    return {key: n for key, n in duckdb.sql(sql).fetchall() if key is not None}


@pytest.mark.parametrize("bound", [None, 1, 3, "auto"])
def test_nothing_is_spent_on_groups_that_cannot_be_lost(curator: dt.Curator, bound: int | str | None) -> None:
    answer = curator.ask(BY_BATS, epsilon=900, max_groups=bound)
    assert dict(answer.rows) == truth(BY_BATS)
    assert answer.left_out == ()
    assert [plan.price.epsilon for plan in answer.program.plans] == [Fraction(900)]
    assert "each person counts" not in answer.footer()
    assert "left out" not in str(curator.quote(BY_BATS, epsilon=1, max_groups=bound))


def test_that_another_key_loses_groups(curator: dt.Curator) -> None:
    """The twin: a person has awards of several kinds."""
    answer = curator.ask(BY_AWARD, epsilon=900, max_groups=1)
    assert sum(answer["n"]) < sum(truth(BY_AWARD).values())  # type: ignore[arg-type]
    assert [each.seen for each in answer.left_out] == [True]
    assert len(answer.program.plans) == 2


@pytest.mark.usefixtures("recorded")
def test_of_rows_only_max_rows_is_named(curator: dt.Curator) -> None:
    answer = curator.ask(ROWS_BY_BATS, epsilon=900, max_rows=2)
    (found,) = answer.left_out
    assert [name for name, _, _ in found.bounds] == ["max_rows"]
    lost = sum(max(0, 1 + person % 9 - 2) for person in range(600) if person % 4 != 3)
    assert found.estimate == pytest.approx(lost / sum(truth(ROWS_BY_BATS).values()), abs=0.01)


def test_chosen_bounds_count_people_by_rows_only(curator: dt.Curator) -> None:
    made = plan_answer(read(ROWS_BY_BATS, curator.catalog), curator.catalog, curator.session.caps, Terms.of(1), ROWS_BY_BATS)
    assert isinstance(made, Auto)
    assert made.classes.groups == ()
    answer = curator.ask(ROWS_BY_BATS, epsilon=900)
    assert dict(answer.rows) == pytest.approx(truth(ROWS_BY_BATS), abs=1)
    (found,) = answer.left_out
    assert found.estimate == 0
