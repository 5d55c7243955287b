"""An answer and what it leaves out, in one statement: the integers are those of two, and the tables are read once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import dither as dt
from dither.engines.duckdb.dialect import DIALECT
from dither.engines.sql.joint import Joint, join
from dither.planning.terms import Terms, plan_answer
from dither.query.read import read
from dither.query.work import Work
from engines.tables import KINDS, SECRET, arrow, by_key, in_duckdb, in_python, rows

COLUMNS = {
    "i": dt.between(-2, 3),
    "x": dt.between(0, 20, step="0.25"),
    "t": dt.values("a", "b", "ab", "é"),
    "b": dt.values(True, False, None),
}
QUESTIONS = {
    "one group": "SELECT COUNT(*) AS n FROM t",
    "text key": "SELECT t, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY t",
    "two keys": "SELECT i, b, COUNT(*) AS n FROM t GROUP BY i, b",
    "people": "SELECT t, COUNT(DISTINCT who) AS n FROM t GROUP BY t",
    "a part of the rows": "SELECT i, COUNT(*) AS n, SUM(x) FILTER (WHERE b) AS s FROM t GROUP BY i",
    "real key": "SELECT FLOOR(x / 5) * 5 AS k, COUNT(*) AS n FROM t WHERE x >= 0 AND x IS NOT NULL GROUP BY k",
    "computed key": "SELECT CASE WHEN x > 3 THEN 1 ELSE 0 END AS k, COUNT(x) AS n FROM t WHERE i < 3 GROUP BY k",
}


def works(question: str, max_rows: int = 2, max_groups: int = 1) -> tuple[Work, Work]:
    """The Work of the answer, and that of the rows it leaves out."""
    table = dt.Table(arrow([]), unit="who", max_rows=max_rows, max_groups=max_groups, columns=COLUMNS)
    with dt.open(dt.Catalog(tables={"t": table}, budget=dt.Budget(epsilon=10)), ":memory:") as curator:
        resolved = read(question, curator.catalog)
        program = plan_answer(resolved, curator.catalog, curator.session.caps, Terms.of(1), question)
        main, other, *_ = program.works
        return main, other


def joined(question: str) -> Joint | None:
    return join(*works(question), lambda table: list(KINDS.items()), DIALECT)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=rows(units=3, most=25))
def test_the_integers_are_those_of_two_statements(question: str, table: list[dict[str, Any]]) -> None:
    pair = works(question)
    engine, alone = in_duckdb({"t": arrow(table)}), in_duckdb({"t": arrow(table)})
    for work in pair:
        engine.prepare(work)
    for work in pair:
        found = by_key(engine.run(work, SECRET))
        assert found == by_key(alone.run(work, SECRET))
        if not work.by_unit:
            assert found == by_key(in_python({"t": table}).run(work, SECRET))


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_table_is_read_once(question: str) -> None:
    joint = joined(question)
    assert joint is not None
    assert joint.text.count('FROM "t"') == 1


def test_nothing_is_left_from_other_data() -> None:
    main, other = works(QUESTIONS["one group"])
    row = dict.fromkeys(KINDS, None)
    before, after = ([{**row, "who": who} for _ in range(5)] for who in (1, None))
    engine = in_duckdb({"t": arrow(before)})
    for work in (main, other):
        engine.prepare(work)
    engine.run(main, SECRET)  # nobody asked for the other one
    engine.exchange("t", arrow(after))
    engine._connection.register("t", arrow(after))
    assert engine.run(other, SECRET) == in_duckdb({"t": arrow(after)}).run(other, SECRET)


def test_pairs_of_another_question_are_not_shared() -> None:
    main, _ = works(QUESTIONS["text key"])
    _, other = works(QUESTIONS["two keys"])
    assert join(main, other, lambda table: list(KINDS.items()), DIALECT) is None


def test_a_key_whose_fractions_would_be_null_is_not_shared() -> None:
    """In b a fraction is NULL, which counts where NULL is a known value; in the other relation it is a value of its own."""
    main, other = works(QUESTIONS["real key"])
    for known, shared in (((0, 5, 10), True), ((0, 5, None), False)):
        own = replace(main, known=(known,))
        assert other.pairs is not None
        pairs = replace(other.pairs, of=own)
        assert (join(own, replace(other, pairs=pairs), lambda table: list(KINDS.items()), DIALECT) is not None) == shared


def test_what_counts_values_is_not_shared() -> None:
    """COUNT(DISTINCT) has statements of its own."""
    assert joined("SELECT t, COUNT(DISTINCT i) AS n FROM t GROUP BY t") is None
