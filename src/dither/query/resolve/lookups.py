"""Checks subqueries over public tables above the groups: they read no private row, whatever the question says.

What they find is a function of public tables alone, and it meets noisy numbers only: post-processing. So a Lookup moves no
price, and nothing of it is part of a question's identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.query.functions.base import Facts
from dither.query.functions.domains import facts
from dither.query.functions.fitting import fit, fit_aggregates
from dither.query.functions.registry import WORDS, columns, typed
from dither.query.nodes import Aggregate, Lookup
from dither.query.nodes import per_unit as functions
from dither.query.resolve.aggregates import check_functions
from dither.query.resolve.pruning import prune_relation
from dither.query.resolve.shapes import PUBLIC, Shape, size


def looked_up(node: Lookup, rows: Shape) -> Lookup:
    """Types the public side of a lookup; refuses private rows. `rows` is the shape of its relation."""
    if rows.protects != PUBLIC:
        raise QueryError(
            "This subquery reads the rows of people, and above the groups only public tables can be read.",
            span=node.span,
            fix="ask it separately, at its own price, and write the noisy number here.",
        )
    inside = tuple(fit(right, rows.scope) for _, right in node.equal)
    aggregates = tuple(each.lowered() for each in fit_aggregates(node.aggregates, rows.scope))
    check_functions(aggregates, functions())
    arguments = tuple(each.argument for each in aggregates if each.argument is not None)
    sorts = tuple(fit(each.expression, rows.scope) for each in node.order)
    size([*inside, *arguments, *sorts], rows, node.span)
    scope = {each.name: _aggregated(each, rows.scope) for each in aggregates} if aggregates else rows.scope
    item = None if node.item is None else fit(node.item, scope)
    kinds = [facts(each, rows.scope).kind for each in inside] + ([] if item is None else [facts(item, scope).kind])
    used = [*inside, *sorts, *(arguments if aggregates or item is None else (item,))]
    return replace(
        node,
        rows=prune_relation(rows.relation, frozenset[str]().union(*map(columns, used))),
        equal=tuple((left, typed(right, rows.scope)) for (left, _), right in zip(node.equal, inside, strict=True)),
        item=None if item is None else typed(item, scope),
        aggregates=tuple(
            replace(each, argument=None if each.argument is None else typed(each.argument, rows.scope)) for each in aggregates
        ),
        order=tuple(
            replace(each, expression=typed(one, rows.scope))
            for each, one in zip(node.order, sorts, strict=True)
            if facts(one, rows.scope)
        ),
        kinds=tuple(kinds),
    )


def _aggregated(each: Aggregate, scope: Mapping[str, Facts]) -> Facts:
    """Returns the facts of an aggregate of public rows."""
    if each.argument is None or each.function in ("count", "count_distinct"):
        return Facts("int", Fraction(0), nullable=False, whole=True)
    of = facts(each.argument, scope)
    if each.function in ("sum", "avg") and not of.numeric:
        what = f"{each.function.upper()} needs a number, and this is {WORDS[of.kind]}."
        raise QueryError(what, span=each.argument.span or each.span, fix="use a number, or COUNT, MIN or MAX.")
    if each.function in ("bool_or", "bool_and") and of.kind != "bool":
        raise QueryError(f"{each.function.upper()} needs a condition.", span=each.span, fix="compare it: x > 0.")
    return Facts("real") if each.function == "avg" else Facts(of.kind, whole=of.whole)
