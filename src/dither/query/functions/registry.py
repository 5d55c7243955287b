"""The registry of functions: evaluates expressions, checks calls, infers bounds. A function that is not here is refused.

`evaluate` is the specification that every engine is compared with. The planner uses it to enumerate public domains
(domains.py), and post-processing uses it on rows of keys and noisy numbers.

`known` infers kind, bounds and NULL of an expression from the facts of its columns, and reads no row. On the way `check`
refuses calls with a wrong number, kind or constancy of arguments, with the span of the wrong part.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.errors import QueryError
from dither.query.functions.base import Cell, Facts, Function, apply, double, family, nan_to_null
from dither.query.functions.casts import CASTS
from dither.query.functions.dates import DATES, day_number
from dither.query.functions.durations import DURATIONS
from dither.query.functions.formats import FORMATS
from dither.query.functions.logic import LOGIC
from dither.query.functions.numbers import NUMBERS
from dither.query.functions.rounding import ROUNDING
from dither.query.functions.text import TEXT
from dither.query.nodes import Call, Column, Expression, Literal
from dither.query.show import show_function

FUNCTIONS: Mapping[str, Function] = {
    entry.name: entry for entry in (*NUMBERS, *ROUNDING, *LOGIC, *CASTS, *TEXT, *DATES, *DURATIONS, *FORMATS)
}


def literal(value: Any) -> Cell:
    """Returns a constant as evaluation uses it: fractions are doubles.

    >>> literal(Fraction(1, 10)), literal(7)
    (0.1, 7)
    """
    if isinstance(value, Fraction):
        return double(value)
    constant: Cell = nan_to_null(value)
    return constant


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Cell:
    """Evaluates an expression on a row, which must have its columns. Never raises, whatever the values.

    >>> evaluate(Call("div", (Column("x"), Literal(0))), {"x": 3}) is None
    True
    >>> evaluate(Call("add", (Column("x"), Literal(1))), {"x": 3})
    4.0
    """
    return evaluator(expression)(row)


def evaluator(expression: Expression) -> Callable[[Mapping[str, Any]], Cell]:
    """Returns the expression as a Python function of a row, for repeated evaluation."""
    if isinstance(expression, Column):
        name = expression.name
        return lambda row: nan_to_null(row[name])
    if isinstance(expression, Literal):
        value = literal(expression.value)
        return lambda row: value
    function = FUNCTIONS[expression.name]
    parts = [evaluator(argument) for argument in expression.arguments]
    return lambda row: apply(function, [part(row) for part in parts])


def evaluate_all(expressions: Sequence[Expression], rows: Iterable[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    """Evaluates all expressions on every row."""
    compute = [evaluator(each) for each in expressions]
    return [tuple([each(row) for each in compute]) for row in rows]


def columns(expression: Expression) -> frozenset[str]:
    """Returns the names of the columns that an expression reads."""
    if isinstance(expression, Column):
        return frozenset((expression.name,))
    if isinstance(expression, Call):
        return frozenset().union(*(columns(argument) for argument in expression.arguments))
    return frozenset()


def kind_of(value: Any) -> str:
    """Returns the kind of a constant; "null" for NULL."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, datetime.datetime):
        return "timestamp"
    if isinstance(value, datetime.date):
        return "date"
    return "text" if isinstance(value, str) else "real"


_ORDERS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NUMERAL = re.compile(r"[+-]?([0-9]+([.,][0-9]*)*|[.,][0-9]+)([eE][+-]?[0-9]+)?")
MOST_DEPTH = 150  # deeper expressions would hit Python's recursion limit, with a worse message

WORDS = {
    "int": "a whole number",
    "real": "a number",
    "text": "text",
    "bool": "true or false",
    "date": "a date",
    "timestamp": "a timestamp",
}


def check(call: Call, function: Function, arguments: list[Facts]) -> None:
    """Refuses a call with wrong arguments, with the span of the wrong part."""
    _check_count(call, function)
    for place, (written, known) in enumerate(zip(call.arguments, arguments, strict=True)):
        _check_argument(call, function, place, written, known.kind)
    _check_family(call, function, arguments)
    values = [argument.value if isinstance(argument, Literal) else None for argument in call.arguments]
    reason = function.refuse(values) if function.refuse is not None else None
    if reason is not None:
        raise QueryError(f"{_show_call(call)} cannot be computed: {reason}.", span=call.span, fix="change the constant.")


def _show_call(call: Call) -> str:
    return show_function(call.name)


def choices(name: str, count: int) -> list[int]:
    """Returns the positions of the arguments of which the function returns one."""
    if name == "case":
        return [*range(1, count - 1, 2), count - 1]
    return list(range(count)) if name in ("coalesce", "smallest", "largest") else []


def check_depth(expression: Expression) -> None:
    """Refuses an expression that is nested too deeply."""
    level: list[Expression] = [expression]
    for _ in range(MOST_DEPTH):
        level = [argument for part in level if isinstance(part, Call) for argument in part.arguments]
        if not level:
            return
    raise QueryError(
        f"This expression is nested more than {MOST_DEPTH} levels deep.",
        span=expression.span,
        fix="compute parts of it in a WITH clause first, or use IN for long lists.",
    )


def _check_count(call: Call, function: Function) -> None:
    count = len(call.arguments)
    too_many = function.most is not None and count > function.most
    if count < function.least or too_many or (call.name == "case" and count % 2 == 0):
        few = f"{function.least} or " if function.most == function.least + 1 else "" if function.most else "at least "
        fix = f"write it with {few}{_arguments(function.most or function.least)}."
        raise QueryError(f"{_show_call(call)} does not take {_arguments(count)}.", span=call.span, fix=fix)


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _check_argument(call: Call, function: Function, place: int, written: Expression, kind: str) -> None:
    span = written.span or call.span
    when = call.name == "case" and place % 2 == 0 and place < len(call.arguments) - 1
    accepted = ("bool",) if when else function.accepted(place)
    if kind != "null" and kind not in accepted:
        fix = "write FLOOR(x / y), or TRUNC(x / y)." if call.name == "whole_quotient" else _fix(accepted, kind)
        raise QueryError(f"{_show_call(call)} cannot be applied to {WORDS[kind]}.", span=span, fix=fix)
    if function.constant(place) and not isinstance(written, Literal):
        raise QueryError(f"{_show_call(call)} needs a constant here.", span=span, fix="write a number or a text in its place.")


def _check_family(call: Call, function: Function, arguments: list[Facts]) -> None:
    kinds = [argument.kind for argument in arguments]
    returned = {kinds[place] for place in choices(call.name, len(kinds))}
    together = returned if call.name == "case" else set(kinds) if function.alike else set()
    if family(sorted(together)) is None or {"date", "timestamp"} <= returned:
        if (
            call.name == "coalesce" and call.span is not None and call.span == call.arguments[0].span
        ):  # made by CONCAT (forms.py)
            what = f"CONCAT joins texts, and this is {WORDS[kinds[0]]}."
            raise QueryError(what, span=call.span, fix="write CAST(... AS VARCHAR) around it.")
        listed = " and ".join(WORDS[kind] for kind in sorted(together - {"null"}))
        raise QueryError(
            f"{_show_call(call)} mixes {listed}.", span=call.span, fix=_numbers(call, arguments) or _cast(together)
        )


def _numbers(call: Call, arguments: list[Facts]) -> str:
    """Returns the fix if a number meets a column of undeclared text, which may hold numbers: columns of a CSV file are text."""
    known = zip(call.arguments, arguments, strict=True)
    texts = [each for each, facts in known if isinstance(each, Column) and facts.kind == "text" and facts.values is None]
    if not texts or not any(argument.numeric for argument in arguments):
        return ""
    name = _own_name(texts[0])
    return (
        f"if {name} holds numbers, declare its `kind` in the catalog, int or real, or write CAST({name} AS DOUBLE). "
        "In quotes a number is compared as text."
    )


def _own_name(column: Column) -> str:
    return column.name.rsplit(".", 1)[-1]


def alphabetical(nodes: Iterable[object]) -> tuple[str, ...]:
    """Returns a note for each numeral in quotes that a text is compared with for its place in the order.

    >>> alphabetical([Call("gt", (Column("p.visits"), Literal("9")))])[0]
    "visits > '9' is compared as text, and '10' is before '9': if it holds numbers, declare its `kind` in the catalog"
    """
    found: dict[str, None] = {}
    for node in nodes:
        if not isinstance(node, Call) or node.name not in _ORDERS or len(node.arguments) != 2:
            continue
        words = [_numeral(each) for each in node.arguments]
        if words.count(None) == 1 and not all(isinstance(each, Literal) for each in node.arguments):
            shown = [
                word or (_own_name(each) if isinstance(each, Column) else "...")
                for word, each in zip(words, node.arguments, strict=True)
            ]
            what = f"{shown[0]} {_ORDERS[node.name]} {shown[1]} is compared as text, and '10' is before '9'"
            found[f"{what}: if it holds numbers, declare its `kind` in the catalog"] = None
    return tuple(found)


def _numeral(expression: Expression) -> str | None:
    """Returns a text constant that is a number, in quotes."""
    value = expression.value if isinstance(expression, Literal) else None
    return f"'{value[:40]}'" if isinstance(value, str) and _NUMERAL.fullmatch(value.strip()) else None


def _cast(kinds: set[str]) -> str:
    if "date" in kinds or "timestamp" in kinds:
        return "write DATE 'yyyy-mm-dd' for a constant, or CAST(... AS DATE) around one of them."
    if {"bool", "text"} <= kinds:
        return "write TRUE or FALSE without quotes, or a condition, such as x = 'yes'."
    if "text" in kinds:
        return "write text in quotes and numbers without, or CAST one of them."
    return "CAST one of them."


def _fix(accepted: tuple[str, ...], kind: str) -> str:
    if accepted == ("bool",) and kind in ("int", "real"):
        return "write a condition, such as x <> 0."
    if "int" in accepted and kind in ("bool", "text"):
        return "write CAST(... AS INTEGER) or CAST(... AS DOUBLE) around it, or CASE WHEN ... THEN 1 ELSE 0 END."
    if kind == "text" and "date" in accepted:
        return (
            "write CAST(... AS DATE) around it, or DATE 'yyyy-mm-dd'; or declare its `kind` in the catalog: date or timestamp."
        )
    if kind == "text" and accepted == ("timestamp",):
        return "declare its `kind` in the catalog: timestamp."
    return f"give it {' or '.join(WORDS[each] for each in accepted)}."


def typed(expression: Expression, scope: Mapping[str, Facts]) -> Expression:
    """Casts integers to real wherever a choice (CASE, COALESCE) mixes the two.

    After this the kind of every part shows in its value, so evaluation does not need the scope.
    """
    if not isinstance(expression, Call):
        return expression
    arguments = [typed(argument, scope) for argument in expression.arguments]
    chosen = choices(expression.name, len(arguments))
    kinds = {place: known(arguments[place], scope).kind for place in chosen}
    if "real" in kinds.values():
        for place, kind in kinds.items():
            if kind == "int":
                arguments[place] = _as_real(arguments[place])
    return replace(expression, arguments=tuple(arguments))


def _as_real(expression: Expression) -> Expression:
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return replace(expression, value=Fraction(expression.value))
    return Call("to_real", (expression,), expression.span)


# --- bounds, kinds and NULL ---------------------------------------------------------------------------------------


def known(expression: Expression, scope: Mapping[str, Facts]) -> Facts:
    """Returns the facts without the domain: kind, interval, whether it can be NULL."""
    if isinstance(expression, Column):
        if expression.name not in scope:
            raise QueryError(
                f"There is no column {expression.name}.",
                span=expression.span,
                fix="name a column that the catalog declares.",
            )
        return scope[expression.name]
    if isinstance(expression, Literal):
        return constant(expression.value)
    function = FUNCTIONS.get(expression.name)
    if function is None:
        raise QueryError(
            f"The function {expression.name} is not known.",
            span=expression.span,
            fix="use a function from the list in the documentation.",
        )
    arguments = [known(argument, scope) for argument in expression.arguments]
    check(expression, function, arguments)
    return function.infer(arguments)


def constant(value: Any) -> Facts:
    """Returns the facts of a constant."""
    kind = kind_of(value)
    if kind in ("int", "real"):
        nearest = value if kind == "int" else double(value)
        if isinstance(nearest, float) and not math.isfinite(nearest):
            return Facts("real", nullable=math.isnan(nearest))
        exact = Fraction(nearest)
        return Facts(kind, exact, exact, False, exact.denominator == 1, None, None)
    if kind in ("date", "timestamp"):
        place = day_number(value)
        return Facts(kind, place, place, False)
    return Facts(kind, nullable=value is None, values=(value,) if kind == "text" else None)
