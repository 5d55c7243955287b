"""Parameters of SQL text: `?`, `$1`, `$name` and `:name`, and the values that are put in their places.

A value becomes tokens of the question, never text: it is put in after the text was cut into words, so no value can add a
word, a quote or a clause. What is read is the question with the values written out: the same question, at the same price.

    WHERE age >= ? AND ward IN (:wards)       ->      WHERE age >= 18 AND ward IN ('a', 'b')
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from dither.errors import ArgumentError, Fix, Python, QueryError

Params = Mapping[str, Any] | Sequence[Any]

_NAME = re.compile(r"\$([A-Za-z_]\w*|[1-9]\d{0,3})")
_KINDS = "give a number, a text, a date, a timestamp without a zone, True, False or None; for IN (…) a list of them."
_LARGEST = 2**62


@dataclass(frozen=True)
class Place:
    """A parameter in the text: its name (a number for `?` and `$1`), and the tokens that it is made of."""

    name: str
    first: int
    tokens: int
    start: int
    end: int  # of the last character, as in tokens


def read_params(params: Any) -> dict[str, Any]:
    """Returns the values by name. Those of a list are named 1, 2, …

    >>> read_params([18, "north"]), read_params({"age": 18})
    ({'1': 18, '2': 'north'}, {'age': 18})
    """
    if isinstance(params, Mapping):
        return {str(name).removeprefix(":").removeprefix("$"): value for name, value in params.items()}
    if isinstance(params, Sequence) and not isinstance(params, (str, bytes)):
        return {str(number): value for number, value in enumerate(params, start=1)}
    raise ArgumentError(
        f"params is a list or a dict of values, and this is a {type(params).__name__}.",
        fix=Fix("write {list} for ?, or {dict} for :age.", list=Python("params=[18]"), dict=Python('params={"age": 18}')),
    )


def places(text: str, tokens: Sequence[Token]) -> list[Place]:
    """Returns the parameters of a question, in order."""
    found: list[Place] = []
    for index, token in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.token_type is TokenType.PLACEHOLDER:
            found.append(Place(str(len(found) + 1), index, 1, token.start, token.end))
        elif token.token_type is TokenType.QDCOLON:  # ?::INT
            found.append(Place(str(len(found) + 1), index, 1, token.start, token.start))
        elif token.token_type is TokenType.COLON and after is not None and _names(token, after):
            found.append(Place(after.text, index, 2, token.start, after.end))
        elif token.token_type is TokenType.VAR and (match := _NAME.fullmatch(token.text)):
            found.append(Place(match[1], index, 1, token.start, token.end))
    return found


def _names(colon: Token, after: Token) -> bool:
    return after.start == colon.end + 1 and after.text.isidentifier() and after.token_type is not TokenType.STRING


def fill(text: str, tokens: list[Token], params: Mapping[str, Any] | None) -> list[Token]:
    """Returns the tokens of the question with the values in the places of its parameters."""
    found = places(text, tokens)
    _check(text, tokens, found, params)
    filled: list[Token] = []
    at = 0
    for place in found:
        filled += tokens[at : place.first]
        filled += _tokens(text, tokens, place, (params or {})[place.name])
        at = place.first + place.tokens
        token = tokens[place.first]
        if token.token_type is TokenType.QDCOLON:
            filled.append(_token(TokenType.DCOLON, "::", token, token.start + 1, token.end))
    return filled + tokens[at:]


def written_out(text: str, tokens: Sequence[Token], params: Mapping[str, Any]) -> str:
    """Returns the text with the values written out, for the ledger. It is not what is read: `fill` is."""
    parts, at = [], 0
    for place in places(text, tokens):
        parts += [text[at : place.start], value_of(text, tokens, place, params[place.name])]
        at = place.end + 1
    return "".join((*parts, text[at:]))


def value_of(text: str, tokens: Sequence[Token], place: Place, value: Any) -> str:
    """Returns a value as SQL writes it at its place."""
    return "".join(_word(token) for token in _tokens(text, tokens, place, value))


def _word(token: Token) -> str:
    """Returns a token as SQL writes it, with the blank that follows it."""
    if token.token_type is TokenType.STRING:
        return "'" + token.text.replace("'", "''") + "'"
    return f"{token.text} " if token.token_type in (TokenType.DATE, TokenType.TIMESTAMP, TokenType.COMMA) else token.text


def _check(text: str, tokens: Sequence[Token], found: Sequence[Place], params: Mapping[str, Any] | None) -> None:
    """Refuses a parameter without a value, a value without a parameter, and ? beside numbered ones."""
    signs = {tokens[place.first].token_type in (TokenType.PLACEHOLDER, TokenType.QDCOLON) for place in found}
    numbered = [place for place in found if tokens[place.first].text.startswith("$") and place.name.isdigit()]
    if numbered and True in signs:
        span = (numbered[0].start, numbered[0].end + 1)
        raise QueryError("? and $1 cannot stand in one question.", text=text, span=span, fix="write $1, $2, … everywhere.")
    for place in found:
        if params is None or place.name not in params:
            raise QueryError(
                f"{_shown(tokens, place)} has no value.",
                text=text,
                span=(place.start, place.end + 1),
                fix=_give(place.name, bool(params)),
            )
    spare = [name for name in params or {} if name not in {place.name for place in found}]
    if spare:
        raise QueryError(
            f"The question has no parameter {spare[0]}.",
            text=text,
            fix="leave its value out, or write ? for the values of a list and :name for those of a dict.",
        )


def _shown(tokens: Sequence[Token], place: Place) -> str:
    return "".join(token.text for token in tokens[place.first : place.first + place.tokens]).removesuffix("::")


def _give(name: str, some: bool) -> Fix:
    if name.isdigit():
        code = f"params=[…] with at least {name} values" if some or name != "1" else "params=[18]"
    else:
        code = f'params={{"{name}": 18}}' if not some else f'"{name}" among the params'
    return Fix("give {it}, or write the value itself into the question.", it=Python(code, shell=f"--param {name}=18"))


def _tokens(text: str, tokens: Sequence[Token], place: Place, value: Any) -> list[Token]:
    """Returns the tokens of a value, at the place of its parameter."""
    at = tokens[place.first]
    before = tokens[place.first - 1].token_type if place.first else None
    if isinstance(value, (list, tuple, set, frozenset)):
        return _listed(text, tokens, place, list(value))
    return [
        _token(kind, word, at, place.start, place.end)
        for kind, word in _words(text, place, value)
        if kind is not before or kind not in (TokenType.DATE, TokenType.TIMESTAMP)  # DATE ? with a date
    ]


def _listed(text: str, tokens: Sequence[Token], place: Place, values: list[Any]) -> list[Token]:
    around = [token.token_type for token in tokens[max(0, place.first - 2) : place.first]]
    span = (place.start, place.end + 1)
    if around != [TokenType.IN, TokenType.L_PAREN]:
        raise QueryError("A list of values stands in IN (…) only.", text=text, span=span, fix="write x IN (:values).")
    if not values:
        raise QueryError("IN needs at least one value.", text=text, span=span, fix="give a list with at least one value.")
    at = tokens[place.first]
    found: list[Token] = []
    for value in values:
        words = [] if not found else [(TokenType.COMMA, ",")]
        words += _words(text, place, value)
        found += [_token(kind, word, at, place.start, place.end) for kind, word in words]
    return found


def _words(text: str, place: Place, value: Any) -> list[tuple[TokenType, str]]:
    """Returns the kinds and words of one value as SQL writes it."""
    if value is None:
        return [(TokenType.NULL, "NULL")]
    if isinstance(value, bool):
        return [(TokenType.TRUE, "TRUE") if value else (TokenType.FALSE, "FALSE")]
    if isinstance(value, str):
        return [(TokenType.STRING, str(value))]
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        moment = datetime.datetime.isoformat(value, " ", "microseconds" if value.microsecond else "seconds")
        return [(TokenType.TIMESTAMP, "TIMESTAMP"), (TokenType.STRING, moment)]
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return [(TokenType.DATE, "DATE"), (TokenType.STRING, value.isoformat())]
    number = _number(value)
    if number is None:
        kind = type(value).__name__
        what = f"The value of parameter {place.name} cannot be of the kind {kind}, or is not finite or too large."
        raise QueryError(what, text=text, span=(place.start, place.end + 1), fix=_KINDS)
    sign = [(TokenType.DASH, "-")] if number.startswith("-") else []
    return [*sign, (TokenType.NUMBER, number.removeprefix("-"))]


def _number(value: Any) -> str | None:
    """Returns a number as SQL writes it: exactly, a float as the decimal that it prints as; None if it is none.

    >>> [_number(each) for each in (18, -2, 0.1, Decimal("1.50"), Fraction(1, 4), 1e-7, float("nan"), b"1")]
    ['18', '-2', '0.1', '1.50', '0.25', '1e-07', None, None]
    """
    if isinstance(value, Integral):
        return str(int(value)) if abs(int(value)) <= _LARGEST else None
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else None
    if isinstance(value, Fraction):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        return str(exact) if Fraction(exact) == value else None
    return str(value) if isinstance(value, Decimal) and value.is_finite() and len(str(value)) <= 60 else None


def _token(kind: TokenType, word: str, at: Token, start: int, end: int) -> Token:
    return Token(kind, word, at.line, at.col, start, end)
