"""The reference engine by hand-counted examples: the lines that engines could read differently."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from dither.engines.base import Engine
from dither.engines.reference import Bag, Reference, quantise, rows_of
from dither.query.nodes import Aggregate, Column, Compute, Expression, Filter, Join, Named, PerUnit, Relation, Scan, Semi
from dither.query.work import SCALE, UNIT, Bins, Cell, Distinct, Group, Quantised, Sums, Work
from expressions.relations import call

SECRET = b"a secret of one release"
G, N = Column("g"), Column("n")


def source(table: str = "t") -> Relation:
    return Compute(
        Scan(table, "t"), tuple(Named(name, Column(f"t.{old}")) for name, old in ((UNIT, "u"), ("g", "g"), ("n", "n")))
    )


def table(*found: tuple[Any, Any, Any]) -> list[dict[str, Any]]:
    return [{"u": u, "g": g, "n": n} for u, g, n in found]


def ask(found: list[dict[str, Any]], *measures: Any, **options: Any) -> dict[Any, Any]:
    options = {"keys": (Named("g", G),), "known": None, "by_unit": True, "max_groups": None, **options}
    engine: Engine = Reference({"t": found}, {"t": {"u": "int", "g": "text", "n": "int"}})
    return {group.key: group for group in engine.run(Work(source(), measures=measures, **options), SECRET)}


GRID = Quantised(N, Fraction(0), Fraction(1), 10)


def test_heavy_units_are_averaged_down_towards_zero() -> None:
    found = table((1, "a", 1), (1, "a", 2), (1, "a", 2), (2, "a", 9))
    sums = Sums((Cell(GRID, linear=1), Cell(GRID, linear=-1), Cell(constant=1)), max_rows=2)
    assert ask(found, sums)[("a",)].measures == ((3 + 9, -3 - 9, 2 + 1),)


def test_rows_that_are_units_are_not_bounded() -> None:
    found = table((1, "a", 1), (1, "a", 2), (None, "a", 2))
    assert ask(found, Sums((Cell(GRID, linear=1),), 1), by_unit=False)[("a",)].measures == ((5,),)


def test_rows_without_unit_and_unknown_keys_are_dropped() -> None:
    found = table((None, "a", 1), (1, "b", 1), (1, None, 1), (1, "z", 1))
    assert set(ask(found, Sums((Cell(constant=1),), 1), known=(("a", "b"),))) == {("b",)}
    assert set(ask(found, Sums((Cell(constant=1),), 1))) == {("b",), (None,), ("z",)}


def test_the_one_group_without_keys_is_always_there() -> None:
    assert ask([], Sums((Cell(constant=1),), 1), keys=(), max_groups=1, count_units=True) == {(): Group((), 0, ((0,),))}


def test_null_has_its_own_share() -> None:
    found = table((1, "a", None), (2, "a", 4))
    cells = (Cell(GRID, linear=1), Cell(GRID, constant=10, linear=-1), Cell(GRID, null=10))
    assert ask(found, Sums(cells, 1))[("a",)].measures == ((4, 6, 10),)


def test_only_counted_rows_count() -> None:
    found = table((1, "a", 8), (1, "a", 1), (1, "a", 1))
    where = call("gt", N, 5)
    assert ask(found, Sums((Cell(GRID, linear=1),), 1, where))[("a",)].measures == ((8,),)
    assert ask(found, Bins(GRID, 1, where))[("a",)].measures == ({8: SCALE},)


def test_bins_share_a_units_weight() -> None:
    found = table((1, "a", 1), (1, "a", 1), (1, "a", 5), (1, "a", None), (2, "a", 5))
    assert ask(found, Bins(GRID, 1))[("a",)].measures == ({1: 2 * SCALE // 3, 5: SCALE // 3 + SCALE},)


def test_distinct_values_are_limited_per_unit_and_group() -> None:
    found = table(*((1, "a", n) for n in range(9)), (2, "a", 3), (2, "a", None), (3, "b", None))
    groups = ask(found, Distinct(N, 4), count_units=True)
    assert groups[("a",)].measures in ((4,), (5,))
    assert groups[("a",)].units == 2
    assert groups[("b",)].measures == (0,)


def test_another_secret_makes_another_choice() -> None:
    found = table(*((1, str(n), 1) for n in range(50)))
    work = Work(source(), (Named("g", G),), None, True, 5, (Sums((Cell(constant=1),), 1),))
    engine = Reference({"t": found})
    kept = [{group.key for group in engine.run(work, secret)} for secret in (b"1", b"2", b"1")]
    assert kept[0] == kept[2] != kept[1]
    assert [len(keys) for keys in kept] == [5, 5, 5]


@pytest.mark.parametrize(
    ("x", "q"),
    [(None, None), (math.nan, None), (-math.inf, 0), (math.inf, 10), (0.5, 1), (0.49, 0), (2**63, 10), (-0.0, 0), (9.5, 10)],
)
def test_values_on_the_grid(x: float | None, q: int | None) -> None:
    assert quantise(GRID)({"n": x}) == q


def test_a_grid_of_tenths_ends_where_it_should() -> None:
    tenths = Quantised(N, Fraction(1, 10), Fraction(1, 10), 2**40)
    assert quantise(tenths)({"n": math.inf}) == 2**40


# --- joins ------------------------------------------------------------------------------------------------------


def pair(left: Expression, right: Expression) -> tuple[tuple[Expression, Expression], ...]:
    return ((left, right),)


def joined(kind: str, right: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left = Bag(("u",), [{"u": 1}, {"u": None}, {"u": 3}])
    join = Join(Scan("l", "l"), Scan("r", "r"), pair(Column("l.u"), Column("r.u")), kind)
    return [dict(row) for row in rows_of(join, {"l": left, "r": Bag(("u", "v"), list(right))}).rows]


def test_null_equals_nothing_and_left_keeps_all() -> None:
    right = [{"u": 1, "v": "a"}, {"u": 1.0, "v": "b"}, {"u": None, "v": "c"}]
    assert [row["r.v"] for row in joined("inner", right)] == ["a", "b"]
    assert [row["r.v"] for row in joined("left", right)] == ["a", "b", None, None]
    assert joined("left", [])[0] == {"l.u": 1, "r.u": None, "r.v": None}


def test_having_no_partner() -> None:
    bags = {"l": Bag(("u",), [{"u": 1}, {"u": None}]), "r": Bag(("u",), [{"u": 1}, {"u": None}])}
    semi = Semi(Scan("l", "l"), Scan("r", "r"), pair(Column("l.u"), Column("r.u")), negated=True)
    assert rows_of(semi, bags).rows == [{"l.u": None}]


def test_per_unit_sums_are_exact_and_free_of_order() -> None:
    values = [2**62, 1, -(2**62), None]
    found = table(*((1, "a", n) for n in values))
    functions = ("count", "sum", "avg", "min", "max", "count_distinct")
    node = PerUnit(source(), (Named(UNIT, Column(UNIT)),), tuple(Aggregate(f, f, N) for f in functions))
    for rotation in range(4):
        turned = found[rotation:] + found[:rotation]
        (row,) = rows_of(node, {"t": Bag(("u", "g", "n"), list(turned))}).rows
        assert [row[f] for f in functions] == [3, 1.0, 1 / 3, -(2**62), 2**62, 3]


def test_filters_keep_only_what_is_true() -> None:
    found = {"t": Bag(("u", "g", "n"), list(table((1, "a", 1), (2, "a", None), (3, "a", 9))))}
    assert [row[UNIT] for row in rows_of(Filter(source(), call("gt", N, 5)), found).rows] == [3]
