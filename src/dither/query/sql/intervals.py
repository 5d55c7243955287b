"""Reads INTERVAL: x + INTERVAL 3 MONTH, x - INTERVAL '1 year 2 months', x + INTERVAL (days) DAY.

Of several units the months are added first, then the days, then the seconds, as in DuckDB. A text must be read as a whole:
sqlglot takes '1 day 12:00:00' for one day, so `check_intervals` looks at the words of the question itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dither.errors import QueryError
from dither.query.nodes import Call, Expression, Literal, Span

_ORDER = ("add_months", "add_days", "add_seconds")
_WORDS = {
    "year years yr yrs y": ("add_months", 12),
    "quarter quarters": ("add_months", 3),
    "month months mon mons": ("add_months", 1),
    "week weeks w": ("add_days", 7),
    "day days d": ("add_days", 1),
    "hour hours hr hrs h": ("add_seconds", 3600),
    "minute minutes min mins m": ("add_seconds", 60),
    "second seconds sec secs s": ("add_seconds", 1),
}
_UNITS = {word: unit for words, unit in _WORDS.items() for word in words.split()}
_PART = re.compile(r"\s*([+-]?\d{1,9})\s*([A-Za-z]+)\s*")
_NUMBER = re.compile(r"[+-]?\d{1,9}")
_USAGE = "write INTERVAL 3 MONTH, with one of year, quarter, month, week, day, hour, minute and second."
_SEVERAL = "write whole numbers with units, such as INTERVAL '1 year 2 months' or INTERVAL '1 day 12 hours'."


def check_intervals(text: str, tokens: Sequence[Token]) -> None:
    """Refuses a text behind INTERVAL that is neither a number nor numbers with units."""
    for before, token in itertools.pairwise(tokens):
        written = before.token_type is TokenType.INTERVAL and token.token_type is TokenType.STRING
        if written and not _NUMBER.fullmatch(token.text.strip()) and _parts(token.text) is None:
            span = (token.start, token.end + 1)
            raise QueryError("This INTERVAL cannot be read.", text=text, span=span, fix=_SEVERAL)


def _parts(text: str) -> list[tuple[str, int]] | None:
    """Returns the functions and numbers of '1 year 2 months'; None if it is something else.

    >>> _parts("1 year 2 months"), _parts("1 day 12:00:00")
    ([('add_months', 12), ('add_months', 2)], None)
    """
    found, at = [], 0
    while at < len(text):
        part = _PART.match(text, at)
        unit = _UNITS.get(part[2].lower()) if part else None
        if part is None or unit is None:
            return None
        found.append((unit[0], int(part[1]) * unit[1]))
        at = part.end()
    return found or None


def later(x: Expression, node: exp.Expr, amount: Expression | None, sign: int, span: Span, text: str) -> Expression:
    """Reads x + INTERVAL n UNIT; `amount` is n if it is not a number in the text. `sign` is -1 for a difference."""
    unit = node.args.get("unit")
    word = unit.name.lower() if isinstance(unit, exp.Var) else ""
    written = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if amount is not None:
        return _by_column(x, word, amount, sign, span, text)
    parts = _parts(written if unit is None else f"{written} {word}")
    if parts is None:
        whole = word in _UNITS and not _NUMBER.fullmatch(written)
        what = "The number of an INTERVAL is a whole number." if whole else "An INTERVAL is a number of a unit."
        raise QueryError(what, text=text, span=span, fix=_USAGE)
    for name in _ORDER:
        if name in dict(parts):
            x = Call(name, (x, Literal(sign * sum(number for each, number in parts if each == name))), span=span)
    return x


def _by_column(x: Expression, word: str, amount: Expression, sign: int, span: Span, text: str) -> Expression:
    """Reads x + INTERVAL (n) DAY."""
    name, width = _UNITS.get(word, ("", 0))
    if name != "add_days":
        what = "Only days and weeks can be added by a column." if name else "An INTERVAL is a number of a unit."
        raise QueryError(what, text=text, span=span, fix=_USAGE)
    number = amount if sign * width == 1 else Call("mul", (amount, Literal(sign * width)), span=amount.span)
    return Call(name, (x, number), span=span)
