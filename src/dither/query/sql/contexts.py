"""Finds words that have a meaning in one place only: in INTERVAL 3 MONTH, SUBSTRING(x FROM 1 FOR 2), FETCH FIRST 3 ROWS ONLY.

Elsewhere they are refused, or are names. sqlglot keeps some of these words without their place in the text, so gate.py asks
here before it says that a word was dropped.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

UNITS = frozenset(
    f"{unit}{many}" for unit in ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "HOUR", "MINUTE", "SECOND") for many in ("", "S")
)
_CALLS = ("SUBSTRING", "POSITION", "REPLACE")  # the parser has a form of its own for them, or a statement of that name
_COUNTED = (TokenType.NUMBER, TokenType.STRING)
_ROWS = (TokenType.ROW, TokenType.ROWS)
_SIDES = (TokenType.FIRST, TokenType.NEXT)


def placed(tokens: Sequence[Token]) -> frozenset[int]:
    """Returns the places in the list of tokens of all such words."""
    return frozenset(_placed(tokens))


def _placed(tokens: Sequence[Token]) -> Iterator[int]:
    callers: list[str] = []
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            callers.append(tokens[index - 1].text.upper() if index else "")
            if callers[-1] in _CALLS:
                yield index - 1
        elif token.token_type is TokenType.R_PAREN and callers:
            callers.pop()
        elif token.token_type is TokenType.FOR and callers and callers[-1] == "SUBSTRING":
            yield index
        elif token.token_type is TokenType.INTERVAL:
            yield from _interval(tokens, index)
        elif token.token_type is TokenType.FETCH:
            yield from _fetch(tokens, index)
        elif token.token_type in _ROWS and _kinds(tokens, index - 2, 2) == [TokenType.OFFSET, TokenType.NUMBER]:
            yield index


def _kinds(tokens: Sequence[Token], start: int, count: int) -> list[TokenType]:
    return [token.token_type for token in tokens[max(start, 0) : start + count]]


def _interval(tokens: Sequence[Token], index: int) -> Iterator[int]:
    """INTERVAL 3 MONTH, INTERVAL -3 MONTH, INTERVAL '3' MONTH, INTERVAL '3 months' and INTERVAL (n) DAY."""
    at = index + 1
    if at < len(tokens) and tokens[at].token_type is TokenType.L_PAREN:
        yield index
        end = _closing(tokens, at)
        if end + 1 < len(tokens) and tokens[end + 1].text.upper() in UNITS:
            yield end + 1
        return
    at += at < len(tokens) and tokens[at].token_type is TokenType.DASH
    if at >= len(tokens) or tokens[at].token_type not in _COUNTED:
        return
    yield from (index, at)
    if at + 1 < len(tokens) and tokens[at + 1].text.upper() in UNITS:
        yield at + 1


def _closing(tokens: Sequence[Token], start: int) -> int:
    """Returns the place of the parenthesis that closes the one at `start`, or the last place."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].token_type is TokenType.L_PAREN) - (tokens[index].token_type is TokenType.R_PAREN)
        if not depth:
            return index
    return len(tokens) - 1


def _fetch(tokens: Sequence[Token], index: int) -> Iterator[int]:
    """FETCH FIRST 3 ROWS ONLY, FETCH NEXT ROW ONLY."""
    number = _kinds(tokens, index + 2, 1) == [TokenType.NUMBER]
    rows = index + 2 + number
    words = [*_kinds(tokens, index + 1, 1), *_kinds(tokens, rows, 1)]
    only = tokens[rows + 1].text.upper() if rows + 1 < len(tokens) else ""
    if len(words) == 2 and words[0] in _SIDES and words[1] in _ROWS and only == "ONLY":
        yield from (index, index + 1, rows, rows + 1)


# --- the present ------------------------------------------------------------------------------------------------


def now() -> datetime.datetime:
    """Returns the time, for the constant that a fix proposes. Tests replace it."""
    return datetime.datetime.now()


def constant_for(word: str) -> str:
    """Returns the fix for a word that means the present: the constant of this moment."""
    if word.endswith("TIME") and word != "CURRENT_DATETIME":
        return "compare with a constant."
    moment = now()
    if word in ("NOW", "GETDATE", "SYSDATE", "CURRENT_TIMESTAMP", "CURRENT_DATETIME", "LOCALTIMESTAMP"):
        return f"write the moment that you mean: TIMESTAMP '{moment:%Y-%m-%d %H:%M}:00'."
    return f"write the day that you mean: DATE '{moment:%Y-%m-%d}'."
