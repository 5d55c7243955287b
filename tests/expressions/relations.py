"""Random tables with heavy units, and random resolved relations, with UNIT as a column."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import strategies as st

from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    PerUnit,
    Relation,
    Rows,
    Scan,
    Semi,
    Sort,
    Union,
    Window,
    WithinUnit,
)
from dither.query.work import UNIT, Bins, Cell, Distinct, Measure, Quantised, Sums, Work

Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = dict[str, Any]
Tables = dict[str, list[Row]]
KINDS = {
    "visits": {"person": "int", "cost": "real", "n": "int", "place": "text"},
    "people": {"person": "int", "age": "int", "place": "text"},
    "places": {"place": "text", "size": "int"},
}
PRIVATE = ("visits", "people")
_persons = st.one_of(st.integers(1, 4), st.none())
_places = st.sampled_from(["a", "b", "c", "", None])
_costs = st.one_of(st.sampled_from([0.0, -0.0, 0.5, 7.25, 1e308, math.inf, -math.inf, math.nan, None]), st.floats(-5, 15))
_whole = st.one_of(st.integers(-3, 12), st.sampled_from([None, 2**63 - 1, -(2**63)]))
ROWS = {
    "visits": st.fixed_dictionaries({"person": _persons, "cost": _costs, "n": _whole, "place": _places}),
    "people": st.fixed_dictionaries({"person": _persons, "age": _whole, "place": _places}),
    "places": st.fixed_dictionaries({"place": _places, "size": _whole}),
}


@cache
def tables() -> st.SearchStrategy[Tables]:
    return st.fixed_dictionaries(
        {
            "visits": st.lists(ROWS["visits"], max_size=14),
            "people": st.lists(ROWS["people"], max_size=6),
            "places": st.lists(ROWS["places"], max_size=4),
        }
    )


def without(found: Tables, person: int) -> Tables:
    """Returns the neighbour without one unit."""
    return {name: [row for row in rows if name not in PRIVATE or row["person"] != person] for name, rows in found.items()}


def alone(found: Tables, person: int) -> Tables:
    """Returns the data of this unit alone, and the public tables."""
    return {name: [row for row in rows if name not in PRIVATE or row["person"] == person] for name, rows in found.items()}


# --- relations --------------------------------------------------------------------------------------------------
# Every generated relation has the columns UNIT, "x" (real), "k" (int) and "g" (text).


def call(name: str, *arguments: Expression | int | str | Fraction | None) -> Call:
    return Call(name, tuple(part if isinstance(part, (Call, Column, Literal)) else Literal(part) for part in arguments))


X, K, G = Column("x"), Column("k"), Column("g")
CONDITIONS = [
    call("gt", X, 1),
    call("eq", G, "a"),
    call("is_null", K),
    call("or", call("lt", K, 5), call("ne", G, "b")),
    call("not", call("eq", X, X)),
]
NUMBERS = [X, call("add", X, K), call("div", X, K), call("clamp", X, 0, 3), call("coalesce", X, Fraction(1, 2)), call("neg", X)]
WHOLES = [K, call("to_int", X), call("length", G), call("coalesce", K, 7)]
TEXTS = [G, call("upper", G), call("nullif", G, "a"), call("case", call("gt", X, 2), "b", G)]


def base(table: str) -> Relation:
    number, whole = {"visits": ("cost", "n"), "people": ("age", "age")}[table]
    x = call("to_real", Column(f"t.{number}"))
    columns = (("x", x), ("k", Column(f"t.{whole}")), ("g", Column("t.place")), (UNIT, Column("t.person")))
    return Compute(Scan(table, "t"), tuple(Named(name, expression) for name, expression in columns))


def public() -> Relation:
    return Compute(Scan("places", "q"), (Named("r.g", Column("q.place")), Named("r.k", Column("q.size"))))


def renamed(relation: Relation) -> Relation:
    return Compute(relation, tuple(Named(f"r.{name}", Column(name)) for name in ("x", "k", "g", UNIT)))


def back(relation: Relation, *, x: Expression = X, k: Expression = K, g: Expression = G) -> Relation:
    return Compute(relation, (Named("x", x), Named("k", k), Named("g", g), Named(UNIT, Column(UNIT))))


SAME_UNIT = (Column(UNIT), Column(f"r.{UNIT}"))
SAME_PLACE = (G, Column("r.g"))


def _joined(draw: Draw, source: Relation, other: Relation) -> Relation:
    kind = draw(st.sampled_from(["inner", "left"]))
    if draw(st.booleans()):
        joined = Join(source, public(), (SAME_PLACE,), kind)
        return back(joined, k=draw(st.sampled_from([K, Column("r.k")])))
    pairs = draw(st.sampled_from([(SAME_UNIT,), (SAME_UNIT, SAME_PLACE)]))
    if draw(st.booleans()):  # the row's unit is the one of the side that is there
        unit = call("coalesce", Column(UNIT), Column(f"r.{UNIT}"))
        either = (Named("x", X), Named("k", Column("r.k")), Named("g", G), Named(UNIT, unit))
        return Compute(Join(source, renamed(other), pairs, "full"), either)
    return back(Join(source, renamed(other), pairs, kind), k=Column("r.k"), g=draw(st.sampled_from([G, Column("r.g")])))


LISTED = [(G, Column("r.g")), (K, Column("r.k")), (X, Column("r.k"))]


def _semi(draw: Draw, source: Relation, other: Relation) -> Relation:
    negated = draw(st.booleans())
    if draw(st.booleans()):  # NOT IN, of a public list or of the unit's own
        listed = draw(st.sampled_from(LISTED))
        if draw(st.booleans()):
            return Semi(source, public(), draw(st.sampled_from([(), (SAME_PLACE,)])), True, listed)
        listed = draw(st.sampled_from([*LISTED, (X, Column("r.x"))]))
        return Semi(source, renamed(other), (SAME_UNIT,), True, listed)
    if draw(st.booleans()):
        return Semi(source, public(), (SAME_PLACE,), negated)
    return Semi(source, renamed(other), draw(st.sampled_from([(SAME_UNIT,), (SAME_UNIT, SAME_PLACE)])), negated)


def _per_unit(draw: Draw, source: Relation) -> Relation:
    keys = [Named(UNIT, Column(UNIT)), *([Named("g", G)] if draw(st.booleans()) else [])]
    function = draw(st.sampled_from(["count", "count_distinct", "sum", "avg", "min", "max"]))
    aggregates = [Aggregate("x", function, draw(st.sampled_from(WHOLES))), Aggregate("k", "count")]
    if len(keys) == 1:
        aggregates.append(Aggregate("g", draw(st.sampled_from(["min", "max"])), G))
    per_unit = PerUnit(source, tuple(keys), tuple(aggregates))
    return back(per_unit, x=call("to_real", X) if function in ("count", "count_distinct", "min", "max") else X)


FRAMES = [None, Rows(None, 0, True), Rows(None, 0), Rows(-2, 0), Rows(-1, 1), Rows(1, 3), Rows(0, None), Rows(0, None, True)]
NO_VALUE = ("row_number", "rank", "dense_rank")
_VALUES = ["lag", "lead", "first_value", "last_value", "min", "max", "count", "sum", "avg", "ntile", *NO_VALUE]


def _place(keys: tuple[Expression, ...], order: tuple[Sort, ...]) -> Window:
    """Numbers rows by an order, and rows that it does not tell apart by all columns."""
    return Window("place", "row_number", (), keys, order, ties=(X, K, G))


def _within_unit(draw: Draw, source: Relation) -> Relation:
    keys = draw(st.sampled_from([(Column(UNIT),), (Column(UNIT), G)]))
    order = tuple(
        Sort(draw(st.sampled_from([X, K, G])), draw(st.booleans()), draw(st.booleans())) for _ in range(draw(st.integers(0, 2)))
    )
    numbered, by_place = WithinUnit(source, (_place(keys, order),)), (Sort(Column("place")),)
    function, rows = draw(st.sampled_from(_VALUES)), draw(st.sampled_from(FRAMES))
    peers = function in ("rank", "dense_rank") or (rows is not None and rows.peers and function not in ("lag", "lead", "ntile"))
    peers = peers and not function.endswith("_value")
    rows = Rows(None, 0) if function.endswith("_value") and rows is not None and rows.peers else rows
    shift: tuple[Expression, ...] = (draw(st.sampled_from([K, WHOLES[2]])), Literal(draw(st.integers(0, 2))), Literal(7))
    whole = (draw(st.sampled_from(WHOLES)),)
    arguments = {"lag": shift, "lead": shift, "ntile": (Literal(3),)}.get(function, whole if function not in NO_VALUE else ())
    window = Window("w", function, arguments, keys, order if peers else by_place, rows)
    real = function in ("sum", "avg")
    value = Column("w") if real else call("to_real", Column("w"))
    return back(WithinUnit(numbered, (window,)), x=value, k=draw(st.sampled_from([K, Column("place")])))


@st.composite
def relations(draw: Draw, steps: int = 3) -> Relation:
    """Generates a unit-local relation of several steps."""
    relation = base(draw(st.sampled_from(PRIVATE)))
    for _ in range(draw(st.integers(0, steps))):
        other = base(draw(st.sampled_from(PRIVATE)))
        step = draw(st.sampled_from(["filter", "compute", "join", "semi", "per_unit", "within_unit", "union"]))
        if step == "filter":
            relation = Filter(relation, draw(st.sampled_from(CONDITIONS)))
        elif step == "compute":
            relation = back(
                relation, x=draw(st.sampled_from(NUMBERS)), k=draw(st.sampled_from(WHOLES)), g=draw(st.sampled_from(TEXTS))
            )
        elif step == "join":
            relation = _joined(draw, relation, other)
        elif step == "semi":
            relation = _semi(draw, relation, other)
        elif step == "per_unit":
            relation = _per_unit(draw, relation)
        elif step == "within_unit":
            relation = _within_unit(draw, relation)
        else:
            relation = Union((relation, other))
    return relation


# --- works ------------------------------------------------------------------------------------------------------

GRIDS = [(Fraction(0), Fraction(1, 2), 10), (Fraction(-2), Fraction(1), 4), (Fraction(1, 10), Fraction(1, 10), 3)]


@cache
def _measures() -> st.SearchStrategy[Measure]:
    grid = st.builds(lambda e, g: Quantised(e, *g), st.sampled_from(NUMBERS), st.sampled_from(GRIDS))
    small = st.integers(-2, 2)
    cell = st.one_of(st.just(Cell(constant=1)), st.builds(Cell, grid, small, small, small, small))
    where = st.one_of(st.none(), st.sampled_from(CONDITIONS))
    most = st.integers(1, 3)
    return st.one_of(
        st.builds(lambda cells, m, w: Sums(tuple(cells), m, w), st.lists(cell, min_size=1, max_size=3), most, where),
        st.builds(Distinct, st.sampled_from([*TEXTS, *NUMBERS, *WHOLES]), most),
        st.builds(Bins, grid, most, where),
    )


@st.composite
def works(draw: Draw) -> Work:
    """Generates a Work over a generated relation, by unit."""
    keys = draw(st.sampled_from([(), (Named("g", G),), (Named("g", call("upper", G)), Named("k", call("floor", X)))]))
    known = draw(st.sampled_from([None, (("a", "A", "", None), (0, 7, 12, None))[: len(keys)]]))
    return Work(
        draw(relations()),
        keys,
        known,
        True,
        draw(st.integers(1, 2)),
        tuple(draw(st.lists(_measures(), min_size=1, max_size=2))),
        draw(st.booleans()),
    )
