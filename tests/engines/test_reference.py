"""The reference engine: rows belong to one unit each, bounding holds, order means nothing, and hand-counted examples."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dither.engines.base import Engine
from dither.engines.reference import Reference, quantise
from dither.engines.reference_rows import Bag, rows_of
from dither.query.nodes import Aggregate, Column, Compute, Expression, Filter, Join, Named, PerUnit, Relation, Scan, Semi
from dither.query.work import SCALE, UNIT, Bins, Cell, Distinct, Group, Quantised, Sums, Work
from expressions.relations import (
    KINDS,
    SAME_PLACE,
    Tables,
    alone,
    back,
    base,
    call,
    relations,
    renamed,
    tables,
    without,
    works,
)

SECRET = b"a secret of one release"
some = settings(max_examples=100, suppress_health_check=list(HealthCheck))
search = settings(max_examples=3000, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def rows(relation: Relation, found: Tables) -> Counter[Any]:
    """The relation's rows as a bag."""
    bags = {name: Bag(tuple(KINDS[name]), list(table)) for name, table in found.items()}
    return Counter(tuple(sorted(row.items(), key=str)) for row in rows_of(relation, bags).rows)


def of_unit(bag: Counter[Any], person: int, *, others: bool) -> Counter[Any]:
    return Counter({row: n for row, n in bag.items() if (dict(row)[UNIT] == person) != others})


# --- unit-local -------------------------------------------------------------------------------------------------


def unit_local(relation: Relation, found: Tables, person: int) -> bool:
    """Removing a unit removes its rows and touches no other; its rows are what it would have alone."""
    everyone = rows(relation, found)
    rest = of_unit(rows(relation, without(found, person)), person, others=True)
    own = of_unit(rows(relation, alone(found, person)), person, others=False)
    return of_unit(everyone, person, others=True) == rest and of_unit(everyone, person, others=False) == own


@some
@given(relation=relations(), found=tables(), person=st.integers(1, 4))
def test_relations_are_unit_local(relation: Relation, found: Tables, person: int) -> None:
    assert unit_local(relation, found, person)


VISITS = base("visits")
MIXING = {
    "a join that does not equate units": back(Join(VISITS, renamed(base("people")), (SAME_PLACE,), "inner")),
    "a join that shows another's row": back(Join(VISITS, renamed(base("people")), (SAME_PLACE,), "inner"), k=Column("r.k")),
    "existence of another's row": Semi(VISITS, renamed(base("people")), (SAME_PLACE,), True),
    "aggregation across units": back(
        Join(
            VISITS,
            Compute(
                PerUnit(VISITS, (Named("g", Column("g")),), (Aggregate("n", "count"),)),
                (Named("r.g", Column("g")), Named("r.k", Column("n"))),
            ),
            (SAME_PLACE,),
            "inner",
        ),
        k=Column("r.k"),
    ),
}


@pytest.mark.parametrize("why", sorted(MIXING))
def test_mixing_units_is_found(why: str) -> None:
    def check(found: Tables, person: int) -> None:
        assert unit_local(MIXING[why], found, person)

    with pytest.raises(AssertionError):
        search(given(found=tables(), person=st.integers(1, 4))(check))()


# --- bounded ----------------------------------------------------------------------------------------------------


def run(work: Work, found: Tables, **options: Any) -> dict[tuple[Any, ...], Group]:
    groups = Reference(found, KINDS, **options).run(work, SECRET)
    assert len({group.key for group in groups}) == len(groups)
    return {group.key: group for group in groups}


def moved(measure: Any, before: Any, after: Any) -> int:
    """How far one group's numbers moved, in units of what one row's worth may move them."""
    if isinstance(measure, Distinct):
        return abs((before or 0) - (after or 0)) - measure.max_values
    if isinstance(measure, Bins):
        before, after = before or {}, after or {}
        return sum(abs(before.get(b, 0) - after.get(b, 0)) for b in {*before, *after}) - measure.max_rows * SCALE
    zeros = (0,) * len(measure.cells)
    over = [
        abs(x - y) - measure.max_rows * reach(cell)
        for x, y, cell in zip(before or zeros, after or zeros, measure.cells, strict=True)
    ]
    return max(over)


def reach(cell: Cell) -> int:
    """The most one row can move a cell."""
    if cell.argument is None:
        return abs(cell.constant)
    values = [cell.constant + cell.linear * q + cell.square * q * q for q in range(cell.argument.steps + 1)]
    return max(abs(value) for value in [*values, cell.null])


def keeps_bounds(work: Work, found: Tables, person: int, **options: Any) -> bool:
    """One unit changes at most max_groups groups, each by at most max_rows rows' worth."""
    before, after = run(work, found, **options), run(work, without(found, person), **options)
    changed = 0
    for key in {*before, *after}:
        one, two = before.get(key), after.get(key)
        nothing: tuple[Any, ...] = (None,) * len(work.measures)
        pairs = zip(work.measures, one.measures if one else nothing, two.measures if two else nothing, strict=True)
        if any(moved(measure, x, y) > 0 for measure, x, y in pairs):
            return False
        changed += one is None or two is None or one.measures != two.measures or one.units != two.units
    return changed <= (work.max_groups or 0)


@some
@given(work=works(), found=tables(), person=st.integers(1, 4))
def test_one_unit_moves_what_it_may(work: Work, found: Tables, person: int) -> None:
    assert keeps_bounds(work, found, person)


def test_keeping_all_groups_is_found() -> None:
    def check(work: Work, found: Tables, person: int) -> None:
        assert keeps_bounds(work, found, person, choose=lambda secret, unit, candidates, most: candidates)

    with pytest.raises(AssertionError):
        search(given(work=works(), found=tables(), person=st.integers(1, 4))(check))()


def test_a_smaller_claim_than_the_bound_is_found() -> None:
    def check(work: Work, found: Tables, person: int) -> None:
        generous = replace(
            work, measures=tuple(replace(m, max_rows=3) if isinstance(m, (Sums, Bins)) else m for m in work.measures)
        )
        before, after = run(generous, found), run(generous, without(found, person))
        for key in {*before} & {*after}:
            for measure, x, y in zip(work.measures, before[key].measures, after[key].measures, strict=True):
                assert moved(measure, x, y) <= 0

    with pytest.raises(AssertionError):
        search(given(work=works(), found=tables(), person=st.integers(1, 4))(check))()


@some
@given(work=works(), found=tables(), seed=st.integers(0, 99))
def test_order_means_nothing(work: Work, found: Tables, seed: int) -> None:
    shuffled = {name: random.Random(seed).sample(table, len(table)) for name, table in found.items()}
    assert run(work, found) == run(work, shuffled)


@some
@given(work=works(), found=tables())
def test_no_table_raises_and_every_integer_is_one(work: Work, found: Tables) -> None:
    for group in run(work, found).values():
        for measure in group.measures:
            numbers = measure if isinstance(measure, tuple) else [*measure.values()] if isinstance(measure, dict) else [measure]
            assert all(type(number) is int for number in numbers)


# --- by hand ----------------------------------------------------------------------------------------------------

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
