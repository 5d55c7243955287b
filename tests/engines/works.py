"""Generated Works: expressions, relations, keys and measures over the tables of tables.py.

Every strategy is built once: building one takes far longer than drawing from it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import strategies as st

from dither.query.functions.base import Facts
from dither.query.functions.registry import typed
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
from engines.tables import KINDS, TEXTS

SCOPE = {name: Facts(kind) for name, kind in KINDS.items()}
ENOUGH = 1000  # more groups, rows and values than any generated table has


def column(name: str) -> Expression:
    return Column(name)


SKIPPING = ("smallest", "largest")


@cache
def number() -> st.SearchStrategy[Expression]:
    """A number of the row: plain columns, and arithmetic that overflows, divides by zero and leaves the numbers."""
    constants = st.sampled_from([0, 1, -2, 3, 2**53 + 1, Fraction(1, 10), Fraction(-5, 2), None]).map(Literal)
    leaves = st.one_of(st.sampled_from([Column("x"), Column("i")]), constants)

    def deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        two = st.sampled_from(
            ["add", "sub", "mul", "div", "mod", "power", "least", "greatest", "nullif", "coalesce", *SKIPPING]
        )
        one = st.sampled_from(
            ["neg", "abs", "floor", "ceil", "round", "trunc", "sqrt", "ln", "exp", "sign", "to_int", "to_real"]
        )
        return st.one_of(
            st.builds(lambda f, x, y: Call(f, (x, y)), two, inner, inner),
            st.builds(lambda f, x: Call(f, (x,)), one, inner),
            st.builds(lambda w, x, y: Call("case", (w, x, y)), comparison(inner), inner, inner),
        )

    return st.recursive(leaves, deeper, max_leaves=5).map(_typed)


def comparison(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    signs = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    return st.builds(lambda f, x, y: Call(f, (x, y)), signs, inner, inner)


@cache
def truth() -> st.SearchStrategy[Expression]:
    text = st.sampled_from(TEXTS).map(Literal)
    leaves = st.one_of(
        comparison(number()),
        st.builds(lambda y: Call("le", (Column("t"), y)), text),
        st.builds(lambda y: Call("like", (Column("t"), y)), text),
        st.just(Column("b")),
        st.builds(lambda x: Call("is_null", (x,)), number()),
    )
    joined = st.builds(lambda f, x, y: Call(f, (x, y)), st.sampled_from(["and", "or"]), leaves, leaves)
    return st.one_of(leaves, joined, leaves.map(lambda x: Call("not", (x,)))).map(_typed)


def _typed(expression: Expression) -> Expression:
    return typed(expression, SCOPE)


# --- relations: all offer UNIT and the columns of KINDS ---------------------------------------------------------


def plain(table: str, alias: str) -> Relation:
    columns = [Named(name, Column(f"{alias}.{name}")) for name in KINDS]
    return Compute(Scan(table, alias), (Named(UNIT, Column(f"{alias}.who")), *columns))


def united(x: Expression, *, first: bool) -> Relation:
    """All rows twice, the one time with another x. What is known of one part must not be taken for known of both."""
    columns = [Named(name, x if name == "x" else Column(name)) for name in KINDS]
    other = Compute(plain("t", "u"), (Named(UNIT, Column(UNIT)), *columns))
    return Union((other, plain("t", "t")) if first else (plain("t", "t"), other))


def _joined(kind: str) -> Relation:
    """With a public table p on the text; the number comes from there."""
    joined = Join(plain("t", "t"), Scan("p", "p"), ((Column("t"), Column("p.t")),), kind)
    columns = [Named(name, Column("p.x" if name == "x" else name)) for name in KINDS]
    return Compute(joined, (Named(UNIT, Column(UNIT)), *columns))


def _own() -> Relation:
    """Per unit and text, with every exact aggregate."""
    aggregates = [("i", "sum", Column("i")), ("x", "avg", Column("i")), ("b", "bool_or", Column("b"))]
    aggregates += [("d", "max", Column("d")), ("s", "min", Column("s")), ("n", "count", None), ("o", "count", Column("x"))]
    aggregates += [("m", "min", Column("x")), ("v", "count_distinct", Column("x"))]
    found = PerUnit(
        plain("t", "t"),
        (Named(UNIT, Column(UNIT)), Named("t", Column("t"))),
        tuple(Aggregate(name, function, argument) for name, function, argument in aggregates),
    )
    mixed = Call("add", (Call("coalesce", (Column("m"), Literal(Fraction(0)))), Call("mul", (Column("v"), Column("n")))))
    columns = {"who": Column(UNIT), "i": Call("add", (Column("o"), Column("i"))), "x": Call("add", (mixed, Column("x")))}
    columns["i"] = Call("to_int", (columns["i"],))
    return Compute(found, (Named(UNIT, Column(UNIT)), *(Named(name, columns.get(name, Column(name))) for name in KINDS)))


def _full() -> Relation:
    """A full join with itself on the unit and the text: rows of either side, each with the unit of the side that is there."""
    other = Compute(plain("t", "u"), tuple(Named(f"u.{name}", Column(name)) for name in (UNIT, *KINDS)))
    pairs = ((Column(UNIT), Column(f"u.{UNIT}")), (Column("i"), Column("u.i")))
    columns = [Named(name, Column(f"u.{name}" if name in "xd" else name)) for name in KINDS]
    unit = Named(UNIT, Call("coalesce", (Column(UNIT), Column(f"u.{UNIT}"))))
    return Compute(Join(plain("t", "t"), other, pairs, "full"), (unit, *columns))


PLACE = (Sort(Column("place")),)
FRAMES = [None, Rows(None, 0), Rows(-2, 0), Rows(-1, 1), Rows(1, 3), Rows(-3, -1), Rows(0, None)]
PEERS = [Rows(None, 0, True), Rows(0, None, True), Rows(0, 0, True)]
WINDOWS = {  # the column that gets the value, and what it is computed from
    "row_number": ("i", ()),
    "rank": ("i", ()),
    "dense_rank": ("i", ()),
    "ntile": ("i", (Literal(3),)),
    "count": ("i", (Column("x"),)),
    "sum": ("x", (Column("i"),)),
    "avg": ("x", (Column("i"),)),
    "min": ("t", (Column("t"),)),
    "max": ("x", (Column("x"),)),
    "lag": ("x", (Column("x"), Literal(2), Literal(Fraction(1, 2)))),
    "lead": ("d", (Column("d"), Literal(1), Literal(None))),
    "first_value": ("b", (Column("b"),)),
    "last_value": ("s", (Column("s"),)),
}


@st.composite
def windows(draw: Any) -> Relation:
    """Within units: rows are numbered by some order and all columns, and values depend on the number or on the order."""
    keys = draw(st.sampled_from([(Column(UNIT),), (Column(UNIT), Column("t"))]))
    names = st.sampled_from([*KINDS])
    order = tuple(Sort(Column(draw(names)), draw(st.booleans()), draw(st.booleans())) for _ in range(draw(st.integers(0, 2))))
    ties = tuple(Column(name) for name in KINDS)
    numbered = WithinUnit(plain("t", "t"), (Window("place", "row_number", (), keys, order, ties=ties),))
    function = draw(st.sampled_from([*WINDOWS]))
    own, arguments = WINDOWS[function]
    by_order = function in ("rank", "dense_rank") or (function in ("count", "sum", "avg", "min", "max") and draw(st.booleans()))
    rows = draw(st.sampled_from(PEERS if by_order and order else FRAMES))
    window = Window("w", function, arguments, keys, order if by_order and order else PLACE, rows)
    columns = [Named(name, Column("w" if name == own else "place" if name == "who" else name)) for name in KINDS]
    return Compute(WithinUnit(numbered, (window,)), (Named(UNIT, Column(UNIT)), *columns))


@cache
def relations() -> st.SearchStrategy[Relation]:
    here = plain("t", "t")
    semi = st.builds(lambda no: Semi(here, Scan("p", "p"), ((Column("t"), Column("p.t")),), no), st.booleans())
    p = Scan("p", "p")
    pairs = st.sampled_from([(Column("t"), Column("p.t")), (Column("x"), Column("p.x")), (Column("i"), Column("p.x"))])
    also = st.sampled_from([(), ((Column("b"), Column("p.b")),), ((Column("i"), Column("p.i")),)])
    not_in = st.builds(lambda equal, listed: Semi(here, p, equal, True, listed), also, pairs)
    return st.one_of(
        st.just(here),
        not_in,
        truth().map(lambda condition: Filter(here, condition)),
        truth().map(lambda condition: Union((here, Filter(plain("t", "u"), condition)))),
        st.builds(lambda x, first: united(x, first=first), number(), st.booleans()),
        st.sampled_from([_joined("inner"), _joined("left"), _full(), _own()]),
        windows(),
        semi,
    )


# --- keys and measures ------------------------------------------------------------------------------------------

KEYS: list[tuple[Expression, tuple[Any, ...]]] = [
    (Column("t"), ("a", "it's", "😀", None, "")),
    (Column("b"), (True, False)),
    (Column("i"), (0, 1, 2**63 - 1)),
    (Call("bucket", (Column("x"), Literal(10))), (0, 10, -10, None)),
    (Call("floor", (Column("x"),)), (0, 1, 2)),
    (Call("year", (Column("d"),)), (2024, 1)),
    (Call("date_trunc", (Literal("month"), Column("s"))), ()),
]


@cache
def grid() -> st.SearchStrategy[Quantised]:
    grids = [(0, 1, 100), (-5, 1, 10), (Fraction(1, 10), Fraction(1, 10), 7), (0, Fraction(1, 3), 30)]
    grids += [(10**15, Fraction(1, 64), 100), (0, 10**300, 1), (-(2**62), 2**30, 2**33), (0, Fraction(1, 2**40), 2**41)]
    numbers = st.one_of(number(), st.just(Column("i")))
    return st.builds(lambda x, g: Quantised(x, Fraction(g[0]), Fraction(g[1]), g[2]), numbers, st.sampled_from(grids))


@cache
@st.composite
def sums(draw: Any) -> Sums:
    q = draw(grid())
    cells = [Cell(q, linear=1), Cell(q, constant=q.steps, linear=-1), Cell(q, null=q.steps), Cell(constant=1)]
    cells += [Cell(q, constant=-3, linear=-2, null=5), Cell(draw(grid()), linear=1)]
    if q.steps < 2**40:
        cells.append(Cell(q, square=1, linear=-q.steps))
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=4))
    return Sums(tuple(chosen), draw(st.sampled_from([1, 2, 3, ENOUGH])), draw(st.one_of(st.none(), truth())))


@cache
def measures(max_values: int = ENOUGH) -> st.SearchStrategy[Measure]:
    coarse = st.builds(lambda x: Quantised(x, Fraction(0), Fraction(7), 15), number())
    bins = st.builds(Bins, coarse, st.sampled_from([1, 2, ENOUGH]), st.one_of(st.none(), truth()))
    values = st.one_of(number(), st.sampled_from([Column("t"), Column("d"), Column("b")]))
    return st.one_of(sums(), bins, st.builds(Distinct, values, st.just(max_values)))


@st.composite
def works(draw: Any, by_unit: bool | None = None, max_groups: int | None = None, max_values: int = ENOUGH) -> Work:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique_by=lambda key: repr(key[0])))
    known = tuple(values for _, values in keys) if draw(st.booleans()) else None
    unit = draw(st.booleans()) if by_unit is None else by_unit
    return Work(
        draw(relations()),
        tuple(Named(f"key{i}", key) for i, (key, _) in enumerate(keys)),
        known,
        unit,
        draw(st.sampled_from([None, ENOUGH])) if max_groups is None else max_groups,
        tuple(draw(st.lists(measures(max_values), max_size=3))),
        draw(st.booleans()),
    )
