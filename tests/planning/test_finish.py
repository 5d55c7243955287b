"""Noisy integers set by hand, and what is read from them: the values, the ends of an interval, and the groups HAVING keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither.planning.outputs import Noisy, table
from dither.planning.plan import Plan
from dither.query.nodes import Call, Column, Expression, Literal, Order
from planning.hand import REGIONS, ask, planned, query
from planning.test_margins import SURE


def noisy(plan: Plan, *cells: list[list[int]], keys: tuple[str, ...] = ()) -> Noisy:
    return Noisy(tuple((key,) for key in keys) or ((),), tuple(np.array(each) for each in cells))


# --- HAVING -----------------------------------------------------------------------------------------------------

COUNTED = Column("n")
NEVER = Call("gt", (Call("div", (Literal(1), Call("sub", (COUNTED, Literal(5))))), Literal(-100)))  # 1 / (n - 5) > -100


def kept(having: Expression) -> list[Any]:
    """The regions that are shown where 4, 5 and 6 were counted."""
    plan = planned(query(ask("n", "count"), keys=("region",), having=having))
    return [row[0] for row in table(plan, noisy(plan, [[4], [5], [6]], keys=REGIONS)).rows]


def test_having_drops_groups_where_it_is_null() -> None:
    """1 / (n - 5) is NULL for a count of 5, and so is what is compared with it."""
    assert kept(NEVER) == ["east", "south"]


def test_having_not_null_is_still_null_and_drops_the_group_too() -> None:
    assert kept(Call("not", (NEVER,))) == []


def test_having_keeps_a_group_where_null_is_asked_for() -> None:
    """The twin: the group is there, and a condition that says so has it."""
    assert kept(Call("or", (NEVER, Call("is_null", (NEVER,))))) == ["east", "north", "south"]
    assert kept(Call("or", (NEVER, Literal(True)))) == ["east", "north", "south"]


# --- ORDER BY, OFFSET and LIMIT ---------------------------------------------------------------------------------


def ordered(descending: bool = False, **more: int) -> list[Any]:
    """The regions by 1 / (n - 5), which is -1, NULL and 1."""
    order = (Order(Call("div", (Literal(1), Call("sub", (COUNTED, Literal(5))))), descending),)
    plan = planned(query(ask("n", "count"), keys=("region",), order=order, **more))
    return [row[0] for row in table(plan, noisy(plan, [[4], [5], [6]], keys=REGIONS)).rows]


def test_order_by_puts_null_last_either_way() -> None:
    assert ordered() == ["east", "south", "north"]
    assert ordered(descending=True) == ["south", "east", "north"]


def test_offset_comes_before_limit() -> None:
    assert ordered(offset=1, limit=1) == ["south"]


# --- sums and counts from one joint release ---------------------------------------------------------------------


def test_a_count_of_rows_includes_those_whose_value_is_null() -> None:
    """Ages up to 120: 4 rows of age 30 and 2 of NULL, beside COUNT(age)."""
    plan = planned(query(ask("n", "count"), ask("known", "count", "age"), ask("a", "avg", "age")))
    assert table(plan, noisy(plan, [[4 * 30, 4 * 90, 2 * 120]])).rows == ((6, 4, 30.0),)


def test_a_sum_is_read_from_its_lower_to_its_upper_bound() -> None:
    """Wages from -10 to 50: two at the top, one at the bottom."""
    plan = planned(query(ask("s", "sum", "wage"), ask("a", "avg", "wage")))
    steps = plan.noises[0].of.row
    ((total, mean),) = table(plan, noisy(plan, [[2 * steps, steps]])).rows
    assert (total, mean) == (pytest.approx(2 * 50 - 10), pytest.approx(30))


def test_a_mean_lies_between_its_lower_and_its_upper_end() -> None:
    plan = planned(query(ask("a", "avg", "wage")))
    steps = plan.noises[0].of.row
    cells = noisy(plan, [[200 * steps, 100 * steps]]).cells
    low, high = plan.readings[0].bounds(plan.noises, cells, SURE)
    assert -10 < low[0] < 30 < high[0] < 50
