"""The question around a question: a SELECT over the noisy table that another SELECT returned. Free, because it reads no row.

    SELECT MAX(n) FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region)
    SELECT region, COUNT(*) / SUM(COUNT(*)) OVER () FROM people GROUP BY region

The innermost SELECT that aggregates people is a Query; each SELECT around it is an `Outer`. A SELECT with window functions over
aggregates is both: its Query has the keys and aggregates, and an Outer computes the windows from them.

An `Across` is a value computed across rows of the noisy table: an aggregate of a group, or a window function. Both mean what
they mean in DuckDB. `resolve_outer` checks and types the expressions of an Outer; planning/outer.py computes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dither.errors import QueryError
from dither.query.functions.base import Facts, either, family
from dither.query.functions.fitting import fit
from dither.query.functions.registry import WORDS, check_depth, known, typed
from dither.query.nodes import Across, Call, Expression, Frame, Lookup, Named, Order, Outer

NUMBER, ANY, WHOLE = "number", "any", "whole"


@dataclass(frozen=True)
class Kind:
    """A function across rows. `words`: its names in SQL; `takes`: its arguments, of which the first `least` must be given.
    `folds`: an aggregate, which may also stand before OVER; `framed`: it reads the rows of the frame."""

    words: tuple[str, ...]
    takes: tuple[str, ...] = ()
    least: int = 0
    folds: bool = False
    framed: bool = False
    result: str = ""  # the kind of its result; "": that of its first argument


def _fold(*words: str, takes: tuple[str, ...] = (NUMBER,), result: str = "", least: int = 1) -> Kind:
    return Kind(words, takes, least, folds=True, framed=True, result=result)


KINDS: Mapping[str, Kind] = {
    "count": _fold("COUNT", takes=(ANY,), result="int", least=0),
    "count_distinct": _fold(takes=(ANY,), result="int"),  # written COUNT(DISTINCT x)
    "sum": _fold("SUM"),
    "avg": _fold("AVG", "MEAN", result="real"),
    "min": _fold("MIN", takes=(ANY,)),
    "max": _fold("MAX", takes=(ANY,)),
    "arg_max": _fold("ARG_MAX", "MAX_BY", takes=(ANY, ANY), least=2),
    "arg_min": _fold("ARG_MIN", "MIN_BY", takes=(ANY, ANY), least=2),
    "median": _fold("MEDIAN", result="real"),
    "stddev_samp": _fold("STDDEV", "STDDEV_SAMP", result="real"),
    "stddev_pop": _fold("STDDEV_POP", result="real"),
    "var_samp": _fold("VARIANCE", "VAR_SAMP", result="real"),
    "var_pop": _fold("VAR_POP", result="real"),
    "row_number": Kind(("ROW_NUMBER",), result="int"),
    "rank": Kind(("RANK",), result="int"),
    "dense_rank": Kind(("DENSE_RANK",), result="int"),
    "percent_rank": Kind(("PERCENT_RANK",), result="real"),
    "cume_dist": Kind(("CUME_DIST",), result="real"),
    "ntile": Kind(("NTILE",), (WHOLE,), 1, result="int"),
    "lag": Kind(("LAG",), (ANY, WHOLE, ANY), 1),
    "lead": Kind(("LEAD",), (ANY, WHOLE, ANY), 1),
    "first_value": Kind(("FIRST_VALUE",), (ANY,), 1, framed=True),
    "last_value": Kind(("LAST_VALUE",), (ANY,), 1, framed=True),
    "nth_value": Kind(("NTH_VALUE",), (ANY, WHOLE), 2, framed=True),
}
BY_WORD: Mapping[str, str] = {word: name for name, kind in KINDS.items() for word in kind.words}


def resolve_above(above: Sequence[Outer], columns: Sequence[Facts]) -> tuple[tuple[Outer, ...], tuple[Facts, ...]]:
    """Checks and types SELECTs around a table with these columns, the innermost first. Returns them with the facts of the last
    one's outputs."""
    resolved, found = [], tuple(columns)
    for outer in above:
        checked, found = resolve_outer(outer, found)
        resolved.append(checked)
    return tuple(resolved), found


def resolve_outer(outer: Outer, columns: Sequence[Facts]) -> tuple[Outer, tuple[Facts, ...]]:
    """Checks and types an Outer over a table with these columns. Returns it with the facts of its outputs."""
    scope = dict(zip(outer.fields, columns, strict=True))
    lookups = []
    for lookup in outer.lookups:
        checked, scope[lookup.name] = _looked_up(lookup, scope)
        lookups.append(checked)
    where = _condition(outer.where, scope, "WHERE")
    keys = _named(outer.keys, scope)
    folds = None
    if outer.folds is not None:
        inside, scope = scope, {key.name: facts(key.expression, scope) for key in keys}
        folds = tuple(_across(each, inside) for each in outer.folds)
        scope |= {each.name: result(each, inside) for each in folds}
    having = _condition(outer.having, scope, "HAVING")
    windows = []
    for each in outer.windows:
        windows.append(_across(each, scope))
        scope[each.name] = result(windows[-1], scope)
    qualify = _condition(outer.qualify, scope, "QUALIFY")
    outputs = _named(outer.outputs, scope)
    found = tuple(facts(each.expression, scope).without_domain() for each in outputs)
    resolved = replace(
        outer,
        outputs=outputs,
        where=where,
        keys=keys,
        folds=folds,
        having=having,
        windows=tuple(windows),
        qualify=qualify,
        order=_typed_order(outer.order, scope),
        lookups=tuple(lookups),
    )
    return resolved, found


def facts(expression: Expression, scope: Mapping[str, Facts]) -> Facts:
    """Returns the facts of an expression; refuses what cannot be computed."""
    check_depth(expression)
    return known(expression, scope)


def result(across: Across, scope: Mapping[str, Facts]) -> Facts:
    """Returns the facts of a value across rows."""
    kind = KINDS[across.function]
    if kind.result == "int":
        return Facts("int", nullable=False, whole=True)
    if kind.result == "real":
        return Facts("real")
    given = [facts(each, scope) for each in across.arguments]
    chosen = [given[0], *given[2:]]  # LAG(x, 1, default) has the kind of x or of the default
    return Facts(either(chosen, nullable=True).kind, nullable=True, whole=all(each.whole for each in chosen))


def _fitted(expression: Expression, scope: Mapping[str, Facts]) -> Expression:
    """Returns the expression in the functions that its kinds ask for, checked and typed."""
    return typed(fit(expression, scope), scope)


def _named(named: Sequence[Named], scope: Mapping[str, Facts]) -> tuple[Named, ...]:
    return tuple(Named(each.name, _fitted(each.expression, scope)) for each in named)


def _across(across: Across, scope: Mapping[str, Facts]) -> Across:
    kind = KINDS[across.function]
    across = replace(across, arguments=tuple(fit(each, scope) for each in across.arguments))
    given = [facts(each, scope) for each in across.arguments]
    word = kind.words[0] if kind.words else "COUNT"
    for written, one, takes in zip(across.arguments, given, kind.takes, strict=False):
        if takes in (NUMBER, WHOLE) and one.kind not in ("int", "real", "null"):
            what = f"{word} needs a number, and this is {WORDS[one.kind]}."
            raise QueryError(what, span=written.span or across.span, fix="give it a number, or use COUNT, MIN or MAX.")
    arguments = tuple(typed(each, scope) for each in across.arguments)
    if len(given) > 2:
        if family([given[0].kind, given[2].kind]) is None:
            what = f"{word} mixes {WORDS[given[0].kind]} and {WORDS[given[2].kind]}."
            raise QueryError(what, span=across.span, fix="give the default the kind of the first argument.")
        pair = typed(Call("coalesce", (arguments[0], arguments[2]), across.span), scope)
        arguments = (pair.arguments[0], arguments[1], pair.arguments[1]) if isinstance(pair, Call) else arguments
    return replace(
        across,
        frame=_frame(across, scope),
        arguments=arguments,
        where=_condition(across.where, scope, "FILTER"),
        partition=tuple(_fitted(each, scope) for each in across.partition),
        order=_typed_order(across.order, scope),
    )


def _frame(across: Across, scope: Mapping[str, Facts]) -> Frame | None:
    """Checks and types the values at which a frame of RANGE begins and ends."""
    frame = across.frame
    if frame is None or frame.kind != "range":
        return frame
    for each in (frame.first, frame.last):
        if each is None:
            continue
        ordered = across.order[0].expression
        if (kind := facts(ordered, scope).kind) not in ("int", "real", "date", "timestamp"):
            what = f"A distance between values needs numbers or dates to order by, and this is {WORDS[kind]}."
            raise QueryError(what, span=ordered.span, fix="write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW.")
        facts(each, scope)
    first, last = (None if each is None else typed(each, scope) for each in (frame.first, frame.last))
    return replace(frame, first=first, last=last)


def _typed_order(order: Sequence[Order], scope: Mapping[str, Facts]) -> tuple[Order, ...]:
    return tuple(replace(each, expression=_fitted(each.expression, scope)) for each in order)


def _condition(condition: Expression | None, scope: Mapping[str, Facts], word: str) -> Expression | None:
    if condition is None:
        return None
    condition = fit(condition, scope)
    kind = facts(condition, scope).kind
    if family([kind, "bool"]) is None:
        what = f"{word} needs a condition, and this is {WORDS[kind]}."
        raise QueryError(what, span=condition.span, fix="compare it: n > 10.")
    return typed(condition, scope)


def _looked_up(node: Lookup, scope: Mapping[str, Facts]) -> tuple[Lookup, Facts]:
    """Types the noisy side of a lookup over a table with these columns. Returns it with the facts of its column."""
    left = tuple(_compared(each, scope, kind, node) for (each, _), kind in zip(node.equal, node.kinds, strict=False))
    equal = tuple((each, right) for each, (_, right) in zip(left, node.equal, strict=True))
    listed = None if node.listed is None else _compared(node.listed, scope, node.kinds[-1], node)
    found = Facts(node.kinds[-1]) if node.kind == "value" else Facts("bool", nullable=node.kind == "in")
    return replace(node, equal=equal, listed=listed), found


def _compared(value: Expression, scope: Mapping[str, Facts], kind: str, node: Lookup) -> Expression:
    own = facts(value, scope).kind
    if family([own, kind]) is None:
        what = f"This compares {WORDS[own]} with {WORDS[kind]}, and these cannot be compared."
        raise QueryError(what, span=value.span or node.span, fix="cast one of the two.")
    return typed(value, scope)
