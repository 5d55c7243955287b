"""Inside one person every row counts: subqueries per person give plain DuckDB's numbers, however heavy the person.

The tables have people with up to sixty rows, `max_rows` is 2. The questions are answered with a huge epsilon and compared
with plain DuckDB, which runs the same text. Only values within declared bounds are compared: a sum clips the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dither as dt
from dither.audit.ourselves.observe import Change, open_observed
from dither.curator import Curator
from dither.errors import QueryError
from dither.query.nodes import Call, Column, Compute, Literal, Named, PerUnit, Relation
from dither.query.work import Work
from sql.test_scalars import changed

MOST = 2  # max_rows: far below what people have
SURE = 200  # an epsilon at which a count has no noise


def tables(seed: int, people: int = 40) -> dict[str, pa.Table]:
    """People with 0 to 60 visits: some heavy, NULLs and negative numbers among the values, rows of nobody."""
    rng = random.Random(seed)
    visits = []
    for person in range(people):
        for _ in range(rng.choice([0, 1, 1, 2, 3, 7, 60])):
            cost = rng.choice([None, *range(0, 101, 7)])
            weight = rng.choice([None, -12.5, -0.25, 0.0, 3.75, 20.0])
            visits.append((person, cost, weight, rng.choice(["a", "b", "c", None]), rng.randint(1, 4)))
    rng.shuffle(visits)
    names = ["person", "cost", "weight", "ward", "month"]
    kinds = [pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.int64()]
    columns = zip(*visits, strict=True)
    rows = pa.table({name: pa.array(values, kind) for name, kind, values in zip(names, kinds, columns, strict=True)})
    ages = pa.array([rng.choice([None, *range(18, 90)]) for _ in range(people)], pa.int64())
    return {"visits": rows, "people": pa.table({"person": pa.array(range(people), pa.int64()), "age": ages})}


def catalog(data: dict[str, pa.Table]) -> dt.Catalog:
    visits = {
        "cost": dt.between(0, 100),
        "weight": dt.between(-12.5, 20, step="0.25"),
        "ward": dt.values("a", "b", "c"),
        "month": dt.between(1, 4),
    }
    return dt.Catalog(
        {
            "people": dt.Table(data["people"], unit="person", max_rows=1, key="person", columns={"age": dt.between(0, 120)}),
            "visits": dt.Table(
                data["visits"],
                unit={"column": "person", "references": "people.person"},
                max_rows=MOST,
                max_groups=3,
                columns=visits,
            ),
        },
        dt.Budget(10**9),
    )


@contextmanager
def opened(seed: int, change: Change | None = None) -> Iterator[tuple[Curator, duckdb.DuckDBPyConnection]]:
    """Opens the tables of a seed with dither and with plain DuckDB."""
    data = tables(seed)
    connection = duckdb.connect()
    connection.execute("CREATE MACRO clamp(x, low, high) AS CASE WHEN x < low THEN low WHEN x > high THEN high ELSE x END")
    for name, rows in data.items():
        connection.register(name, rows)
    try:
        with open_observed(catalog(data), change) as curator:
            yield curator, connection
    finally:
        connection.close()


def surely(curator: Curator, question: str) -> dt.Answer:
    """Answers with as little noise as there can be: sums of wide values take a larger epsilon than counts."""
    for epsilon in (500_000, 50_000, 5000):
        try:
            return curator.ask(question, epsilon=epsilon)
        except QueryError as refused:
            if "spend a smaller epsilon" not in refused.fix:
                raise
    return curator.ask(question, epsilon=SURE)


def wrong(curator: Curator, connection: duckdb.DuckDBPyConnection, question: str) -> bool:
    """Whether an answer differs from plain DuckDB's. Groups that DuckDB does not show must be empty."""
    answer, expected = surely(curator, question), connection.execute(question).fetchall()
    if len(answer.columns) == 1:
        ((truth,),) = expected
        if truth is None and "AVG(C" in question:
            return False  # the mean of nobody is anything
        return abs(float(answer.rows[0][0]) - float(truth or 0)) > 0.001 * abs(float(truth or 0)) + 0.5
    known = {key: number for key, number in expected if number is not None}
    return {key: number for key, number in answer.rows if number} != {key: n for key, n in known.items() if n}


# --- the findings -----------------------------------------------------------------------------------------------


def test_arithmetic_on_counts_inside_the_subquery() -> None:
    """Every visit costs 10, and everybody has ten: the mean cost is 10 wherever the quotient is written."""
    visits = {"person": np.repeat(np.arange(1000), 10), "cost": np.full(10000, 10)}
    table = dt.Table(visits, unit="person", max_rows=5, max_groups=1, columns={"cost": dt.between(0, 100)})
    inside = "SELECT person, SUM(cost) / COUNT(*) AS b, SUM(cost) AS c, COUNT(*) AS k FROM visits GROUP BY person"
    with dt.open(dt.Catalog({"visits": table}, dt.Budget(1000)), ledger=":memory:") as curator:

        def mean(value: str, where: str = "") -> float:
            return float(curator.ask(f"SELECT AVG({value}) AS b FROM ({inside}) t{where}", epsilon=10)["b"][0])

        assert abs(mean("CLAMP(b, 0, 100)") - 10) < 0.5
        assert abs(mean("CLAMP(c / k, 0, 100)") - 10) < 0.5
        assert abs(mean("CLAMP(k, 0, 100)") - 10) < 0.5
        assert abs(mean("LEAST(k, 100)", " WHERE k = 10") - 10) < 0.5
        assert curator.ask(f"SELECT COUNT(*) AS n FROM ({inside}) t WHERE k = 10", epsilon=100)["n"] == [1000]
        with pytest.raises(QueryError, match=r"AVG\(CLAMP\(k, 0, 20\)\) with your own limits"):
            mean("k")


# --- generated questions ----------------------------------------------------------------------------------------

VALUES = [
    "COUNT(*)",
    "COUNT(cost)",
    "COUNT(DISTINCT month)",
    "SUM(cost)",
    "SUM(cost) / COUNT(*)",
    "SUM(weight)",
    "COUNT(*) FILTER (WHERE cost > 50)",
    "MAX(cost) - MIN(cost)",
    "SUM(cost) - 10 * COUNT(*)",
]
OUTER = ["SUM(CLAMP(k, -9000, 9000))", "AVG(CLAMP(k, -900, 900))", "COUNT(*)", "COUNT(k)"]
CONDITIONS = ["k > 5", "k <= 5", "k = 3", "k BETWEEN 2 AND 20", "NOT k > 2", "k IS NULL", "TRUE"]


@pytest.mark.parametrize(
    "key",
    [
        "LEAST(FLOOR(k / 5) * 5, 40)",
        "LEAST(k - k % 5, 40)",
        "GREATEST(LEAST(FLOOR(k / 5) * 5, 42), 8)",
        "LEAST(CEIL(k / 5) * 5, 40)",
        "CASE WHEN k >= 40 THEN 40 ELSE FLOOR(k / 5) * 5 END",
    ],
)
def test_rounded_counts_as_keys_have_the_groups_that_are_possible(key: str) -> None:
    question = f"SELECT {key} AS b, COUNT(*) AS n FROM (SELECT person, COUNT(*) AS k FROM visits GROUP BY person) GROUP BY b"
    with opened(3) as (curator, connection):
        assert not wrong(curator, connection, question)
        assert len(curator.ask(question, epsilon=1).rows) == 9


def generated(seed: int) -> str:
    """Returns a question about a value per person, as a derived table, a WITH clause or a scalar subquery."""
    rng = random.Random(seed)
    value, outer, condition = rng.choice(VALUES), rng.choice(OUTER), rng.choice(CONDITIONS)
    filtered = rng.choice(["", "", " WHERE cost > 20", " WHERE ward IN ('a', 'b')"])
    grouped = f"SELECT person, {value} AS k FROM visits{filtered} GROUP BY person"
    twice = f"SELECT person, month, {value} AS m FROM visits{filtered} GROUP BY person, month"
    scalar = f"(SELECT {value} FROM visits v WHERE v.person = p.person)"
    return rng.choice(
        [
            f"SELECT {outer} AS s FROM ({grouped}) t WHERE {condition}",
            f"WITH t AS ({grouped}) SELECT {outer} AS s FROM t WHERE {condition}",
            f"SELECT {outer} AS s FROM ({grouped} HAVING COUNT(*) > {rng.randint(0, 9)}) t WHERE {condition}",
            f"SELECT {outer} AS s FROM (SELECT person, MAX(m) AS k FROM ({twice}) u GROUP BY person) t WHERE {condition}",
            f"SELECT {outer.replace('k', scalar)} AS s FROM people p WHERE {condition.replace('k', scalar)}",
            f"SELECT CLAMP(FLOOR(k), -5, 70) AS g, COUNT(*) AS n FROM ({grouped}) t WHERE {condition} GROUP BY g",
            f"SELECT COUNT(*) AS s FROM people p WHERE EXISTS"
            f" (SELECT 1 FROM ({grouped}) t WHERE t.person = p.person AND {condition})",
        ]
    )


SEEDS = range(60)


def test_generated_questions_are_those_of_plain_duckdb() -> None:
    with opened(1) as (curator, connection):
        assert [generated(seed) for seed in SEEDS if wrong(curator, connection, generated(seed))] == []


def capped(work: Work) -> Work:
    """Wrong version: holds every count of one person to max_rows."""

    def change(node: Relation) -> Relation:
        if not isinstance(node, PerUnit):
            return node
        counts = {each.name for each in node.aggregates if each.function == "count"}
        names = [*(key.name for key in node.keys), *(each.name for each in node.aggregates)]
        limit = Literal(MOST)
        held = [Call("least", (Column(name), limit)) if name in counts else Column(name) for name in names]
        return Compute(node, tuple(Named(name, value) for name, value in zip(names, held, strict=True)))

    return replace(work, source=changed(work.source, change))


def test_that_counts_held_to_max_rows_are_caught() -> None:
    with opened(1, capped) as (curator, connection):
        caught = [seed for seed in SEEDS if wrong(curator, connection, generated(seed))]
    assert len(caught) > 10


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(CLAMP(s, -9000, 9000)) AS n FROM (SELECT person, SUM(m) AS s FROM"
        " (SELECT person, month, SUM(weight) AS m FROM visits GROUP BY person, month) u GROUP BY person) t",
        "SELECT SUM(CLAMP(s, 0, 9000)) AS n FROM (SELECT person, SUM(m) AS s FROM"
        " (SELECT person, month, COUNT(*) AS m FROM visits GROUP BY person, month) u GROUP BY person) t",
        "SELECT AVG(CLAMP(s, -90, 90)) AS n FROM (SELECT person, AVG(m) AS s FROM"
        " (SELECT person, month, SUM(weight) AS m FROM visits GROUP BY person, month) u GROUP BY person) t",
    ],
)
def test_sums_of_sums(question: str) -> None:
    with opened(2) as (curator, connection):
        assert not wrong(curator, connection, question)


def test_a_grid_that_does_not_begin_at_a_step_keeps_its_sums() -> None:
    """Between 0.5 and 9.5 in steps of 1: two of them make whole numbers, and one does not."""
    rows = {"person": [1, 1, 2, 3], "x": [0.5, 2.5, 1.5, 9.5]}
    table = dt.Table(rows, unit="person", max_rows=1, columns={"x": dt.between("0.5", "9.5", step=1)})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(10**6)), ledger=":memory:") as curator:
        inner = "SELECT person, SUM(x) AS s FROM t GROUP BY person"
        assert curator.ask(f"SELECT SUM(CLAMP(s, 0, 20)) AS s FROM ({inner}) q", epsilon=50 * SURE)["s"] == [14.0]


# --- total: no person can make a question fail (law 7) ------------------------------------------------------------


def test_sums_beyond_every_integer_are_answered() -> None:
    big = 2**63 - 1
    rows = {"person": [1] * 5 + [2] * 5 + [3], "x": [big] * 5 + [-big] * 5 + [7]}
    table = dt.Table(rows, unit="person", max_rows=1, columns={"x": dt.column()})
    inner = "SELECT person, SUM(x) AS s, AVG(x) AS a, COUNT(*) AS k FROM t GROUP BY person"
    asked = {
        "SUM(CLAMP(s, 0, 100))": 107,
        "SUM(CLAMP(s * s, 0, 100))": 249,
        "SUM(CLAMP(a, -100, 100))": 7,
        "SUM(CASE WHEN s > 9e18 THEN 100 ELSE 0 END)": 100,
        "SUM(CLAMP(s / k, 0, 10))": 17,
    }
    with dt.open(dt.Catalog({"t": table}, dt.Budget(10**6)), ledger=":memory:") as curator:
        for value, truth in asked.items():
            assert abs(float(curator.ask(f"SELECT {value} AS n FROM ({inner}) q", epsilon=200 * SURE)["n"][0]) - truth) < 0.1


def test_a_fluent_question_counts_true_rows_too() -> None:
    with opened(3) as (curator, connection):
        asked: Any = curator.table("visits").per_unit(k=dt.count()).agg(n=dt.sum_("CLAMP(k, 0, 99)"))
        truth = connection.execute("SELECT COUNT(*) FROM visits").fetchall()[0][0]
        assert curator.ask(asked, epsilon=50 * SURE)["n"] == [truth]
