"""TPC-H on generated tables: each question is answered as DuckDB answers it, or refused as tests/golden/tpch.txt says.

Every answer has its error against plain DuckDB, at generous bounds and a large price. UPDATE_GOLDEN=1 rewrites the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dither as dt
from dither.curator import Curator
from sql.tpch.data import catalog, frames
from sql.tpch.questions import PRIVATE, STANDARD

GOLDEN = Path(__file__).parents[2] / "golden" / "tpch.txt"
PRICES = (10**6, 10**5, 10**4, 1000, 100)  # the largest at which there still is noise
CLOSE = 0.02  # of the largest value of a column: what noise and quantising may move at this price

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def survey() -> Iterator[Curator]:
    with dt.open(catalog(frames()), ledger=":memory:") as curator:
        yield curator


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO bucket(x, width) AS floor(x / width) * width")
        connection.execute("CREATE MACRO clamp(x, low, high) AS least(greatest(x, low), high)")
        for name, frame in frames().items():
            connection.register(name, frame)
        yield connection


def priced(survey: Curator, question: str) -> int:
    """Returns a large price of a question. Raises its refusal."""
    for price in PRICES[:-1]:
        try:
            survey.quote(question, epsilon=price, left_out=False)
        except (dt.QueryError, dt.ArgumentError) as refused:
            if "out of range" not in refused.what and "scale must lie" not in refused.what:
                raise
        else:
            return price
    return PRICES[-1]


def outcome(survey: Curator, question: str) -> str:
    """Returns "answered", or the refusal without its caret."""
    try:
        survey.quote(question, epsilon=priced(survey, question), left_out=False)
    except dt.QueryError as refused:
        forms = [f"\n  {words}:\n    {question}" for words, question, _ in refused.forms]
        return f"refused: {refused.what}\n  Fix: {refused.fix}{''.join(forms)}"
    return "answered"


def truth(database: duckdb.DuckDBPyConnection, question: str) -> list[dict[str, Any]]:
    found = database.sql(question)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def error(survey: Curator, database: duckdb.DuckDBPyConnection, question: str) -> float:
    """Returns the largest error of a noisy column, as a share of the column's largest true value."""
    answer = survey.ask(question, epsilon=priced(survey, question), left_out=False)
    true = truth(database, question)
    keys = [name for name in answer.columns if name not in answer.margins()]
    noisy = [name for name in answer.columns if name in answer.margins()]
    by_key = {tuple(row[name] for name in keys): row for row in true}
    worst = 0.0
    for name in noisy:
        largest = max((abs(float(row[name])) for row in true if row[name] is not None), default=1.0) or 1.0
        for row in answer:
            shown = dict(zip(answer.columns, row, strict=True))
            exact = by_key.get(tuple(shown[key] for key in keys), {}).get(name)
            worst = max(worst, abs(float(shown[name]) - float(exact or 0)) / largest)
    seen = {tuple(dict(zip(answer.columns, row, strict=True))[key] for key in keys) for row in answer}
    assert answer.plan.threshold is not None or seen >= set(by_key), "a group is missing"  # small ones may not be shown
    return worst


def written(survey: Curator) -> str:
    parts = [f"{name}\n{outcome(survey, question)}\n" for name, question in STANDARD.items()]
    return "\n".join(parts)


def test_each_question_is_answered_or_refused_as_the_file_says(survey: Curator) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(written(survey), encoding="utf-8")
    assert written(survey) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STANDARD)
def test_an_answered_standard_text_is_what_duckdb_says(survey: Curator, database: duckdb.DuckDBPyConnection, name: str) -> None:
    if outcome(survey, STANDARD[name]) == "answered":
        assert error(survey, database, STANDARD[name]) <= CLOSE
    else:
        assert f"{name}\nrefused: " in GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PRIVATE)
def test_the_private_form_is_what_duckdb_says(survey: Curator, database: duckdb.DuckDBPyConnection, name: str) -> None:
    assert error(survey, database, PRIVATE[name]) <= CLOSE


@pytest.mark.parametrize("name", ["Q3", "Q10", "Q17", "Q18", "Q22"])
def test_a_refusal_spells_out_questions_that_are_answered(
    survey: Curator, database: duckdb.DuckDBPyConnection, name: str
) -> None:
    """Each form is pasted from the error as people see it."""
    with pytest.raises(dt.QueryError) as refused:
        survey.quote(STANDARD[name], epsilon=1)
    pasted = [line.strip() for line in str(refused.value).splitlines() if line.startswith("      SELECT")]
    assert len(pasted) == len(refused.value.forms) == 2
    for form in pasted:
        assert error(survey, database, form) <= CLOSE


def test_that_check_can_fail(survey: Curator, database: duckdb.DuckDBPyConnection) -> None:
    database.execute("CREATE OR REPLACE TEMP VIEW half AS SELECT * FROM customer WHERE c_custkey % 2 = 0")
    asked = "SELECT c_mktsegment, COUNT(*) AS n FROM customer GROUP BY c_mktsegment"
    answer = {row[0]: row[1] for row in survey.ask(asked, epsilon=priced(survey, asked), left_out=False)}
    half = {row["c_mktsegment"]: row["n"] for row in truth(database, asked.replace("FROM customer", "FROM half"))}
    assert max(abs(answer[key] - half[key]) / max(half.values()) for key in half) > CLOSE
