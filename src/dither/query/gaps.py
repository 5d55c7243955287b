"""Questions that were cut off or lost a word: sqlglot reads them as if nothing were missing, so they are refused here.

    SELECT COUNT(*) FROM people GROUP BY         a clause with nothing in it
    SELECT COUNT(*), FROM people                 a comma with nothing behind it
    ... WHERE age BETWEEN 18 64                  a word that a form of several words needs
    ... WHERE a = b IS NULL                      brackets: SQL means (a = b) IS NULL, and sqlglot reads a = (b IS NULL)

A question that somebody meant otherwise must not be charged for. `check_gaps` looks at neighbouring tokens; `check_counts`
at the finished tree, in which every AND, THEN and so on that was needed must have been written.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dither.errors import QueryError


def _types(words: str) -> frozenset[TokenType]:
    return frozenset(TokenType[word] for word in words.split())


_CLAUSES = "SELECT FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT OFFSET WITH UNION JOIN ON USING ALIAS DISTINCT"
_OPERATORS = "AND OR NOT EQ NEQ LT LTE GT GTE DPIPE PLUS DASH SLASH MOD DCOLON DOT BETWEEN LIKE IN IS CASE WHEN THEN ELSE"
_OPENING = _types(f"{_CLAUSES} {_OPERATORS} COMMA")  # something must follow
_CLOSING = _types("SEMICOLON COMMA R_PAREN FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT OFFSET UNION JOIN INNER ON USING THEN")
_NEEDED = _types("SELECT FROM CASE WHEN THEN BETWEEN IN")  # it is of no use to leave these out alone
_SIDES = _types("LEFT RIGHT")  # joins, unless they are called as functions
_TURNED = _types("LT GT")  # after = they are a comparison written the wrong way round
_NAMING = _types("ALIAS DOT")
_EMPTY_KEYS = [TokenType.GROUP_BY, TokenType.L_PAREN, TokenType.R_PAREN]
_COMPARING = _types("EQ NEQ LT LTE GT GTE")
_PARTING = _types("AND OR COMMA CASE WHEN THEN ELSE END ALIAS SELECT FROM WHERE ON HAVING GROUP_BY ORDER_BY LIMIT UNION")
_NAMES = _types("LIMIT OFFSET")  # may stand for a name where only a name can stand


def check_gaps(text: str, found: Sequence[Token]) -> None:
    """Refuse words and commas with nothing behind them, and parentheses that do not match."""
    for index, token in enumerate(found):
        after = found[index + 1] if index + 1 < len(found) else None
        if token.token_type is TokenType.L_PAREN and after is not None and after.token_type is TokenType.COMMA:
            raise _nothing_before(text, after)
        if [each.token_type for each in found[index : index + 3]] == _EMPTY_KEYS:
            fix = "to ask about everyone at once, leave GROUP BY out."
            raise _refusal(text, token, "This GROUP BY has no key.", fix)
        if token.token_type is TokenType.EQ and after is not None and after.token_type in _TURNED:
            what = f"={after.text} compares nothing."
            raise QueryError(what, text=text, span=(token.start, after.end + 1), fix=f"write {after.text}=.")
        if token.token_type in _OPENING and _closes(found, index):
            raise _gap(text, token, after)
    _check_parentheses(text, found)
    _check_is(text, found)


def _check_is(text: str, found: Sequence[Token]) -> None:
    """Refuse IS behind a comparison, if nothing parts them."""
    compared = [False]  # in each parenthesis that is open
    for token in found:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            compared.append(False)
        elif kind is TokenType.R_PAREN:
            compared.pop()
        elif kind is TokenType.IS and compared[-1]:
            fix = "put brackets around what it belongs to: (a = b) IS NULL, or a = (b IS NULL)."
            raise _refusal(text, token, "IS behind a comparison could belong to either side.", fix)
        elif kind in _COMPARING or kind in _PARTING:
            compared[-1] = kind in _COMPARING


def _closes(found: Sequence[Token], index: int) -> bool:
    """Whether what follows the token at `index` ends a clause or a list, so that the token has nothing to itself."""
    before = found[index - 1].token_type if index else None
    token = found[index].token_type
    if before in _NAMING and token not in _NAMING:  # it stands for a name there; the parser says which words may
        return False
    if index + 1 == len(found):
        return True
    after = found[index + 1].token_type
    if token is TokenType.DISTINCT and after in (TokenType.FROM, TokenType.ON):  # x IS DISTINCT FROM y; DISTINCT ON (x)
        return before is TokenType.SELECT and after is TokenType.FROM
    if token in _NAMING and after in _NAMES:
        return False
    if after in _SIDES:
        return index + 2 < len(found) and found[index + 2].token_type in (TokenType.JOIN, TokenType.OUTER)
    return after in _CLOSING


def _gap(text: str, token: Token, after: Token | None) -> QueryError:
    if token.token_type is TokenType.COMMA:
        return _refusal(text, token, "Nothing follows this comma.", "leave the comma out, or write what belongs behind it.")
    if after is not None and after.token_type is TokenType.COMMA:
        return _nothing_before(text, after)
    if token.token_type in _NEEDED:
        return _refusal(text, token, f"Nothing follows {token.text.upper()}.", "write what belongs behind it.")
    word = " ".join(token.text.upper().split())[:20]
    names = [each.text for each in (token, after) if each is not None and each.token_type in _NAMES]
    name = f'; if {names[0]} is a name, write "{names[0]}" in double quotes' if names else ""
    return _refusal(text, token, f"Nothing follows {word}.", f"write what belongs behind it, or leave {word} out{name}.")


def _nothing_before(text: str, comma: Token) -> QueryError:
    return _refusal(text, comma, "Nothing stands before this comma.", "leave the comma out, or write what belongs before it.")


def _check_parentheses(text: str, found: Sequence[Token]) -> None:
    open_: list[Token] = []
    for token in found:
        if token.token_type is TokenType.L_PAREN:
            open_.append(token)
        elif token.token_type is TokenType.R_PAREN:
            if not open_:
                raise _refusal(text, token, "This parenthesis closes none.", "leave it out, or open it before.")
            open_.pop()
    if open_:
        raise _refusal(text, open_[-1], "This parenthesis is not closed.", "close it.")


def check_counts(text: str, found: Sequence[Token], tree: exp.Expr) -> None:
    """Refuse BETWEEN without AND and WHEN without THEN: as many must have been written as the tree has use for."""
    needed = {
        TokenType.AND: list(tree.find_all(exp.And, exp.Between)),
        TokenType.THEN: [branch for case in tree.find_all(exp.Case) for branch in case.args.get("ifs") or ()],
    }
    forms = {TokenType.AND: ("BETWEEN", "x BETWEEN 1 AND 9"), TokenType.THEN: ("WHEN", "CASE WHEN x > 1 THEN 1 ELSE 0 END")}
    for word, nodes in needed.items():
        if sum(token.token_type is word for token in found) < len(nodes):
            form, example = forms[word]
            first = next(token for token in found if token.token_type is TokenType[form])
            raise _refusal(text, first, f"{form} is not followed by {word.name} everywhere.", f"write {example}.")


def _refusal(text: str, token: Token, what: str, fix: str) -> QueryError:
    return QueryError(what, text=text, span=(token.start, token.end + 1), fix=fix)
