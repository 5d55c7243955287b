"""Golden questions of everyday SQL: each is planned, answered as DuckDB does at a large ε, and one person moves it by no more
than was priced. Each file beside this one has `QUESTIONS`, `tables` and `catalog`; and `PLAIN` for questions that DuckDB writes
in another way; and `PARAMS` with the values of parameters."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

import dither as dt
from dither.audit.ourselves.compare import complaints, leaks
from dither.audit.ourselves.observe import looser, observe, open_observed

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if not path.stem.startswith("test_"))
PARTS = {name: import_module(f"sql.everyday.{name}") for name in NAMES}
CASES = [
    pytest.param(part, question, id=f"{name}: {what}") for name, part in PARTS.items() for question, what in part.QUESTIONS
]
LARGE = (10**6, 10**5, 10**4, 10**3, 500)  # the first that mechanisms can draw


@pytest.fixture(scope="module", autouse=True)
def closing() -> Iterator[None]:
    yield
    for curator in OPEN:
        curator.close()
    OPEN.clear()
    opened.cache_clear()  # a worker may come back to this file


OPEN: list[dt.Curator] = []


@cache
def opened(part: ModuleType, without: int | None = None, change: bool = False) -> dt.Curator:
    OPEN.append(open_observed(part.catalog(part.tables(without)), looser(rows=9, groups=9) if change else None))
    return OPEN[-1]


def values(part: ModuleType, question: str) -> Any:
    return getattr(part, "PARAMS", {}).get(question)


def ask(curator: dt.Curator, question: str, params: Any = None) -> dt.Answer:
    for epsilon in LARGE:
        try:
            return curator.ask(question, epsilon=epsilon, params=params)
        except dt.DitherError as error:
            if "out of range" not in str(error):
                raise
    raise AssertionError("no price is large enough")


def plain(part: ModuleType, question: str) -> list[tuple[Any, ...]]:
    """DuckDB's own answer."""
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO clamp(x, low, high) AS CASE WHEN x < low THEN low WHEN x > high THEN high ELSE x END")
        connection.execute("CREATE MACRO days_between(x, y) AS date_diff('day', x, y)")
        for name, table in part.tables().items():
            connection.register(name, table)
        return connection.sql(getattr(part, "PLAIN", {}).get(question, question)).fetchall()


def same(one: Any, two: Any) -> bool:
    if isinstance(two, datetime.datetime) and not isinstance(one, datetime.datetime):
        two = two.date()
    if isinstance(one, bool) or isinstance(two, bool) or one is None or two is None or isinstance(one, (str, datetime.date)):
        return bool(one == two)
    return math.isclose(float(one), float(two), rel_tol=1e-3, abs_tol=2e-2)


def ordered(rows: Any, question: str) -> list[tuple[Any, ...]]:
    outside = question.rsplit(")", 1)[-1]
    return (
        list(rows)
        if "ORDER BY" in outside
        else sorted(rows, key=lambda row: [str(v) for v in row if isinstance(v, (str, int))])
    )


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("part", "question"), CASES)
def test_the_answer_at_a_large_price_is_duckdbs(part: ModuleType, question: str) -> None:
    answer = ask(opened(part), question, values(part, question))
    got, right = ordered(answer.rows, question), ordered(plain(part, question), question)
    assert len(got) == len(right), (got, right)
    assert all(same(a, b) for one, two in zip(got, right, strict=True) for a, b in zip(one, two, strict=True)), (got, right)


@pytest.mark.parametrize(("part", "question"), CASES)
def test_the_columns_are_known_before_any_row_is_read(part: ModuleType, question: str) -> None:
    survey, params = opened(part), values(part, question)
    quote, answer = survey.quote(question, epsilon=1, params=params), survey.ask(question, epsilon=1, params=params)
    assert [field.name for field in quote.schema] == list(answer.columns)
    assert quote.margins().keys() == answer.margins().keys()
    answer.to_arrow(margins=True)
    assert str(answer)


@pytest.mark.parametrize(("part", "question"), CASES)
def test_one_person_moves_no_more_than_was_priced(part: ModuleType, question: str) -> None:
    params = values(part, question)
    first = observe(opened(part), question, params=params)
    without = opened(part, 0)
    assert complaints(first, observe(without, question, params=params)) == []
    assert leaks(first, observe(without, question, like=first.trace, params=params)) == []


def test_that_check_can_fail() -> None:
    """Person 0 has far more visits than one person may count for."""
    part, question = PARTS["words"], "SELECT SUM(cost) AS m FROM visits"
    small = {"max_rows": 2, "max_groups": 1}
    first = observe(opened(part, change=True), question, **small)
    assert complaints(first, observe(opened(part, 0, change=True), question, **small)) != []
