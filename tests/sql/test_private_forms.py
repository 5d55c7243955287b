"""Refusals that mix people's rows propose questions in the user's own words. Each is pasted, answered, and what DuckDB says."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest

import dither as dt
from dither.curator import Curator
from dither.query.read import read
from sql.survey import CATALOG
from sql.test_golden import cases

REGIONS = ("east", "north", "south")
CLOSE = 0.02

KEYS = [  # a group for one person
    "SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id ORDER BY n DESC LIMIT 10",
    "SELECT person_id, SUM(cost) AS spent FROM visits GROUP BY 1 HAVING SUM(cost) > 50 ORDER BY 2 DESC LIMIT 3",
    "SELECT v.person_id, p.region, AVG(v.cost) AS mean FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY 1, 2",
    "SELECT person_id AS who, MAX(cost) AS most FROM visits GROUP BY who",
    "SELECT DISTINCT person_id FROM visits WHERE cost > 5",
    "WITH v AS (SELECT * FROM visits WHERE cost > 3) SELECT person_id, COUNT(*) AS n FROM v GROUP BY person_id",
    "SELECT p.person_id, p.region, COUNT(*) AS n FROM people p LEFT JOIN visits v ON v.person_id = p.person_id GROUP BY 1, 2",
    "SELECT person_id, day, COUNT(*) AS n FROM visits GROUP BY person_id, day ORDER BY day",
]
NUMBERS = [  # a number about others
    "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)",
    "SELECT region, COUNT(*) AS n FROM people WHERE age > (SELECT MEDIAN(age) FROM people WHERE region = 'north') GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits v WHERE cost > (SELECT 1.5 * AVG(w.cost) FROM visits w WHERE w.day = v.day)",
    "SELECT COUNT(*) AS n FROM people WHERE age = (SELECT MAX(age) FROM people)",
    "SELECT AVG(age) AS a FROM people WHERE age < (SELECT AVG(age) - STDDEV(age) FROM people)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT SUM(cost) / COUNT(*) FROM visits)",
]
GROUPS = [  # groups of many people, joined to their rows
    "SELECT COUNT(*) AS n FROM people p JOIN (SELECT region, AVG(age) AS a FROM people GROUP BY region) t "
    "ON p.region = t.region WHERE p.age > t.a",
]


def frames() -> dict[str, pd.DataFrame]:
    dice = np.random.default_rng(3)
    people = pd.DataFrame({"person_id": range(300), "age": dice.integers(0, 100, 300)})
    people["region"] = np.array(REGIONS)[dice.integers(0, 3, 300)]
    person = np.concatenate([np.zeros(40, dtype=np.int64), dice.integers(0, 250, 1500)])
    days = np.datetime64("2024-01-01") + dice.integers(0, 700, len(person))
    visits = pd.DataFrame({"person_id": person, "cost": dice.integers(0, 21, len(person)), "day": days})
    return {"people": people, "visits": visits}


@pytest.fixture(scope="module")
def survey() -> Iterator[Curator]:
    data = frames()
    age, region = dt.between(0, 99), dt.values(*REGIONS)
    people = dt.Table(data["people"], unit="person_id", key="person_id", max_rows=1, columns={"age": age, "region": region})
    unit = {"column": "person_id", "references": "people.person_id"}
    columns = {"cost": dt.between(0, 20), "day": dt.between(datetime.date(2024, 1, 1), datetime.date(2025, 12, 31))}
    visits = dt.Table(data["visits"], unit=unit, max_rows=100, max_groups=50, columns=columns)
    with dt.open(dt.Catalog({"people": people, "visits": visits}, dt.Budget(10**9)), ":memory:") as curator:
        yield curator


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO bucket(x, width) AS floor(x / width) * width")
        connection.execute("CREATE MACRO clamp(x, low, high) AS least(greatest(x, low), high)")
        for name, frame in frames().items():
            connection.register(name, frame)
        yield connection


def refusal(survey: Curator, question: str) -> dt.QueryError:
    with pytest.raises(dt.QueryError) as refused:
        survey.quote(question, epsilon=1)
    return refused.value


def agrees(survey: Curator, asked: str, database: duckdb.DuckDBPyConnection, told: str) -> bool:
    """Whether dither's answer to one question is DuckDB's to another, in every group; a group of nobody is 0 in DuckDB's."""
    answer = survey.ask(asked, epsilon=500, left_out=False)
    found = database.sql(told)
    noisy = [name for name in answer.columns if name in answer.margins()]
    places = [place for place, name in enumerate(answer.columns) if name not in noisy]
    true = {tuple(float(row[i]) if isinstance(row[i], int) else row[i] for i in places): row for row in found.fetchall()}
    for row in answer:
        exact = true.pop(tuple(float(row[i]) if isinstance(row[i], int) else row[i] for i in places), [0] * len(row))
        for place, name in enumerate(answer.columns):
            if name in noisy and abs(float(row[place]) - float(exact[place])) > CLOSE * (abs(float(exact[place])) + 20):
                return False
    return not true


@pytest.mark.parametrize("question", [*KEYS, *NUMBERS, *GROUPS])
def test_each_proposed_question_is_answered_as_duckdb_answers_it(
    survey: Curator, database: duckdb.DuckDBPyConnection, question: str
) -> None:
    error = refusal(survey, question)
    assert error.forms
    for _, form, complete in error.forms:
        assert complete
        assert f"\n      {form}\n" in str(error)  # a line of its own, to be copied
        assert agrees(survey, form, database, form), form


def test_that_check_can_fail(survey: Curator, database: duckdb.DuckDBPyConnection) -> None:
    asked = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    assert agrees(survey, asked, database, asked)
    assert not agrees(survey, asked, database, "SELECT region, COUNT(*) AS n FROM people WHERE age > 50 GROUP BY region")


@pytest.mark.parametrize("question", KEYS[:5])
def test_two_forms_for_a_group_of_one_person(survey: Curator, question: str) -> None:
    words = [each.words for each in refusal(survey, question).forms]
    assert words[0] in ("by what many people share", "of all people together")
    assert words[1:] == ["how many there are of each size"]


def test_forms_are_data_too(survey: Curator) -> None:
    error = refusal(survey, NUMBERS[0])
    assert error.as_data()["forms"] == [
        {"words": "first", "question": "SELECT AVG(age) AS avg FROM people", "complete": True},
        {
            "words": "then, with the answer in the place of 50",
            "question": "SELECT COUNT(*) AS n FROM people WHERE age > 50",
            "complete": True,
        },
    ]


def test_without_bounds_the_shape_is_shown_in_the_names_of_the_question() -> None:
    with pytest.raises(dt.QueryError) as refused:
        read("SELECT person_id, SUM(score) AS points FROM people GROUP BY person_id", CATALOG)
    (form,) = refused.value.forms
    assert not form.complete
    assert form.words == "in this shape, with numbers for low, high and width"
    for word, number in (("low", "0"), ("high", "100"), ("width", "10"), ("SUM(score)", "SUM(ROUND(score))")):
        form = form._replace(question=form.question.replace(word, number))
    read(form.question, CATALOG)


def test_other_refusals_have_no_form(survey: Curator) -> None:
    error = refusal(survey, "SELECT COUNT(*) AS n FROM people WHERE RANDOM() < 0.5")
    assert error.forms == ()
    assert "forms" not in error.as_data()
    assert "You can ask" not in str(error)


def test_every_form_of_a_golden_refusal_can_be_read() -> None:
    found = 0
    for _, question, _ in cases("sql_to_error.txt"):
        try:
            read(question, CATALOG)
        except dt.QueryError as error:
            for _, form, complete in error.forms:
                found += complete
                if complete:
                    read(form, CATALOG)
    assert found >= 15


def test_forms_depend_on_the_question_and_the_catalog_alone(survey: Curator) -> None:
    """The same catalog over other rows proposes the same."""
    data = {name: frame.head(1) for name, frame in frames().items()}
    tables = {name: _with_rows(survey, name, data[name]) for name in data}
    with dt.open(dt.Catalog(tables, dt.Budget(10**9)), ":memory:") as other:
        for question in (*KEYS, *NUMBERS, *GROUPS):
            assert str(refusal(survey, question)) == str(refusal(other, question))


def _with_rows(survey: Curator, name: str, frame: pd.DataFrame) -> dt.Table:
    return replace(survey.catalog.tables[name], source=frame)
