"""The private aggregates and keys: kinds that fit, bounds that exist, and never the unit itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dither.errors import QueryError
from dither.query.functions.base import Facts, family
from dither.query.functions.registry import columns, facts, typed
from dither.query.nodes import FUNCTIONS, NUMBERS, ROWS, UNITS, Aggregate, Column, Expression, Named, Order, Query, words_of
from dither.query.resolve.shapes import BY_UNIT, Dependence, Shape


def check_functions(asked: tuple[Aggregate, ...], known: tuple[str, ...]) -> None:
    """Aggregates that there are, with what they need, also where a question is built by hand from nodes."""
    for each in asked:
        if each.function not in known:
            raise QueryError(f"{each.function} cannot stand here.", span=each.span, fix=f"use one of {', '.join(known)}.")
        if each.argument is None and FUNCTIONS[each.function].of not in (ROWS, UNITS):
            raise QueryError(f"{each.function} needs an argument.", span=each.span, fix="give it an expression.")
        if each.function == "count_units" and each.where is not None:
            raise QueryError("count_units takes no FILTER.", span=each.span, fix="leave it out.")
        if each.function == "quantile" and (each.parameter is None or not 0 < each.parameter < 1):
            raise QueryError("quantile needs a share above 0 and below 1.", span=each.span, fix="give it a parameter.")


def keys(named: tuple[Named, ...], source: Shape) -> tuple[Named, ...]:
    """The keys of the private aggregate, with kinds that can be keys."""
    for key in named:
        known = facts(key.expression, source.scope)
        _check_unit(key, known, source)
        check_key(known, key.expression, _origin(key.expression, source), _given(key))
    return tuple(Named(key.name, typed(key.expression, source.scope)) for key in named)


def _check_unit(key: Named, known: Facts, source: Shape) -> None:
    """A key may not be made from the unit, under whatever name; the unit may choose among values that are listed."""
    level = source.depends(key.expression)
    if level == Dependence.NONE or (level == Dependence.CHOSEN and known.values is not None):
        return
    unit, span = source.root[1] if source.root else "row", key.expression.span
    names = sorted(columns(key.expression))
    units = [name for name in names if source.columns[name].unit or source.columns[name].origin == source.root]
    what = _given(key) or short(key.expression)
    if level == Dependence.CHOSEN:
        raise QueryError(
            f"{what} is chosen by {unit}, the unit that is protected, and its values are not public.",
            span=span,
            fix="group by something that does not depend on it, or declare the `values` of the other columns in it.",
        )
    raise QueryError(
        f"{short(Column(units[0]))} is the unit that is protected: a group of its own would show one person."
        if units
        else f"{what} tells which {unit} a row belongs to, and that is protected: a group of its own would show one person.",
        span=span,
        fix="group by something many people share; to aggregate per person, do it in a subquery.",
    )


def _origin(expression: Expression, source: Shape) -> tuple[str, str] | None:
    """The table and column that an expression is, if it is one and no more."""
    return source.columns[expression.name].origin if isinstance(expression, Column) else None


def _given(key: Named) -> str:
    """The name that the question gave a key which is no column, if it gave one."""
    plain = isinstance(key.expression, Column) and not words_of(key.expression)
    return "" if plain or key.name.startswith("key_") or key.name == short(key.expression) else key.name


def check_key(known: Facts, expression: Expression, origin: tuple[str, str] | None = None, given: str = "") -> None:
    """A key is a whole number, a text, a bool or a date. `origin`: the column of the catalog that it is."""
    what, named = given or short(expression), f" AS {given}" if given else ""
    if known.kind == "null":
        raise QueryError("A bare NULL cannot be grouped by.", span=expression.span, fix="group by a column.")
    if known.kind == "real" and not known.whole:
        raise QueryError(
            f"{what} is a number with a fraction, so hardly two rows would share a group.",
            span=expression.span,
            fix=f"write BUCKET({short(expression)}, 10){named} or FLOOR({short(expression)}){named}"
            + (f'; if all are whole, declare kind = "int" for {".".join(origin)} in the catalog.' if origin else "."),
        )
    if known.kind == "timestamp":
        raise QueryError(
            f"{what} is a point in time, so hardly two rows would share a group.",
            span=expression.span,
            fix=f"write DATE_TRUNC('day', {short(expression)}){named}.",
        )


def aggregates(asked: tuple[Aggregate, ...], source: Shape) -> tuple[Aggregate, ...]:
    """The aggregates, each checked; COUNT(DISTINCT unit) becomes a count of units."""
    return tuple(_aggregate(each, source) for each in asked)


def _aggregate(asked: Aggregate, source: Shape) -> Aggregate:
    inner = asked.value
    if asked.function == "count_units":
        return replace(asked, function="count_units" if source.protects == BY_UNIT else "count")
    if inner is None:
        return asked
    known = facts(inner, source.scope)
    if asked.function == "count_distinct":
        if isinstance(inner, Column) and source.columns[inner.name].unit:
            return replace(asked, function="count_units", argument=None)
        check_key(known, inner, _origin(inner, source))
    elif FUNCTIONS[asked.function].of == NUMBERS:
        _check_number(asked, inner, known, source)
    parts = [part if part is None else typed(part, source.scope) for part in (asked.argument, asked.where)]
    return replace(asked, argument=parts[0], where=parts[1])


def _check_number(asked: Aggregate, inner: Expression, known: Facts, source: Shape) -> None:
    word = asked.function.upper()
    if not known.numeric:
        raise QueryError(
            f"{word} needs a number, and {short(inner)} is {described(known.kind)}.",
            span=inner.span or asked.span,
            fix=_number_fix(known.kind, word, short(inner)),
        )
    if known.bounded:
        return
    free = sorted(name for name in columns(inner) if not source.columns[name].facts.bounded)
    origins = [source.columns[name].origin for name in free]
    declare = " and ".join(f"{origin[0]}.{origin[1]}" for origin in origins if origin is not None)
    first = f"declare bounds for {declare} in the catalog, or " if declare else ""
    raise QueryError(
        f"{word}({short(inner)}) has no bounds, so one person could change it without limit.",
        span=inner.span or asked.span,
        fix=f"{first}write {word}({_clamped(asked, inner)}) with your own low and high.",
    )


def _clamped(asked: Aggregate, inner: Expression) -> str:
    """No example numbers: limits that fit an income would be copied for an age."""
    extra = f", {float(asked.parameter):g}" if asked.parameter is not None else ""
    return f"CLAMP({short(inner)}, low, high){extra}"


def _number_fix(kind: str, word: str, name: str) -> str:
    if kind == "bool":
        return f"write {word}(CASE WHEN {name} THEN 1 ELSE 0 END)."
    if kind in ("date", "timestamp"):
        return f"write {word}(YEAR({name})) or {word}(DAYS_BETWEEN(DATE '2000-01-01', {name}))."
    return f"use COUNT({name}), or {word} over a number."


def described(kind: str) -> str:
    """A kind in words."""
    words = {"int": "a whole number", "real": "a number", "text": "a text", "bool": "a condition", "null": "NULL"}
    return words.get(kind, f"a {kind}")


def short(expression: Expression) -> str:
    """A column by its own name, anything longer as three dots."""
    name = expression.name.rsplit(".", 1)[-1] if isinstance(expression, Column) else "..."
    return words_of(expression) or name


def outputs(query: Query, scope: Mapping[str, Facts]) -> Query:
    """What is done with the noisy result, with its kinds checked: outputs, HAVING, ORDER BY."""
    result = {key.name: facts(key.expression, scope) for key in query.keys}
    result |= {each.name: _noisy(each) for each in query.aggregates}
    for each in query.outputs:
        facts(each.expression, result)
    having = query.having
    if having is not None:
        kind = facts(having, result).kind
        if family([kind, "bool"]) is None:
            raise QueryError(
                f"HAVING needs a condition, and this is {described(kind)}.", span=having.span, fix="compare it: n > 10."
            )
        having = typed(having, result)
    for order in query.order:
        facts(order.expression, result)
    return replace(
        query,
        outputs=tuple(Named(each.name, typed(each.expression, result)) for each in query.outputs),
        having=having,
        order=tuple(Order(typed(each.expression, result), each.descending) for each in query.order),
    )


def _noisy(asked: Aggregate) -> Facts:
    """A noisy number knows no bounds; a count stays whole."""
    return Facts("int", nullable=False, whole=True) if FUNCTIONS[asked.function].counts else Facts("real")
