"""Conditions of WHERE on real columns: NaN and NULL pass none, and parts of a file can be skipped."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DIALECT
from dither.engines.sql.relations import relation
from dither.query.nodes import Call, Column, Expression, Filter, Literal, Scan
from dither.query.work import Cell, Sums, Work
from engines.places import Place, compare
from engines.tables import KINDS, REALS, SECRET, rows
from engines.works import united

X = Column("t.x")
COMPARED = st.builds(
    lambda name, value: Call(name, (X, Literal(value))),
    st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]),
    st.sampled_from([0, 1, Fraction(5, 2), -1, 2**62, None]),
)
CONDITIONS: st.SearchStrategy[Expression] = st.recursive(
    COMPARED,
    lambda each: st.one_of(
        st.builds(
            lambda name, parts: Call(name, tuple(parts)), st.sampled_from(["and", "or"]), st.lists(each, min_size=2, max_size=3)
        ),
        st.builds(lambda part: Call("not", (part,)), each),
    ),
    max_leaves=5,
)


def counted(condition: Expression) -> Work:
    return Work(Filter(Scan("t", "t"), condition), (), None, False, None, (Sums((Cell(constant=1),), 1),))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(condition=CONDITIONS, table=rows())
def test_the_same_rows_pass_as_in_the_reference(place: Place, condition: Expression, table: list[dict[str, Any]]) -> None:
    ours, theirs = compare(place, counted(condition), {"t": table})
    assert ours == theirs


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq"])
def test_what_is_not_a_number_passes_no_comparison_with_one(place: Place, name: str) -> None:
    table = [{**dict.fromkeys(KINDS), "x": value} for value in (*REALS, None)]
    (group,) = place.engine({"t": table}).run(counted(Call(name, (X, Literal(1)))), SECRET)
    tests = {"lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (1, 0), "eq": (0,)}[name]
    assert group.measures == ((sum((x > 1) - (x < 1) in tests for x in REALS if not math.isnan(x)),),)


@pytest.mark.parametrize("first", [True, False])
def test_what_is_known_of_one_part_of_a_union_is_not_taken_for_known_of_all(place: Place, first: bool) -> None:
    """Whole numbers are finite and have a square; the numbers of the other part may be NaN, infinite or too large for one."""
    table = [{**dict.fromkeys(KINDS), "i": 3, "x": value} for value in (*REALS, 1e300, None)]
    source = united(Call("to_real", (Column("i"),)), first=first)
    x = Column("x")
    for condition in (
        Call("gt", (Call("div", (Literal(6), x)), Literal(Fraction(5, 2)))),
        Call("is_null", (Call("mul", (x, Literal(0))),)),
        Call("gt", (Call("mul", (x, x)), Literal(5))),
    ):
        work = Work(Filter(source, condition), (), None, False, None, (Sums((Cell(constant=1),), 1),))
        ours, theirs = compare(place, work, {"t": table})
        assert ours == theirs


def test_a_stored_column_is_compared_as_it_is() -> None:
    """DuckDB can look at a file's statistics then; behind CASE it cannot."""
    condition = Call("or", (Call("gt", (X, Literal(250))), Call("lt", (X, Literal(0)))))
    printed = relation(Filter(Scan("t", "t"), condition), lambda table: list(KINDS.items()), DIALECT)
    assert "isnan" not in printed.text
