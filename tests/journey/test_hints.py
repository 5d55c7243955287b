"""Where newcomers stumble: each hint is there, and silent where there is nothing to say."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dt
from dither.curator import Curator


@pytest.fixture
def survey() -> Curator:
    ids = np.arange(300)
    people = {"id": ids, "region": np.array(["north", "south", "abroad"])[ids % 3], "class": 1 + ids % 2, "age": ids % 90}
    columns = {"region": dt.values("north", "south"), "class": dt.values(1, 2), "age": dt.between(0, 120, kind="int")}
    table = dt.Table(people, unit="id", key="id", columns=columns)
    return dt.open(dt.Catalog({"people": table}, dt.Budget(100)), ledger=":memory:")


UNLISTED = {
    "SELECT COUNT(*) AS n FROM people WHERE region = 'North'": ["'North'"],
    "SELECT COUNT(*) AS n FROM people WHERE region IN ('north', 'West', 'east') AND class = 3": ["'West'", "'east'", "3"],
    "SELECT COUNT(*) FILTER (WHERE 'x' = region) AS n FROM people": ["'x'"],
    "SELECT SUM(CASE WHEN region = 'y' THEN 1 ELSE 0 END) AS n FROM people": ["'y'"],
    "SELECT COUNT(*) AS n FROM (SELECT id, region AS r FROM people) t WHERE r <> 'z'": ["'z'"],
    "SELECT COUNT(*) AS n FROM people WHERE region = 'north' OR class IN (1, 2) OR age = 400": [],
    "SELECT COUNT(*) AS n FROM people WHERE region LIKE 'N%' OR LOWER(region) = 'NORTH'": [],
}


@pytest.mark.parametrize("question", UNLISTED)
def test_a_constant_that_nobody_declared_is_noted_in_quotes_and_answers(survey: Curator, question: str) -> None:
    lines = str(survey.quote(question, epsilon=1)).splitlines()
    noted = [line.removeprefix("note").strip().split(" is none")[0] for line in lines if line.startswith("note ")]
    assert noted == UNLISTED[question]
    answer = survey.ask(question, epsilon=1)
    assert [note.split(" is none")[0] for note in answer.notes() if "declared values" in note] == UNLISTED[question]


def test_the_note_changes_neither_the_answer_nor_its_price(survey: Curator) -> None:
    """Rows may have a value that nobody declared, so the question is answered as any other."""
    answer = survey.ask("SELECT COUNT(*) AS n FROM people WHERE region = 'abroad'", epsilon=20)
    assert answer.rows == ((100,),) or abs(answer["n"][0] - 100) < 5  # type: ignore[operator]
    assert answer.price == "ε = 20"


def test_concat_of_a_number_is_told_what_to_write(survey: Curator) -> None:
    with pytest.raises(dt.QueryError, match=r"CONCAT joins texts, and this is a whole number(.|\n)*CAST"):
        survey.quote("SELECT COUNT(*) AS n FROM people WHERE CONCAT(age, region) = '1north'", epsilon=1)
    with pytest.raises(dt.QueryError, match="COALESCE mixes"):
        survey.quote("SELECT COUNT(*) AS n FROM people WHERE COALESCE(age, '') = ''", epsilon=1)
    survey.quote("SELECT COUNT(*) AS n FROM people WHERE CONCAT(CAST(age AS VARCHAR), region) = '1north'", epsilon=1)


def test_percent_are_told_as_a_fraction(survey: Curator) -> None:
    for words, given in (("sample as in '1/10'", {"sample": "10%"}), ("sample as in '1/8'", {"sample": "12.5 %"})):
        with pytest.raises(dt.ArgumentError, match=words):
            survey.quote("SELECT COUNT(*) AS n FROM people", epsilon=1, **given)
    with pytest.raises(dt.ArgumentError, match="must be a finite number"):
        survey.quote("SELECT COUNT(*) AS n FROM people", epsilon=1, sample="many%")


def test_the_quote_of_a_free_answer_names_the_rows_that_are_in_no_group(survey: Curator) -> None:
    survey.ask("SELECT region, class, COUNT(*) AS n FROM people GROUP BY region, class", epsilon=1)
    quote = str(survey.quote("SELECT class, COUNT(*) AS n FROM people GROUP BY class", epsilon="0.1"))
    assert "free from earlier answers" in quote
    assert "without rows with other values of people.class (NULL too) or people.region (NULL too)" in quote


@pytest.fixture
def draft() -> Curator:
    """As `dither init` drafts a CSV file: its columns are text, and nothing is declared of them."""
    ids = np.arange(300)
    people = {"id": ids, "docvis": [str(number) for number in ids % 20], "class": 1 + ids % 2}
    columns = {"docvis": dt.column(), "class": dt.values(1, 2)}
    return dt.open(
        dt.Catalog({"people": dt.Table(people, unit="id", key="id", columns=columns)}, dt.Budget(100)), ledger=":memory:"
    )


@pytest.mark.parametrize("condition", ["docvis > 9", "9 < docvis", "docvis BETWEEN 3 AND 9", "docvis IN (3)", "docvis = 2.5"])
def test_a_number_that_meets_undeclared_text_is_told_to_declare_the_kind_first(draft: Curator, condition: str) -> None:
    with pytest.raises(dt.QueryError, match="Fix: if docvis holds numbers, declare its `kind` in the catalog"):
        draft.quote(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", epsilon=1)
    with pytest.raises(dt.QueryError, match="Fix: write text in quotes and numbers without"):
        draft.quote("SELECT COUNT(*) AS n FROM people WHERE class = '1'", epsilon=1)


COMPARED = {
    "SELECT COUNT(*) AS n FROM people WHERE docvis > '9'": ["docvis > '9'"],
    "SELECT COUNT(*) AS n FROM people WHERE docvis BETWEEN '3' AND '10.5'": ["docvis >= '3'", "docvis <= '10.5'"],
    "SELECT COUNT(*) FILTER (WHERE '-9' <= docvis) AS n FROM people": ["'-9' <= docvis"],
    "SELECT COUNT(*) AS n FROM (SELECT id, docvis AS d FROM people WHERE LOWER(docvis) < '1e3') t": ["... < '1e3'"],
    "SELECT COUNT(*) AS n FROM people WHERE docvis > 'a' OR docvis = '9' OR docvis IN ('1', '2')": [],
    "SELECT COUNT(*) AS n FROM people WHERE CAST(docvis AS INTEGER) > 9 AND class > 1": [],
}


@pytest.mark.parametrize("question", COMPARED)
def test_numerals_that_are_compared_as_text_are_noted_in_quotes_and_answers(draft: Curator, question: str) -> None:
    lines = str(draft.quote(question, epsilon=1)).splitlines()
    noted = [line.removeprefix("note").strip().split(" is compared as text")[0] for line in lines if line.startswith("note ")]
    assert noted == COMPARED[question]
    answer = draft.ask(question, epsilon=1)
    assert [note.split(" is compared")[0] for note in answer.notes() if "compared as text" in note] == COMPARED[question]


def test_names_that_need_quotes_are_proposed_with_them() -> None:
    ids = np.arange(9)
    columns = {"Arztbesuche": dt.between(0, 9), "Einkommen (EUR)": dt.between(0, 9)}
    table = dt.Table({"id": ids, "Arztbesuche": ids, "Einkommen (EUR)": ids}, unit="id", key="id", columns=columns)
    survey = dt.open(dt.Catalog({"people": table}, dt.Budget(1)), ledger=":memory:")
    with pytest.raises(dt.QueryError, match=r'use one of Arztbesuche, "Einkommen \(EUR\)", id\.'):
        survey.quote("SELECT AVG(xyz) AS a FROM people", epsilon=1)
    with pytest.raises(dt.QueryError, match=r'did you mean "Einkommen \(EUR\)"\?'):
        survey.quote("SELECT AVG(Einkommen_EUR) AS a FROM people", epsilon=1)
    survey.quote('SELECT AVG("Einkommen (EUR)") AS a FROM people', epsilon=1)


def test_names_that_are_far_are_not_proposed(survey: Curator) -> None:
    with pytest.raises(dt.QueryError, match="Fix: use one of"):
        survey.quote("SELECT COUNT(*) AS n FROM people WHERE kids > 1", epsilon=1)
    with pytest.raises(dt.QueryError, match=r"did you mean id\?"):
        survey.quote("SELECT COUNT(*) AS n FROM people WHERE idd > 1", epsilon=1)


def test_using_says_on_which_side_the_column_is_missing(survey: Curator) -> None:
    question = "SELECT COUNT(*) AS n FROM people JOIN (SELECT id, age AS years FROM people) t USING ({})"
    for name, words in (("person_id", "there is no such column"), ("age", "only one has it"), ("years", "only one has it")):
        with pytest.raises(dt.QueryError, match=f"USING needs {name} once on either side, and {words}"):
            survey.quote(question.format(name), epsilon=1)
    survey.quote(question.format("id"), epsilon=1)
