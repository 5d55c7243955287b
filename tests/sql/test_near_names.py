"""A misspelt name is refused with the nearest right one, wherever names are looked up."""

from __future__ import annotations

import pytest

import dither as dt
from dither.errors import CatalogError, QueryError
from dither.query import fluent
from dither.query.sql.select import parse
from sql.survey import CATALOG

NEAR = {
    "SELECT COUNT(*) FROM peeple": "people",
    "SELECT COUNT(*) FROM people JOIN visit USING (person_id)": "visits",
    "SELECT AVG(agee) FROM people": "age",
    "SELECT COUNT(*) FROM people WHERE regoin = 'north'": "region",
    "SELECT regoin, COUNT(*) FROM people GROUP BY regoin": "region",
    "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT persn_id FROM visits)": "person_id",
    "SELECT COUNT(*) FROM people JOIN visits ON people.person_id = visit.person_id": "visits",
    "SELECT COUNT(*) FROM people JOIN visits USING (persn_id)": "person_id",
    "SELECT AVERAGE(age) FROM people": "AVG",
}


@pytest.mark.parametrize("question", NEAR)
def test_sql_names_that_are_nearly_right(question: str) -> None:
    with pytest.raises(QueryError) as refusal:
        parse(question, CATALOG)
    assert f"did you mean {NEAR[question]}?" in refusal.value.fix


def test_fluent_names_that_are_nearly_right() -> None:
    people = fluent.table(CATALOG, "people")
    for asked in (people.where("agee > 3"), people.group_by("agee"), people.agg(n=fluent.mean("agee"))):
        with pytest.raises(QueryError, match="did you mean age"):
            _ = asked.agg(c=fluent.count()).query


@pytest.mark.parametrize("name", ["sum", "min", "max"])
def test_names_that_python_has_already_end_in_an_underscore(name: str) -> None:
    with pytest.raises(AttributeError, match=f"Did you mean {name}_"):
        getattr(dt, name)


def test_an_aggregate_without_a_name_is_told_so() -> None:
    people = fluent.table(CATALOG, "people")
    with pytest.raises(QueryError, match="agg has an aggregate without a name"):
        people.agg(fluent.count())
    with pytest.raises(QueryError, match="per_unit has an aggregate without a name"):
        people.per_unit(fluent.count())  # type: ignore[arg-type]


def test_names_in_a_catalog_that_are_nearly_right() -> None:
    people = dt.Table({"id": [1], "age": [2]}, unit="id", max_rows=1, columns={"age": dt.between(0, 9)})

    def refers(to: str) -> dt.Catalog:
        visits = dt.Table({"id": [1]}, unit={"column": "id", "references": to}, max_rows=1)
        return dt.Catalog({"people": people, "visits": visits}, dt.Budget(1))

    with pytest.raises(CatalogError, match="did you mean people"):
        refers("peple.id")
    with pytest.raises(CatalogError, match="did you mean id"):
        dt.open(refers("people.idd"), ledger=":memory:")
    wrong = dt.Table({"id": [1], "age": [2]}, unit="id", max_rows=1, columns={"agee": dt.between(0, 9)})
    with pytest.raises(CatalogError, match="did you mean age"):
        dt.open(dt.Catalog({"people": wrong}, dt.Budget(1)), ledger=":memory:")


def test_a_suggestion_for_a_column_that_is_nearly_right() -> None:
    people = dt.Table({"id": [1], "age": [2]}, unit="id", max_rows=1, columns={"age": dt.between(0, 9)})
    survey = dt.open(dt.Catalog({"people": people}, dt.Budget(1)), ledger=":memory:")
    for wrong in ("people.agee", "peple.age"):
        with pytest.raises(dt.DitherError, match=r"did you mean people\.age") as refusal:
            survey.suggest(wrong, epsilon="0.1")
        assert refusal.value.charged == "nothing"
    with pytest.raises(dt.DitherError, match="A int is not a column"):
        survey.suggest(3, epsilon="0.1")  # type: ignore[arg-type]
