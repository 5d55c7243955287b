"""A subquery that stands for a value is one number of a public table, as SQL has it, in both engines."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from dither.engines.reference import Reference
from sql.test_engines_agree import KINDS, in_duckdb, made_up, work_of

QUESTIONS = [
    "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(area) FROM regions)",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM regions) + 1",
    "SELECT COUNT(*) FROM people WHERE (SELECT MAX(area) FROM regions) IS NULL",
    "SELECT COUNT(*) FROM records WHERE x < (SELECT COUNT(area) FROM regions WHERE coast) * 2",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN (SELECT MIN(area) FROM regions) AND (SELECT MAX(area) FROM regions)",
]


@pytest.mark.parametrize("size", [3, 0], ids=["some regions", "no region"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_it_means_what_it_means_in_sql(question: str, size: int) -> None:
    tables = made_up(7)
    tables["regions"] = [{**row, "area": area} for row, area in zip(tables["regions"], (40, None, 3), strict=True)][:size]
    engine, work = in_duckdb(tables), work_of(question)
    ((expected,),) = _raw(engine, question)
    for each in (engine, Reference(tables, KINDS)):
        groups = each.run(work, b"secret")
        assert (groups[0].measures[0][0] if groups else 0) == expected  # type: ignore[index]


def _raw(engine: Any, question: str) -> list[tuple[int]]:
    connection: duckdb.DuckDBPyConnection = engine._connection
    found: list[tuple[int]] = connection.execute(question).fetchall()
    return found
