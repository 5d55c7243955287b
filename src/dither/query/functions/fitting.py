"""Rewrites what means another function for some kinds of arguments, once the kinds are known.

    d >= '1995-01-01'            d >= DATE '1995-01-01'       a text beside a date is a date
    d - e, d + 7                 DAYS_BETWEEN(e, d), ...      dates are subtracted and moved by days
    DATE '1998-12-01' - INTERVAL '90' DAY    DATE '1998-09-02'    constants are computed once
    LEAST(x, 10), x may be NULL  the smallest of those that are not NULL, as in DuckDB
    SUM(x > 3)                   SUM(CAST(x > 3 AS INTEGER))

The rest of the package sees only the result, so that a question means and costs the same however it is written.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import replace

from dither.errors import QueryError
from dither.query.functions.base import Facts
from dither.query.functions.registry import FUNCTIONS, check, check_depth, constant, evaluate, known
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal, Named

Scope = Mapping[str, Facts]
_Fitted = tuple[Expression, Facts]
_DATES = ("date", "timestamp")
_SKIPPING = {"least": "smallest", "greatest": "largest"}
_FOLDED = ("add_days", "add_months", "add_seconds", "make_date", "last_day", "strptime")
_TEXT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")


def fit(expression: Expression, scope: Scope) -> Expression:
    """Returns the expression in the functions that its kinds ask for; refuses what `known` refuses."""
    check_depth(expression)
    return _fit(expression, scope)[0]


def fit_named(named: tuple[Named, ...], scope: Scope) -> tuple[Named, ...]:
    """Fits each expression."""
    return tuple(replace(each, expression=fit(each.expression, scope)) for each in named)


def fit_aggregates(aggregates: tuple[Aggregate, ...], scope: Scope) -> tuple[Aggregate, ...]:
    """Fits arguments and FILTERs; a condition that is added up counts as 1 or 0."""
    return tuple(_aggregate(each, scope) for each in aggregates)


def _aggregate(each: Aggregate, scope: Scope) -> Aggregate:
    where = None if each.where is None else fit(each.where, scope)
    if each.argument is None:
        return replace(each, where=where)
    check_depth(each.argument)
    argument, facts = _fit(each.argument, scope)
    if each.function in ("sum", "avg") and facts.kind == "bool":
        argument = Call("to_int", (argument,), span=argument.span)
    return replace(each, argument=argument, where=where)


def _fit(node: Expression, scope: Scope) -> _Fitted:
    if isinstance(node, Column):
        return node, known(node, scope)
    if isinstance(node, Literal):
        return node, constant(node.value)
    if node.name not in FUNCTIONS:
        return node, known(node, scope)  # refuses it
    fitted = [_fit(argument, scope) for argument in node.arguments]
    call = _arithmetic(node, _as_dates(node, fitted))
    return _finished(*call)


def _finished(node: Call, fitted: list[_Fitted]) -> _Fitted:
    """Returns a call over fitted arguments, checked, and computed if it is a constant."""
    name = _SKIPPING.get(node.name, "") if any(facts.nullable for _, facts in fitted) else ""
    node = replace(node, name=name or node.name)
    fitted = [_as_whole(node, place, pair) for place, pair in enumerate(fitted)]
    node = replace(node, arguments=tuple(argument for argument, _ in fitted))
    facts = [each for _, each in fitted]
    function = FUNCTIONS[node.name]
    check(node, function, facts)
    if node.name in _FOLDED and all(isinstance(argument, Literal) for argument in node.arguments):
        return _folded(node)
    return node, function.infer(facts)


def _folded(node: Call) -> _Fitted:
    value = evaluate(node, {})
    if not isinstance(value, datetime.date):
        raise QueryError("There is no such date.", span=node.span, fix="write a date from 0001-01-01 to 9999-12-31.")
    literal = Literal(value, span=node.span)
    return literal, constant(literal.value)


def _as_whole(node: Call, place: int, pair: _Fitted) -> _Fitted:
    """Casts a whole number that was computed in doubles, where a whole number is needed."""
    argument, facts = pair
    accepted = FUNCTIONS[node.name].accepted(place)
    if "int" not in accepted or "real" in accepted or facts.kind != "real" or not facts.whole:
        return pair
    cast = Call("to_int", (argument,), span=argument.span)
    return cast, FUNCTIONS["to_int"].infer([facts])


# --- dates --------------------------------------------------------------------------------------------------------


def _as_dates(node: Call, fitted: list[_Fitted]) -> list[_Fitted]:
    """Reads texts as dates where they stand beside dates, or where only a date can stand."""
    function = FUNCTIONS[node.name]
    kinds = [facts.kind for _, facts in fitted]
    beside = next((kind for kind in kinds if kind in _DATES), "")
    alike = bool(beside) and (function.alike or node.name == "sub")
    found = []
    for place, pair in enumerate(fitted):
        accepted = function.accepted(place)
        needed = alike or ("date" in accepted and "text" not in accepted)
        written = isinstance(pair[0], Literal) and isinstance(pair[0].value, str)
        found.append(_date(pair[0], beside or "timestamp", node) if needed and written else pair)
    return found


def _date(literal: Expression, beside: str, node: Call) -> _Fitted:
    """Reads a constant text as a date, or as a timestamp if it has a time."""
    text = str(literal.value) if isinstance(literal, Literal) else ""
    found = _TEXT.fullmatch(text) if text.isascii() else None
    try:
        if found is not None and found[4] is None:
            value = datetime.date(*(int(found[place]) for place in (1, 2, 3)))
            return Literal(value, span=literal.span), constant(value)
        if found is not None and beside == "timestamp":
            at = datetime.datetime.fromisoformat(text)
            return Literal(at, span=literal.span), constant(at)
    except ValueError:
        pass
    what = "This text is compared with a date, and it is not one." if FUNCTIONS[node.name].alike else "This is not a date."
    time = " or '1995-01-31 12:00:00'" if beside == "timestamp" else ""
    raise QueryError(what, span=literal.span or node.span, fix=f"write it as '1995-01-31'{time}.")


def _arithmetic(node: Call, fitted: list[_Fitted]) -> tuple[Call, list[_Fitted]]:
    """Rewrites sums and differences with dates."""
    kinds = [facts.kind for _, facts in fitted]
    if node.name not in ("add", "sub") or not any(kind in _DATES for kind in kinds):
        return node, fitted
    if node.name == "add" and kinds[1] in _DATES:
        fitted, kinds = fitted[::-1], kinds[::-1]
    if kinds == ["date", "date"] and node.name == "sub":
        return replace(node, name="days_between"), fitted[::-1]
    if all(kind in _DATES for kind in kinds):
        fix = "write DATE_DIFF('hour', a, b) for the hours from a to b, or another unit."
        what = "Two dates cannot be added." if node.name == "add" else "The difference of two timestamps is a span of time."
        raise QueryError(what, span=node.span, fix=fix)
    if kinds[0] == "timestamp" and kinds[1] in ("int", "real"):
        fix = "write x + INTERVAL 7 DAY, or CAST(x AS DATE) + 7."
        raise QueryError("A timestamp is moved by an INTERVAL, not by a number.", span=node.span, fix=fix)
    if kinds[0] != "date" or kinds[1] not in ("int", "real", "null"):
        return node, fitted  # `check` refuses it
    return replace(node, name="add_days"), [fitted[0], fitted[1] if node.name == "add" else _negative(fitted[1])]


def _negative(pair: _Fitted) -> _Fitted:
    """Returns the negative of a number of days."""
    argument, facts = pair
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        value = -argument.value
        return Literal(value, span=argument.span), constant(value)
    return Call("neg", (argument,), span=argument.span), FUNCTIONS["neg"].infer([facts])
