"""Resolves results that UNION puts together: each private question, the kinds of the columns, and the SELECTs around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.functions.base import Facts
from dither.query.nodes import Query
from dither.query.outer import resolve_above
from dither.query.resolve.aggregates import answer_facts, show_kind
from dither.query.resolve.relations import Resolved, resolve
from dither.query.union import Results, columns_of


def resolve_results(results: Results, catalog: Catalog, text: str) -> tuple[list[Resolved], Results]:
    """Returns the resolved questions, in order, and how they are put together, checked and typed. Reads no row."""
    found: list[Resolved] = []
    try:
        typed, _ = _resolved(results, catalog, text, found)
    except QueryError as error:
        raise error.located(text) from None
    return found, typed if isinstance(typed, Results) else results


def _resolved(
    node: Query | Results, catalog: Catalog, text: str, found: list[Resolved]
) -> tuple[Query | Results, tuple[Facts, ...]]:
    """Returns a result with the facts of its columns, and adds its questions to `found`."""
    if isinstance(node, Query):
        one = resolve(node, catalog, text)
        found.append(one)
        return one.query, answer_facts(one.query, one.scope)
    for lookup in (each for outer in node.above for each in outer.lookups):
        what, fix = "A subquery cannot stand around a UNION.", "ask for its value alone, and write it here as a constant."
        raise QueryError(what, text=text, span=lookup.span, fix=fix)
    each = [_resolved(part, catalog, text, found) for part in node.parts]
    together = _alike(columns_of(node.parts[0]), [facts for _, facts in each])
    above, outputs = resolve_above(node.above, together)
    return replace(node, parts=tuple(part for part, _ in each), above=above), outputs


def _alike(names: Sequence[str], parts: Sequence[Sequence[Facts]]) -> tuple[Facts, ...]:
    """Returns the facts of the columns of a UNION; refuses columns of different kinds. A bare NULL is of any kind."""
    columns = []
    for name, facts in zip(names, zip(*parts, strict=True), strict=True):
        kinds = [each.kind for each in facts]
        known = list(dict.fromkeys(kind for kind in kinds if kind != "null"))
        if len(known) > 1 and set(known) != {"int", "real"}:
            other = next(kind for kind in known[1:] if {kind, known[0]} != {"int", "real"})
            what = f"The column {name} is {show_kind(known[0])} in one part of UNION and {show_kind(other)} in part "
            raise QueryError(f"{what}{kinds.index(other) + 1}.", fix="make them alike, for example with CAST(... AS TEXT).")
        kind = "real" if "real" in known else next(iter(known), "null")
        nullable = any(each.nullable for each in facts) or "null" in kinds
        columns.append(Facts(kind, nullable=nullable, whole=all(each.whole for each in facts if each.kind != "null")))
    return tuple(columns)
