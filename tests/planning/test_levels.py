"""Grouping sets: bounded once by all keys, so that a total moves by more than one group does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.audit.ourselves.compare import complaints
from dither.audit.ourselves.observe import looser, observe, open_observed
from dither.mechanisms import L1, L2, PerCoordinate
from dither.planning.sensitivity import Bounding
from dither.privacy.neighbours import AddRemove, Replace

COUNT = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)"
SUMS = "SELECT a, b, SUM(x) AS s, AVG(x) AS m, VAR_POP(x) AS v, COUNT(x) AS n FROM t GROUP BY CUBE (a, b)"
PEOPLE = "SELECT a, b, COUNT(DISTINCT u) AS n, MEDIAN(x) AS m FROM t GROUP BY ROLLUP (a, b)"

# --- what a unit can move, by brute force -------------------------------------------------------------------------


def fine_moves(bounding: Bounding, coarse: int, merged: int, signed: bool) -> Iterator[tuple[int, ...]]:
    """Yields what one unit can add to the finest groups: at most max_groups of them, each by at most max_rows."""
    for places in itertools.combinations(range(coarse * merged), min(bounding.max_groups, coarse * merged)):
        for values in itertools.product(range(-bounding.max_rows if signed else 0, bounding.max_rows + 1), repeat=len(places)):
            cells = [0] * (coarse * merged)
            for place, value in zip(places, values, strict=True):
                cells[place] = value
            yield tuple(cells)


def coarse_moves(bounding: Bounding, coarse: int, merged: int, signed: bool) -> set[tuple[int, ...]]:
    """Returns what a change between neighbours can add to the coarser groups."""

    def added(fine: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sum(fine[each * merged : (each + 1) * merged]) for each in range(coarse))

    single = {added(fine) for fine in fine_moves(bounding, coarse, merged, signed)}
    if bounding.neighbours.changes == 1:
        return single
    return {tuple(a - b for a, b in zip(one, other, strict=True)) for one in single for other in single}


def priced(norm: Any, move: tuple[int, ...], smooth: bool) -> bool:
    """Whether a norm covers a move."""
    if isinstance(norm, PerCoordinate):
        moved = [abs(each) for each in move if each]
        return len(moved) <= norm.count and max(moved, default=0) <= norm.each
    if isinstance(norm, L1) and not smooth:
        return sum(map(abs, move)) <= norm.value
    assert isinstance(norm, L2)
    return sum(each * each for each in move) <= norm.squares(None)


CASES = [
    (rows, groups, coarse, merged, neighbours, signed)
    for rows, groups in ((1, 2), (2, 2), (1, 3), (2, 1), (1, 5))
    for coarse, merged in ((1, 2), (1, 4), (2, 2), (3, 2), (2, 3))
    for neighbours in (AddRemove(), Replace())
    for signed in (False, True)
    if not (signed and groups > 2 and neighbours.changes == 2)
]


@pytest.mark.parametrize(("rows", "groups", "coarse", "merged", "neighbours", "signed"), CASES)
def test_a_total_moves_by_no_more_than_is_priced(
    rows: int, groups: int, coarse: int, merged: int, neighbours: AddRemove | Replace, signed: bool
) -> None:
    fine = Bounding(rows, min(groups, coarse * merged), coarse * merged, neighbours)
    bounding = fine.coarser(coarse, merged)
    moves = coarse_moves(fine, coarse, merged, signed)
    shape = (1, 1, signed)
    assert all(priced(bounding.l1(*shape), move, False) for move in moves)
    assert all(priced(bounding.l2(*shape), move, True) for move in moves)
    assert max(sum(map(abs, move)) for move in moves) <= bounding.total(*shape)
    assert max(sum(each * each for each in move) for move in moves) <= bounding.squares(*shape)
    if neighbours.changes == 1:  # the bound is reached
        assert max(sum(map(abs, move)) for move in moves) == bounding.total(*shape)
        assert max(sum(each * each for each in move) for move in moves) == bounding.squares(*shape)


def test_several_cells_of_one_row_move_by_no_more_than_is_priced() -> None:
    """Two cells: a row adds to one of them. Four finest groups in two coarser ones, two of them a unit's."""
    fine = Bounding(2, 2, 4, AddRemove())
    bounding = fine.coarser(2, 2)
    most = 0
    for one, other in itertools.product(itertools.combinations(range(4), 2), repeat=2):
        for values in itertools.product(range(3), repeat=2):
            cells = np.zeros((2, 2), dtype=int)
            for cell, (places, value) in enumerate(zip((one, other), values, strict=True)):
                for place in places if one == other else places[:1]:
                    cells[place // 2, cell] += min(value, 2 - sum(values[:cell]))
            squares = int((cells**2).sum())
            most = max(most, squares)
            assert squares <= bounding.squares(1, 2, False)
    assert most == bounding.squares(1, 2, False) == 16


def test_that_check_can_fail() -> None:
    """A total moves by L m, not by the square root of L times m, and not by m: both would be too little noise."""
    fine = Bounding(2, 3, 4, AddRemove())
    moves = coarse_moves(fine, 1, 4, False)
    assert (
        not all(priced(L2(fine.l2(1, 1, False).squares(None)), move, True) for move in moves) or fine.squares(1, 1, False) < 36
    )
    assert max(sum(each * each for each in move) for move in moves) == 36 > fine.squares(1, 1, False) == 12
    forgotten = replace(fine, groups=1)  # a level planned like any other question
    assert not all(priced(forgotten.l1(1, 1, False), move, False) for move in moves)


# --- through the engine --------------------------------------------------------------------------------------------


def table(heavy: bool, **more: Any) -> dt.Table:
    """Nine ordinary people, and with `heavy` one with thirty rows in all groups."""
    rows = [(u, "xy"[u % 2], "pqr"[(u + i) % 3], i) for u in range(9) for i in range(u % 4)]
    rows += [(100, "xy"[i % 2], "pqr"[i % 3], 9) for i in range(30)] if heavy else []
    u, a, b, x = zip(*rows, strict=True)
    columns = {"a": dt.values("x", "y"), "b": dt.values("p", "q", "r"), "x": dt.between(0, 9)}
    return dt.Table({"u": u, "a": a, "b": b, "x": x}, unit="u", columns=columns, **more)


def seen(question: str, heavy: bool, delta: str = "0", change: Any = None, **more: Any) -> Any:
    bounds = {"max_rows": 2, "max_groups": 4, **more}
    catalog = dt.Catalog(tables={"t": table(heavy, **bounds)}, budget=dt.Budget(epsilon=100, delta=delta))
    with open_observed(catalog, change) as curator:
        return observe(curator, question)


@pytest.mark.parametrize("delta", ["0", "1e-3"])
@pytest.mark.parametrize("question", [COUNT, SUMS, PEOPLE])
def test_one_person_moves_every_level_by_no_more_than_is_priced(question: str, delta: str) -> None:
    one, other = seen(question, False, delta), seen(question, True, delta)
    assert one.status == other.status == "answered"
    assert complaints(one, other) == []
    assert 1 + len([plan for plan, _ in one.others if plan.level is not None]) in (4, 1)


def test_those_checks_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaints(seen(COUNT, False), seen(COUNT, True, change=looser(rows=2))) != []
    monkeypatch.setattr(Bounding, "coarser", lambda self, groups, merged: replace(self, groups=groups))
    assert complaints(seen(COUNT, False), seen(COUNT, True)) != []


def test_all_levels_are_of_one_run() -> None:
    observed = seen(COUNT, True)
    plans = [observed.plan, *(plan for plan, _ in observed.others if plan.level is not None)]
    assert len({id(plan.work) for plan in plans}) == 1
    groups = [observed.groups, *(each for plan, each in observed.others if plan.level is not None)]
    totals = [sum(group.measures[0][0] for group in each) for each in groups]
    assert len(totals) == 4
    assert len(set(totals)) == 1  # the exact totals agree: everyone is bounded once


def test_whether_sets_add_up_does_not_depend_on_the_price() -> None:
    """At a high price, noise for one row of one person would be out of range; the bounds of the question are others."""
    with opened() as survey:
        for epsilon in (1, 4000):
            plans = survey.quote(COUNT, epsilon, left_out=False).program.plans
            assert [plan.level for plan in plans] == [(0, 1), (0,), (1,), ()]


def test_the_prices_of_the_levels_add_up() -> None:
    with opened() as survey:
        quote = survey.quote(COUNT, epsilon=1, left_out=False)
        plans = quote.program.plans
        assert len(plans) == 4
        assert sum(plan.price.epsilon for plan in plans) == 1
        assert min(plan.price.epsilon for plan in plans) > 0
        assert quote.epsilon == 1


# --- the right numbers ---------------------------------------------------------------------------------------------


def opened(delta: str = "0", **more: Any) -> dt.Curator:
    bounds = {"max_rows": 30, "max_groups": 6, **more}
    budget = dt.Budget(epsilon=10_000, delta=delta)
    return dt.open(dt.Catalog(tables={"t": table(True, **bounds)}, budget=budget), ledger=":memory:")


def test_totals_are_marked() -> None:
    with opened() as survey:
        answer = survey.ask(
            "SELECT a, b, GROUPING(a) AS ga, GROUPING(a, b) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)", 9000
        )
        assert [row[:4] for row in answer][-3:] == [("x", None, 0, 1), ("y", None, 0, 1), (None, None, 1, 3)]
        assert answer["n"][-1] == sum(answer["n"][:6])
        assert "(all)" in str(answer)
        assert answer.to_dict()["a"][-1] is None
        assert {field.name: field.nullable for field in answer.schema} == {
            "a": True,
            "b": True,
            "ga": False,
            "g": False,
            "n": False,
        }


def test_a_key_that_is_null_is_not_a_total() -> None:
    data = {"u": [1, 2, 3], "a": ["x", None, "x"]}
    known = dt.Table(data, unit="u", key="u", columns={"a": dt.values("x", None)})
    with dt.open(dt.Catalog(tables={"t": known}, budget=dt.Budget(epsilon=1000)), ledger=":memory:") as survey:
        answer = survey.ask("SELECT a, GROUPING(a) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)", 100)
        assert answer.rows == (("x", 0, 2), (None, 0, 1), (None, 1, 3))
        assert [row[0] for row in answer.cells()] == ["x", "NULL", "(all)"]


def test_sets_that_do_not_add_up_are_asked_one_by_one() -> None:
    with opened() as survey:
        answer = survey.ask(PEOPLE, 900)
        assert answer["n"][-1] == 7  # the heavy person is in all groups, and one person in the total
        plans = survey.quote(PEOPLE, 900).program.plans
        assert len({id(plan.work) for plan in plans}) == 3
    with opened() as survey, pytest.raises(dt.ArgumentError, match="do not add up"):
        survey.ask(PEOPLE, 1, max_groups="auto")


def test_bounds_may_be_chosen_for_levels_that_add_up() -> None:
    with opened() as survey:
        answer = survey.ask(COUNT, 300, max_rows="auto", max_groups="auto")
        again = survey.ask(COUNT, 300, max_rows="auto", max_groups="auto")
        assert "chosen" in answer.chosen
        assert again.replayed
        assert again.rows == answer.rows
        assert "max_groups" in str(survey.quote(COUNT, 300, max_rows="auto", max_groups="auto"))


def test_a_margin_is_refused_with_a_way_to_ask() -> None:
    with opened() as survey, pytest.raises(dt.ArgumentError, match="grouping sets share it"):
        survey.ask(COUNT, margin=3)


def test_the_same_levels_are_the_same_question() -> None:
    with opened() as survey:
        first = survey.ask("SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)", 1)
        again = survey.ask("SELECT b, a, COUNT(*) AS n FROM t GROUP BY CUBE (a, b) ORDER BY n DESC LIMIT 3", 1)
        assert again.replayed
        assert sorted(first["n"])[-3:] == sorted(again["n"])
        other = survey.ask("SELECT b, a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)", 1)
        assert not other.replayed


@pytest.mark.parametrize(
    ("price", "gaussian"), [({"epsilon": 1}, False), ({"epsilon": "1/2", "delta": "1/100"}, True)], ids=str
)
def test_the_order_of_grouping_sets_does_not_matter(price: dict[str, str], gaussian: bool) -> None:
    with opened(delta=str(price.get("delta", 0))) as survey:
        assert survey.quote(COUNT, **price).plan.noises[0].gaussian == gaussian
        first = survey.ask("SELECT a, b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a, b), (a), (b), ())", **price)
        for sets in ("((), (b), (a), (a, b))", "((b, a), (b), (), (a))"):
            again = survey.ask(f"SELECT a, b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS {sets}", **price)
            assert again.replayed
            assert {row[:2]: row[2] for row in again.rows} == {row[:2]: row[2] for row in first.rows}
        swapped = survey.ask("SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (b, a)", **price)
        assert swapped.replayed
        assert {row[:2]: row[2] for row in swapped.rows} == {row[:2]: row[2] for row in first.rows}


def test_nor_does_it_where_bounds_are_chosen() -> None:
    with opened(max_rows=None, max_groups=None) as survey:
        asked = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS"
        first = survey.ask(f"{asked} ((a, b), (a), (b), ())", 1, max_rows="auto", max_groups="auto")
        again = survey.ask(f"{asked} ((), (b), (b, a), (a))", 1, max_rows="auto", max_groups="auto")
        assert again.replayed
        assert {row[:2]: row[2] for row in again.rows} == {row[:2]: row[2] for row in first.rows}


def test_a_quote_names_the_levels() -> None:
    with opened() as survey:
        text = str(survey.quote(COUNT, 1))
        assert [line for line in text.splitlines() if line.startswith("by ")] == ["by (a, b)", "by (a)", "by (b)", "by ()"]
        assert survey.quote(COUNT, 1).margins().keys() == {"n"}
