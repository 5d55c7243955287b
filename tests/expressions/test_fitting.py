"""What a question means once the kinds of its columns are known."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from dither.errors import QueryError
from dither.query.functions.base import Facts
from dither.query.functions.domains import facts
from dither.query.functions.fitting import fit, fit_aggregates
from dither.query.functions.registry import evaluate, typed
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal

D, E = Column("d"), Column("e")
SCOPE = {
    "d": Facts("date"),
    "e": Facts("date", nullable=False),
    "t": Facts("timestamp"),
    "n": Facts("int", whole=True),
    "k": Facts("int", Fraction(0), Fraction(9), nullable=False, whole=True),
    "x": Facts("real"),
    "w": Facts("text"),
    "b": Facts("bool"),
}
DAY = datetime.date(1995, 1, 31)


def call(name: str, *parts: object) -> Call:
    return Call(name, tuple(part if isinstance(part, (Column, Literal, Call)) else Literal(part) for part in parts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (call("ge", D, "1995-01-31"), call("ge", D, DAY)),
        (call("lt", "1995-1-31", D), call("lt", DAY, D)),
        (call("in_list", D, "1995-01-31", "1995-01-31"), call("in_list", D, DAY, DAY)),
        (call("ge", Column("t"), "1995-01-31 12:30"), call("ge", Column("t"), datetime.datetime(1995, 1, 31, 12, 30))),
        (call("eq", Column("w"), "1995-01-31"), call("eq", Column("w"), "1995-01-31")),
        (call("sub", D, E), call("days_between", E, D)),
        (call("sub", D, "1995-01-31"), call("days_between", DAY, D)),
        (call("add", D, 7), call("add_days", D, 7)),
        (call("add", 7, D), call("add_days", D, 7)),
        (call("sub", D, 7), call("add_days", D, -7)),
        (call("sub", D, Column("n")), call("add_days", D, call("neg", Column("n")))),
        (call("add_months", DAY, 1), Literal(datetime.date(1995, 2, 28))),
        (call("ge", D, call("add_days", DAY, -31)), call("ge", D, datetime.date(1994, 12, 31))),
        (call("least", Column("n"), 9), call("smallest", Column("n"), 9)),
        (call("least", Column("k"), 9), call("least", Column("k"), 9)),
        (call("year", "1995-01-31"), call("year", DAY)),
    ],
)
def test_a_call_becomes_what_its_kinds_ask_for(written: Expression, meant: Expression) -> None:
    assert fit(written, SCOPE) == meant
    assert fit(meant, SCOPE) == meant


def test_a_condition_that_is_added_up_counts_as_one_or_zero() -> None:
    (found,) = fit_aggregates((Aggregate("a", "sum", Column("b")),), SCOPE)
    assert found.argument == call("to_int", Column("b"))
    (median,) = fit_aggregates((Aggregate("a", "median", Column("b")),), SCOPE)
    assert median.argument == Column("b")


@pytest.mark.parametrize(
    "written",
    [
        call("ge", D, "1995-13-01"),
        call("ge", D, "yesterday"),
        call("ge", D, "1995-01-31 12:30"),
        call("ge", D, "١٩٩٥-01-31"),
        call("sub", Column("t"), Column("t")),
        call("add", Column("t"), 3),
        call("add", D, E),
        call("add", D, Column("x")),
        call("make_date", 2023, 2, 29),
        call("add_days", datetime.date.max, 1),
        call("whole_quotient", Column("x"), 2),
        call("sleep", Column("x")),
        call("ge", Column("nobody"), 3),
    ],
)
def test_what_has_no_meaning_is_refused_with_a_fix(written: Expression) -> None:
    with pytest.raises(QueryError) as refused:
        fit(written, SCOPE)
    assert refused.value.fix


def test_least_of_a_null_is_within_its_bounds() -> None:
    """Only what is never NULL bounds the result from above: LEAST(k, n) may be any n where k is NULL."""
    k = Facts("int", Fraction(0), Fraction(9), nullable=True, whole=True)
    sure = Facts("int", Fraction(0), Fraction(20), nullable=False, whole=True)
    scope = {"k": k, "n": Facts("int", whole=True), "m": sure}
    both = facts(fit(call("least", Column("k"), Column("n")), scope), scope)
    assert both.high is None
    limited = facts(fit(call("least", Column("k"), 10), scope), scope)
    assert (limited.low, limited.high, limited.nullable) == (0, 10, False)
    other = facts(fit(call("least", Column("m"), Column("n")), scope), scope)
    assert other.high == 20
    assert other.low is None


def test_the_groups_of_least_have_the_one_that_null_falls_into() -> None:
    """500 is beyond every k, and still the value where k is NULL."""
    wide = {"k": Facts("int", Fraction(0), Fraction(40_000), nullable=True, whole=True, clipped=True)}
    rounded = call("mul", call("floor", call("div", Column("k"), 100)), 100)
    key = typed(fit(call("least", rounded, 50_000), wide), wide)
    assert evaluate(key, {"k": None}) == 50_000
    assert 50_000 in (facts(key, wide).values or ())


def test_without_that_rule_the_group_would_be_missing() -> None:
    wide = {"k": Facts("int", Fraction(0), Fraction(40_000), nullable=True, whole=True, clipped=True)}
    rounded = call("mul", call("floor", call("div", Column("k"), 100)), 100)
    assert 50_000 not in (facts(call("least", rounded, 50_000), wide).values or ())
