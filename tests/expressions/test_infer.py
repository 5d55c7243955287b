"""Inferred facts hold for every row that satisfies the declared facts."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dither.catalog.values import ColumnFacts
from dither.errors import QueryError
from dither.query.functions.base import Cell, Facts
from dither.query.functions.casts import as_key
from dither.query.functions.dates import day_number
from dither.query.functions.domains import declared, facts
from dither.query.functions.registry import FUNCTIONS, evaluate, typed
from dither.query.nodes import Call, Column, Expression, Literal
from expressions.generate import COLUMNS, SCOPE, WITHIN, WITHOUT, expressions, rows

PYTHON = {"int": int, "real": float, "text": str, "bool": bool, "date": datetime.date, "timestamp": datetime.datetime}
some = settings(max_examples=15, suppress_health_check=list(HealthCheck))
many = settings(
    max_examples=2000, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
each_function = pytest.mark.parametrize("name", sorted(FUNCTIONS))


def holds(known: Facts, value: Cell) -> bool:
    """Returns whether a value satisfies the facts."""
    if value is None:
        return known.nullable
    if type(value) is not PYTHON.get(known.kind):
        return False
    if known.whole and not (math.isinf(value) or value == math.trunc(value)):  # type: ignore[arg-type]
        return False
    key = as_key(value)
    if known.values is not None and key is not None and key not in known.values:
        return False
    return _within(known, value)


def _within(known: Facts, value: Any) -> bool:
    if isinstance(value, (bool, str)):
        return True
    if isinstance(value, float) and math.isinf(value):
        return (known.high if value > 0 else known.low) is None
    place = day_number(value) if isinstance(value, datetime.date) else Fraction(value)
    return (known.low is None or known.low <= place) and (known.high is None or place <= known.high)


def keeps_its_word(name: str, data: st.DataObject) -> None:
    built = data.draw(expressions(name))
    if built is not None:
        expression, known = built
        value = evaluate(typed(expression, SCOPE), data.draw(rows(expression, WITHIN)))
        assert holds(known, value), (expression, known, value)


@pytest.mark.slow
@each_function
@some
@given(data=st.data())
def test_facts_hold_on_every_row_within_the_declared(name: str, data: st.DataObject) -> None:
    keeps_its_word(name, data)


@each_function
@some
@given(data=st.data())
def test_no_row_raises(name: str, data: st.DataObject) -> None:
    built = data.draw(expressions(name))
    if built is not None:
        value = evaluate(typed(built[0], SCOPE), data.draw(rows(built[0], WITHOUT)))
        assert value is None or type(value) is PYTHON[built[1].kind]
        assert not (isinstance(value, float) and math.isnan(value))


def _only_two_corners() -> Callable[[list[Facts]], Facts]:
    """Wrong rule: multiplies the lower ends and the upper ends only."""

    def infer(a: list[Facts]) -> Facts:
        low = None if a[0].low is None or a[1].low is None else a[0].low * a[1].low
        high = None if a[0].high is None or a[1].high is None else a[0].high * a[1].high
        return Facts("real", low, high, True, a[0].whole and a[1].whole)

    return infer


WRONG = {
    "mul": lambda f: replace(f, infer=_only_two_corners()),
    "div": lambda f: replace(f, infer=lambda a: replace(f.infer(a), nullable=False)),
    "floor": lambda f: replace(f, infer=lambda a: replace(f.infer(a), low=a[0].low)),
    "length": lambda f: replace(f, infer=lambda a: replace(f.infer(a), high=Fraction(4))),
    "coalesce": lambda f: replace(f, infer=lambda a: a[0]),
    "case": lambda f: replace(f, infer=lambda a: replace(a[1], nullable=False)),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, name, WRONG[name](FUNCTIONS[name]))  # type: ignore[arg-type]

    with pytest.raises(AssertionError):
        many(given(data=st.data())(lambda data: keeps_its_word(name, data)))()


# --- examples ---------------------------------------------------------------------------------------------------


def call(name: str, *arguments: Any) -> Call:
    return Call(name, tuple(part if isinstance(part, (Call, Column, Literal)) else Literal(part) for part in arguments))


def column(name: str) -> Column:
    return Column(name)


INCOME = {"income": declared(ColumnFacts("int", Fraction(0), Fraction(250_000), nullable=False))}


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (call("div", column("income"), 1000), 0, 250),
        (call("sub", column("income"), 125_000), -125_000, 125_000),
        (call("mul", column("income"), -1), -250_000, 0),
        (call("clamp", column("income"), 10, 20), 10, 20),
        (call("mod", column("income"), 7), 0, 6),
        (call("bucket", column("income"), 1000), 0, 250_000),
        (call("abs", call("sub", column("income"), 100)), 0, 249_900),
        (call("case", call("gt", column("income"), 5), 1, 0), 0, 1),
        (call("greatest", column("income"), 1), 1, 250_000),
    ],
)
def test_intervals_are_as_narrow_as_expected(expression: Expression, low: int, high: int) -> None:
    found = facts(expression, INCOME)
    assert (found.low, found.high, found.nullable) == (low, high, False)


def test_domains_are_spelt_out() -> None:
    ages = {"age": declared(ColumnFacts("int", Fraction(0), Fraction(39))), "region": SCOPE["maybe"], "day": SCOPE["day"]}
    assert facts(call("bucket", column("age"), 10), ages).values == (0, 10, 20, 30)
    assert facts(call("bucket", column("income"), 100_000), INCOME).values == (0, 100_000, 200_000)
    assert facts(call("ge", column("income"), 18), INCOME).values == (False, True)
    assert facts(call("upper", column("region")), ages).values == ("NORTH", "SOUTH", None)
    assert facts(call("coalesce", column("region"), "unknown"), ages).values == ("north", "south", "unknown")
    assert facts(call("month", column("day")), ages).values == (1, 12)
    assert facts(call("div", column("age"), 2), ages).values is None
    assert facts(call("floor", call("div", column("income"), 100_000)), INCOME).values == (0, 1, 2)


def test_undeclared_null_is_no_value() -> None:
    scope = {"region": declared(ColumnFacts("text", values=("north", "south")))}
    found = facts(call("lower", column("region")), scope)
    assert found.values == ("north", "south")
    assert found.nullable


def test_large_domains_are_not_spelt_out() -> None:
    assert declared(ColumnFacts("int", Fraction(0), Fraction(10_000))).values is None
    assert len(declared(ColumnFacts("int", Fraction(1), Fraction(10_000))).values or ()) == 10_000


def test_unbounded_stays_unbounded() -> None:
    for name in ("free", "any"):
        found = facts(call("add", column(name), 1), SCOPE)
        assert (found.low, found.high) == (None, None)
    assert facts(call("clamp", column("any"), 0, 5), SCOPE).bounded


@pytest.mark.parametrize(
    ("expression", "span"),
    [
        (Call("add", (Column("i"), Column("yes", (4, 7)))), (4, 7)),
        (Call("eq", (Column("i"), Column("word")), (0, 9)), (0, 9)),
        (Call("sleep", (Column("i"),), (1, 2)), (1, 2)),
        (Call("add", (Column("i"),), (1, 2)), (1, 2)),
        (Call("like", (Column("word"), Column("region", (3, 4)))), (3, 4)),
        (Call("clamp", (Column("i"), Literal(5), Literal(1)), (1, 2)), (1, 2)),
        (Call("bucket", (Column("i"), Literal(0)), (1, 2)), (1, 2)),
        (Call("substr", (Column("word"), Literal(0), Literal(1)), (1, 2)), (1, 2)),
        (Call("case", (Column("i", (7, 8)), Literal(1), Literal(0))), (7, 8)),
        (Call("case", (Column("yes"), Literal(1), Literal("x")), (1, 2)), (1, 2)),
        (Call("coalesce", (Column("date"), Column("time")), (1, 2)), (1, 2)),
        (Call("hour", (Column("date", (2, 3)),)), (2, 3)),
        (Column("nobody", (5, 6)), (5, 6)),
        (Call("strftime", (Column("date"), Literal("%q")), (1, 2)), (1, 2)),
        (Call("regexp_matches", (Column("word"), Literal("(a")), (1, 2)), (1, 2)),
        (Call("date_diff", (Literal("century"), Column("date"), Column("date")), (1, 2)), (1, 2)),
    ],
)
def test_what_is_wrong_is_refused_where_it_stands(expression: Expression, span: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as refused:
        facts(expression, SCOPE)
    assert refused.value.span == span
    assert refused.value.fix


def test_any_letters_may_be_compared_with_lower() -> None:
    for constant in ("o%", "京%", "1 €", "ö%"):
        assert facts(call("like", call("lower", column("word")), constant), SCOPE).kind == "bool"


def test_deep_expressions_are_refused_not_overflown() -> None:
    deep: Expression = Column("i")
    for _ in range(5000):
        deep = Call("add", (deep, Literal(1)), (0, 5))
    with pytest.raises(QueryError, match="nested"):
        facts(deep, SCOPE)
    fine: Expression = Column("any")
    for _ in range(140):
        fine = call("add", fine, 1)
    assert evaluate(typed(fine, SCOPE), {"any": 1.0}) == 141
    assert facts(fine, SCOPE).kind == "real"


def test_choices_that_mix_kinds_are_cast() -> None:
    mixed = call("coalesce", column("wide"), Fraction(1, 2))
    row = {"wide": 2**53 + 1}
    assert evaluate(typed(mixed, SCOPE), row) == float(2**53)
    assert typed(call("coalesce", column("wide"), 0), SCOPE) == call("coalesce", column("wide"), 0)


def test_every_column_of_the_generator_is_used() -> None:
    assert {column.kind for column in COLUMNS.values()} == set(PYTHON)
