"""Parameters: a value in the place of ?, $1 or :name is read as if it were written out, and can be nothing but a value."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.curator import Curator
from dither.curator import open as open_curator
from dither.errors import ArgumentError, DitherError, QueryError
from dither.query.fluent import FluentQuestion, count, table
from dither.query.read import list_with_params, read, show_question, with_params
from dither.query.sql.gate import read as read_tokens
from journey.hospital import built, run
from planning.test_runs import filled, frames
from sql.survey import CATALOG

DAY, MOMENT = datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, 30)

# (with parameters, their values, written out)
SAME: list[tuple[str, Any, str]] = [
    ("age >= ?", [18], "age >= 18"),
    ("age >= ? AND age < ?", [18, 65], "age >= 18 AND age < 65"),
    ("age < $2 AND age >= $1", [18, 65], "age < 65 AND age >= 18"),
    ("age >= $1 AND age < $1 + 10", [18], "age >= 18 AND age < 18 + 10"),
    ("age >= :low AND age < :high", {"low": 18, "high": 65}, "age >= 18 AND age < 65"),
    ("age >= $low", {"low": 18}, "age >= 18"),
    ("age >= $1 AND region = :r", {"1": 18, "r": "north"}, "age >= 18 AND region = 'north'"),
    ("age > ?", [-3], "age > -3"),
    ("age - ? > 0", [-3], "age - -3 > 0"),
    ("income > ?", [0.1], "income > 0.1"),
    ("income > ?", [Decimal("0.10")], "income > 0.1"),
    ("income > ?", [Fraction(1, 4)], "income > 0.25"),
    ("income > ?", [1e-7], "income > 1e-07"),
    ("age = ?", [np.int64(3)], "age = 3"),
    ("income > ?", [np.float64(2.5)], "income > 2.5"),
    ("region = ?", ['it\'s -- "x" ;'], "region = 'it''s -- \"x\" ;'"),
    ("region = ?", ["?"], "region = '?'"),
    ("region IN (?)", [["north", "south"]], "region IN ('north', 'south')"),
    ("age NOT IN (:ages)", {"ages": (1, -2)}, "age NOT IN (1, -2)"),
    ("born >= ?", [DAY], "born >= DATE '2026-01-31'"),
    ("born >= DATE ?", ["2026-01-31"], "born >= DATE '2026-01-31'"),
    ("born >= DATE ?", [DAY], "born >= DATE '2026-01-31'"),
    ("born >= ?", [MOMENT], "born >= TIMESTAMP '2026-01-31 12:30:00'"),
    ("active = ?", [True], "active = TRUE"),
    ("COALESCE(active, ?)", [False], "COALESCE(active, FALSE)"),
    ("NULLIF(age, ?) IS NULL", [None], "NULLIF(age, NULL) IS NULL"),
    ("age >= ?::INT", [18], "age >= 18::INT"),
    ("city LIKE ?", ["A%"], "city LIKE 'A%'"),
]


def question(condition: str) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE {condition}"


@pytest.mark.parametrize(("condition", "params", "written"), SAME)
def test_a_parameter_is_the_value_written_out(condition: str, params: Any, written: str) -> None:
    asked = with_params(question(condition), params)
    assert read(asked, CATALOG) == read(question(written), CATALOG)


@pytest.mark.parametrize(("condition", "params", "written"), SAME)
def test_the_ledger_shows_the_question_with_its_values(condition: str, params: Any, written: str) -> None:
    shown = show_question(with_params(question(condition), params))
    assert read(shown, CATALOG) == read(question(written), CATALOG)


def test_that_check_can_fail() -> None:
    assert read(with_params(question("age >= ?"), [18]), CATALOG) != read(question("age >= 19"), CATALOG)


@pytest.mark.parametrize("value", ["1 OR TRUE", "' OR '1' = '1", "x'; DROP TABLE people; --", "/*", "\\'", '"age"', "NULL"])
def test_a_value_adds_no_word_to_the_question(value: str) -> None:
    _, tokens = read_tokens(question("city = ? AND age > 3"), {"1": value})
    _, plain = read_tokens(question("city = 'x' AND age > 3"))
    assert [token.token_type for token in tokens] == [token.token_type for token in plain]
    assert [token.text for token in tokens if token.text == value] == [value]


@pytest.mark.parametrize(
    ("text", "params", "what"),
    [
        ("SELECT COUNT(*) FROM ?", ["people"], "A parameter stands for a value, not for a name."),
        ("SELECT COUNT(*) AS ? FROM people", ["n"], "A parameter stands for a value, not for a name."),
        ("SELECT COUNT(*) FROM people AS :p", {"p": "x"}, "A parameter stands for a value, not for a name."),
        (question("age > ?"), None, "? has no value."),
        (question("age > ? AND age < ?"), [1], "? has no value."),
        (question("age > :low"), {"high": 1}, ":low has no value."),
        (question("age > $2"), [1], "$2 has no value."),
        (question("age > 3"), [1], "The question has no parameter 1."),
        (question("age > :low"), {"low": 1, "high": 2}, "The question has no parameter high."),
        (question("age > ? AND age < $1"), [1], "? and $1 cannot stand in one question."),
        (question("age = ?"), [None], "A comparison with NULL is never true."),
        (question("age = ?"), [float("nan")], "The value of parameter 1 cannot be"),
        (question("age = ?"), [10**30], "The value of parameter 1 cannot be"),
        (question("age = ?"), [Fraction(1, 3)], "The value of parameter 1 cannot be"),
        (question("age = ?"), [b"1"], "The value of parameter 1 cannot be"),
        (question("age = ?"), [[1, 2]], "A list of values stands in IN (…) only."),
        (question("age IN (?)"), [[]], "IN needs at least one value."),
        (question("age = ? 1"), [1], "The question cannot be read"),
        (question("age > @low"), None, "@ is not a parameter here."),
    ],
)
def test_what_cannot_be_filled_in_is_refused(text: str, params: Any, what: str) -> None:
    with pytest.raises(QueryError) as refused:
        read(with_params(text, params), CATALOG)
    assert refused.value.what.startswith(what)
    assert refused.value.fix


def test_only_sql_text_has_parameters() -> None:
    with pytest.raises(ArgumentError, match="Only SQL text has parameters"):
        with_params(read("SELECT COUNT(*) FROM people", CATALOG).query, [1])
    with pytest.raises(ArgumentError, match="a list or a dict"):
        with_params("SELECT COUNT(*) FROM people", 18)  # type: ignore[arg-type]


def people() -> FluentQuestion:
    return table(CATALOG, "people")


@pytest.mark.parametrize(("condition", "params", "written"), SAME)
def test_a_question_in_python_takes_parameters_too(condition: str, params: Any, written: str) -> None:
    asked = people().where(condition, params=params).agg(n=count())
    assert read(asked, CATALOG) == read(people().where(written).agg(n=count()), CATALOG)
    assert "params=" in show_question(asked)


def test_values_of_conditions_after_each_other() -> None:
    asked = people().where("age >= ?", params=[18]).where("city = :c", params={"c": "it's"}).group_by("region").agg(n=count())
    assert str(asked.having("n > ?", params=[5])) == (
        "SELECT region, COUNT(*) AS n FROM people WHERE age >= 18 AND city = 'it''s' GROUP BY region HAVING n > 5"
    )
    assert asked.text.splitlines()[1:3] == ['.where("age >= ?", params=[18])', ".where(\"city = :c\", params={c: 'it''s'})"]


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (lambda: people().where("age >= ?"), "? has no value."),
        (lambda: people().where("age >= 3", params=[1]), "The question has no parameter 1."),
        (lambda: people().group_by("age // ?"), "? is not a parameter here."),
        (lambda: people().where("age >= ?", params="18"), "params is a list or a dict"),
    ],
)
def test_what_cannot_be_filled_in_in_python_is_refused(step: Any, what: str) -> None:
    with pytest.raises(DitherError) as refused:
        step()
    assert refused.value.what.startswith(what)


FIRST, SECOND = question("age >= :low"), question("age >= :low AND age < $1")


@pytest.mark.parametrize(
    ("questions", "params", "written"),
    [
        ([FIRST, SECOND], {"low": 18, "1": 65}, [question("age >= 18"), question("age >= 18 AND age < 65")]),
        ([FIRST, question("age > ?")], {"low": 18, "1": 3}, [question("age >= 18"), question("age > 3")]),
        ([question("age > ?"), question("age < ?")], [[3], [4]], [question("age > 3"), question("age < 4")]),
        ([FIRST, question("age > 3")], [{"low": 18}, None], [question("age >= 18"), question("age > 3")]),
        ([question("age IN (?)"), question("age > 3")], [[[1, 2]], None], [question("age IN (1, 2)"), question("age > 3")]),
        ([question("city = ':x?'")], None, [question("city = ':x?'")]),
    ],
)
def test_a_list_of_questions_takes_parameters(questions: list[str], params: Any, written: list[str]) -> None:
    filled = list_with_params(questions, params)
    assert [read(each, CATALOG) for each in filled] == [read(each, CATALOG) for each in written]


@pytest.mark.parametrize(
    ("questions", "params", "what"),
    [
        ([FIRST, question("age > ?")], {"low": 18}, "Question 2: ? has no value."),
        ([FIRST], None, "Question 1: :low has no value."),
        ([FIRST], {"low": 1, "high": 2}, "No question has a parameter high."),
        ([question("age > ?"), question("age < ?")], [3, 4], "A list of questions takes a list of values for each of them."),
        ([question("age > ?"), question("age < ?")], [[3]], "A list of questions takes a list of values for each of them."),
        ([question("age > ?")], "3", "params is a list or a dict"),
    ],
)
def test_values_that_do_not_fit_a_list_are_refused(questions: list[str], params: Any, what: str) -> None:
    with pytest.raises(DitherError) as refused:
        list_with_params(questions, params)
    assert refused.value.what.startswith(what)


@pytest.fixture
def survey() -> Iterator[Curator]:
    with open_curator(filled(frames()), ledger=":memory:") as curator:
        yield curator


def test_the_same_value_is_the_same_question_and_another_is_not(survey: Curator) -> None:
    first = survey.ask(question("age >= ?"), epsilon="0.1", params=[18])
    again = survey.ask(question("18 <= age"), epsilon="0.1")
    assert (again.replayed, again["n"]) == (True, first["n"])
    assert survey.quote(question("age >= :age"), epsilon="0.1", params={"age": 18}).again is not None
    assert not survey.ask(question("age >= ?"), epsilon="0.1", params=[19]).replayed
    assert first.receipt.body["question"] == question("age >= 18")


def test_a_list_with_values_is_the_list_written_out(survey: Curator) -> None:
    first = survey.ask([question("age >= :low"), question("age < :low")], epsilon="0.2", params={"low": 18})
    again = survey.ask([question("age >= 18"), question("age < ?")], epsilon="0.2", params=[None, [18]])
    assert (first.replayed, again.replayed) == (False, True)
    assert first.receipt.body["question"] == f"{question('age >= 18')};\n{question('age < 18')}"
    assert survey.quote([FIRST, SECOND], epsilon="0.2", params={"low": 18, "1": 65}).refusal == ""


def test_a_refused_parameter_charges_nothing(survey: Curator) -> None:
    with pytest.raises(DitherError, match="Charged: nothing"):
        survey.ask(question("age >= ?"), epsilon="0.1", params=[])
    assert survey.ledger.head().number == 0


def test_parameters_on_the_command_line(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    asked = ("ask", "SELECT COUNT(*) AS n FROM patients WHERE ward = :ward AND weight >= $1", "-e", "0.1")
    done = run(*asked, "--param", "ward='north'", "--param", "1=50.5")
    assert done.exit_code == 0, done.stderr
    again = run("ask", "SELECT COUNT(*) AS n FROM patients WHERE ward = 'north' AND weight >= 50.5", "-e", "0.1")
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    missing = run(*asked, "--param", "ward=north")
    assert missing.exit_code == 1
    assert "--param 1=18" in missing.stderr
    assert run(*asked, "--param", "ward").exit_code == 2


def test_parameters_of_a_file_of_questions(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    text = "SELECT COUNT(*) AS n FROM patients WHERE ward = {0}; SELECT AVG(weight) AS w FROM patients WHERE ward = {0}"
    (tmp_path / "q.sql").write_text(text.format(":ward"))
    (tmp_path / "r.sql").write_text(text.format("'north'"))
    done = run("ask", "--file", "q.sql", "-e", "0.1", "--param", "ward=north")
    assert done.exit_code == 0, done.stderr
    again = run("ask", "--file", "r.sql", "-e", "0.1")
    assert again.exit_code == 0
    assert again.stdout.count("given again: charged nothing") == 2
    missing = run("ask", "--file", "q.sql", "-e", "0.1")
    assert missing.exit_code == 1
    assert "--param age=18" in missing.stderr
