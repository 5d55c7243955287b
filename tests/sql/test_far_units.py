"""A table whose unit is two references away: its people are counted, and a refusal says how to reach them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dither as dt
from dither.curator import Curator
from dither.errors import QueryError

SURE = 200  # an epsilon at which noise is none


def referring(column: str, to: str, key: str | None = None, **columns: Any) -> Any:
    unit = {"column": column, "references": to}
    return lambda rows: dt.Table(rows, unit=unit, max_rows=3, max_groups=3, key=key, columns=columns)


@pytest.fixture
def survey() -> Iterator[Curator]:
    whole = dt.between(0, 9, kind="int")
    visits = {"visit_id": [1, 2, 3], "person_id": [1, 2, 2], "qty": [9, 9, 9]}
    items = {"visit_id": [1, 2, 3, 3, 9], "item_id": [1, 2, 3, 4, 5], "qty": [1, 2, 3, 4, 5]}  # nobody's visit is 9
    parts = {"item_id": [1, 1, 4], "weight": [1, 2, 3]}
    tables = {
        "visits": dt.Table(visits, unit="person_id", max_rows=3, max_groups=3, key="visit_id", columns={"qty": whole}),
        "items": referring("visit_id", "visits.visit_id", "item_id", qty=whole)(items),
        "parts": referring("item_id", "items.item_id", weight=whole)(parts),
    }
    with dt.open(dt.Catalog(tables, dt.Budget(10**6)), ledger=":memory:") as curator:
        yield curator


def people_by(survey: Curator, asking: Any) -> dict[Any, Any]:
    """Returns the number of people for each value of n."""
    answer = survey.ask(asking.group_by(n="CLAMP(n, 0, 9)").agg(people=dt.count()), epsilon=SURE)
    return {n: people for n, people in answer.rows if people}


def test_rows_are_counted_per_person(survey: Curator) -> None:
    assert people_by(survey, survey.table("items").per_unit(n=dt.count())) == {1: 1, 3: 1}
    assert people_by(survey, survey.table("items", alias="i").where("i.qty > 2").per_unit(n=dt.count())) == {2: 1}
    assert people_by(survey, survey.table("parts").per_unit(n=dt.count())) == {1: 1, 2: 1}
    assert people_by(survey, survey.table("items").per_unit(n=dt.count_distinct("visit_id"))) == {1: 1, 2: 1}


def test_the_unit_has_its_own_name_in_what_follows(survey: Curator) -> None:
    asking = survey.table("parts").per_unit(n=dt.count()).agg(people=dt.count_distinct("person_id"))
    assert survey.ask(asking, epsilon=SURE)["people"] == [2]


def test_bounds_are_proposed(survey: Curator) -> None:
    found = survey.suggest("items.qty", epsilon=SURE, by="visit_id")
    assert (found.max_rows, found.max_groups) == (3, 3)
    assert survey.suggest("parts.weight", epsilon=SURE).max_rows == 3


@pytest.mark.parametrize("table", ["items", "parts"])
def test_the_refusal_leads_somewhere(survey: Curator, table: str) -> None:
    column = {"items": "qty", "parts": "weight"}[table]
    inner = f"(SELECT {column}, COUNT(*) AS c FROM {table} GROUP BY {column}) t"
    with pytest.raises(QueryError) as refused:
        survey.quote(f"SELECT COUNT(*) AS n FROM {table} x JOIN {inner} ON x.{column} = t.{column}", epsilon=1)
    assert "follow the catalog's references: join it to the table that has person_id; then add person_id" in str(refused.value)
    chain = "JOIN visits v ON v.visit_id = i.visit_id GROUP BY v.person_id"
    way = {"items": f"items i {chain}", "parts": f"parts p JOIN items i ON i.item_id = p.item_id {chain}"}[table]
    question = f"SELECT LEAST(c, 9) AS c, COUNT(*) AS n FROM (SELECT v.person_id, COUNT(*) AS c FROM {way}) t GROUP BY 1"
    by_hand = {c: n for c, n in survey.ask(question, epsilon=SURE).rows if n}
    assert by_hand == people_by(survey, survey.table(table).per_unit(n=dt.count()))


def test_a_reference_to_one_persons_row_groups_within_that_person(survey: Curator) -> None:
    """Items of one visit belong to one person, so they may be grouped by the visit, compared and numbered within it."""
    asked = {
        "(SELECT visit_id, COUNT(*) AS c FROM items GROUP BY visit_id) t WHERE c > 1": 1,
        "(SELECT item_id, SUM(weight) AS w FROM parts GROUP BY item_id) t WHERE w = 3": 2,
        "visits v WHERE (SELECT SUM(qty) FROM items i WHERE i.visit_id = v.visit_id) > 2": 1,
        "visits WHERE visit_id IN (SELECT visit_id FROM items GROUP BY visit_id HAVING SUM(qty) > 1)": 2,
        "(SELECT ROW_NUMBER() OVER (PARTITION BY visit_id ORDER BY qty) AS r FROM items) t WHERE r > 1": 1,
        "(SELECT visit_id, SUM(qty) AS s FROM visits GROUP BY visit_id) t": 3,
    }
    for question, truth in asked.items():
        assert survey.ask(f"SELECT COUNT(*) AS n FROM {question}", epsilon=SURE)["n"] == [truth], question


def test_rows_grouped_by_their_own_id_are_rows_of_people() -> None:
    """Each group is one row of one person, not a group of many people that noise would hide."""
    visits = {"visit": list(range(60)), "person": [each % 20 for each in range(60)], "cost": [each % 4 for each in range(60)]}
    columns = {"visit": dt.column(kind="int"), "cost": dt.between(0, 3)}
    table = dt.Table(visits, unit="person", key="visit", max_rows=9, columns=columns)
    question = "SELECT COUNT(*) AS n FROM (SELECT visit, SUM(cost) AS c FROM visits GROUP BY visit) t WHERE c > 1"
    with dt.open(dt.Catalog({"visits": table}, dt.Budget(10**6, "1e-3")), ledger=":memory:") as survey:
        assert survey.ask(question, epsilon=SURE)["n"] == [30]
