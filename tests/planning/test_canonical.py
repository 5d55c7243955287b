"""Equal plans have equal texts, different plans different ones, however the question was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.planning.canonical import canonical, spelled
from dither.planning.choose import Price
from dither.planning.plan import Plan, plan
from dither.query import fluent as dt
from dither.query.catalog import Budget, Catalog
from dither.query.nodes import Literal
from dither.query.resolve import resolve
from dither.query.sql import parse
from planning.test_charges import plans
from planning.test_golden import CATALOGS, cases
from sql.survey import CATALOG


def golden() -> Iterator[Plan]:
    for word, text, expected in cases():
        if expected.startswith("price"):
            catalog = CATALOGS[word]
            yield plan(resolve(parse(text, catalog), catalog, text), catalog, Price(Fraction(1, 2), catalog.budget.delta / 2))


def of(text: str, epsilon: Any = "1/2", catalog: Catalog = CATALOG) -> Plan:
    price = Price(Fraction(epsilon), catalog.budget.delta / 4)
    return plan(resolve(parse(text, catalog), catalog, text), catalog, price)


@given(plans(), plans())
def test_equal_plans_and_equal_texts_are_the_same_thing(one: Plan, other: Plan) -> None:
    assert (one == other) == (canonical([one]) == canonical([other]))


def test_every_golden_plan_has_a_text_of_its_own() -> None:
    made = list(golden())
    texts = [canonical([each]) for each in made]
    assert len(made) > 20
    assert [canonical([each]) for each in golden()] == texts
    for i, one in enumerate(made):
        for j, other in enumerate(made):
            assert (one == other) == (texts[i] == texts[j])


def test_the_text_is_plain_json_with_a_format_number() -> None:
    text = canonical([of("SELECT region, COUNT(*) AS n FROM people GROUP BY region")])
    assert json.loads(text)["format"] == 1
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert text.isascii()


def test_sql_and_python_give_one_text() -> None:
    asked = dt.table(CATALOG, "people").where("age >= 18").group_by("region").agg(n=dt.count(), m=dt.quantile("age", 0.9))
    text = "SELECT region, COUNT(*) AS n, QUANTILE(age, 0.9) AS m\n FROM people  WHERE (age >= 18) GROUP BY region"
    price = Price(Fraction(1, 2), CATALOG.budget.delta / 4)
    fluent = plan(resolve(asked.query, CATALOG, asked.text), CATALOG, price)
    assert canonical([fluent]) == canonical([of(text)])
    assert canonical([of(text)]) == canonical([of(text.replace("  ", " ").replace("0.9", "0.90"))])


@pytest.mark.parametrize(
    "other",
    [
        of("SELECT COUNT(*) AS n FROM people WHERE age > 18", "1/3"),
        of("SELECT COUNT(*) AS n FROM people WHERE age > 19"),
        of("SELECT COUNT(*) AS m FROM people WHERE age > 18"),
        of("SELECT COUNT(*) AS n FROM people WHERE age > 18.5"),
        of("SELECT COUNT(*) AS n FROM people WHERE age > 18 LIMIT 1"),
        of("SELECT COUNT(*) AS n FROM people WHERE age > 18", catalog=Catalog(CATALOG.tables, Budget(1))),
    ],
)
def test_a_different_question_or_price_has_another_text(other: Plan) -> None:
    mine = of("SELECT COUNT(*) AS n FROM people WHERE age > 18")
    assert canonical([mine]) == canonical([of("SELECT COUNT(*) AS n FROM people WHERE age > 18")])
    if mine != other:
        assert canonical([mine]) != canonical([other])
    else:  # a delta that buys nothing may leave the plan as it is, but never its price
        assert mine.price == other.price


WRITTEN = "SELECT region, AVG(age) AS a FROM people WHERE age >= 18 AND age <= 65 GROUP BY region"


@pytest.mark.parametrize(
    "same",
    [
        "select region, mean(AGE) a from PEOPLE where age >= 18 and age <= 65 group by region -- grown-ups",
        'SELECT "region", AVG("age") AS a FROM people WHERE (("age" >= 18) AND age <= 65) GROUP BY 1',
        "SELECT people.region, AVG(people.age) AS a FROM people WHERE people.age BETWEEN 18 AND 65 GROUP BY people.region",
    ],
)
def test_what_the_page_calls_the_same_has_one_text(same: str) -> None:
    assert canonical([of(same)]) == canonical([of(WRITTEN)])


@pytest.mark.parametrize(
    "other",
    [
        WRITTEN.replace("AS a", "AS b"),
        "SELECT p.region, AVG(p.age) AS a FROM people p WHERE p.age >= 18 AND p.age <= 65 GROUP BY p.region",
        WRITTEN.replace("age >= 18", "18 <= age"),
        WRITTEN.replace("18", "18.0"),
        WRITTEN.replace("age >= 18 AND age <= 65", "age <= 65 AND age >= 18"),
        WRITTEN.replace("region, AVG(age) AS a", "AVG(age) AS a, region"),
        WRITTEN.replace("WHERE", "WHERE TRUE AND"),
        f"WITH p AS (SELECT region, age FROM people) {WRITTEN.replace('people', 'p')}",
        f"{WRITTEN} HAVING a > 3",
        f"{WRITTEN} ORDER BY a",
        f"{WRITTEN} LIMIT 3",
    ],
)
def test_what_the_page_calls_a_new_question_has_another_text(other: str) -> None:
    assert canonical([of(other)]) != canonical([of(WRITTEN)])


def test_a_delta_that_buys_nothing_is_not_in_the_text() -> None:
    def texts(question: str) -> set[str]:
        found = resolve(parse(question, CATALOG), CATALOG, question)
        prices = [Price(Fraction(1, 10), Fraction(delta)) for delta in ("1e-8", "1e-9")]
        return {canonical([plan(found, CATALOG, price)]) for price in prices}

    count = "SELECT COUNT(*) AS n FROM people"
    pure = plan(resolve(parse(count, CATALOG), CATALOG, count), CATALOG, Price(Fraction(1, 10)))
    assert texts(count) == {canonical([pure])}
    assert len(texts("SELECT city, COUNT(*) AS n FROM people GROUP BY city")) == 2  # found keys are shown by it


def test_a_different_bound_has_another_text() -> None:
    people = CATALOG.tables["people"]
    wider = replace_bounds(people.columns["age"])
    changed = Catalog({**CATALOG.tables, "people": with_column(people, "age", wider)}, CATALOG.budget)
    text = "SELECT AVG(age) AS a FROM people"
    assert canonical([of(text)]) != canonical([of(text, catalog=changed)])


def replace_bounds(facts: Any) -> Any:
    return replace(facts, high=facts.high + 1)


def with_column(table: Any, name: str, facts: Any) -> Any:
    return replace(table, columns={**table.columns, name: facts})


def test_true_is_not_one_and_text_is_no_number() -> None:
    kinds = [True, 1, "1", None, Fraction(1, 2), "1/2"]
    texts = [json.dumps(spelled((value,))) for value in kinds]
    assert len(set(texts)) == len(kinds)
    assert spelled(Literal(True)) != spelled(Literal(1))


@given(st.integers() | st.fractions() | st.floats(allow_nan=False, allow_infinity=False), st.integers() | st.fractions())
def test_numbers_are_told_apart_by_value_alone(one: Any, other: Any) -> None:
    assert (spelled(one) == spelled(other)) == (one == other)


def test_huge_numbers_have_a_spelling() -> None:
    assert spelled(10**9999) != spelled(10**9999 + 1)
    assert spelled(Fraction(1, 10**9999)) != spelled(Fraction(1, 10**9999 + 1))


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), {"a": 1}, [1], {1}, b"x", object()])
def test_what_has_no_spelling_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError):
        spelled(odd)


def test_every_field_that_counts_is_in_the_text() -> None:
    """Exchanging any one leaf of a plan for another value changes its text: nothing that counts is left out."""
    made = of("SELECT region, COUNT(*) AS n, MEDIAN(age) AS m FROM people WHERE age > 18 GROUP BY region ORDER BY n LIMIT 3")
    before = json.dumps(spelled(made))
    changed = list(_changed(made))
    assert len(changed) > 100
    for other in changed:
        assert json.dumps(spelled(other)) != before


def _changed(value: Any) -> Iterator[Any]:
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.compare:
                for other in _changed(getattr(value, field.name)):
                    copy = object.__new__(type(value))
                    for each in fields(value):
                        object.__setattr__(copy, each.name, getattr(value, each.name, None))
                    object.__setattr__(copy, field.name, other)
                    yield copy
    elif isinstance(value, tuple):
        for i, each in enumerate(value):
            for other in _changed(each):
                yield (*value[:i], other, *value[i + 1 :])
        yield (*value, "one more")
    else:
        yield "changed"


def test_a_purpose_is_part_of_the_text() -> None:
    made = [of("SELECT COUNT(*) AS n FROM people")]
    assert canonical(made) != canonical(made, "proposal")
