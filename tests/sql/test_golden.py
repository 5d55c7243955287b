"""Golden files: SQL to nodes and SQL to errors. UPDATE_GOLDEN=1 rewrites them; read the diff."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dither.errors import QueryError
from dither.query.resolve.relations import resolve
from dither.query.show import show_query
from dither.query.sql import contexts
from dither.query.sql.select import parse
from sql.survey import CATALOG

GOLDEN = Path(__file__).parent.parent / "golden"
ASK = "ask> "


@pytest.fixture(autouse=True)
def same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fix names the constant of the present; the files name one of 2026."""
    monkeypatch.setattr(contexts, "now", lambda: datetime.datetime(2026, 1, 31, 12, 30))


def cases(name: str) -> list[tuple[str, str, str]]:
    """Returns (comment lines before, question, expected) for each case of a file."""
    found: list[tuple[str, str, str]] = []
    comment, question, expected = "", "", []
    for line in [*(GOLDEN / name).read_text(encoding="utf-8").splitlines(), ASK]:
        if line.startswith(ASK):
            if question:
                found.append((comment, question, "\n".join(expected).strip("\n")))
                comment = ""
            question, expected = line[len(ASK) :], []
        elif line.startswith("# ") and not (question and not expected):
            if question:
                found.append((comment, question, "\n".join(expected).strip("\n")))
                comment, question, expected = "", "", []
            comment += line + "\n"
        else:
            expected.append(line)
    return found


def nodes(text: str) -> str:
    found = resolve(parse(text, CATALOG), CATALOG, text)
    who = f"each {found.unit} at most {found.max_rows} rows in {found.max_groups} groups" if found.by_unit else "each row"
    rows = f", at least {found.rows.at_least} rows" if found.rows.at_least else ""
    return f"{show_query(found.query)}\nbound {who}{rows}"


def error(text: str) -> str:
    with pytest.raises(QueryError) as refusal:
        resolve(parse(text, CATALOG), CATALOG, text)
    assert refusal.value.charged == "nothing"
    assert refusal.value.fix
    return str(refusal.value)


@pytest.mark.parametrize(("name", "answer"), [("sql_to_nodes.txt", nodes), ("sql_to_error.txt", error)])
def test_every_question_gives_what_the_file_says(name: str, answer: Callable[[str], str]) -> None:
    known = cases(name)
    assert len(known) > 50
    if os.environ.get("UPDATE_GOLDEN"):
        written = [f"{comment}{ASK}{question}\n{answer(question)}\n" for comment, question, _ in known]
        (GOLDEN / name).write_text("\n".join(written), encoding="utf-8")
        return
    for _, question, expected in known:
        assert answer(question) == expected, question


@pytest.mark.parametrize("name", ["sql_to_nodes.txt", "sql_to_error.txt"])
def test_no_question_stands_twice(name: str) -> None:
    questions = [question for _, question, _ in cases(name)]
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize("asked", ["SUM(score)", "AVG(score * 2)", "MEDIAN(score)"])
def test_a_missing_bound_is_not_answered_with_somebody_elses_numbers(asked: str) -> None:
    """Bounds for an income would be copied for an age."""
    fix = error(f"SELECT {asked} FROM people").split("Fix: ")[1]
    assert "with your own low and high" in fix
    assert not any(letter.isdigit() for letter in fix)
