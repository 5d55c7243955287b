"""Reads UNION of private results: each SELECT has its own noise; ORDER BY and LIMIT at the end are about all rows.

UNION ALL below the private aggregate, in FROM, is read in subqueries.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dither.query.nodes import Query
from dither.query.sql.clauses import read_limit, read_offset
from dither.query.sql.names import Scope, matching, name_of, only, refuse
from dither.query.union import Results, Together, columns_of, leaves

MOST_PARTS = 64
Read = Callable[[exp.Expr], Query | Results]


def read_results(tree: exp.Union, scope: Scope, read: Read) -> Results:
    """Reads a UNION; `read` reads its parts."""
    only(scope, tree, "this expression distinct with_ order limit offset", "UNION")
    written, distinct = _parts(tree)
    _check_count(len(written), written, scope)
    parts = tuple(read(each) for each in written)
    _check_count(sum(len(leaves(part)) for part in parts), written, scope)
    names = columns_of(parts[0])
    for each, part in zip(written, parts, strict=True):
        if len(columns_of(part)) != len(names):
            what = f"The parts of UNION have different numbers of columns: {len(names)} and {len(columns_of(part))}."
            raise refuse(scope, each, what, "select as many columns in each part; NULL stands for one that a part lacks.")
    order = _order(tree, names, scope)
    return Results(parts, Together(tuple(distinct), order, read_limit(tree, scope), read_offset(tree, scope)))


def _check_count(count: int, written: Sequence[exp.Expr], scope: Scope) -> None:
    if count > MOST_PARTS:
        what = f"This UNION has {count} parts, and at most {MOST_PARTS} are put together."
        raise refuse(scope, written[-1], what, "ask several questions.")


def _parts(tree: exp.Expr) -> tuple[list[exp.Expr], list[bool]]:
    """Returns the SELECTs of a UNION, and for each but the first whether equal rows are dropped once it is added. A UNION in
    parentheses is one part."""
    if not isinstance(tree, exp.Union):
        return [tree], []
    left, before = _parts(tree.this)
    right, after = _parts(tree.expression)
    return [*left, *right], [*before, bool(tree.args.get("distinct")), *after]


def _order(tree: exp.Union, names: Sequence[str], scope: Scope) -> tuple[tuple[int, bool, bool], ...]:
    clause = tree.args.get("order")
    if clause is None:
        return ()
    only(scope, clause, "expressions", "ORDER BY")
    found = []
    for item in clause.expressions:
        only(scope, item, "this desc nulls_first", "ORDER BY")
        found.append((_place(item.this, names, scope), bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
    return tuple(found)


def _place(item: exp.Expr, names: Sequence[str], scope: Scope) -> int:
    """Returns the place of a column of the result, by its name or its position."""
    if isinstance(item, exp.Literal) and not item.args.get("is_string") and str(item.this).isdigit():
        number = int(str(item.this)[:9])
        if 1 <= number <= len(names):
            return number - 1
    if isinstance(item, exp.Column) and item.args.get("table") is None and not isinstance(item.this, exp.Star):
        named = matching(*name_of(scope, item.this), list(enumerate(names)), lambda pair: pair[1])
        if len(named) == 1:
            return named[0][0]
    what = "ORDER BY after UNION is about the whole result, and this is none of its columns."
    raise refuse(scope, item, what, f"order by one of {', '.join(names)}, or by a position such as 1.")
