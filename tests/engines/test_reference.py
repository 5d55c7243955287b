"""The reference engine: rows belong to one unit each, bounding holds, order means nothing."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dither.engines.reference import Bag, Reference, rows_of
from dither.query.nodes import Aggregate, Column, Compute, Join, Named, PerUnit, Relation, Semi
from dither.query.work import SCALE, UNIT, Bins, Cell, Distinct, Group, Sums, Work
from expressions.relations import (
    KINDS,
    SAME_PLACE,
    Tables,
    alone,
    back,
    base,
    relations,
    renamed,
    tables,
    without,
    works,
)

SECRET = b"a secret of one release"
some = settings(max_examples=100, suppress_health_check=list(HealthCheck))
search = settings(
    max_examples=3000, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


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
