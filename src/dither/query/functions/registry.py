"""The functions an expression may use, and what an expression means on one row. What is not here is refused.

`evaluate` is the specification every engine is compared with; it also serves the planner (enumerating public domains)
and the finishing of noisy results, where the row holds keys and noisy numbers.

Whether a call of a function makes sense: how many arguments, of which kinds, which of them constant. Refuses if not.

What is publicly known of an expression, from what the catalog declares of its columns. Reads no row.

`facts` checks kinds and constants on the way and refuses with the span of the part that is wrong. The finite domain of
an expression (the public values a key can take) is found by trying all combinations of its columns' values.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.catalog.values import ColumnFacts, Key
from dither.errors import QueryError
from dither.query.functions.base import Cell, Facts, Function, apply, double, family, settle
from dither.query.functions.casts import CASTS, as_key
from dither.query.functions.dates import DATES, day_number, from_day_number
from dither.query.functions.logic import LOGIC
from dither.query.functions.numbers import NUMBERS
from dither.query.functions.text import TEXT
from dither.query.nodes import Call, Column, Expression, Literal
from dither.query.show import show_function

FUNCTIONS: Mapping[str, Function] = {entry.name: entry for entry in (*NUMBERS, *LOGIC, *CASTS, *TEXT, *DATES)}


def literal(value: Any) -> Cell:
    """A constant as it is computed with: fractions are doubles.

    >>> literal(Fraction(1, 10)), literal(7)
    (0.1, 7)
    """
    if isinstance(value, Fraction):
        return double(value)
    constant: Cell = settle(value)
    return constant


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Cell:
    """The expression's value on one row, which must have the columns it names. Never raises for any value in the row.

    >>> evaluate(Call("div", (Column("x"), Literal(0))), {"x": 3}) is None
    True
    >>> evaluate(Call("add", (Column("x"), Literal(1))), {"x": 3})
    4.0
    """
    return evaluator(expression)(row)


def evaluator(expression: Expression) -> Callable[[Mapping[str, Any]], Cell]:
    """The expression as a Python function of a row: what `evaluate` calls, for those who call it often."""
    if isinstance(expression, Column):
        name = expression.name
        return lambda row: settle(row[name])
    if isinstance(expression, Literal):
        value = literal(expression.value)
        return lambda row: value
    function = FUNCTIONS[expression.name]
    parts = [evaluator(argument) for argument in expression.arguments]
    return lambda row: apply(function, [part(row) for part in parts])


def evaluate_all(expressions: Sequence[Expression], rows: Iterable[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    """The values of all expressions at every row."""
    compute = [evaluator(each) for each in expressions]
    return [tuple([each(row) for each in compute]) for row in rows]


def columns(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    if isinstance(expression, Column):
        return frozenset((expression.name,))
    if isinstance(expression, Call):
        return frozenset().union(*(columns(argument) for argument in expression.arguments))
    return frozenset()


def kind_of(value: Any) -> str:
    """The kind of a constant; "null" for NULL."""
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


MOST_DEPTH = 150  # deeper expressions would be refused by Python's own limit, with a worse message

WORDS = {
    "int": "a whole number",
    "real": "a number",
    "text": "text",
    "bool": "true or false",
    "date": "a date",
    "timestamp": "a timestamp",
}


def check(call: Call, function: Function, arguments: list[Facts]) -> None:
    """Refuses a call that has no meaning, with the span of the part that is wrong."""
    _check_count(call, function)
    for place, (written, known) in enumerate(zip(call.arguments, arguments, strict=True)):
        _check_argument(call, function, place, written, known.kind)
    _check_family(call, function, [argument.kind for argument in arguments])
    values = [argument.value if isinstance(argument, Literal) else None for argument in call.arguments]
    reason = function.refuse(values) if function.refuse is not None else None
    if reason is not None:
        raise QueryError(f"{_written(call)} cannot be computed: {reason}.", span=call.span, fix="change the constant.")


def _written(call: Call) -> str:
    return show_function(call.name)


def choices(name: str, count: int) -> list[int]:
    """The arguments of which one is handed on as it is."""
    if name == "case":
        return [*range(1, count - 1, 2), count - 1]
    return list(range(count)) if name == "coalesce" else []


def shallow(expression: Expression) -> None:
    """Refuses an expression that is nested too deeply to be worked on."""
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
        fix = f"write it with {'' if function.most else 'at least '}{_arguments(function.least)}."
        raise QueryError(f"{_written(call)} does not take {_arguments(count)}.", span=call.span, fix=fix)


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _check_argument(call: Call, function: Function, place: int, written: Expression, kind: str) -> None:
    span = written.span or call.span
    when = call.name == "case" and place % 2 == 0 and place < len(call.arguments) - 1
    accepted = ("bool",) if when else function.accepted(place)
    if kind != "null" and kind not in accepted:
        raise QueryError(f"{_written(call)} cannot be applied to {WORDS[kind]}.", span=span, fix=_fix(accepted, kind))
    if function.constant(place) and not isinstance(written, Literal):
        raise QueryError(f"{_written(call)} needs a constant here.", span=span, fix="write a number or a text in its place.")


def _check_family(call: Call, function: Function, kinds: list[str]) -> None:
    handed_on = {kinds[place] for place in choices(call.name, len(kinds))}
    together = handed_on if call.name == "case" else set(kinds) if function.alike else set()
    if family(sorted(together)) is None or {"date", "timestamp"} <= handed_on:
        listed = " and ".join(WORDS[kind] for kind in sorted(together - {"null"}))
        raise QueryError(f"{_written(call)} mixes {listed}.", span=call.span, fix=_cast(together))


def _cast(kinds: set[str]) -> str:
    if "date" in kinds or "timestamp" in kinds:
        return "write DATE 'yyyy-mm-dd' for a constant, or CAST(... AS DATE) around one of them."
    if "text" in kinds:
        return "write text in quotes and numbers without, or CAST one of them."
    return "CAST one of them."


def _fix(accepted: tuple[str, ...], kind: str) -> str:
    if accepted == ("bool",) and kind in ("int", "real"):
        return "write a condition, such as x <> 0."
    if "int" in accepted and kind in ("bool", "text"):
        return "write CAST(... AS INTEGER) or CAST(... AS DOUBLE) around it, or CASE WHEN ... THEN 1 ELSE 0 END."
    if kind == "text" and "date" in accepted:
        return "write CAST(... AS DATE) around it, or DATE 'yyyy-mm-dd'."
    return f"give it {' or '.join(WORDS[each] for each in accepted)}."


MOST_VALUES = 10_000  # the largest domain that is spelt out


def declared(column: ColumnFacts, kind: str | None = None) -> Facts:
    """What the catalog says of a column; `kind` is the schema's, where the catalog leaves it open.

    >>> declared(ColumnFacts("int", Fraction(0), Fraction(2))).values
    (0, 1, 2)
    """
    kind = column.kind or kind or "text"
    whole = kind == "int"
    step = column.step if column.step is not None else Fraction(1) if whole else None
    found = Facts(kind, column.low, column.high, column.nullable, whole, column.values, step)
    if kind == "int":
        found = replace(
            found,
            low=None if found.low is None else Fraction(math.ceil(found.low)),
            high=None if found.high is None else Fraction(math.floor(found.high)),
        )
    if found.values is not None:
        return _within_values(found)
    return replace(found, values=_range(found))


def facts(expression: Expression, scope: Mapping[str, Facts]) -> Facts:
    """Everything known of the expression; `scope` has the facts of each column it may name.

    >>> age = Facts("int", Fraction(0), Fraction(120), nullable=False, whole=True)
    >>> found = facts(Call("div", (Column("age"), Literal(10))), {"age": age})
    >>> found.low, found.high, found.nullable
    (Fraction(0, 1), Fraction(12, 1), False)
    """
    shallow(expression)
    found = known(expression, scope)
    if isinstance(expression, Column):
        return found
    return _with_domain(expression, found, scope)


def typed(expression: Expression, scope: Mapping[str, Facts]) -> Expression:
    """The same expression with integers cast to real wherever a choice (CASE, COALESCE) mixes the two.

    After this the kind of every part is seen from its value, so evaluating needs no further look at the scope.
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
    """The facts without a look at domains: kind, interval, whether it can be NULL."""
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
    """What is known of a constant: all there is."""
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
    return Facts(kind, nullable=value is None)


# --- domains ----------------------------------------------------------------------------------------------------


def _with_domain(expression: Expression, found: Facts, scope: Mapping[str, Facts]) -> Facts:
    """Adds the finite domain, by trying all combinations if they are few, else from the interval."""
    if found.kind in ("timestamp", "null") or (found.kind == "real" and not found.whole):
        return replace(found, values=None)  # can be no key
    names = tuple(sorted(columns(expression)))
    sizes = [_inputs(scope[name]) for name in names]
    if None not in sizes and math.prod(len(size) for size in sizes if size is not None) <= MOST_VALUES:
        return _tried(_Question(repr(expression), found, names, tuple(scope[name] for name in names), expression))
    if found.kind == "bool":
        return replace(found, values=(False, True))
    if isinstance(expression, Call) and expression.name == "bucket" and found.step is not None:
        return replace(found, values=_range(found, found.step))
    return replace(found, values=_range(found))


def _inputs(column: Facts) -> tuple[Key, ...] | None:
    """What a column can hold, NULL included where it may occur."""
    if column.values is None:
        return (False, True, None) if column.kind == "bool" else None
    return column.values if None in column.values or not column.nullable else (*column.values, None)


@dataclass(frozen=True)
class _Question:
    """What a domain depends on. The expression is compared as text, because Python takes 1, 1.0 and True for equal."""

    text: str
    found: Facts
    names: tuple[str, ...]
    scope: tuple[Facts, ...]
    expression: Expression = field(compare=False)


@lru_cache(maxsize=256)
def _tried(question: _Question) -> Facts:
    """The domain by trying all combinations. NULL is in it only if it comes from a NULL that the catalog lists."""
    compute = evaluator(question.expression)
    listed = [None in (column.values or ()) for column in question.scope]
    results: dict[Key, None] = {}
    nullable = beyond = False
    for combination in itertools.product(*(_inputs(column) or () for column in question.scope)):
        value = compute(dict(zip(question.names, combination, strict=True)))
        key = as_key(value)
        nullable = nullable or value is None
        beyond = beyond or (key is None and value is not None)
        if key is not None or any(part is None and listed[place] for place, part in enumerate(combination)):
            results[key] = None
    found = replace(question.found, values=_sorted(results), nullable=nullable or beyond)
    return found if beyond else _within_values(found)


def _within_values(found: Facts) -> Facts:
    """Bounds no wider than the values."""
    known: list[Any] = [value for value in found.values or () if value is not None]
    if not known or found.kind not in ("int", "real", "date"):
        return found
    return replace(found, low=_place(min(known)), high=_place(max(known)))


def _place(value: int | datetime.date) -> Fraction:
    return day_number(value) if isinstance(value, datetime.date) else Fraction(value)


def _range(found: Facts, step: Fraction = Fraction(1)) -> tuple[Key, ...] | None:
    """The whole numbers, or days, between two bounds that are multiples of the whole `step`, if they are few."""
    if found.kind == "bool":
        return (False, True)
    if found.low is None or found.high is None or not (found.whole or found.kind == "date"):
        return None
    first, last = math.ceil(found.low / step), math.floor(found.high / step)
    if last - first + 1 > MOST_VALUES:
        return None
    if found.kind == "date":
        return tuple(date for date in (from_day_number(Fraction(n)) for n in range(first, last + 1)) if date is not None)
    width = int(step)
    return tuple(range(first * width, last * width + 1, width))


def _sorted(values: Iterable[Key]) -> tuple[Key, ...]:
    """In rising order, NULL last."""
    known: list[Any] = [value for value in values if value is not None]
    return (*sorted(known), *(value for value in values if value is None))
