"""UNION of private results: each part has its own noise, and what is done with them together is free."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction

import pytest

import dither as dt
from dither.audit.ourselves.compare import complaints
from dither.audit.ourselves.observe import looser, observe, open_observed
from dither.stacked import Stacked

ROWS = {"u": [1, 1, 2, 3, 3, 3, 4], "k": ["a", "b", "a", "b", "b", "a", "a"], "x": [1, 2, 3, 4, 5, 6, None]}
COLUMNS = {"k": dt.values("a", "b"), "x": dt.between(0, 9)}
BOTH = "SELECT k, COUNT(*) AS n FROM t GROUP BY k UNION ALL SELECT 'all', COUNT(*) FROM t"


def catalog(rows: dict[str, list[object]] = ROWS, delta: str = "0") -> dt.Catalog:  # type: ignore[assignment]
    tables = {
        "t": dt.Table(rows, unit="u", max_rows=3, max_groups=2, columns=COLUMNS),
        "r": dt.Table({"y": [1, 0, 1]}, unit="row", columns={"y": dt.between(0, 1)}),
    }
    return dt.Catalog(tables=tables, budget=dt.Budget(epsilon=5000, delta=delta))


@pytest.fixture(params=["0", "1e-6"])
def survey(request: pytest.FixtureRequest) -> Iterator[dt.Curator]:
    with dt.open(catalog(delta=request.param), ledger=":memory:") as curator:
        yield curator


def test_the_price_is_the_total(survey: dt.Curator) -> None:
    answer = survey.ask(BOTH, epsilon=1)
    assert isinstance(answer, Stacked)
    assert survey.budget.spent.epsilon == answer.total.epsilon == 1
    assert [part.total.epsilon for part in answer.parts] == [Fraction(1, 2)] * 2


def test_a_union_and_the_list_of_its_parts_are_one_question(survey: dt.Curator) -> None:
    answer = survey.ask(BOTH, epsilon=1)
    parts = survey.ask(BOTH.split(" UNION ALL "), epsilon=1)
    assert parts.replayed
    assert answer.rows == tuple(row for part in parts for row in part)
    assert survey.ask(f"{BOTH} ORDER BY 2 DESC LIMIT 1", epsilon=1).replayed


def test_order_limit_and_names_are_about_the_whole(survey: dt.Curator) -> None:
    assert survey.ask(f"{BOTH} ORDER BY n DESC", epsilon=2000).rows == (("all", 7), ("a", 4), ("b", 3))
    assert survey.ask(f"{BOTH} ORDER BY 2 LIMIT 1 OFFSET 1", epsilon=2000).rows == (("a", 4),)


def test_union_drops_rows_that_are_equal(survey: dt.Curator) -> None:
    one = "SELECT 'n' AS k, COUNT(*) AS n FROM t"
    assert len(survey.ask(f"{one} UNION {one}", epsilon=1)) == 1
    assert len(survey.ask(f"{one} UNION {one} UNION ALL {one}", epsilon=1)) == 2
    assert len(survey.ask(f"{one} UNION ALL {one} UNION {one}", epsilon=1)) == 1


def test_margins_are_those_of_the_parts(survey: dt.Curator) -> None:
    answer = survey.ask("SELECT COUNT(*) AS v, 1 AS c FROM t UNION ALL SELECT AVG(x), 2 FROM t", epsilon=1)
    assert [part.margins()[part.columns[0]][0] for part in answer.parts] == answer.margins()["v"]
    assert answer.margins().keys() == {"v"}
    assert [field.kind for field in answer.schema] == ["real", "int"]
    assert answer.to_arrow(margins=True).column_names == ["v", "v_margin", "c"]
    constant = survey.ask("SELECT COUNT(*) AS v, 0 AS c FROM t UNION ALL SELECT 5, COUNT(*) FROM t", epsilon=1)
    assert constant.margins()["v"][1] == constant.margins()["c"][0] == 0.0


def test_an_answer_prints_exports_and_explains_itself(survey: dt.Curator) -> None:
    answer = survey.ask(BOTH, epsilon=1)
    assert "all" in str(answer)
    assert "charged ε = 1" in answer.footer()
    assert json.loads(answer.to_json())["columns"] == ["k", "n"]
    assert answer.explain().count("COUNT(*)") == 2
    quote = survey.quote(BOTH, epsilon=1)
    assert (quote.epsilon, quote.again) == (1, answer.receipt.body["entry"]["number"])
    assert [field.name for field in quote.schema] == ["k", "n"]
    assert quote.margins().keys() == {"n"}
    json.loads(quote.to_json())


def test_units_of_both_parts_are_named(survey: dt.Curator) -> None:
    answer = survey.ask("SELECT COUNT(*) AS n FROM t UNION ALL SELECT COUNT(*) FROM r", epsilon=1)
    assert answer.receipt.body["unit"] == "one value of u and one row"


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT k, COUNT(*) FROM t GROUP BY k", "different numbers of columns: 1 and 2"),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT 'a' AS n FROM t HAVING COUNT(*) > 1", "a whole number in one part"),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT x FROM t", "rows are never shown"),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT COUNT(*) FROM nothing", "no table nothing"),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT SUM(u) FROM t", "has no bounds"),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT SUM(x) FROM t ORDER BY x", "none of its columns"),
        ("SELECT COUNT(*) AS n FROM t" + " UNION ALL SELECT COUNT(*) FROM t" * 64, "at most 64"),
    ],
)
def test_refusals_charge_nothing(survey: dt.Curator, question: str, what: str) -> None:
    before = survey.ledger.head()
    with pytest.raises(dt.QueryError) as refused:
        survey.ask(question, epsilon=1)
    assert what in str(refused.value)
    assert refused.value.fix
    assert survey.ledger.head() == before


def test_a_union_is_one_question_of_a_list(survey: dt.Curator) -> None:
    answers = survey.ask(["SELECT SUM(x) FROM t", BOTH], epsilon=1)
    assert answers[1].columns == ("k", "n")
    assert [answer.total.epsilon for answer in answers] == [Fraction(1, 2)] * 2


# --- neighbours ----------------------------------------------------------------------------------------------------


def seen(rows: dict[str, list[object]], change: object = None) -> object:
    with open_observed(catalog(rows), change) as curator:  # type: ignore[arg-type]
        return observe(curator, BOTH)


HEAVY = {"u": [*ROWS["u"], *[9] * 20], "k": [*ROWS["k"], *["a", "b"] * 10], "x": [*ROWS["x"], *[9] * 20]}


def test_one_person_moves_every_part_by_no_more_than_is_priced() -> None:
    assert complaints(seen(ROWS), seen(HEAVY)) == []  # type: ignore[arg-type]


def test_that_check_can_fail() -> None:
    assert complaints(seen(ROWS, looser(rows=3)), seen(HEAVY, looser(rows=3))) != []  # type: ignore[arg-type]
