"""Reads calls whose arguments are rearranged: LEFT(x, 2), DATE_PART('year', d), x IS DISTINCT FROM y.

Each becomes functions of the registry, so that it has their meaning in every engine.
"""

from __future__ import annotations

from collections.abc import Callable

from dither.errors import QueryError
from dither.query.functions.letters import lower
from dither.query.functions.patterns import with_options
from dither.query.nodes import Call, Expression, Literal, Span
from dither.query.sql.words import PARTS

_END = 2**31 - 1  # more characters than any text has
_FALSE = Literal(False)
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


def _pattern(parts: Parts, name: str, span: Span) -> str:
    """Returns the pattern of REGEXP_MATCHES(x, 'pattern', 'options'), with its options as flags."""
    texts = [part.value if isinstance(part, Literal) else None for part in parts[1:]]
    pattern = texts[0] if len(texts) in (1, 2) else None
    options = texts[1] if len(texts) == 2 else ""
    if not isinstance(pattern, str) or not isinstance(options, str):
        raise _usage(name, f"{name}(x, 'pattern') or {name}(x, 'pattern', 'i'), with constants", span)
    found = with_options(pattern, options)
    if found is None:
        known = "'i' for letters of any case, 's' for a . that is a line feed too, 'l' for a text that is no pattern"
        fix = f"write {known}; '(?m)' in the pattern makes ^ and $ the ends of a line."
        raise QueryError(f"{name} has no such option.", span=parts[2].span or span, fix=fix)
    return found


def _partial_match(parts: Parts, span: Span) -> Expression:
    pattern = Literal(_pattern(parts, "REGEXP_MATCHES", span), span=parts[1].span)
    return Call("regexp_matches", (parts[0], pattern), span=span)


def _full_match(parts: Parts, span: Span) -> Expression:
    whole = Literal(f"^(?:{_pattern(parts, 'REGEXP_FULL_MATCH', span)})$", span=parts[1].span)
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
    "REGEXP_MATCHES": _partial_match,
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


def decimal(value: Expression, digits: int, span: Span) -> Expression:
    """Reads CAST(x AS DECIMAL(p, digits)): the nearest double, rounded to so many digits."""
    return Call("round", (Call("to_real", (value,), span=span), Literal(digits)), span=span)
