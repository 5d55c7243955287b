"""The domain of an expression is its image over the declared domains of its columns, exactly."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.catalog.values import ColumnFacts
from dither.query.functions import domains, grids, representatives
from dither.query.functions.base import Facts
from dither.query.functions.casts import as_key
from dither.query.functions.domains import declared, facts
from dither.query.functions.registry import FUNCTIONS, columns, evaluator, typed
from dither.query.nodes import Call, Column, Expression, Literal
from expressions.generate import expressions

each_function = pytest.mark.parametrize("name", sorted(FUNCTIONS))
some = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
DAYS = tuple(datetime.date(2023, 12, 28) + datetime.timedelta(days=9 * n) for n in range(12))
LISTED = {
    "i": ColumnFacts("int", values=(-3, -1, 0, 1, 2, 7, 10), nullable=False),
    "few": ColumnFacts("int", values=(1, 2, 3)),
    "region": ColumnFacts("text", values=("north", "south", "", " x ", "12", "true"), nullable=False),
    "maybe": ColumnFacts("text", values=("north", "x", None)),
    "flag": ColumnFacts("bool"),
    "day": ColumnFacts("date", values=DAYS),
}
SCOPE: dict[str, Facts] = {name: declared(column) for name, column in LISTED.items()}


def inputs(known: Facts) -> tuple[Any, ...]:
    values = known.values or ()
    return (*values, None) if known.nullable and None not in values else values


def tried(expression: Expression, scope: Mapping[str, Facts]) -> tuple[set[Any], bool]:
    """Returns every key but NULL over all combinations of declared values, and whether a listed NULL gives NULL."""
    names = sorted(columns(expression))
    compute = evaluator(typed(expression, scope))
    found, listed = set(), False
    for row in itertools.product(*(inputs(scope[name]) for name in names)):
        key = as_key(compute(dict(zip(names, row, strict=True))))
        found.add(key)
        null = any(part is None and None in (scope[name].values or ()) for name, part in zip(names, row, strict=True))
        listed = listed or (key is None and null)
    return found - {None}, listed


def exact(name: str, data: st.DataObject) -> None:
    built = data.draw(expressions(name, scope=SCOPE))
    if built is None or built[1].values is None:
        return
    expression, known = built
    if math.prod(len(inputs(SCOPE[column])) for column in columns(expression)) <= 10_000:
        found, listed = tried(expression, SCOPE)
        assert (set(known.values or ()) - {None}, None in (known.values or ())) == (found, listed), expression


@each_function
@some
@given(data=st.data())
def test_a_domain_is_the_image_of_all_declared_values(name: str, data: st.DataObject) -> None:
    exact(name, data)


@pytest.mark.parametrize(("what", "name"), [("without the value below", "lt"), ("without the constant", "eq")])
def test_that_check_finds_a_missing_representative(what: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def neighbours(values: list[Any], cuts: list[Any]) -> set[Any]:
        return (
            {value for value in values if value in cuts} if name == "lt" else {value for value in values if value not in cuts}
        )

    monkeypatch.setattr(representatives, "_neighbours", neighbours)
    domains._with_domain.cache_clear()
    with pytest.raises(AssertionError):
        settings(some, max_examples=300, derandomize=True, database=None)(
            given(data=st.data())(lambda data: exact(name, data))
        )()
    domains._with_domain.cache_clear()


# --- large domains ----------------------------------------------------------------------------------------------


def day(year: int, month: int = 1, of_month: int = 1) -> Fraction:
    return Fraction((datetime.date(year, month, of_month) - datetime.date(1970, 1, 1)).days)


def call(name: str, *arguments: Any) -> Call:
    return Call(name, tuple(part if isinstance(part, (Call, Column, Literal)) else Literal(part) for part in arguments))


D, X, N = Column("d"), Column("x"), Column("n")
LIVES = declared(ColumnFacts("date", day(1840, 3, 17), day(2021, 6, 30), nullable=False))
YEAR_AND_MONTH = call("add", call("mul", call("year", D), 100), call("month", D))
OLD = call("lt", D, datetime.date(1900, 5, 17))


@pytest.mark.parametrize(
    "expression",
    [
        call("mul", call("floor", call("div", call("year", D), 10)), 10),
        call("bucket", call("year", D), 10),
        call("date_trunc", "year", D),
        call("date_trunc", "quarter", D),
        call("date_trunc", "month", D),
        call("date_trunc", "week", D),
        YEAR_AND_MONTH,
        call("quarter", D),
        call("case", OLD, call("year", D), 0),
        call("case", OLD, "old", call("eq", D, datetime.date(1900, 5, 17)), "then", "new"),
        call("year", call("date_trunc", "week", D)),
        call("day", D),
        call("weekday", D),
    ],
)
def test_dates_of_181_years_have_their_true_image(expression: Expression) -> None:
    compute = evaluator(expression)
    first, last = datetime.date(1840, 3, 17).toordinal(), datetime.date(2021, 6, 30).toordinal()
    days = (datetime.date.fromordinal(n) for n in range(first, last + 1))
    assert facts(expression, {"d": LIVES}).values == tuple(sorted({as_key(compute({"d": each})) for each in days}))  # type: ignore[type-var]


def test_decades_and_weeks_are_as_many_as_there_are() -> None:
    decades = facts(call("mul", call("floor", call("div", call("year", D), 10)), 10), {"d": LIVES}).values
    year = declared(ColumnFacts("date", day(2010), day(2010, 12, 31)))
    assert decades == tuple(range(1840, 2021, 10))
    assert len(facts(call("date_trunc", "week", D), {"d": year}).values or ()) == 53


@pytest.mark.parametrize("bounds", [(0, 49_999), (-30_000, 30_000), (5, 5)])
@pytest.mark.parametrize(
    "expression",
    [
        call("floor", call("div", N, 1000)),
        call("mul", call("floor", call("div", N, 1000)), 7),
        call("to_int", call("div", N, 4000)),
        call("bucket", N, 2500),
        call("case", call("lt", N, 100), "low", call("le", N, Fraction(5001, 2)), "middle", "high"),
        call("clamp", N, 3, 12),
        call("greatest", call("round", call("div", N, 700)), 3),
    ],
)
def test_wide_whole_numbers_have_their_true_image(expression: Expression, bounds: tuple[int, int]) -> None:
    column = replace_clipped(declared(ColumnFacts("int", Fraction(bounds[0]), Fraction(bounds[1]), nullable=False)))
    compute = evaluator(expression)
    keys = {as_key(compute({"n": n})) for n in range(bounds[0], bounds[1] + 1)}
    assert set(facts(expression, {"n": column}).values or ()) == keys


FIFTIES = call("mul", call("floor", call("div", N, 50)), 50)
CAPPED = call("least", N, 500)
STEPS: list[tuple[Expression, set[int]]] = [
    (call("least", FIFTIES, 500), set(range(0, 501, 50))),
    (call("least", FIFTIES, 510), {*range(0, 501, 50), 510}),
    (call("greatest", call("least", FIFTIES, 500), 75), {75, *range(100, 501, 50)}),
    (call("clamp", FIFTIES, 0, 500), set(range(0, 501, 50))),
    (call("least", call("bucket", N, 50), 500), set(range(0, 501, 50))),
    (call("least", call("mul", call("round", call("div", N, 10)), 10), 100), set(range(0, 101, 10))),
    (call("least", call("mul", call("ceil", call("div", N, 50)), 50), 500), set(range(0, 501, 50))),
    (call("least", call("mul", call("to_int", call("div", N, 50)), 50), 500), set(range(0, 501, 50))),
    (call("least", call("sub", N, call("mod", N, 50)), 500), set(range(0, 501, 50))),
    (call("sub", CAPPED, call("mod", CAPPED, 50)), set(range(0, 501, 50))),
    (call("least", call("add", FIFTIES, 1), 501), set(range(1, 502, 50))),
    (call("greatest", call("sub", 3, FIFTIES), -97), {3, -47, -97}),
    (call("least", call("floor", call("div", FIFTIES, 25)), 8), {0, 2, 4, 6, 8}),
    (call("case", call("ge", N, 500), 500, FIFTIES), set(range(0, 501, 50))),
    (call("case", call("lt", N, 100), call("mul", call("floor", call("div", N, 10)), 10), 100), set(range(0, 101, 10))),
    (call("case", call("le", N, 9), N, call("lt", N, 100), 10, call("le", N, 1000), call("floor", call("div", N, 100)), 99),
     {*range(11), 99}),
]  # fmt: skip
MANY = Facts("int", Fraction(0), None, nullable=False, whole=True, step=Fraction(1))  # such as a count


def drawn(expression: Expression) -> set[Any]:
    """Returns keys of all small numbers and of some that doubles round."""
    near = {2**power + by for power in range(11, 63) for by in (-51, -3, -1, 0, 1, 2, 49, 150)}
    compute = evaluator(expression)
    return {as_key(compute({"n": n})) for n in (*range(2_000), *near)} - {None}


@pytest.mark.parametrize("column", [MANY, declared(ColumnFacts("int", Fraction(0), Fraction(10**9), nullable=False))])
@pytest.mark.parametrize(("expression", "image"), STEPS)
def test_rounded_counts_have_their_true_image(expression: Expression, image: set[int], column: Facts) -> None:
    assert drawn(expression) == image
    assert set(facts(expression, {"n": column}).values or ()) == image


@some
@given(data=st.data())
def test_a_grid_misses_no_value(data: st.DataObject) -> None:
    whole = st.integers(-60, 60)
    made: Expression = N
    for _ in range(data.draw(st.integers(1, 5))):
        name = data.draw(
            st.sampled_from(["floor", "bucket", "mul", "add", "sub", "from", "mod", "whole", "neg", "least", "case"])
        )
        number = data.draw(whole)
        made = {
            "floor": call("floor", call("div", made, number or 1)),
            "bucket": call("bucket", made, abs(number) + 1),
            "from": call("sub", number, made),
            "whole": call("sub", made, call("mod", made, number)),
            "neg": call("neg", made),
            "case": call("case", call("lt", N, number), made, number),
        }.get(name) or call(name, made, number)
    low = data.draw(whole)
    made = call("clamp", made, low, low + data.draw(st.integers(0, 300)))
    found = facts(made, {"n": MANY}).values
    assert found is not None
    assert drawn(made) <= set(found)


def test_that_a_grid_beyond_exact_numbers_would_miss_values(monkeypatch: pytest.MonkeyPatch) -> None:
    near = 25 * (2**53 // 25)
    made = call("clamp", call("sub", call("mul", call("floor", call("div", N, 25)), 25), near), -200, 200)
    compute = evaluator(made)
    keys = {as_key(compute({"n": near + by})) for by in range(150)}
    assert any(key % 25 not in (0, 200 % 25) for key in keys if isinstance(key, int))  # doubles beyond 2^53 are even
    domains._with_domain.cache_clear()
    assert keys <= set(facts(made, {"n": MANY}).values or ())

    def careless(found: grids.Grid, constant: int) -> grids.Grid:
        ends = {"low": None if found.low is None else found.low + constant}
        return replace(found, offset=found.offset + constant, **ends)

    monkeypatch.setattr(grids, "_moved", careless)
    domains._with_domain.cache_clear()
    try:
        assert not keys <= set(facts(made, {"n": MANY}).values or ())
    finally:
        domains._with_domain.cache_clear()


def replace_clipped(known: Facts) -> Facts:
    """Returns facts of which no row lies outside, so that comparisons are decided by the bounds."""
    return Facts(known.kind, known.low, known.high, known.nullable, known.whole, known.values, known.step)


def test_fractions_have_the_buckets_between_their_bounds() -> None:
    scope = {"x": declared(ColumnFacts("real", Fraction(-5), Fraction(249, 10), nullable=False))}
    assert facts(call("floor", call("div", X, 10)), scope).values == (-1, 0, 1, 2)
    assert facts(call("mul", call("floor", call("div", X, 10)), 10), scope).values == (-10, 0, 10, 20)
    assert facts(call("to_text", call("to_int", X)), scope).values is not None


def test_a_comparison_sees_values_beyond_the_bounds() -> None:
    scope = {"n": declared(ColumnFacts("int", Fraction(0), Fraction(120), nullable=False))}
    label = call("case", call("gt", N, 150), "beyond", "within")
    assert facts(label, scope).values == ("beyond", "within")
    assert facts(call("case", call("gt", N, 150), 1, 0), scope).high == 1
    assert facts(label, {"n": declared(ColumnFacts("int", values=(0, 120)))}).values == ("within",)


def test_columns_too_large_together_are_taken_by_their_images() -> None:
    scope = {name: declared(ColumnFacts("int", Fraction(0), Fraction(9_999), nullable=False)) for name in ("n", "x")}
    pair = call("add", call("mul", call("floor", call("div", N, 1000)), 100), call("floor", call("div", X, 1000)))
    assert facts(pair, scope).values == tuple(100 * tens + ones for tens in range(10) for ones in range(10))
    # The same column twice: the image may be larger, never smaller.
    wide = {"n": declared(ColumnFacts("int", Fraction(0), Fraction(50_000), nullable=False))}
    found = facts(call("sub", call("floor", call("div", N, 1000)), call("floor", call("div", N, 2000))), wide).values
    assert {n // 1000 - n // 2000 for n in range(50_001)} < set(found or ())


def test_timestamps_have_the_hours_and_months_between_their_bounds() -> None:
    evening = Facts("timestamp", day(2024, 2, 28) + Fraction(22, 24), day(2024, 2, 29) + Fraction(1, 24), nullable=False)
    longer = Facts("timestamp", day(2024, 2, 28), day(2024, 4, 1), nullable=False)
    assert facts(call("hour", D), {"d": evening}).values == (0, 1, 22, 23)
    assert facts(call("hour", D), {"d": longer}).values == tuple(range(24))
    assert facts(call("month", D), {"d": longer}).values == (2, 3, 4)
    late = call("case", call("gt", D, datetime.datetime(2024, 2, 29, 0, 30)), call("hour", D), -1)
    assert facts(late, {"d": evening}).values == (-1, 0, 1)
    assert len(facts(call("to_date", D), {"d": longer}).values or ()) == 34
