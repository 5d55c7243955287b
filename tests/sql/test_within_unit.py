"""Windows and FULL JOIN within one person: no answer depends on how rows are stored or on the rows of others.

The checks run through the real engine, and each has a twin: a version that is wrong, and that the check must catch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from dither.audit.ourselves.compare import complaints
from dither.audit.ourselves.observe import Change, observe, open_observed
from dither.errors import QueryError
from dither.query.nodes import Aggregate, Column, Join, Named, Query, Relation, Scan, Sort, Window, WithinUnit
from dither.query.resolve.relations import resolve
from dither.query.work import UNIT, Work
from sql.everyday import person
from sql.test_scalars import changed

OVER = "OVER (PARTITION BY u ORDER BY day)"
ROWS = {  # few days, so that ORDER BY day tells few rows apart; fractions that add up to different sums in different orders
    "u": [1] * 8 + [2] * 6 + [3] * 3 + [4],
    "day": [1, 1, 1, 2, 2, 2, 2, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1, 5],
    "x": [0.25, 9.5, -3.0, 7.75, 0.25, 0.5, None, 4.0, 9.5, -3.0, 0.25, 0.25, 8.0, None, -0.0, 0.0, 2.0, 1.0],
    "g": ["a", "b", "a", "c", "b", "a", "a", "c", "b", "a", "a", "a", "b", "c", "a", "b", "a", "b"],
}
TIED = [
    f"SELECT g, COUNT(*) AS n FROM (SELECT g, ROW_NUMBER() {OVER} AS r FROM t) s WHERE r = 1 GROUP BY g",
    f"SELECT g, SUM(x) AS n FROM (SELECT g, x, ROW_NUMBER() {OVER} AS r FROM t) s WHERE r <= 2 GROUP BY g",
    f"SELECT COUNT(*) AS n FROM (SELECT x, LAG(x) {OVER} AS y FROM t) s WHERE x > y",
    f"SELECT g, SUM(y) AS n FROM (SELECT g, FIRST_VALUE(x) {OVER} AS y FROM t) s GROUP BY g",
    "SELECT SUM(CLAMP(s, -50, 50)) AS n FROM (SELECT SUM(x) OVER (PARTITION BY u ORDER BY day ROWS 1 PRECEDING) AS s FROM t) s",
    "SELECT q, SUM(x) AS n FROM (SELECT x, NTILE(2) OVER (PARTITION BY u ORDER BY day) AS q FROM t) s GROUP BY q",
    "SELECT COUNT(*) AS n FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY u) AS a, LEAD(x) OVER (PARTITION BY u ORDER BY day"
    " DESC) AS b FROM t) s WHERE a = 2 AND x < b",
]
Answer = list[tuple[Any, ...]]


def opened(rows: dict[str, list[Any]], change: Change | None = None, most: int = 20) -> dt.Curator:
    kinds = {"u": pa.int64(), "day": pa.int64(), "x": pa.float64(), "g": pa.string()}
    held = pa.table({name: pa.array(values, kinds[name]) for name, values in rows.items()})
    columns = {"day": dt.between(1, 9), "x": dt.between(-10, 10, step="0.25"), "g": dt.values("a", "b", "c")}
    table = dt.Table(held, unit="u", max_rows=most, max_groups=3, columns=columns)
    return open_observed(dt.Catalog({"t": table}, dt.Budget(10**6, left_out=False)), change)


def exact(question: str, rows: dict[str, list[Any]], change: Change | None = None) -> Answer:
    """Returns the engine's whole numbers."""
    with opened(rows, change) as curator:
        seen = observe(curator, question)
    assert seen.status == "answered", seen.status
    return sorted((group.key, group.measures) for group in seen.groups)


def shuffled(seed: int) -> dict[str, list[Any]]:
    order = list(range(len(ROWS["u"])))
    random.Random(seed).shuffle(order)
    return {name: [values[place] for place in order] for name, values in ROWS.items()}


# --- storage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", TIED)
def test_how_rows_are_stored_does_not_matter(question: str) -> None:
    assert len({str(exact(question, shuffled(seed))) for seed in range(6)}) == 1


def without_ties(work: Work) -> Work:
    """Wrong version: rows that ORDER BY does not tell apart stay in the order in which they are stored."""

    def change(node: Relation) -> Relation:
        return (
            WithinUnit(node.source, tuple(replace(each, ties=()) for each in node.windows))
            if isinstance(node, WithinUnit)
            else node
        )

    return replace(work, source=changed(work.source, change))


def test_that_stored_order_is_caught() -> None:
    caught = [each for each in TIED if len({str(exact(each, shuffled(seed), without_ties)) for seed in range(6)}) > 1]
    assert len(caught) >= 5


def test_equal_rows_are_numbered_alike_by_two_windows() -> None:
    """Two rows that are equal in everything: the pair of their numbers is one of two, whichever way they are stored."""
    rows = {"u": [1, 1], "day": [1, 1], "x": [2.0, 2.0], "g": ["a", "a"]}
    both = f"SELECT ROW_NUMBER() {OVER} AS a, ROW_NUMBER() OVER (PARTITION BY u ORDER BY day DESC) AS b, x, g FROM t"
    assert exact(f"SELECT COUNT(*) AS n FROM ({both}) s WHERE a = b", rows) == [((), ((2,),))]


# --- others -----------------------------------------------------------------------------------------------------

WINDOWED = [question for question, _ in person.QUESTIONS if "OVER" in question and "FROM nations)" not in question]
FULL = [question for question, _ in person.QUESTIONS if "FULL JOIN" in question]


def moved(question: str, change: Callable[[Work], Work]) -> bool:
    """Whether one of some people moves a wrong version's numbers by more than was priced, at small bounds."""
    for without in (0, 7, 14):
        with (
            open_observed(person.catalog(person.tables()), change) as before,
            open_observed(person.catalog(person.tables(without)), change) as after,
        ):
            small = {"max_rows": 1}
            if complaints(observe(before, question, **small), observe(after, question, **small)):
                return True
    return False


def across(work: Work) -> Work:
    """Wrong version: partitions do not have the unit, so a window looks at the rows of others."""

    def free(window: Window) -> Window:
        return replace(window, partition=tuple(part for part in window.partition if part != Column(UNIT)))

    def change(node: Relation) -> Relation:
        return WithinUnit(node.source, tuple(map(free, node.windows))) if isinstance(node, WithinUnit) else node

    return replace(work, source=changed(work.source, change))


def without_units(work: Work) -> Work:
    """Wrong version: a FULL JOIN does not equate the units."""

    def change(node: Relation) -> Relation:
        if not isinstance(node, Join) or node.kind != "full":
            return node
        return replace(node, equal=tuple(pair for pair in node.equal if Column(UNIT) not in pair))

    return replace(work, source=changed(work.source, change))


@pytest.mark.slow
def test_one_person_moves_no_more_than_was_priced_at_small_bounds() -> None:
    assert [question for question in (*WINDOWED[::4], *FULL[:2]) if moved(question, lambda work: work)] == []


@pytest.mark.slow
def test_that_windows_across_people_are_caught() -> None:
    assert len([question for question in WINDOWED[:9] if moved(question, across)]) >= 3


def last_person_moves(change: Change | None = None) -> bool:
    """Whether the last person's day 5, three days earlier, decides which rows of others have a partner."""
    earlier = "(SELECT u, day - 3 AS d, g AS h FROM t) b"
    question = f"SELECT COUNT(*) AS n FROM t a FULL JOIN {earlier} ON a.u = b.u AND a.day = b.d WHERE a.g <> b.h OR a.g = b.h"
    fewer = {name: values[:-1] for name, values in ROWS.items()}
    with opened(ROWS, change, 1) as before, opened(fewer, change, 1) as after:
        return complaints(observe(before, question), observe(after, question)) != []


def test_a_full_join_is_of_one_persons_rows() -> None:
    assert not last_person_moves()


def test_that_a_full_join_of_different_people_is_caught() -> None:
    assert last_person_moves(without_units)


# --- questions built by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    [
        Window("w", "surprise"),
        Window("w", "lag", (), (Column("t.u"),), (Sort(Column("t.day")),)),
        Window("w", "row_number", (), (Column("nothing"),)),
        Window("w", "row_number", (), (Column("t.u"),), (Sort(Column("nothing")),)),
        Window("w", "row_number", (), (Column("t.u"),), (), ties=(Column("t.x"),)),
        Window("#unit", "row_number", (), (Column("t.u"),)),
        Window("t.u", "row_number", (), (Column("t.u"),)),
        Window("w", "row_number", (), (Column("t.g"),)),
        Window("w", "row_number"),
    ],
)
def test_windows_built_by_hand_are_refused_in_words(window: Window) -> None:
    table = dt.Table({"u": [1]}, unit="u", columns={"day": dt.between(1, 9), "x": dt.column(), "g": dt.column()})
    catalog = dt.Catalog({"t": table}, dt.Budget(1))
    asked = Query(WithinUnit(Scan("t", "t"), (window,)), (), (Aggregate("n", "count"),), (Named("n", Column("n")),))
    with pytest.raises(QueryError):
        resolve(asked, catalog)
