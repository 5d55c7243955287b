"""The unit is no key, whatever it is called and however it was computed; other columns are, computed the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.curator import Curator
from dither.errors import QueryError

PEOPLE = {"person_id": [1, 2, 3, 4], "other": [7, 7, 8, 8], "age": [20, 30, 40, 50], "city": ["a", "a", "b", "b"]}
VISITS = {"visit_id": [1, 2, 3], "person_id": [1, 1, 2], "cost": [1, 2, 3]}
REFUSED = r"a group of its own would show one person"


@pytest.fixture(scope="module")
def survey() -> Iterator[Curator]:
    whole = dt.column(kind="int")
    people = {"person_id": whole, "other": whole, "age": dt.between(0, 120, kind="int"), "city": dt.column(kind="text")}
    visits = dt.Table(
        VISITS,
        unit={"column": "person_id", "references": "people.person_id"},
        max_rows=3,
        max_groups=2,
        key="visit_id",
        columns={"cost": dt.between(0, 9, kind="int")},
    )
    items = dt.Table(
        {"visit_id": [1, 2], "qty": [1, 2]},
        unit={"column": "visit_id", "references": "visits.visit_id"},
        max_rows=3,
        max_groups=2,
        columns={"qty": dt.between(0, 9, kind="int")},
    )
    tables = {
        "people": dt.Table(PEOPLE, unit="person_id", max_rows=1, max_groups=1, columns=people),
        "visits": visits,
        "items": items,
        "registry": dt.Table({"id": [1, 2], "name": ["x", "y"]}, public=True, key="id"),
    }
    with dt.open(dt.Catalog(tables, dt.Budget(10**6, "1/10")), ledger=":memory:") as curator:
        yield curator


def refusal(survey: Curator, question: str) -> str:
    try:
        survey.quote(question, epsilon=1, delta="1/100")
    except QueryError as error:
        return str(error)
    return ""


# --- derivations by the hundred: {x} is the unit in one question and another column in its twin --------------------------

STEPS = (
    *("{x} * 1", "{x} + 3", "0 - {x}", "ABS({x})", "{x} % 1000", "CLAMP({x}, 0, 100000)", "FLOOR({x} / 2)", "BUCKET({x}, 10)"),
    *("COALESCE({x}, 0)", "GREATEST({x}, 0)", "LEAST({x}, 500)", "NULLIF({x}, 7)", "CAST({x} AS INT)", "{x} + age", "{x}"),
    *("CASE WHEN age > 30 THEN {x} ELSE 0 END", "CASE WHEN {x} > 30 THEN {x} ELSE age END"),
)
BASE = "SELECT person_id, other, age, {x} AS x FROM people"
LAYERS = (
    "SELECT person_id, other, age, {step} AS x FROM ({r}) t",
    "SELECT person_id, other, age, {step} AS x FROM ({r}) t WHERE age > 18",
    "SELECT person_id, other, age, other AS x FROM ({r}) t WHERE other = x AND age > 18",
    "SELECT person_id, MAX(other) AS other, MAX(age) AS age, MAX(x) AS x FROM ({r}) t GROUP BY person_id",
    "SELECT a.person_id, a.other, a.age, b.x FROM people a JOIN ({r}) b ON a.person_id = b.person_id",
    "SELECT a.person_id, a.other, a.age, b.x FROM people a LEFT JOIN ({r}) b ON a.person_id = b.person_id",
    "SELECT person_id, other, age, x FROM ({r}) t UNION ALL SELECT person_id, other, age, age AS x FROM people",
    "SELECT t.person_id, t.other, t.age, g.id AS x FROM ({r}) t JOIN registry g ON g.id = t.x",
    "SELECT p.person_id, p.other, p.age, (SELECT MIN(t.x) FROM ({r}) t WHERE t.person_id = p.person_id) AS x FROM people p",
)
LAST = (
    "SELECT x, COUNT(*) AS n FROM ({r}) t GROUP BY x",
    "WITH c AS ({r}) SELECT x, COUNT(*) AS n FROM c GROUP BY x",
    "SELECT {step} AS k, COUNT(*) AS n FROM ({r}) t GROUP BY k",
    "SELECT age, x, AVG(age) AS n FROM ({r}) t GROUP BY age, x",
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LAYERS), st.sampled_from(STEPS)), max_size=3), st.sampled_from(LAST), st.data())
def test_whatever_is_made_from_the_unit_is_no_key(
    survey: Curator, layers: list[tuple[str, str]], last: str, data: st.DataObject
) -> None:
    first, end = data.draw(st.sampled_from(STEPS)), data.draw(st.sampled_from(STEPS))

    def question(column: str) -> str:
        relation = BASE.format(x=first.format(x=column))
        for layer, step in layers:
            relation = layer.format(r=relation, step=step.format(x="x"))
        return last.format(r=relation, step=end.format(x="x"))

    twin = refusal(survey, question("other"))
    assert "would show one person" not in twin
    if not twin:  # else it has too many joins, or the like, and there is nothing to compare with
        assert REFUSED in refusal(survey, question("person_id"))


def test_that_most_twins_are_answered(survey: Curator) -> None:
    """Or the test above would compare nothing."""
    for layer in LAYERS:
        for step in STEPS:
            relation = layer.format(r=BASE.format(x="other"), step=step.format(x="x"))
            assert refusal(survey, LAST[0].format(r=relation)) == ""


# --- what depends on the unit, one by one ------------------------------------------------------------------------------

MADE_OF_THE_UNIT = [
    "SELECT x, COUNT(*) AS n FROM (SELECT person_id * 1 AS x FROM people) t GROUP BY x",
    "SELECT CAST(person_id AS TEXT) AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT person_id % 2 AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT v.person_id, COUNT(*) AS n FROM people p LEFT JOIN visits v ON v.person_id = p.person_id GROUP BY v.person_id",
    "SELECT visit_id, COUNT(*) AS n FROM visits GROUP BY visit_id",  # what items refer to
    "SELECT visit_id, COUNT(*) AS n FROM items GROUP BY visit_id",  # the unit's name two references away
    "SELECT v.visit_id, COUNT(*) AS n FROM items i JOIN visits v ON v.visit_id = i.visit_id GROUP BY v.visit_id",
    "SELECT other, COUNT(*) AS n FROM people WHERE other IN (SELECT v.person_id FROM visits v"
    " WHERE v.person_id = people.person_id) GROUP BY other",
]
ANSWERED = [
    "SELECT person_id > 2 AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT person_id % 10 < 5 AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT CASE person_id % 3 WHEN 0 THEN 10 WHEN 1 THEN 11 ELSE 12 END AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT person_id IN (SELECT person_id FROM visits) AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT n, COUNT(*) AS m FROM (SELECT person_id, COUNT(person_id) AS n FROM visits GROUP BY person_id) t GROUP BY n",
    "SELECT COUNT(DISTINCT x) AS n FROM (SELECT person_id * 1 AS x FROM people) t",
    "SELECT city, COUNT(*) AS n FROM people WHERE person_id % 10 = 3 GROUP BY city",
    "SELECT g.name, COUNT(*) AS n FROM people p JOIN registry g ON g.id = p.person_id GROUP BY g.name",
]


@pytest.mark.parametrize("question", MADE_OF_THE_UNIT)
def test_a_key_made_of_the_unit_is_refused(survey: Curator, question: str) -> None:
    with pytest.raises(QueryError, match=REFUSED):
        survey.ask(question, epsilon=1, delta="1/1000")


@pytest.mark.parametrize("question", ANSWERED)
def test_these_are_answered(survey: Curator, question: str) -> None:
    """A condition on the unit has two values, known beforehand; a count is nobody's id."""
    survey.ask(question, epsilon=1, delta="1/1000")


def test_the_unit_may_choose_only_among_values_that_are_public(survey: Curator) -> None:
    chosen = "SELECT CASE WHEN person_id > 2 THEN {} ELSE 1 END AS k, COUNT(*) AS n FROM people GROUP BY k"
    with pytest.raises(QueryError, match=re.escape("k is chosen by person_id")):
        survey.quote(chosen.format("other"), epsilon=1, delta="1/1000")
    survey.quote(chosen.format("age"), epsilon=1, delta="1/1000")
    bits = " + ".join(f"{2**i} * CASE WHEN person_id % {2 ** (i + 1)} >= {2**i} THEN 1 ELSE 0 END" for i in range(20))
    with pytest.raises(QueryError, match=re.escape("k is chosen by person_id")):
        survey.quote(f"SELECT {bits} AS k, COUNT(*) AS n FROM people GROUP BY k", epsilon=1, delta="1/1000")
