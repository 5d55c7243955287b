"""An incomplete question is refused at the gap and never charged."""

from __future__ import annotations

from pathlib import Path

import pytest

import dither as dt
from dither.errors import QueryError
from dither.query import fluent
from dither.query.sql.gate import Narrow
from dither.query.sql.select import parse
from sql.survey import CATALOG
from sql.test_golden import cases

WELL = [question for _, question, _ in cases("sql_to_nodes.txt")]
ENDS = {"R_PAREN", "VAR", "IDENTIFIER", "NUMBER", "STRING", "NULL", "TRUE", "FALSE", "DESC", "ASC", "END", "SEMICOLON", "TIME"}
ENDS |= {"FIRST", "ALL"}  # NULLS FIRST, GROUP BY ALL


def tokens(question: str) -> list[tuple[str, int]]:
    """Returns the (type, end) of each token."""
    return [(token.token_type.name, token.end + 1) for token in Narrow().tokenize(question)]


def refused(question: str) -> bool:
    try:
        parse(question, CATALOG)
    except QueryError as error:
        return error.charged == "nothing"
    return False


def test_a_question_cut_off_behind_any_word_that_cannot_end_it_is_refused() -> None:
    tried = [question[:end] for question in WELL for kind, end in tokens(question) if kind not in ENDS]
    assert len(tried) > 1000
    assert [cut for cut in tried if not refused(cut)] == []


def test_that_those_cuts_can_be_answered() -> None:
    tried = [question[:end] for question in WELL for kind, end in tokens(question) if kind in ENDS]
    assert any(not refused(cut) for cut in tried)


def test_two_commas_in_a_row_and_a_comma_at_an_end_are_refused() -> None:
    broken = [
        f"{question[:end]} , {question[end:]}"
        for question in WELL
        for (kind, end), (after, _) in zip(tokens(question), [*tokens(question)[1:], ("", 0)], strict=True)
        if kind in ("COMMA", "L_PAREN", "SELECT", "GROUP_BY", "ORDER_BY")
        or after in ("", "COMMA", "R_PAREN", "FROM", "WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT", "UNION", "JOIN")
    ]
    assert len(broken) > 1000
    assert [question for question in broken if not refused(question)] == []


@pytest.mark.parametrize("piece", ["age IN (1, 2,)", "age > 3 AND", "age BETWEEN 1 2", "(age > 3", "age =< 3"])
def test_pieces_of_a_chain_are_held_to_the_same(piece: str) -> None:
    with pytest.raises(QueryError):
        fluent.table(CATALOG, "people").where(piece)


def test_a_csv_column_that_nobody_called_whole_says_how_it_becomes_so(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,age\n1,2\n2,3\n", encoding="utf-8")

    def keyed(age: str) -> None:
        columns = {"id": dt.column(kind="int"), "age": dt.between(0, 9, kind=age or None)}
        people = dt.Table(tmp_path / "people.csv", unit="id", max_rows=1, columns=columns)
        with dt.open(dt.Catalog({"people": people}, dt.Budget(1)), ledger=":memory:") as survey:
            survey.quote("SELECT age, COUNT(*) FROM people GROUP BY age", epsilon="0.1")

    with pytest.raises(QueryError, match=r'declare kind = "int" for people\.age in the catalog'):
        keyed("")
    keyed("int")


def test_a_closed_session_says_so_to_every_question() -> None:
    people = dt.Table({"id": [1], "age": [2]}, unit="id", max_rows=1, columns={"age": dt.between(0, 9)})
    survey = dt.open(dt.Catalog({"people": people}, dt.Budget(1)), ledger=":memory:")
    survey.close()
    question = "SELECT COUNT(*) FROM people"
    asks = [
        lambda: survey.ask(question, epsilon="0.1"),
        lambda: survey.quote(question, epsilon="0.1"),
        lambda: survey.suggest("people.age", epsilon="0.1"),
        lambda: survey.budget.remaining,
    ]
    for ask in asks:
        with pytest.raises(dt.DitherError, match="was closed") as refusal:
            ask()
        assert refusal.value.fix == "open the catalog again."
        assert refusal.value.charged == "nothing"


def test_nothing_is_charged_for_half_a_question() -> None:
    people = dt.Table({"id": [1], "age": [2]}, unit="id", max_rows=1, columns={"age": dt.between(0, 9)})
    with dt.open(dt.Catalog({"people": people}, dt.Budget(1)), ledger=":memory:") as survey:
        before = survey.budget.remaining
        for half in ("SELECT COUNT(*) FROM people GROUP BY", "SELECT COUNT(*), FROM people", "SELECT COUNT(*) FROM people,"):
            with pytest.raises(QueryError):
                survey.ask(half, epsilon="0.1")
        assert survey.budget.remaining == before
        survey.ask("SELECT COUNT(*) FROM people", epsilon="0.1")
        assert survey.budget.remaining != before


KEYWORDS = dt.Catalog(
    {"t": dt.Table("t.csv", unit="row", columns={name: dt.column(kind="int") for name in ("select", "case", "name", "x")})},
    dt.Budget(1),
)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT select, COUNT(*) FROM t GROUP BY select",
        "SELECT COUNT(*) FROM t WHERE select = 1",
        "SELECT COUNT(*) FROM t GROUP BY Select",
        "SELECT t.select, COUNT(*) FROM t GROUP BY t.select",
    ],
)
def test_a_column_named_like_a_word_of_sql_is_shown_in_quotes(question: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse(question, KEYWORDS)
    assert refused.value.fix.startswith('if select is meant as the column, write "select" in double quotes; else ')
    with pytest.raises(QueryError) as without:
        parse(question, CATALOG)  # no such column there
    assert "double quotes" not in without.value.fix
    assert parse('SELECT "select", COUNT(*) FROM t GROUP BY "select"', KEYWORDS).keys


@pytest.mark.parametrize(
    "question", ["SELECT COUNT(*) FROM t WHERE name = = 1", "SELECT , COUNT(*) FROM t", "SELECT COUNT(*) FROM t WHERE x = 'a"]
)
def test_what_is_wrong_elsewhere_gets_no_such_hint(question: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse(question, KEYWORDS)
    assert "double quotes" not in refused.value.fix
