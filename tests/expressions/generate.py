"""Random rows within declared facts, and random expressions over them, with every function of the registry."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from dither.catalog.values import ColumnFacts
from dither.errors import QueryError
from dither.query.functions.base import FAMILIES, Facts, Function
from dither.query.functions.domains import declared, facts
from dither.query.functions.durations import DIFFERENCES
from dither.query.functions.registry import FUNCTIONS, columns, kind_of
from dither.query.nodes import Call, Column, Expression, Literal

REGIONS = ("north", "south", "", "Ünï West", " x ", "12", "2024-02-29", "true")
DAYS = (datetime.date(2023, 12, 30), datetime.date(2024, 1, 3))
NASTY = ["", " ", "ß", "Ā\U0001f600", "a%b_", "\n", "1e5", "0012", "-7", "9" * 30, "0000-00-00", "2023-02-29", "TRUE", "\x00"]


def _between(kind: str, low: object, high: object, nullable: bool = False) -> ColumnFacts:
    return ColumnFacts(kind, Fraction(low), Fraction(high), nullable=nullable)  # type: ignore[arg-type]


_EPOCH = datetime.date(1970, 1, 1)
COLUMNS: dict[str, ColumnFacts] = {
    "i": _between("int", -3, 5),
    "mid": _between("int", -20_000, 50_000),
    "few": _between("int", 1, 3, nullable=True),
    "wide": _between("int", -(2**62), 2**62, nullable=True),
    "free": ColumnFacts("int"),
    "u": _between("real", 0, 1),
    "v": _between("real", -3, "1/3", nullable=True),
    "big": _between("real", -(10**300), 10**300),
    "tiny": ColumnFacts("real", Fraction(1, 10**310), Fraction(1), nullable=False),
    "any": ColumnFacts("real"),
    "up": ColumnFacts("real", low=Fraction(2), nullable=False),
    "region": ColumnFacts("text", values=REGIONS, nullable=False),
    "maybe": ColumnFacts("text", values=("north", "south", None)),
    "word": ColumnFacts("text"),
    "yes": ColumnFacts("bool", nullable=False),
    "flag": ColumnFacts("bool"),
    "day": _between("date", (DAYS[0] - _EPOCH).days, (DAYS[1] - _EPOCH).days),
    "date": ColumnFacts("date"),
    "time": ColumnFacts("timestamp", nullable=False),
}
SCOPE: dict[str, Facts] = {name: declared(column) for name, column in COLUMNS.items()}
FREE: dict[str, st.SearchStrategy[Any]] = {
    "int": st.one_of(st.integers(-5, 5), st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1)),
    "real": st.one_of(
        st.sampled_from([0.0, -0.0, 0.5, -2.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]), st.floats()
    ),
    "text": st.one_of(st.sampled_from(NASTY), st.text(max_size=5)),
    "bool": st.booleans(),
    "date": st.one_of(st.sampled_from([datetime.date.min, datetime.date.max]), st.dates()),
    "timestamp": st.one_of(st.sampled_from([datetime.datetime.min, datetime.datetime.max]), st.datetimes()),
}


def _value(column: ColumnFacts) -> st.SearchStrategy[Any]:
    known = declared(column)
    if column.values is not None:
        values: st.SearchStrategy[Any] = st.sampled_from(column.values)
    elif column.kind == "real":
        low = None if column.low is None else _inside(column.low, math.inf)
        high = None if column.high is None else _inside(column.high, -math.inf)
        values = st.floats(low, high, allow_nan=column.low is None and column.high is None)
        ends = [end for end in (low, high) if end is not None]
        values = st.one_of(st.sampled_from(ends), values) if ends else FREE["real"]
    elif known.bounded and column.kind == "int":
        low_, high_ = int(column.low or 0), int(column.high or 0)
        values = st.one_of(st.sampled_from([low_, high_]), st.integers(low_, high_))
    elif known.bounded:
        values = st.dates(*DAYS)
    else:
        values = FREE[str(column.kind)]
    return st.one_of(values, st.none()) if column.nullable else values


def _inside(bound: Fraction, towards: float) -> float:
    """Returns the double at the bound, or the next one inside."""
    nearest = float(bound)
    outside = nearest < bound if towards > 0 else nearest > bound
    return math.nextafter(nearest, towards) if outside else nearest


WITHIN = {name: _value(column) for name, column in COLUMNS.items()}
WITHOUT = {name: st.one_of(FREE[str(column.kind)], st.none()) for name, column in COLUMNS.items()}


def rows(expression: Expression, values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Generates rows for an expression: WITHIN the declared facts, or WITHOUT them (only the kind holds)."""
    return st.fixed_dictionaries({name: values[name] for name in sorted(columns(expression))})


# --- expressions ------------------------------------------------------------------------------------------------

_NUMBERS = [Literal(n) for n in (0, 1, -1, 2, 7, 10, 2**53 + 1, Fraction(1, 10), Fraction(-5, 2), Fraction(10**9), Fraction(2))]
LITERALS: dict[str, list[Literal]] = {
    "number": _NUMBERS,
    "text": [Literal(text) for text in ("north", "", "%o_th%", "x")],
    "bool": [Literal(True), Literal(False)],
    "any": [*_NUMBERS, Literal("north"), Literal(True), Literal(datetime.date(2024, 1, 1)), Literal(None)],
    "date": [Literal(datetime.date(2024, 1, 1)), Literal(datetime.datetime(2024, 1, 1, 12))],
}
SPECIAL: dict[tuple[str, int], list[Literal]] = {
    ("date_trunc", 0): [Literal(unit) for unit in ("day", "week", "month", "quarter", "year")],
    ("substr", 1): [Literal(n) for n in (1, 2, 9)],
    ("substr", 2): [Literal(n) for n in (0, 1, 5)],
    ("clamp", 1): [Literal(-1), Literal(Fraction(-5, 2))],
    ("clamp", 2): [Literal(10), Literal(Fraction(1, 10))],
    ("right", 1): [Literal(n) for n in (0, 1, 5)],
    ("replace", 1): [Literal(text) for text in ("o", "north", " ")],
    ("replace", 2): [Literal(text) for text in ("", "th", "south")],
    ("split_part", 1): [Literal(text) for text in ("o", " ", "-")],
    ("split_part", 2): [Literal(n) for n in (1, 2, 9)],
    ("regexp_matches", 1): [Literal(text) for text in ("^n", "[a-m]+t", "\\d{2,4}-", "(o|u)th$", ".")],
    ("strftime", 1): [Literal(text) for text in ("%Y-%m", "%a %-d %b", "%G-W%V", "%H h", "%M")],
    ("strptime", 1): [Literal(text) for text in ("%Y-%m-%d", "%d.%m.%y", "%Y")],
    ("round", 1): [Literal(n) for n in (0, 2, -1, 15, -15)],
    ("trunc", 1): [Literal(n) for n in (0, 1, -2)],
    ("width_bucket", 1): [Literal(-1), Literal(Fraction(-5, 2))],
    ("width_bucket", 2): [Literal(10), Literal(Fraction(1, 10))],
    ("width_bucket", 3): [Literal(n) for n in (1, 5, 100)],
    ("date_diff", 0): [Literal(unit) for unit in DIFFERENCES],
    ("add_days", 1): [Literal(n) for n in (0, 1, -40, 3_652_058)],
    ("add_months", 1): [Literal(n) for n in (0, 1, -13, 119_987)],
    ("add_seconds", 1): [Literal(n) for n in (0, 1, -90_000, 10**11)],
    ("make_date", 0): [Literal(n) for n in (0, 1, 2024, 9999)],
    ("make_date", 1): [Literal(n) for n in (2, 12, 13)],
    ("make_date", 2): [Literal(n) for n in (1, 29, 31)],
    ("bucket", 1): [Literal(10), Literal(Fraction(1, 4)), Literal(1)],
}
Known = tuple[Expression, Facts]
Draw = Callable[[st.SearchStrategy[Any]], Any]


def _argument(draw: Draw, function: Function, place: int, pool: list[Known], kinds: tuple[str, ...]) -> Expression:
    word = function.accepts[min(place, len(function.accepts) - 1)]
    constants = SPECIAL.get((function.name, place), LITERALS.get(word, LITERALS["any"]))
    constants = [constant for constant in constants if kind_of(constant.value) in (*kinds, "null")]
    if function.constant(place):
        return draw(st.sampled_from(constants))
    fitting = [expression for expression, known in pool if known.kind in kinds]
    if fitting and draw(st.integers(0, 5)):
        return draw(st.sampled_from(fitting))
    return draw(st.sampled_from(constants or fitting))


def _call(draw: Draw, name: str, pool: list[Known]) -> Call:
    """Generates a call of the function with arguments of accepted kinds."""
    function = FUNCTIONS[name]
    count = draw(st.integers(function.least, function.most if function.most is not None else function.least + 2))
    count += name == "case" and count % 2 == 0
    family = draw(st.sampled_from(FAMILIES))
    parts = []
    for place in range(count):
        kinds = function.accepted(place)
        if name == "case" and place % 2 == 0 and place < count - 1:
            kinds = ("bool",)
        elif name == "case" or function.alike:
            kinds = family
        parts.append(_argument(draw, function, place, pool, kinds))
    return Call(name, tuple(parts))


@st.composite
def expressions(draw: Draw, name: str, before: int = 2, scope: Mapping[str, Facts] = SCOPE) -> Known | None:
    """Generates a call of the function over columns and earlier calls, with its facts; None if it is refused."""
    pool: list[Known] = [(Column(column), known) for column, known in scope.items()]
    for step in [*draw(st.lists(st.sampled_from(sorted(FUNCTIONS)), max_size=before)), name]:
        call = _call(draw, step, pool)
        try:
            known = facts(call, scope)
        except QueryError:
            continue
        if step == name:
            return call, known
        pool += [(call, known)] * 8  # so that it is likely to be used
    return None
