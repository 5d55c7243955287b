"""Reads SQL expressions into expression nodes: closed lists of functions, operators, types and syntax.

Functions that are often asked for and not supported have advice of their own (ADVICE).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from dither.exact.numbers import parse_number
from dither.query.nodes import Call, Expression, Literal, by_word
from dither.query.sql.names import Scope, column, only, place, refuse
from dither.text import did_you_mean


def _each(words: str) -> list[str]:
    return words.split()


FUNCTIONS: dict[str, str] = {
    **{name: name.lower() for name in _each("ABS FLOOR CEIL ROUND SQRT LN EXP POWER SIGN LEAST GREATEST CLAMP BUCKET")},
    **{name: name.lower() for name in _each("COALESCE NULLIF LOWER UPPER TRIM LENGTH SUBSTR STARTS_WITH CONTAINS")},
    **{name: name.lower() for name in _each("YEAR MONTH DAY QUARTER HOUR DATE_TRUNC DAYS_BETWEEN")},
    "CEILING": "ceil",
    "POW": "power",
    "LEN": "length",
    "CHAR_LENGTH": "length",
    "SUBSTRING": "substr",
    "ISODOW": "weekday",
}
_VALUES = "choose among public values with MODE(x), or count them: SELECT x, COUNT(*) AS n ... GROUP BY x."
_BEST = "ask which group has the most: SELECT x, AVG(y) AS m ... GROUP BY x ORDER BY m DESC LIMIT 1."
ADVICE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        _each("RANDOM RAND UUID GEN_RANDOM_UUID NOW TODAY GETDATE SYSDATE CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME"),
        ("{name} gives another value each time, so the answer would not be a function of the data.", "write a constant."),
    ),
    **dict.fromkeys(
        _each("FIRST LAST ANY_VALUE FIRST_VALUE LAST_VALUE"),
        ("{name} shows the value of one row.", _VALUES),
    ),
    **dict.fromkeys(
        _each("ARG_MAX ARG_MIN ARGMAX ARGMIN MAX_BY MIN_BY"),
        ("{name} shows the value of the one row that has the most or the least.", _BEST),
    ),
    **dict.fromkeys(
        _each("ARRAY_AGG LIST STRING_AGG GROUP_CONCAT LISTAGG"),
        ("{name} shows the values of all rows.", "count them: SELECT x, COUNT(*) AS n ... GROUP BY x."),
    ),
    **{
        name: (f"{name} is not supported.", f"write {other}.")
        for name, other in {
            "REGR_SXX": "REGR_COUNT(y, x) * VAR_POP(x) FILTER (WHERE y IS NOT NULL)",
            "REGR_SYY": "REGR_COUNT(y, x) * VAR_POP(y) FILTER (WHERE x IS NOT NULL)",
            "REGR_SXY": "REGR_COUNT(y, x) * COVAR_POP(y, x)",
            "PRODUCT": "EXP(SUM(LN(x)))",
            "FSUM": "SUM(x): sums are exact",
            "KAHAN_SUM": "SUM(x): sums are exact",
            "FAVG": "AVG(x): sums are exact",
            "MAD": "MEDIAN(x) first, and then MEDIAN(ABS(x - 40)) if it is 40",
            "ENTROPY": "SELECT x, COUNT(*) AS n ... GROUP BY x, and compute it from the counts",
            "APPROX_TOP_K": "SELECT x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT 3",
        }.items()
    },
    "HISTOGRAM": (
        "HISTOGRAM gives one row for each value, so it is the only aggregate of a question.",
        "write SELECT HISTOGRAM(x) AS n ..., HISTOGRAM(BUCKET(x, 10)) for bins, or SELECT x, COUNT(*) AS n, ... GROUP BY x.",
    ),
    **dict.fromkeys(
        _each("READ_CSV READ_CSV_AUTO READ_PARQUET READ_JSON READ_TEXT READ_BLOB GLOB PARQUET_SCAN GETENV"),
        ("{name} reads files, and only tables of the catalog are read.", "ask about a table of the catalog."),
    ),
    **dict.fromkeys(
        _each("ROW_NUMBER RANK DENSE_RANK LAG LEAD NTILE FIRST_VALUE LAST_VALUE"),
        (
            "{name} is a window function, and it has no OVER.",
            "add OVER (PARTITION BY ... ORDER BY ...), with the unit column in PARTITION BY, in a subquery.",
        ),
    ),
    "CONCAT": ("CONCAT treats NULL in its own way.", "write a || b, with COALESCE where NULL can occur."),
    "WEEKDAY": ("WEEKDAY counts differently in different databases.", "write ISODOW(x): Monday is 1, Sunday is 7."),
    "DAYOFWEEK": ("DAYOFWEEK counts differently in different databases.", "write ISODOW(x): Monday is 1, Sunday is 7."),
    "MOD": ("There is no function MOD.", "write x % y."),
    "LOG": ("LOG means different things in different databases.", "write LN(x)."),
    "DATEDIFF": ("DATEDIFF takes its arguments in different orders.", "write DAYS_BETWEEN(a, b)."),
    "DATE_DIFF": ("DATE_DIFF takes its arguments in different orders.", "write DAYS_BETWEEN(a, b)."),
}
BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.Mod: "mod",
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
TYPES: dict[str, str] = {
    **dict.fromkeys(("INT", "BIGINT"), "to_int"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "to_real"),
    **dict.fromkeys(("VARCHAR", "TEXT"), "to_text"),
    "DATE": "to_date",
    "BOOLEAN": "to_bool",
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
        pair = expression(node.this, scope, replace), expression(node.expression, scope, replace)
        return Call(name, pair, span=place(scope.text, node))
    reader = _READERS.get(type(node))
    if reader is None:
        raise _unknown(node, scope)
    return reader(node, scope, replace)


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
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
    return refuse(scope, node, f"{word} is not part of the SQL that dither answers.", "write it with other functions.")


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
    only(scope, node, "this expression negate", "LIKE")
    pattern = expression(node.expression, scope, replace)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise refuse(scope, node.expression, "The pattern of LIKE must be a constant text.", "write x LIKE 'a%'.")
    span = place(scope.text, node)
    like = Call("like", (expression(node.this, scope, replace), pattern), span=span)
    return Call("not", (like,), span=span) if node.args.get("negate") else like


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
    if isinstance(to, exp.DataType):
        only(scope, to, "this nested", "CAST")
    if isinstance(inner, Literal) and isinstance(inner.value, str) and name in ("DATE", "TIMESTAMP"):
        return Literal(_moment(inner.value, name, node, scope), span=span)
    if name not in TYPES:
        raise refuse(scope, node, f"CAST to {name} is not supported.", "cast to INTEGER, DOUBLE, VARCHAR, DATE or BOOLEAN.")
    return Call(TYPES[name], (inner,), span=span)


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
    part = str(node.this.name).upper()
    parts = {name: FUNCTIONS[name] for name in ("YEAR", "MONTH", "DAY", "QUARTER", "HOUR", "ISODOW")}
    if part not in parts:
        raise refuse(scope, node, f"EXTRACT of {part[:20]} is not supported.", f"use one of {', '.join(parts)}.")
    return Call(parts[part], (expression(node.expression, scope, replace),), span=place(scope.text, node))


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
    if name in ("IF", "IIF") and len(node.expressions) == 3:
        return Call("case", tuple(expression(part, scope, replace) for part in node.expressions), span=span)
    if name == "ROUND" and len(node.expressions) == 2:
        return _round(node, scope, replace)
    if name not in FUNCTIONS:
        raise _unknown_function(name, node, scope)
    return Call(FUNCTIONS[name], tuple(expression(part, scope, replace) for part in node.expressions), span=span)


def _round(node: exp.Expr, scope: Scope, replace: Replace | None) -> Expression:
    """Reads ROUND(x, digits) as DuckDB computes it: ROUND(x * 10^digits) / 10^digits."""
    value, digits = (expression(part, scope, replace) for part in node.expressions)
    number = digits.value if isinstance(digits, Literal) and not isinstance(digits.value, bool) else None
    span = place(scope.text, node)
    if not isinstance(number, int) or abs(number) > _MOST_DIGITS:
        what = f"ROUND needs a constant number of digits from {-_MOST_DIGITS} to {_MOST_DIGITS}."
        raise refuse(scope, node, what, "write ROUND(x, 2).")
    factor, (first, then) = Literal(10 ** abs(number)), (("mul", "div") if number >= 0 else ("div", "mul"))
    rounded = Call("round", (Call(first, (value, factor), span=span),), span=span)
    return Call(then, (rounded, factor), span=span) if number else Call("round", (value,), span=span)


def _unknown_function(name: str, node: exp.Expr, scope: Scope) -> Exception:
    if name in ADVICE:
        what, fix = ADVICE[name]
        return refuse(scope, node, what.format(name=name), fix.format(name=name))
    near = did_you_mean(name, [*FUNCTIONS, *by_word()]).rstrip()
    fix = near or "use the functions listed in the documentation."
    return refuse(scope, node, f"There is no function {name[:40]}.", fix)


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
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Anonymous: _call,
}
