"""Every function of the registry gives in every engine what it gives in Python, on the hardest inputs there are.

Spark takes a second for each statement, so test_spark.py computes many functions at a time.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from dither.engines.sql.functions import PRINTERS
from dither.errors import ArgumentError
from dither.query.functions.base import Facts
from dither.query.functions.domains import facts
from dither.query.functions.durations import DIFFERENCES
from dither.query.functions.registry import FUNCTIONS, columns, evaluate, typed
from dither.query.nodes import Call, Column, Compute, Expression, Literal, Named, Relation, Scan
from dither.query.work import Cell as Counted
from dither.query.work import Sums, Work
from engines.places import Place, compare, fit
from engines.tables import DATES, INTS, KINDS, REALS, SECRET, TEXTS, TIMES
from engines.works import plain

DATED = [
    "24.10.1947",
    "31.2.2024",
    "1.2.24",
    "20240102",
    "2024010",
    "5 may 2024",
    "Sept 24",
    "SEP 69",
    "2024",
    "2024-01-02 24:00:00",
]
DATED += [
    "2024-1-2 3:4:5",
    "2024-01-02 23:59:60",
    " 1.2.2024",
    "1.2.2024 ",
    "29 February 1900",
    "Feb 68",
    "0000-02-03",
    "9999-12-31",
]
HARD: dict[str, list[Any]] = {
    "int": [*INTS, None],
    "real": [*REALS, None],
    "text": [*TEXTS, "0000-01-01", "0001-01-01", "+7", "1.", "TRUE", "False", "١", "ﬁ", " ", "a\nb", *DATED, None],
    "bool": [True, False, None],
    "date": [*DATES, None],
    "timestamp": [*TIMES, None],
}
OF_KIND = {"i": "int", "x": "real", "t": "text", "b": "bool", "d": "date", "s": "timestamp"}
CONSTANTS: dict[str, list[tuple[Any, ...]]] = {
    "clamp": [(0, 10), (Fraction(-1, 2), Fraction(5, 2)), (0, Fraction(1, 3))],
    "bucket": [(10,), (Fraction(1, 10),), (3,)],
    "in_list": [(1, 2), (0, None), (Fraction(1, 2), 1)],
    "like": [("a%",), ("%",), ("_",), ("%'%",), ("a\\%",), ("100%",), ("a_c",), ("",), ("\x00",)],
    "starts_with": [("a",), ("",), ("é",), ("%",)],
    "contains": [("'",), ("",), ("😀",), ("\x00",)],
    "ends_with": [("a",), ("",), ("é",), ("%",)],
    "position": [("a",), ("",), ("é",), ("\x00",), ("😀",)],
    "right": [(0,), (1,), (3,), (2147483647,)],
    "replace": [("a", "b"), ("a", ""), ("a", "xyz"), ("aa", "aaa"), ("'", "''"), ("\x00", "é"), ("é", "ee")],
    "split_part": [("a", 1), ("a", 2), (".", 3), ("é", 1), ("aa", 2), (" ", 2147483647)],
    "regexp_matches": [
        *(
            (pattern,)
            for pattern in ("", "a", "^a", "a$", "^$", ".", "^.$", "[a-c]+", "[^a-c]", "\\d{2,4}", "\\s", "\\w+", "\\D")
        ),
        *(
            (pattern,)
            for pattern in (
                "(a|b)*c",
                "a|",
                "(?:ab)?c",
                "^(é|😀)",
                "[é-ü]",
                "\\.",
                "x{0}",
                "a??b",
                "^[^\\d\\s]*$",
                "[a\\-z]",
                "[a-]",
            )
        ),
    ],
    "round": [(), (2,), (-2,), (15,), (-15,), (0,)],
    "trunc": [(), (1,), (-3,), (15,), (-15,)],
    "width_bucket": [(0, 10, 5), (Fraction(-1, 2), Fraction(1, 3), 7), (-(10**6), 10**6, 1000)],
    "substr": [(1, 1), (2, 5), (1, 0), (3, 2147483647)],
    "add_months": [(0,), (1,), (-1,), (12,), (-13,), (119_988,), (-119_988,)],
    "add_seconds": [(0,), (1,), (-3600,), (86_400 * 3_652_058,), (-86_400 * 3_652_058,)],
    "strftime": [("%Y-%m",), ("%y %m %-m %B %b %d %-d %j %A %a %u %w",), ("%G-W%V",), ("%H:%M:%S %I %p",), ("it's 100%%",)],
    "strptime": [("%Y-%m-%d",), ("%d.%m.%Y",), ("%Y%m%d",), ("%d %B %Y",), ("%b %y",), ("%Y",), ("%Y-%m-%d %H:%M:%S",)],
}


def columns_for(name: str, count: int) -> list[tuple[str, ...]]:
    """Columns of every kind the function accepts, one for each argument."""
    function = FUNCTIONS[name]
    fitting = [[c for c, kind in OF_KIND.items() if kind in function.accepted(place)] for place in range(count)]
    if name == "case":
        return [("b", c, c) for c in OF_KIND]
    if name == "add_days":
        return [("d", "i"), ("s", "i")]
    chosen = list(itertools.product(*fitting))
    return [c for c in chosen if function.alike is None or len({OF_KIND[part] for part in c}) == 1 or set(c) <= {"i", "x"}]


def calls(name: str) -> list[Expression]:
    function = FUNCTIONS[name]
    if name == "date_trunc":
        units = ("day", "week", "month", "quarter", "year")
        return [Call(name, (Literal(unit), Column(f"p.{c}"))) for unit in units for c in "ds"]
    if name == "date_diff":
        return [
            Call(name, (Literal(unit), Column(f"p.{a}"), Column(f"q.{b}"))) for unit in DIFFERENCES for a in "ds" for b in "ds"
        ]
    if name in CONSTANTS:
        first = [c for c in OF_KIND if OF_KIND[c] in function.accepted(0)] if name != "in_list" else ["i", "x"]
        return [Call(name, (Column(f"p.{c}"), *map(Literal, rest))) for c in first for rest in CONSTANTS[name]]
    count = min(max(function.least, 2 if function.most is None else function.least), 3)
    return [Call(name, tuple(Column(f"{'pqr'[i]}.{c}") for i, c in enumerate(chosen))) for chosen in columns_for(name, count)]


def resolved(expression: Expression) -> Expression:
    """As it arrives in an engine: integers beside doubles in a choice are cast."""
    return typed(expression, {f"{letter}.{c}": Facts(kind) for letter in "pqr" for c, kind in OF_KIND.items()})


def table_of(expression: Expression) -> list[dict[str, Any]]:
    """Every combination of hard values for the columns of the expression."""
    assert isinstance(expression, Call)
    names = sorted(columns(expression))
    return [dict(zip(names, found, strict=True)) for found in itertools.product(*(HARD[OF_KIND[n[-1]]] for n in names))]


def values_of(place: Place, expression: Expression, table: list[dict[str, Any]]) -> list[Any]:
    """The values of an expression in an engine, in the table's order: read as a question reads a public table."""
    kinds = {name: OF_KIND[name[-1]] for name in table[0]} | {"n": "int"}
    engine = place.engine({"t": [{**row, "n": i} for i, row in enumerate(table)]}, {"t": kinds})
    keys = (Named("n", Column("t.n")), Named("value", prefixed(expression)))
    found = engine.run(Work(Scan("t", "t"), keys, None, False, None, (), plain=True), SECRET)
    return [value for _, value in sorted((group.key for group in found), key=lambda key: key[0])]


def possible(place: Place, expression: Expression) -> bool:
    """Whether the place can hold the expression's constants."""
    return "\\x00" not in repr(expression) or place.holds("\0")


def prefixed(expression: Expression) -> Expression:
    if isinstance(expression, Column):
        return Column(f"t.{expression.name}")
    if isinstance(expression, Call):
        return Call(expression.name, tuple(prefixed(part) for part in expression.arguments))
    return expression


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, bool) != isinstance(theirs, bool) or (ours is None) != (theirs is None):
        return False
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs
    return bool(ours == theirs)


def test_the_two_tables_have_the_same_functions() -> None:
    assert set(PRINTERS) == set(FUNCTIONS)


@pytest.mark.parametrize("place", ["duckdb", "postgres"], indirect=True)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_agrees_on_hard_inputs(place: Place, name: str) -> None:
    assert calls(name)
    for expression in map(resolved, calls(name)):
        if not possible(place, expression):
            continue
        table = fit(place, table_of(expression))
        found = values_of(place, expression, table)
        for row, ours in zip(table, found, strict=True):
            assert same(ours, evaluate(expression, row)), (expression, row, ours, evaluate(expression, row))


@pytest.mark.parametrize("place", ["duckdb", "postgres"], indirect=True)
@pytest.mark.parametrize("null", [Literal(None), Column("z")], ids=["written", "column"])
def test_every_function_takes_null_without_a_kind(place: Place, null: Expression) -> None:
    """An engine that cannot tell which function of NULL is meant fails after the charge, and closes the catalog."""
    scope = {"z": facts(Literal(None), {})}
    engine = place.engine({"t": [dict.fromkeys(KINDS)]})
    source = Compute(Scan("t", "t"), (Named("z", Literal(None)),))
    for name in sorted(FUNCTIONS):
        call = calls(name)[0]
        assert isinstance(call, Call)
        expression = typed(Call(name, tuple(null if isinstance(x, Column) else x for x in call.arguments)), scope)
        work = Work(source, (Named("value", expression),), None, False, None, (), plain=True)
        if name == "case" and place.name == "postgres":  # NULL or NULL: refused before any charge
            with pytest.raises(ArgumentError):
                engine.prepare(work)
            continue
        engine.prepare(work)
        found = engine.run(work, SECRET)
        assert [group.key for group in found] == [(evaluate(expression, {"z": None}),)], name


def test_concat_is_null_beyond_its_length_in_both_engines(place: Place) -> None:
    texts = [None, "", "b", "é" * 32_767, "😀" * 32_768, "a" * 65_535, "a" * 65_536, "a" * 65_537]
    table = [{"p.t": one, "q.t": two} for one in texts for two in texts]
    left, right = Column("p.t"), Column("q.t")
    for parts in ((left,), (left, right), (left, right, left), (left, Literal("x"), right), (left, Literal(None))):
        expression = Call("concat", parts)
        for row, ours in zip(table, values_of(place, expression, table), strict=True):
            whole = [evaluate(part, row) for part in parts]
            joined = None if None in whole else "".join(map(str, whole))
            expected = joined if joined is not None and len(joined) <= 65_536 else None
            assert ours == expected
            assert evaluate(expression, row) == expected


def test_texts_that_double_forever_are_null_and_fill_no_memory(place: Place) -> None:
    """Forty doublings of one person's text would need a terabyte: failing there would tell that the person is there."""
    grown: Relation = plain("t", "t")
    for _ in range(40):
        grown = Compute(grown, (Named("t", Call("concat", (Column("t"), Column("t")))),))
    work = Work(grown, (Named("k", Column("t")),), None, False, None, (Sums((Counted(constant=1),), 1),))
    table = [{**dict.fromkeys(KINDS), "t": text} for text in ("", "a", None)]
    ours, theirs = compare(place, work, {"t": table})
    assert ours == theirs
    assert {group.key: group.measures for group in ours.values()} == {("",): ((1,),), (None,): ((2,),)}


def test_the_comparison_tells_answers_apart() -> None:
    assert not same(1, True)
    assert not same(None, math.nan)
    assert not same(1.0, 1.0000000000000002)
    assert KINDS
