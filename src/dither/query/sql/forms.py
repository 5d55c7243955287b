"""Reads calls whose arguments are rearranged: LEFT(x, 2), DATE_PART('year', d), d + INTERVAL 1 MONTH, x IS DISTINCT FROM y.

Each becomes functions of the registry, so that it has their meaning in every engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from dither.errors import QueryError
from dither.query.functions.letters import lower
from dither.query.nodes import Call, Expression, Literal, Span
from dither.query.sql.names import Scope
from dither.query.sql.words import PARTS

_END = 2**31 - 1  # more characters than any text has
_FALSE = Literal(False)
_UNITS = {"day": ("add_days", 1), "week": ("add_days", 7), "month": ("add_months", 1), "quarter": ("add_months", 3)}
_UNITS |= {
    "year": ("add_months", 12),
    "hour": ("add_seconds", 3600),
    "minute": ("add_seconds", 60),
    "second": ("add_seconds", 1),
}
_USAGE = "write INTERVAL 3 MONTH, with one of day, week, month, quarter, year, hour, minute and second."
Parts = tuple[Expression, ...]
Form = Callable[[Parts, Span], Expression]


def _usage(name: str, text: str, span: Span) -> QueryError:
    return QueryError(f"{name} is not written like this.", span=span, fix=f"write {text}.")


def _choose(parts: Parts, span: Span) -> Expression:
    if len(parts) != 3:
        raise _usage("IF", "IF(x > 1, y, z)", span)
    return Call("case", parts, span=span)


def _left(parts: Parts, span: Span) -> Expression:
    if len(parts) != 2:
        raise _usage("LEFT", "LEFT(x, 2)", span)
    return Call("substr", (parts[0], Literal(1), parts[1]), span=span)


def substring(parts: Parts, span: Span) -> Expression:
    """Reads SUBSTRING(x, start) and SUBSTRING(x, start, length)."""
    if len(parts) not in (2, 3):
        raise _usage("SUBSTRING", "SUBSTRING(x, 1, 2) or SUBSTRING(x FROM 1 FOR 2)", span)
    return Call("substr", parts if len(parts) == 3 else (*parts, Literal(_END)), span=span)


def _concat(parts: Parts, span: Span) -> Expression:
    """Reads CONCAT, which leaves NULL out; || does not."""
    filled = (part if isinstance(part, Literal) else Call("coalesce", (part, Literal("")), span=part.span) for part in parts)
    return Call("concat", tuple(part for part in filled if part != Literal(None)), span=span)


def _strftime(parts: Parts, span: Span) -> Expression:
    """Reads STRFTIME with its arguments in either order."""
    swapped = len(parts) == 2 and isinstance(parts[0], Literal) and isinstance(parts[0].value, str)
    return Call("strftime", parts[::-1] if swapped else parts, span=span)


def _full_match(parts: Parts, span: Span) -> Expression:
    if len(parts) != 2 or not isinstance(parts[1], Literal) or not isinstance(parts[1].value, str):
        raise _usage("REGEXP_FULL_MATCH", "REGEXP_FULL_MATCH(x, 'pattern')", span)
    whole = Literal(f"^(?:{parts[1].value})$", span=parts[1].span)
    return Call("regexp_matches", (parts[0], whole), span=span)


def part_of(name: str, value: Expression, span: Span) -> Expression:
    """Reads EXTRACT(name FROM value) and DATE_PART('name', value)."""
    word = name.upper()
    if word in ("EPOCH", "DECADE", "CENTURY"):
        fix = "write DATE_DIFF('second', a, b)." if word == "EPOCH" else "write FLOOR(YEAR(x) / 10) * 10, or by 100."
        raise QueryError(f"{word} is not a part that can be taken from a date here.", span=span, fix=fix)
    if word not in PARTS:
        listed = ", ".join(sorted(set(PARTS) - {"DAYOFWEEK", "DAYOFYEAR"}))
        raise QueryError(f"A date has no part {word[:20]}.", span=span, fix=f"use one of {listed}.")
    return Call(PARTS[word], (value,), span=span)


def _date_part(parts: Parts, span: Span) -> Expression:
    if len(parts) != 2 or not isinstance(parts[0], Literal) or not isinstance(parts[0].value, str):
        raise _usage("DATE_PART", "DATE_PART('year', x)", span)
    return part_of(parts[0].value, parts[1], span)


def _date_diff(parts: Parts, span: Span) -> Expression:
    if len(parts) != 3:
        raise _usage("DATE_DIFF", "DATE_DIFF('day', a, b) for the days from a to b", span)
    return Call("date_diff", parts, span=span)


FORMS: dict[str, Form] = {
    "DATE_DIFF": _date_diff,
    "DATEDIFF": _date_diff,
    "IF": _choose,
    "IIF": _choose,
    "LEFT": _left,
    "SUBSTR": substring,
    "SUBSTRING": substring,
    "CONCAT": _concat,
    "STRFTIME": _strftime,
    "DATE_PART": _date_part,
    "REGEXP_FULL_MATCH": _full_match,
}


def distinct(x: Expression, y: Expression, span: Span) -> Expression:
    """Reads x IS NOT DISTINCT FROM y: both are NULL, or they are equal."""
    nulls = [each for each in (x, y) if isinstance(each, Literal) and each.value is None]
    if nulls:
        return Call("is_null", (y if nulls[0] is x else x,), span=span)
    equal = Call("coalesce", (Call("eq", (x, y), span=span), _FALSE), span=span)
    if isinstance(x, Literal) or isinstance(y, Literal):
        return equal
    both = Call("and", (Call("is_null", (x,), span=span), Call("is_null", (y,), span=span)), span=span)
    return Call("or", (both, equal), span=span)


def ilike(x: Expression, pattern: Literal, span: Span) -> Expression:
    """Reads x ILIKE 'pattern': both in small letters."""
    small = Literal(lower(str(pattern.value)), span=pattern.span)
    return Call("like", (Call("lower", (x,), span=x.span), small), span=span)


def tuple_of(parts: Parts, span: Span) -> Expression:
    """Reads (a, b) in COUNT(DISTINCT (a, b))."""
    return Call("row", parts, span=span)


def later(x: Expression, node: exp.Expr, amount: Expression | None, sign: int, span: Span, scope: Scope) -> Expression:
    """Reads x + INTERVAL n UNIT; `amount` is n if it is not a number in the text. `sign` is -1 for a difference."""
    unit = node.args.get("unit")
    word = unit.name.lower().rstrip("s") if isinstance(unit, exp.Var) else ""
    if word not in _UNITS:
        raise QueryError("An INTERVAL is a number of one unit.", text=scope.text, span=span, fix=_USAGE)
    name, width = _UNITS[word]
    if amount is not None:
        if name != "add_days":
            raise QueryError("Only days and weeks can be added by a column.", text=scope.text, span=span, fix=_USAGE)
        factor = sign * width
        number = amount if factor == 1 else Call("mul", (amount, Literal(factor)), span=amount.span)
        return Call(name, (x, number), span=span)
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if not re.fullmatch(r"[+-]?\d{1,9}", text):
        raise QueryError("The number of an INTERVAL is a whole number.", text=scope.text, span=span, fix=_USAGE)
    return Call(name, (x, Literal(sign * int(text) * width)), span=span)


def decimal(value: Expression, digits: int, span: Span) -> Expression:
    """Reads CAST(x AS DECIMAL(p, digits)): the nearest double, rounded to so many digits."""
    return Call("round", (Call("to_real", (value,), span=span), Literal(digits)), span=span)
