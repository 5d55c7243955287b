"""Subqueries accept redundant words, and their internal names are never shown."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dither.catalog.values import Catalog, ColumnFacts, Table, Unit
from dither.errors import QueryError
from dither.planning.outputs import explain
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.records import identity
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from sql.survey import CATALOG, PEOPLE, VISITS


@pytest.mark.parametrize(
    "asked",
    [
        "person_id IN (SELECT {}v.person_id FROM visits v)",
        "region NOT IN (SELECT {}name FROM regions)",
        "age NOT IN (SELECT {}cost FROM visits v WHERE v.person_id = p.person_id)",
        "EXISTS (SELECT {}ward FROM visits v WHERE v.person_id = p.person_id)",
        "active OR EXISTS (SELECT {}ward FROM visits v WHERE v.person_id = p.person_id)",
        "active OR region IN (SELECT {}name FROM regions)",
        "person_id IN (SELECT {}person_id FROM visits GROUP BY person_id)",
    ],
)
def test_distinct_in_a_list_changes_nothing(asked: str) -> None:
    plain, distinct = (f"SELECT COUNT(*) FROM people p WHERE {asked.format(word)}" for word in ("", "DISTINCT "))
    assert parse(distinct, CATALOG) == parse(plain, CATALOG)


MINE = "FROM visits v WHERE v.person_id = p.person_id"
AREA = "SELECT area FROM regions"
ASKED = {
    f"SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 {MINE})) AS n FROM people p": "COUNT(*) FILTER (WHERE EXISTS (SELECT ",
    f"SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 2 {MINE})) AS n FROM people p": "on rows where EXISTS (SELECT ...): one",
    f"SELECT MIN(age) FILTER (WHERE EXISTS (SELECT 1 {MINE})) AS n FROM people p": "(SELECT ...)), as the 1 % quantile,",
    f"SELECT SUM(LEAST((SELECT SUM(cost) {MINE}), 9)) AS n FROM people p": "(SELECT SUM(cost) ...), 9.0) is clipped to [0, 9]",
    f"SELECT SUM(CLAMP((SELECT COUNT(*) {MINE}) * p.age, 0, 9)) AS n FROM people p": "((SELECT COUNT(...) ...) * p.age",
    f"SELECT EXISTS (SELECT 1 {MINE}) AS seen, COUNT(*) FROM people p GROUP BY seen": "2 public values of seen, empty",
    f"SELECT EXISTS (SELECT 1 {MINE}), COUNT(*) FROM people p GROUP BY 1": "2 public values of EXISTS (SELECT ...), empty",
    f"SELECT LEAST((SELECT COUNT(*) {MINE}), 20) AS w, COUNT(*) FROM people p GROUP BY w": "21 public values of w, empty",
}


def planned(text: str) -> Plan:
    return plan(resolve(parse(text, CATALOG), CATALOG, text), CATALOG, Price(Fraction(1, 2), Fraction(1, 10**7)))


@pytest.mark.parametrize("text", ASKED)
def test_no_inner_name_reaches_the_reader(text: str) -> None:
    made = planned(text)
    shown = explain(made, Fraction(19, 20))
    assert ASKED[text] in shown
    assert not any("#" in told for told in (shown, *made.margin_notes, *(output.name for output in made.query.outputs)))


def test_a_plan_is_told_in_the_same_words_however_it_was_written() -> None:
    one = f"SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 {MINE})) AS n FROM people p"
    two = (
        "select count(*) filter (where exists (select v.ward from visits v where p.person_id = v.person_id)) as n from people p"
    )
    other = f"SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 {MINE} AND v.cost > 3)) AS n FROM people p"
    assert identity([planned(one)]).text == identity([planned(two)]).text
    assert identity([planned(one)]).text != identity([planned(other)]).text  # though both are EXISTS (SELECT ...) to the reader


def test_words_come_from_the_aggregate_and_not_from_its_name() -> None:
    """A column called distinct_x made COUNT(distinct_x) read as COUNT(DISTINCT x)."""
    visits = replace(VISITS, columns={**VISITS.columns, "distinct_x": ColumnFacts("int")})
    catalog = Catalog({**CATALOG.tables, "visits": visits}, CATALOG.budget)
    told = {
        "COUNT(v.distinct_x)": "(SELECT COUNT(distinct_x) ...)",
        "COUNT(DISTINCT v.distinct_x)": "(SELECT COUNT(DISTINCT distinct_x) ...)",
        "COUNT(DISTINCT v.distinct_x + 1)": "(SELECT COUNT(DISTINCT ...) ...)",
        "COUNT(v.distinct_x) FILTER (WHERE v.cost > 1)": "(SELECT COUNT(...) ...)",
    }
    for written, words in told.items():
        text = f"SELECT SUM(LEAST((SELECT {written} {MINE}), 9)) AS n FROM people p"
        made = plan(resolve(parse(text, catalog), catalog, text), catalog, Price(Fraction(1, 2), Fraction(1, 10**7)))
        assert f"({words}, 9))" in explain(made, Fraction(19, 20))


def test_a_filter_is_told_as_one_and_a_case_is_not() -> None:
    kept, chosen = "COUNT(*) FILTER (WHERE age > 3)", "COUNT(CASE WHEN age > 3 THEN 1 END)"
    shown = explain(planned(f"SELECT {kept} AS n FROM people"), Fraction(19, 20))
    assert "FILTER (WHERE " in shown
    assert "on rows where " in shown
    assert "is not NULL" not in shown
    shown = explain(planned(f"SELECT {chosen} AS n FROM people"), Fraction(19, 20))
    assert "FILTER" not in shown
    assert "is not NULL" in shown


def test_a_key_is_called_by_the_name_it_was_given() -> None:
    with pytest.raises(
        QueryError, match=r"^w is a number with a fraction(.|\n)*BUCKET\(\(SELECT AVG\(cost\) \.\.\.\), 10\) AS w "
    ):
        planned(f"SELECT (SELECT AVG(cost) {MINE}) AS w, COUNT(*) FROM people p GROUP BY w")
    planned(f"SELECT BUCKET((SELECT AVG(cost) {MINE}), 10) AS w, COUNT(*) FROM people p GROUP BY w")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people a WHERE age NOT IN (SELECT age FROM people b WHERE b.person_id = a.person_id)",
        "SELECT COUNT(*) FROM visits v WHERE cost > 3 OR EXISTS (SELECT 1 FROM prescriptions d WHERE d.visit_id = v.visit_id)",
        f"SELECT COUNT(*) FROM people p WHERE (SELECT MAX(v.cost) {MINE}) > p.age",
        f"SELECT COUNT(*) FROM people p WHERE (SELECT MIN(v.cost) {MINE}) <= p.age",
        f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 {MINE})",
        f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 {MINE} AND v.cost = p.age)",
        f"SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(area) FROM ({AREA} UNION ALL {AREA}) t)",
        f"SELECT COUNT(*) FROM people p WHERE (SELECT MAX(ward) {MINE}) = 'a'",
        f"SELECT COUNT(*) FROM people p WHERE p.region IN (SELECT v.region {MINE})",
    ],
)
def test_what_refusals_advise_is_answered(text: str) -> None:
    planned(text)


@pytest.mark.parametrize("joined", ["people p JOIN visits v", "visits v JOIN people p"])
def test_a_missing_reference_is_advised_in_the_catalogs_own_names(joined: str) -> None:
    pupils = Table("pupils.parquet", unit=Unit("pupil"), max_rows=1, columns=PEOPLE.columns)
    marks = Table("marks.parquet", unit=Unit("of"), max_rows=9, columns=VISITS.columns)
    catalog = Catalog(tables={"pupils": pupils, "marks": marks}, budget=CATALOG.budget)
    text = f"SELECT COUNT(*) FROM {joined} ON p.pupil = v.of".replace("people", "pupils").replace("visits", "marks")
    with pytest.raises(QueryError) as refusal:
        resolve(parse(text, catalog), catalog, text)
    assert 'for marks: unit = { column = "of", references = "pupils.pupil" }' in refusal.value.fix
