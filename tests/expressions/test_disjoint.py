"""Conditions that are proved disjoint are never true together; ordinary ones are proved."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.query.disjoint import disjoint
from dither.query.functions.registry import evaluate
from dither.query.nodes import Call, Column, Expression, Literal

X, FLAG = Column("x"), Column("flag")
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([Fraction(1, 2), Fraction(-3, 2), Fraction(2)]))
COMPARED = st.builds(
    lambda name, value: Call(name, (X, Literal(value))), st.sampled_from(["eq", "lt", "le", "gt", "ge", "ne"]), NUMBERS
)
SWAPPED = st.builds(
    lambda name, value: Call(name, (Literal(value), X)), st.sampled_from(["eq", "lt", "le", "gt", "ge"]), NUMBERS
)
LISTED = st.builds(lambda values: Call("in_list", (X, *map(Literal, values))), st.lists(NUMBERS, min_size=1, max_size=3))
PLAIN = st.one_of(COMPARED, SWAPPED, LISTED, st.just(Call("is_null", (X,))), st.just(FLAG))
CONDITIONS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.builds(lambda a, b: Call("and", (a, b)), inner, inner),
        st.builds(lambda a, b: Call("or", (a, b)), inner, inner),
        st.builds(lambda a: Call("not", (a,)), inner),
    ),
    max_leaves=4,
)
ROWS = [
    {"x": x, "flag": flag}
    for x in (None, float("nan"), float("inf"), -float("inf"), *(n / 4 for n in range(-14, 15)))
    for flag in (None, True, False)
]


def together(one: Expression, other: Expression) -> bool:
    """Whether a row satisfies both."""
    return any(evaluate(one, row) is True and evaluate(other, row) is True for row in ROWS)


@given(CONDITIONS, CONDITIONS)
def test_no_row_satisfies_two_disjoint_conditions(one: Expression, other: Expression) -> None:
    if disjoint(one, other):
        assert not together(one, other)
    assert disjoint(one, other) == disjoint(other, one)


def test_that_check_can_fail() -> None:
    assert together(Call("le", (X, Literal(1))), Call("ge", (X, Literal(1))))


def call(name: str, value: object) -> Call:
    return Call(name, (X, Literal(value)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call("eq", "M"), call("eq", "F")),
        (call("lt", 18), call("ge", 18)),
        (call("eq", 17), call("ge", 18)),
        (call("ge", datetime.date(2021, 1, 1)), call("lt", datetime.date(2021, 1, 1))),
        (Call("and", (FLAG, call("gt", 5))), Call("and", (call("le", 5), FLAG))),
        (Call("in_list", (X, Literal(1), Literal(2))), Call("in_list", (X, Literal(3)))),
        (FLAG, Call("not", (FLAG,))),
        (Call("is_null", (X,)), call("eq", 3)),
        (Call("is_null", (X,)), Call("not", (Call("is_null", (X,)),))),
    ],
)
def test_ordinary_partitions_are_proved(one: Expression, other: Expression) -> None:
    assert disjoint(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call("eq", "1"), call("eq", 1)),  # kinds that Python and SQL compare differently
        (call("eq", True), call("eq", 0)),
        (call("lt", datetime.date(2021, 1, 1)), call("ge", datetime.datetime(2021, 1, 1))),
        (call("ne", 1), call("eq", 2)),
        (call("le", Fraction(2**53)), call("gt", 2**53)),  # compared as doubles
        (call("eq", Fraction("0.1")), call("eq", Fraction("0.10000000000000000001"))),
        (call("eq", 1), Call("eq", (Column("y"), Literal(2)))),
    ],
)
def test_the_rest_is_not(one: Expression, other: Expression) -> None:
    assert not disjoint(one, other)
