"""Reads SQL expressions into expression nodes: closed lists of functions, operators, types and syntax.

The words of functions are in words.py, calls whose arguments are rearranged in forms.py.
"""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from dither.errors import QueryError
from dither.exact.numbers import parse_number
from dither.query.nodes import Call, Expression, Literal, Span, by_word
from dither.query.sql import forms
from dither.query.sql.intervals import later
from dither.query.sql.names import Scope, column, only, place, refuse
from dither.query.sql.words import FUNCTIONS, TYPES, unknown_function

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.Mod: "mod",
    exp.IntDiv: "whole_quotient",
    exp.Pow: "power",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "concat",
}
# Replaces a node before it is read (keys and aggregates above a GROUP BY); None leaves it.
Replace = Callable[[exp.Expr], Expression | None]

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$")
_FALSE = Literal(False)
_LONGEST = 60  # the most characters of an operand in a fix
_MOST_DIGITS = 15


def expression(node: exp.Expr, scope: Scope, replace: Replace | None = None) -> Expression:
    """Reads a sqlglot node into an expression; refuses what is not supported."""
    replaced = replace(node) if replace else None
    replaced = scope.values.get(id(node)) if replaced is None else replaced
    if replaced is not None:
        return replaced
    if isinstance(node, exp.Column):
        return column(node, scope)
    name = BINARY.get(type(node))
    if name is not None:
        only(scope, node, "this expression safe typed", "An operator")
        _check_null(node, scope)
        if isinstance(node, (exp.Add, exp.Sub)) and (
            isinstance(node.this, exp.Interval) or isinstance(node.expression, exp.Interval)
        ):
            return _later(node, scope, replace)
        pair = expression(node.this, scope, replace), expression(node.expression, scope, replace)
        return computed(name, *pair, place(scope.text, node)) or Call(name, pair, span=place(scope.text, node))
    reader = _READERS.get(type(node))
    if reader is None:
        raise _unknown(node, scope)
    return reader(node, scope, replace)


_EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_DIGITS = 10**15
_WHOLE = ({int}, {bool}, {int, bool}, {Fraction, bool})  # computed by the engine, or refused


def computed(name: str, left: Expression, right: Expression, span: Span) -> Literal | None:
    """Computes with decimal constants, exactly as databases do: 0.06 + 0.01 is 0.07, and in doubles it is less."""
    if name not in _EXACT or not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    one, two = left.value, right.value
    if not isinstance(one, (int, Fraction)) or not isinstance(two, (int, Fraction)) or {type(one), type(two)} in _WHOLE:
        return None
    value = _EXACT[name](Fraction(one), Fraction(two))
    return Literal(value, span=span) if abs(value.numerator) < _DIGITS and value.denominator < _DIGITS else None


def _check_null(node: exp.Expr, scope: Scope) -> None:
    """Refuses a comparison with NULL: it is never true, and a mistaken question must not be charged."""
    if not isinstance(node, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return
    others = [
        side for side, other in ((node.this, node.expression), (node.expression, node.this)) if isinstance(other, exp.Null)
    ]
    if others:
        operand = others[0].sql() if len(others[0].sql()) <= _LONGEST else "x"
        test = f"write {operand} IS {'NOT ' if isinstance(node, exp.NEQ) else ''}NULL."
        fix = test if isinstance(node, (exp.EQ, exp.NEQ)) else f"compare with a value, or {test}"
        raise refuse(scope, node, "A comparison with NULL is never true.", fix)


def _unknown(node: exp.Expr, scope: Scope) -> Exception:
    if isinstance(node, exp.Window):
        return refuse(
            scope,
            node,
            f"A window function over the rows of people cannot stand {scope.place}.",
            "put it into SELECT of a subquery, with the unit column in PARTITION BY: FROM (SELECT ..., "
            "ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) AS r FROM ...) t WHERE r = 1.",
        )
    if isinstance(node, (exp.Subquery, exp.Select)):
        return refuse(
            scope,
            node,
            "A subquery can stand for a value only in WHERE, in ON, in GROUP BY and inside an aggregate.",
            "make it part of another condition, or join it.",
        )
    if isinstance(node, (exp.Exists, exp.In)):
        return refuse(
            scope,
            node,
            "IN (SELECT ...) and EXISTS can only stand in WHERE, in ON, in GROUP BY and inside an aggregate.",
            "make it a condition of its own in WHERE.",
        )
    if isinstance(node, exp.All):
        fix = "for > compare with (SELECT MAX(y) ...), for < with (SELECT MIN(y) ...); for <> write x NOT IN (SELECT y ...)."
        return refuse(scope, node, "A comparison with ALL is not supported.", fix)
    if isinstance(node, exp.Star):
        return refuse(scope, node, "* cannot stand here.", "name the columns.")
    if isinstance(node, (exp.Array, exp.Bracket)):
        return refuse(scope, node, "A list can only stand in QUANTILE(x, [0.25, 0.5]).", "write single values.")
    what, fix = _OTHERS.get(
        type(node), ("{shown} is not part of the SQL that dither answers.", "write it with other functions.")
    )
    holder: exp.Expr | None = node
    while holder is not None and place(scope.text, holder) is None:
        holder = holder.parent
    span = None if holder is None else place(scope.text, holder)
    shown = " ".join(scope.text[span[0] : span[1]].split()) if span else ""
    shown += ")" * (shown.count("(") - shown.count(")"))  # the place of a node ends before its last parenthesis
    return refuse(scope, holder, what.format(shown=shown if 0 < len(shown) <= _LONGEST else "This"), fix)


_OTHERS: dict[type[exp.Expr], tuple[str, str]] = {
    **dict.fromkeys(
        (exp.BitwiseLeftShift, exp.BitwiseRightShift), ("Bits of numbers are not supported.", "write x * 4 or x // 4.")
    ),
    exp.Interval: ("An INTERVAL can only be added to a date or subtracted from one.", "write x + INTERVAL 1 MONTH."),
    exp.WithinGroup: ("{shown} is not computed over the groups of an answer.", "write MEDIAN(n) or QUANTILE_CONT(n, 0.9)."),
    exp.Order: ("The order of rows changes nothing inside an aggregate.", "leave ORDER BY out."),
    exp.Tuple: (
        "Several values in parentheses can stand only in COUNT(DISTINCT (a, b)).",
        "compare them one by one: a = 1 AND b = 2.",
    ),
}


def _literal(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this is_string", "A constant")
    span = place(scope.text, node)
    return Literal(str(node.this) if node.args.get("is_string") else _number(str(node.this), node, scope), span=span)


def _number(text: str, node: exp.Expr, scope: Scope) -> int | Fraction:
    if not _NUMBER.match(text) or len(text) > 60:
        raise refuse(scope, node, "This number cannot be read.", "write a number such as 16 or 1.5e3.")
    value = parse_number(text)
    if value is None or value > (2**62 if text.isdigit() else 10**300):
        raise refuse(scope, node, "This number is too large.", "write a smaller number.")
    return int(text) if text.isdigit() else value


def _negative(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this", "A minus sign")
    inner = expression(node.this, scope, replace)
    span = place(scope.text, node)
    if isinstance(inner, Literal) and isinstance(inner.value, (int, Fraction)) and not isinstance(inner.value, bool):
        return Literal(-inner.value, span=span)
    return Call("neg", (inner,), span=span)


def _paren(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this", "A parenthesis")
    return expression(node.this, scope, replace)


def _not(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this", "NOT")
    return Call("not", (expression(node.this, scope, replace),), span=place(scope.text, node))


def _constant(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this", "A constant")
    return Literal(bool(node.this) if isinstance(node, exp.Boolean) else None, span=place(scope.text, node))


def _is(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this expression", "IS")
    inner, span = expression(node.this, scope, replace), place(scope.text, node)
    if isinstance(node.expression, exp.Null):
        return Call("is_null", (inner,), span=span)
    if isinstance(node.expression, exp.Boolean):
        truth = inner if node.expression.this else Call("not", (inner,), span=span)
        return Call("coalesce", (truth, _FALSE), span=span)
    raise refuse(scope, node, "IS is followed by NULL, NOT NULL, TRUE or FALSE.", "write x IS NULL.")


def _in(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    if node.args.get("query") is not None:
        raise _unknown(node, scope)
    only(scope, node, "this expressions", "IN")
    inner, span = expression(node.this, scope, replace), place(scope.text, node)
    items = tuple(expression(item, scope, replace) for item in node.expressions)
    if not items:
        raise refuse(scope, node, "IN needs at least one value.", "write x IN (1, 2).")
    if any(isinstance(item, Literal) and item.value is None for item in items):
        raise refuse(scope, node, "NULL in a list is equal to nothing.", "leave it out, or write x IS NULL.")
    if all(isinstance(item, Literal) for item in items):
        return Call("in_list", (inner, *items), span=span)
    either: Expression = Call("eq", (inner, items[0]), span=span)
    for item in items[1:]:
        either = Call("or", (either, Call("eq", (inner, item), span=span)), span=span)
    return either


def _between(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this low high", "BETWEEN")
    inner, span = expression(node.this, scope, replace), place(scope.text, node)
    low = Call("ge", (inner, expression(node.args["low"], scope, replace)), span=span)
    return Call("and", (low, Call("le", (inner, expression(node.args["high"], scope, replace)), span=span)), span=span)


def _like(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
    only(scope, node, "this expression negate", word)
    pattern = expression(node.expression, scope, replace)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise refuse(scope, node.expression, f"The pattern of {word} must be a constant text.", f"write x {word} 'a%'.")
    span, inner = place(scope.text, node), expression(node.this, scope, replace)
    like = forms.ilike(inner, pattern, span) if word == "ILIKE" else Call("like", (inner, pattern), span=span)
    return Call("not", (like,), span=span) if node.args.get("negate") else like


def _distinct(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this expression", "IS DISTINCT FROM")
    span = place(scope.text, node)
    same = forms.distinct(expression(node.this, scope, replace), expression(node.expression, scope, replace), span)
    return same if isinstance(node, exp.NullSafeEQ) else Call("not", (same,), span=span)


def _later(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    """Reads x + INTERVAL n UNIT and x - INTERVAL n UNIT."""
    moved, interval = (node.this, node.expression)
    if isinstance(moved, exp.Interval):
        if isinstance(node, exp.Sub) or isinstance(interval, exp.Interval):
            raise _unknown(moved, scope)
        moved, interval = interval, moved
    sign = -1 if isinstance(node, exp.Sub) else 1
    return _moved(moved, interval, sign, place(scope.text, node), scope, replace)


def _moved(moved: exp.Expr, interval: exp.Expr, sign: int, span: Span, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, interval, "this unit", "INTERVAL")
    written = isinstance(interval.this, exp.Literal)
    amount = None if written or interval.this is None else expression(interval.this, scope, replace)
    return later(expression(moved, scope, replace), interval, amount, sign, span, scope.text)


def _substring(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this start length", "SUBSTRING")
    parts = [node.args[key] for key in ("this", "start", "length") if node.args.get(key) is not None]
    return forms.substring(tuple(expression(part, scope, replace) for part in parts), _whole_call(node, scope))


def _position(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this substr", "POSITION")
    parts = [expression(node.args[key], scope, replace) for key in ("this", "substr")]
    return Call("position", tuple(parts), span=_whole_call(node, scope))


def _whole_call(node: exp.Expr, scope: Scope) -> Span:
    """Returns the span of a call that the parser reads itself: from its name to its closing parenthesis."""
    span = place(scope.text, node)
    if span is None:
        return None
    opened = scope.text.rfind("(", 0, span[0] + 1)
    name = len(scope.text[:opened].rstrip()) if opened >= 0 else span[0]
    start = len(scope.text[:name].rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"))
    closed = scope.text.find(")", span[1])
    return (start if opened >= 0 else span[0], closed + 1 if closed >= 0 else span[1])


def _case(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this ifs default", "CASE")
    span = place(scope.text, node)
    subject = expression(node.this, scope, replace) if node.args.get("this") is not None else None
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        only(scope, branch, "this true", "CASE")
        when = expression(branch.this, scope, replace)
        parts += [
            when if subject is None else Call("eq", (subject, when), span=place(scope.text, branch)),
            expression(branch.args["true"], scope, replace),
        ]
    default = node.args.get("default")
    parts.append(Literal(None) if default is None else expression(default, scope, replace))
    return Call("case", tuple(parts), span=span)


def _cast(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this to safe _type", "CAST")
    to, span = node.args["to"], place(scope.text, node)
    name = getattr(to.this, "name", str(to.this)) if isinstance(to, exp.DataType) else "?"
    inner = expression(node.this, scope, replace)
    digits = _digits(to, name, scope)
    if digits:
        return forms.decimal(inner, digits, span)
    if isinstance(inner, Literal) and isinstance(inner.value, str) and name in ("DATE", "TIMESTAMP"):
        return Literal(_moment(inner.value, name, node, scope), span=span)
    if name not in TYPES:
        raise refuse(scope, node, f"CAST to {name} is not supported.", "cast to INTEGER, DOUBLE, VARCHAR, DATE or BOOLEAN.")
    return Call(TYPES[name], (inner,), span=span)


def _digits(to: exp.Expr, name: str, scope: Scope) -> int:
    """Returns the digits after the point of DECIMAL(10, 2); 0 for other types. The length of VARCHAR(10) changes nothing."""
    if not isinstance(to, exp.DataType):
        return 0
    only(scope, to, "this nested expressions" if name in ("DECIMAL", "VARCHAR") else "this nested", "CAST")
    numbers = [str(part.this.this) if isinstance(part.this, exp.Literal) else "" for part in to.expressions]
    if not all(number.isdigit() and int(number) <= 1000 for number in numbers) or len(numbers) > 2:
        raise refuse(scope, to, "This type cannot be read.", "write DECIMAL(10, 2) or VARCHAR.")
    return int(numbers[1]) if name == "DECIMAL" and len(numbers) == 2 else 0


def _moment(text: str, name: str, node: exp.Expr, scope: Scope) -> datetime.date:
    pattern = r"\d{4}-\d\d-\d\d" if name == "DATE" else r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"
    try:
        if re.fullmatch(pattern, text):
            return datetime.date.fromisoformat(text) if name == "DATE" else datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    raise refuse(scope, node, f"This is not a {name.lower()}.", "write DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00'.")


def _extract(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this expression", "EXTRACT")
    value = expression(node.expression, scope, replace)
    return _formed(lambda parts, span: forms.part_of(str(node.this.name), parts[0], span), (value,), node, scope)


def _formed(form: forms.Form, parts: forms.Parts, node: exp.Expr, scope: Scope) -> Expression:
    """Returns what a form makes of its arguments; its refusals get their place in the text."""
    try:
        return form(parts, place(scope.text, node))
    except QueryError as error:
        raise error.located(scope.text) from None


def _call(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    only(scope, node, "this expressions", "A function")
    if not isinstance(node.this, str):
        raise refuse(scope, node, "A function's name is not quoted.", "write it without double quotes.")
    name, span = node.this.upper(), place(scope.text, node)
    if name in by_word():
        raise refuse(
            scope,
            node,
            f"{name} is an aggregate and cannot stand {scope.place}.",
            "filter on aggregates with HAVING; aggregate twice only per person, in a subquery that groups by the unit column.",
        )
    if name == "DATE_ADD" and len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Interval):
        return _moved(node.expressions[0], node.expressions[1], 1, span, scope, replace)
    if name not in FUNCTIONS and name not in forms.FORMS:
        raise unknown_function(name, node, scope, tuple(forms.FORMS))
    parts = tuple(expression(part, scope, replace) for part in node.expressions)
    if name in forms.FORMS:
        return _formed(forms.FORMS[name], parts, node, scope)
    return Call(FUNCTIONS[name], parts, span=span)


_READERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope, Replace | None], Expression]] = {
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Paren: _paren,
    exp.Not: _not,
    exp.Boolean: _constant,
    exp.Null: _constant,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.NullSafeEQ: _distinct,
    exp.NullSafeNEQ: _distinct,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Anonymous: _call,
}
