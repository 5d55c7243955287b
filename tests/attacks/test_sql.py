"""SQL: questions that mean something else than was checked (PITFALLS, SQL)."""

from __future__ import annotations

import datetime
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dither as dt
from attacks.moved import complaints
from attacks.neighbours import filled, survey
from attacks.paths import ask, observe, open_observed
from dither.engines.duckdb.engine import DuckDB
from planning.test_golden import cases as plans
from sql.test_golden import cases as questions

GOLDEN = list(dict.fromkeys([text for _, text, _ in plans()] + [text for _, text, _ in questions("sql_to_nodes.txt")]))


@pytest.fixture(scope="module")
def curator() -> dt.Curator:
    return open_observed(filled(survey()))


def refused(curator: dt.Curator, question: str) -> str:
    """Returns the refusal, and checks that nothing was charged and the engine did not run."""
    seen = observe(curator, question)
    assert seen.status.startswith("QueryError"), question
    assert "Charged: nothing." in seen.status
    assert seen.charge.epsilon == 0
    assert seen.groups == []
    return seen.status


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(cost) FROM (SELECT cost FROM visits LIMIT 10) t",
        "SELECT SUM(cost) FROM (SELECT cost FROM visits ORDER BY cost LIMIT 10) t",
        "WITH t AS (SELECT * FROM visits LIMIT 1) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits LIMIT 5)",
        "SELECT SUM(c) FROM ((SELECT cost AS c FROM visits LIMIT 3) UNION ALL (SELECT age FROM people)) t",
        "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id LIMIT 1)",
        "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id LIMIT 9) t",
        "SELECT COUNT(*) FROM (SELECT * FROM visits FETCH FIRST 3 ROWS ONLY) t",
        "SELECT COUNT(*) FROM (SELECT TOP 3 * FROM visits) t",
        "SELECT COUNT(*) FROM (SELECT * FROM visits OFFSET 3) t",
    ],
)
def test_limit_in_a_subquery_is_refused(curator: dt.Curator, question: str) -> None:
    refused(curator, question)


def test_that_limit_on_the_noisy_result_is_answered(curator: dt.Curator) -> None:
    seen = observe(curator, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward LIMIT 1")
    assert seen.answer is not None
    assert len(seen.answer) == 1
    assert len(seen.answer.noisy.keys) == 2  # both counts were released, one is shown


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM payroll",
        "SELECT name, COUNT(*) FROM payroll GROUP BY name",
        "SELECT COUNT(*) FROM people p JOIN payroll q ON p.person_id = q.person_id",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM payroll)",
        "SELECT * FROM regions",
        "SELECT name, area FROM regions",
    ],
)
def test_a_table_missing_from_the_catalog_is_not_public(question: str) -> None:
    """An undeclared table is refused even if the engine has it."""
    curator = open_observed(filled(survey()))
    engine = curator.engine
    assert isinstance(engine, DuckDB)
    engine._connection.execute("CREATE TABLE payroll AS SELECT 1 AS person_id, 'Miller' AS name")
    assert "Miller" not in refused(curator, question)


def test_undeclared_columns_of_a_declared_table_are_not_even_in_reach() -> None:
    table = {"u": [1, 2], "x": [1, 2], "diagnosis": ["a", "b"]}
    curator = open_observed(
        dt.Catalog({"t": dt.Table(table, unit="u", max_rows=1, columns={"x": dt.between(0, 9)})}, dt.Budget(9, "1/2"))
    )
    for question in ("SELECT diagnosis, COUNT(*) FROM t GROUP BY diagnosis", "SELECT COUNT(*) FROM t WHERE diagnosis = 'a'"):
        refused(curator, question)
    assert "diagnosis" not in curator.engine.schema("t")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(age) OVER () FROM people",
        "SELECT COUNT(*) FROM (SELECT SUM(cost) OVER () AS s FROM visits) t WHERE s > 3",
        "SELECT COUNT(*) FROM (SELECT SUM(cost) OVER (PARTITION BY ward) AS s FROM visits) t",
        "SELECT COUNT(*) FROM (SELECT LAG(cost) OVER (ORDER BY visit_id) AS s FROM visits) t",
        "SELECT COUNT(*) FROM people QUALIFY ROW_NUMBER() OVER (ORDER BY age) = 1",
        "SELECT AVG(age) OVER w FROM people WINDOW w AS (PARTITION BY region)",
    ],
)
def test_windows_across_people_are_refused(curator: dt.Curator, question: str) -> None:
    refused(curator, question)


def test_distinct_is_not_ignored(curator: dt.Curator) -> None:
    table = {"u": [1, 2, 3, 4, 4], "x": [5, 5, 5, 6, 6]}
    columns = {"x": dt.between(0, 9)}
    assert ask("SELECT COUNT(DISTINCT x) AS n FROM t", table, columns, max_rows=2).only() == (2,)
    assert ask("SELECT COUNT(x) AS n FROM t", table, columns, max_rows=2).only() == ((5,),)
    assert ask("SELECT COUNT(DISTINCT u) AS n FROM t", table, columns, max_rows=2).only() == ((4,),)
    assert ask("SELECT COUNT(*) AS n FROM (SELECT DISTINCT u, x FROM t) s", table, columns, max_rows=2).only() == ((4,),)
    for question in ("SELECT SUM(DISTINCT age) FROM people", "SELECT AVG(DISTINCT age) FROM people"):
        refused(curator, question)
    refused(curator, "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM people) t")


def test_variance_is_the_mean_of_squares_less_the_square_of_the_mean() -> None:
    values = [1, 2, 4, 8, 16]
    table, columns = {"u": list(range(5)), "x": values}, {"x": dt.between(0, 20)}
    mean = sum(values) / 5
    truth = sum((x - mean) ** 2 for x in values) / 5
    for function, wanted in (("VAR_POP", truth), ("VAR_SAMP", truth * 5 / 4), ("STDDEV_POP", truth**0.5)):
        seen = ask(f"SELECT {function}(x) AS v FROM t", table, columns, 2000)
        assert seen.answer is not None
        assert seen.answer["v"] == [pytest.approx(wanted, rel=0.02)]
    wrong = sum(x * x for x in values) / 5 - mean
    assert wrong != pytest.approx(truth, rel=0.02)  # the twin: E[x^2] - E[x] is another number


VOLATILE = re.compile(r"\b(random|setseed|uuid|gen_random|now|current_|today|nextval|read_|getenv|tablesample|sample)", re.I)


def test_no_noise_comes_from_the_database(curator: dt.Curator) -> None:
    """No golden question becomes a statement with a volatile function, and no question can ask for one."""
    engine = curator.engine
    assert isinstance(engine, DuckDB)
    printed = []
    for question in GOLDEN:
        if "FROM prescriptions GROUP BY" not in question:
            printed += engine.explain(curator.quote(question, epsilon=2, delta="1e-6").plan.work)
    assert len(printed) > 100
    assert [text for text in printed if VOLATILE.search(text)] == []
    assert VOLATILE.search("SELECT count(*) + RANDOM() FROM people")
    for function in ("RANDOM()", "RAND()", "UUID()", "NOW()", "NEXTVAL('s')", "SETSEED(0.5)", "GEN_RANDOM_UUID()"):
        refused(curator, f"SELECT COUNT(*) FROM people WHERE {function} IS NOT NULL")
        refused(curator, f"SELECT COUNT(*) + {function} AS n FROM people")


SAME = [
    "ABS(x)", "FLOOR(x)", "CEIL(x)", "ROUND(x)", "SIGN(x)", "SQRT(x)", "LN(x)", "EXP(x / 10)", "POWER(x, 2)", "POWER(x, 3)",
    "-x", "x + y", "x - y", "x * y", "x / y", "x % y", "x / (y + 7)", "LEAST(x, y)", "GREATEST(x, y)", "BUCKET(x, 3)",
    "CAST(x AS INTEGER)", "CAST(CAST(y AS VARCHAR) AS INTEGER)", "NULLIF(x, y)", "COALESCE(x, y)", "CLAMP(x, -2, 3)",
    "CASE WHEN x > y THEN x ELSE -y END", "x * x - y * y", "ABS(x - y) * SIGN(y)", "POWER(ABS(x), 0.5)",
    "LENGTH(CAST(y AS VARCHAR))",
]  # fmt: skip


@pytest.mark.parametrize("expression", SAME)
def test_what_the_analyser_says_of_a_function_holds_in_the_engine(expression: str) -> None:
    """CLIPPED counts values outside the inferred bounds of the expression: none if all are inside."""
    values = [-8.0, -7.5, -1.0, -0.5, -0.0, 0.0, 1e-300, 0.49999999999999994, 0.5, 1.0, 2.5, 7.999, 8.0]
    pairs = [(x, y) for x in values for y in (-5, -1, 0, 1, 2, 5)]
    table = {"u": list(range(len(pairs))), "x": [x for x, _ in pairs], "y": [y for _, y in pairs]}
    columns = {"x": dt.between(-8, 8), "y": dt.between(-5, 5)}
    text = f"SELECT CLIPPED({expression}) AS far FROM t"
    seen = ask(text, table, columns)
    if seen.status != "answered":
        assert "has no bounds" in seen.status  # said, not guessed
        assert "/ y" in expression or "% y" in expression or "LN" in expression
        return
    outside, inside, *_ = seen.only()[0]
    assert outside == 0
    assert inside > 0
    wild = ask(text, {**table, "x": [v * 100 for v in table["x"]]}, columns)
    assert wild.charge == seen.charge


def test_that_values_outside_are_counted() -> None:
    seen = ask("SELECT CLIPPED(x) AS far FROM t", {"u": [1, 2, 3], "x": [9.5, 3.0, -9.0]}, {"x": dt.between(-8, 8)}, key="u")
    assert seen.only()[0][:2] == (2, 1)


@pytest.mark.parametrize(
    "clause",
    [
        "TABLESAMPLE 10 PERCENT",
        "FOR UPDATE",
        "FETCH FIRST 5 PERCENT ROWS ONLY",
        "WITH TIES",
        "GROUP BY ALL, region",
        "GROUP BY DISTINCT region",
        "GROUP BY region WITH ROLLUP",
        "QUALIFY TRUE",
        "WINDOW w AS ()",
        "SETTINGS x = 1",
        "OPTION (x)",
        "PREWHERE age > 3",
        "CONNECT BY 1",
        "START WITH 1",
        "CLUSTER BY age",
        "SORT BY age",
        "DISTRIBUTE BY age",
        "INTO OUTFILE 'x'",
        "USING SAMPLE 3",
        "AS OF 3",
        "FINAL",
        "WITH (NOLOCK)",
        "MATCH_RECOGNIZE (x)",
        "UNPIVOT (x)",
    ],
)
def test_unknown_clauses_are_not_silently_dropped(curator: dt.Curator, clause: str) -> None:
    for text in (f"SELECT COUNT(*) AS n FROM people {clause}", f"SELECT COUNT(*) AS n FROM people WHERE age > 3 {clause}"):
        seen = observe(curator, text)
        if seen.status == "answered":  # read as a table's name, it is a word that says nothing
            assert clause in {"FINAL"}
            continue
        refused(curator, text)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM people p JOIN people q ON p.region = q.region",
        "SELECT COUNT(*) FROM people p JOIN visits v ON p.age = v.cost",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)",
        "SELECT COUNT(*) FROM people WHERE region IN (SELECT region FROM visits)",
        "SELECT COUNT(*) FROM regions r LEFT JOIN people p ON p.region = r.name",
        "SELECT COUNT(*) FROM people p JOIN (SELECT region, COUNT(*) AS n FROM people GROUP BY 1) t ON p.region = t.region",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(n) FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY 1) t)",
        "WITH t AS (SELECT region, COUNT(*) AS n FROM people GROUP BY region) "
        "SELECT COUNT(*) FROM people WHERE region IN (SELECT region FROM t WHERE n > 3)",
    ],
)
def test_questions_that_mix_people_are_refused(curator: dt.Curator, question: str) -> None:
    refused(curator, question)


def test_an_aggregate_across_people_inside_another_gets_noise_first(curator: dt.Curator) -> None:
    """The question is the inner SELECT; the outer one reads its noisy numbers."""
    inner = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    around = curator.quote(f"SELECT AVG(n) FROM ({inner}) t", epsilon=1).plan
    plain = curator.quote(inner, epsilon=1).plan
    assert (around.work, around.noises, around.loss) == (plain.work, plain.noises, plain.loss)


def test_a_public_table_that_multiplies_rows_multiplies_nobody() -> None:
    """Joined to a thousand public rows, a person still counts max_rows."""
    public = dt.Table({"k": [1] * 1000, "day": [datetime.date(2020, 1, 1)] * 1000}, public=True)
    seen = []
    for people in ([1], []):
        private = dt.Table(
            {"u": pa.array(people, pa.int64()), "k": pa.array(people, pa.int64())},
            unit="u",
            columns={"k": dt.column()},
            max_rows=2,
        )
        both = dt.Catalog({"t": private, "many": public}, dt.Budget(9))
        seen.append(observe(open_observed(both), "SELECT COUNT(*) AS n FROM t JOIN many m ON t.k = m.k"))
    assert seen[0].only() == ((2,),)
    assert complaints(*seen) == []


def test_that_the_engine_alone_would_have_said_more(curator: dt.Curator) -> None:
    """The twin of all refusals: plain DuckDB answers them."""
    engine: Any = curator.engine
    connection: duckdb.DuckDBPyConnection = engine._connection
    assert connection.execute("SELECT SUM(age) OVER () FROM people").fetchall()
    assert connection.execute("SELECT SUM(cost) FROM (SELECT cost FROM visits LIMIT 10) t").fetchone()
