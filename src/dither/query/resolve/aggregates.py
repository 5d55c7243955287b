"""Checks private aggregates and keys: their kinds, their bounds, and that no key is made from the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.exact.numbers import show_decimal
from dither.query.functions.base import Facts, family
from dither.query.functions.domains import facts
from dither.query.functions.fitting import fit, fit_named
from dither.query.functions.registry import columns, typed
from dither.query.nodes import (
    FUNCTIONS,
    LABELS,
    NUMBERS,
    ROWS,
    UNITS,
    Aggregate,
    Column,
    Expression,
    Named,
    Outer,
    Query,
    grouping_mark,
    words_of,
)
from dither.query.outer import resolve_above
from dither.query.resolve.shapes import BY_UNIT, Dependence, Shape


def check_functions(nodes: tuple[Aggregate, ...], known: tuple[str, ...]) -> None:
    """Refuses unknown or incomplete aggregates; a query built by hand from nodes may have them."""
    for each in nodes:
        if each.function not in known:
            raise QueryError(f"{each.function} cannot stand here.", span=each.span, fix=f"use one of {', '.join(known)}.")
        if each.argument is None and FUNCTIONS[each.function].of not in (ROWS, UNITS):
            raise QueryError(f"{each.function} needs an argument.", span=each.span, fix="give it an expression.")
        if (each.second is None) == FUNCTIONS[each.function].pair:
            count = "two arguments" if FUNCTIONS[each.function].pair else "one argument"
            raise QueryError(f"{each.function} takes {count}.", span=each.span, fix="give it that many.")
        if each.function == "count_units" and each.where is not None:
            raise QueryError("count_units takes no FILTER.", span=each.span, fix="leave it out.")
        if each.function == "quantile" and (each.parameter is None or not 0 < each.parameter < 1):
            raise QueryError("quantile needs a share above 0 and below 1.", span=each.span, fix="give it a parameter.")


def keys(named: tuple[Named, ...], source: Shape) -> tuple[Named, ...]:
    """Returns the keys of the private aggregate, typed; refuses kinds that cannot be keys, and keys made from the unit."""
    for key in named:
        known = facts(key.expression, source.scope)
        _check_unit(key, known, source)
        check_key(known, key.expression, _origin(key.expression, source), _given_name(key))
    return tuple(Named(key.name, typed(key.expression, source.scope)) for key in named)


def _check_unit(key: Named, known: Facts, source: Shape) -> None:
    """Refuses a key made from the unit; the unit may choose among declared values."""
    level = source.depends(key.expression)
    if level == Dependence.NONE or (level == Dependence.CHOSEN and known.values is not None):
        return
    unit, span = source.root[1] if source.root else "row", key.expression.span
    names = sorted(columns(key.expression))
    units = [name for name in names if source.columns[name].unit or source.columns[name].origin == source.root]
    what = _given_name(key) or short(key.expression)
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
        mixes="keys",
    )


def _origin(expression: Expression, source: Shape) -> tuple[str, str] | None:
    """Returns the (table, column) of an expression that is a column of the catalog."""
    return source.columns[expression.name].origin if isinstance(expression, Column) else None


def _given_name(key: Named) -> str:
    """Returns the name that the question gives to a computed key; "" if it gives none."""
    plain = isinstance(key.expression, Column) and not words_of(key.expression)
    return "" if plain or key.name.startswith("key_") or key.name == short(key.expression) else key.name


def check_key(known: Facts, expression: Expression, origin: tuple[str, str] | None = None, given: str = "") -> None:
    """Refuses a key that is not a whole number, a text, a bool or a date. `origin`: its (table, column) in the catalog."""
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


def aggregates(nodes: tuple[Aggregate, ...], source: Shape) -> tuple[Aggregate, ...]:
    """Checks and types the aggregates; COUNT(DISTINCT unit) becomes a count of units."""
    return tuple(_aggregate(each, source) for each in nodes)


def _aggregate(aggregate: Aggregate, source: Shape) -> Aggregate:
    inner = aggregate.value
    if aggregate.function == "count_units":
        return replace(aggregate, function="count_units" if source.protects == BY_UNIT else "count")
    if inner is None:
        return aggregate
    known = facts(inner, source.scope)
    if aggregate.function == "count_distinct":
        if isinstance(inner, Column) and source.columns[inner.name].unit:
            return replace(aggregate, function="count_units", argument=None)
        check_key(known, inner, _origin(inner, source))
    elif FUNCTIONS[aggregate.function].of == NUMBERS:
        _check_number(aggregate, inner, known, source)
        if aggregate.second is not None:
            _check_number(aggregate, aggregate.second, facts(aggregate.second, source.scope), source)
    elif FUNCTIONS[aggregate.function].of == LABELS:
        _check_label(aggregate, inner, known, source)
    read = (aggregate.argument, aggregate.where, aggregate.second)
    parts = [part if part is None else typed(part, source.scope) for part in read]
    return replace(aggregate, argument=parts[0], where=parts[1], second=parts[2])


def _check_number(aggregate: Aggregate, inner: Expression, known: Facts, source: Shape) -> None:
    word = aggregate.function.upper()
    if not known.numeric:
        raise QueryError(
            f"{word} needs a number, and {short(inner)} is {show_kind(known.kind)}.",
            span=inner.span or aggregate.span,
            fix=_number_fix(known.kind, word, short(inner)),
        )
    if known.bounded:
        _check_positive(aggregate, inner, known)
        return
    free = sorted(name for name in columns(inner) if not source.columns[name].facts.bounded)
    origins = [source.columns[name].origin for name in free]
    declare = " and ".join(f"{origin[0]}.{origin[1]}" for origin in origins if origin is not None)
    first = f"declare bounds for {declare} in the catalog, or " if declare else ""
    own = "limits" if _counts(known) else "low and high"
    raise QueryError(
        f"{word}({_arguments(aggregate, inner, short(inner))}) has no bounds, so one person could change it without limit.",
        span=inner.span or aggregate.span,
        fix=f"{first}write {word}({_arguments(aggregate, inner, _clamped(aggregate, inner, known))}) with your own {own}.",
    )


def _check_positive(aggregate: Aggregate, inner: Expression, known: Facts) -> None:
    """Refuses a geometric mean of numbers that may be 0 or less."""
    if aggregate.function == "geomean" and known.low is not None and known.high is not None and known.low <= 0:
        high = show_decimal(known.high) if known.high > 1 else "high"
        raise QueryError(
            f"GEOMEAN needs numbers above 0, and the bounds of {short(inner)} begin at {show_decimal(known.low)}.",
            span=inner.span or aggregate.span,
            fix=f"write GEOMEAN(CLAMP({short(inner)}, 1, {high})) with your own limits.",
        )


def _check_label(aggregate: Aggregate, inner: Expression, known: Facts, source: Shape) -> None:
    """Refuses a MODE over values that are not public, or that tell the unit."""
    check_key(known, inner, _origin(inner, source))
    _check_unit(Named("", inner), known, source)
    if known.values is None:
        name, origin = short(inner), _origin(inner, source)
        declare = f"declare `values` for {'.'.join(origin)} in the catalog, or " if origin else ""
        clamped = f"write MODE(CLAMP({name}, low, high)) with your own low and high, or " if known.numeric else ""
        raise QueryError(
            f"MODE chooses among public values, and those of {name} are not.",
            span=inner.span or aggregate.span,
            fix=f"{declare}{clamped}count them: SELECT {name}, COUNT(*) AS n ... GROUP BY {name} ORDER BY n DESC LIMIT 1.",
        )


def _arguments(aggregate: Aggregate, inner: Expression, shown: str) -> str:
    """Shows the arguments: `shown` for `inner`, and beside it the other one of a pair."""
    if aggregate.second is None or aggregate.argument is None:
        return shown
    first = inner is not aggregate.second
    return f"{shown}, {short(aggregate.second)}" if first else f"{short(aggregate.argument)}, {shown}"


def _clamped(aggregate: Aggregate, inner: Expression, known: Facts) -> str:
    """Shows the argument inside CLAMP. Only counts get example numbers: bounds for an income would be copied for an age."""
    extra = f", {float(aggregate.parameter):g}" if aggregate.parameter is not None else ""
    return f"CLAMP({short(inner)}, {'0, 20' if _counts(known) else 'low, high'}){extra}"


def _counts(known: Facts) -> bool:
    """Whether a number without bounds is a count per person: only these are known to be whole and 0 or more."""
    return known.kind == "int" and known.low == 0 and known.high is None


def _number_fix(kind: str, word: str, name: str) -> str:
    if kind == "bool":
        return f"write {word}(CASE WHEN {name} THEN 1 ELSE 0 END)."
    if kind in ("date", "timestamp"):
        return f"write {word}(YEAR({name})) or {word}(DAYS_BETWEEN(DATE '2000-01-01', {name}))."
    return f"use COUNT({name}); or, if it holds numbers, declare its `kind` in the catalog: int or real."


def show_kind(kind: str) -> str:
    """Shows a kind in words."""
    words = {"int": "a whole number", "real": "a number", "text": "a text", "bool": "a condition", "null": "NULL"}
    return words.get(kind, f"a {kind}")


def short(expression: Expression) -> str:
    """Shows a column by its own name, and other expressions as "..."."""
    name = expression.name.rsplit(".", 1)[-1] if isinstance(expression, Column) else "..."
    return words_of(expression) or name


def outputs(query: Query, scope: Mapping[str, Facts]) -> Query:
    """Checks and types the post-processing of the noisy result: outputs, HAVING, ORDER BY."""
    result = {key.name: facts(key.expression, scope) for key in query.keys}
    result |= _of_sets(query, result)
    result |= {each.name: _noisy(each, scope) for each in query.aggregates}
    having = None if query.having is None else fit(query.having, result)
    order = tuple(replace(each, expression=fit(each.expression, result)) for each in query.order)
    query = replace(query, outputs=fit_named(query.outputs, result), having=having, order=order)
    for each in query.outputs:
        facts(each.expression, result)
    if having is not None:
        kind = facts(having, result).kind
        if family([kind, "bool"]) is None:
            raise QueryError(
                f"HAVING needs a condition, and this is {show_kind(kind)}.", span=having.span, fix="compare it: n > 10."
            )
        having = typed(having, result)
    for one in query.order:
        facts(one.expression, result)
    return replace(
        query,
        outputs=tuple(Named(each.name, typed(each.expression, result)) for each in query.outputs),
        having=having,
        order=tuple(replace(each, expression=typed(each.expression, result)) for each in query.order),
        above=_above(query, result),
    )


def _above(query: Query, scope: Mapping[str, Facts]) -> tuple[Outer, ...]:
    """Checks and types the SELECTs around it, from the inside out."""
    if not query.above:
        return ()
    found = tuple(facts(each.expression, scope).without_domain() for each in query.outputs)
    return resolve_above(query.above, found)[0]


def answer_facts(query: Query, scope: Mapping[str, Facts]) -> tuple[Facts, ...]:
    """Returns the facts of the columns of a resolved question's answer. `scope`: those of the columns of its source."""
    found = {key.name: facts(key.expression, scope) for key in query.keys}
    found |= _of_sets(query, found)
    found |= {each.name: _noisy(each, scope) for each in query.aggregates}
    outputs = tuple(facts(each.expression, found).without_domain() for each in query.outputs)
    return resolve_above(query.above, outputs)[1]


def _of_sets(query: Query, keys: Mapping[str, Facts]) -> dict[str, Facts]:
    """Returns the facts of keys that are NULL in some grouping sets, and of the marks of GROUPING."""
    found = {}
    for number, places in enumerate(query.groupings):
        most = Fraction((1 << len(places)) - 1)
        found[grouping_mark(number)] = Facts("int", Fraction(0), most, nullable=False, whole=True)
    for place, key in enumerate(query.keys if query.sets else ()):
        if not all(place in each for each in query.sets):
            known = keys[key.name]
            found[key.name] = Facts(known.kind, known.low, known.high, nullable=True, whole=known.whole)
    return found


def check_sets(query: Query) -> None:
    """Refuses grouping sets, in queries built by hand, that name no keys, or a set twice."""
    for each in query.sets:
        if list(each) != sorted(set(each)) or not all(type(place) is int and 0 <= place < len(query.keys) for place in each):
            raise QueryError("A grouping set holds places of keys, in order.", fix="write sets such as ((0, 1), (0,), ()).")
    for each in query.groupings:
        if not query.sets or not each or not all(type(place) is int and 0 <= place < len(query.keys) for place in each):
            raise QueryError("GROUPING holds places of keys, beside grouping sets.", fix="write places such as (0, 1).")
    if len(set(query.sets)) < len(query.sets) or (query.sets and not any(query.sets)):
        raise QueryError("Grouping sets differ, and one has a key.", fix="write sets such as ((0, 1), (0,), ()).")


def _noisy(aggregate: Aggregate, scope: Mapping[str, Facts]) -> Facts:
    """Returns the facts of a noisy number: it has no bounds, and counts and sums of whole numbers are whole. Those of a chosen
    value are its own."""
    if FUNCTIONS[aggregate.function].of == LABELS and aggregate.argument is not None:
        kind = facts(aggregate.argument, scope).kind
        return Facts("int" if kind == "real" else kind, whole=kind in ("int", "real"))
    if FUNCTIONS[aggregate.function].counts:
        return Facts("int", nullable=False, whole=True)
    whole = aggregate.function == "sum" and aggregate.argument is not None and facts(aggregate.argument, scope).whole
    return Facts("real", whole=whole)
