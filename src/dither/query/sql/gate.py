"""Parses SQL text into a sqlglot tree; refuses unknown tokens and incomplete questions.

sqlglot accepts more than dither answers, renames functions and drops some clauses. So its table of functions is emptied
(every call keeps its written name), every *token* must be on a list, and the other readers of this package allow node
classes and their arguments one by one. A clause that sqlglot would drop begins with a keyword, which is refused here.

sqlglot also accepts questions that lack a word. They are refused, because a question that means something else than its
author thinks must not be charged:

    SELECT COUNT(*) FROM people GROUP BY         an empty clause
    SELECT COUNT(*), FROM people                 a comma with nothing after it
    ... WHERE age BETWEEN 18 64                  a missing word of a form
    ... WHERE a = b IS NULL                      SQL means (a = b) IS NULL, and sqlglot reads a = (b IS NULL)

`check_gaps` looks at neighbouring tokens. `check_counts` looks at the tree: every AND and THEN in it must have been written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dither.errors import QueryError
from dither.query.sql.contexts import constant_for, placed
from dither.query.sql.intervals import check_intervals
from dither.query.sql.parameters import Place, fill, places, value_of
from dither.query.sql.parameters import written_out as with_values
from dither.query.sql.reasons import FOLLOWED, MEANINGLESS, MISWRITTEN, REASONS


def _types(words: str) -> frozenset[TokenType]:
    return frozenset(TokenType[word] for word in words.split())


_CLAUSES = "SELECT FROM WHERE GROUP_BY HAVING QUALIFY ORDER_BY LIMIT OFFSET WITH UNION JOIN ON USING ALIAS DISTINCT"
_ABOVE = "OVER PARTITION_BY WINDOW ROWS RANGE PIVOT FOR"  # of windows and the noisy result
_OPERATORS = "AND OR NOT EQ NEQ LT LTE GT GTE DPIPE PLUS DASH SLASH DIV MOD CARET DSTAR DCOLON DOT BETWEEN LIKE ILIKE IN IS"
_OPENING = _types(f"{_CLAUSES} {_ABOVE} {_OPERATORS} CASE WHEN THEN ELSE COMMA")  # something must follow
_JOINS = "JOIN INNER FULL CROSS ON USING"
_CLOSING = _types(f"SEMICOLON COMMA R_PAREN FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT OFFSET UNION {_JOINS} THEN")
_NEEDED = _types("SELECT FROM CASE WHEN THEN BETWEEN IN")  # leaving out the word alone is no fix
_SIDES = _types("LEFT RIGHT")  # joins, unless called as functions
_AFTER_EQ = _types("LT GT")  # =< and => are comparisons written the wrong way round
_NAME_SIGNS = _types("ALIAS DOT")
_EMPTY_KEYS = [TokenType.GROUP_BY, TokenType.L_PAREN, TokenType.R_PAREN]
_COMPARING = _types("EQ NEQ LT LTE GT GTE")
_PARTING = _types("AND OR COMMA CASE WHEN THEN ELSE END ALIAS SELECT FROM WHERE ON HAVING GROUP_BY ORDER_BY LIMIT UNION")
_NAMELIKE_CLAUSES = _types("LIMIT OFFSET")  # names where only a name can stand


def check_gaps(text: str, tokens: Sequence[Token]) -> None:
    """Refuses words and commas with nothing after them, and unmatched parentheses."""
    for index, token in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.token_type is TokenType.L_PAREN and after is not None and after.token_type is TokenType.COMMA:
            raise _nothing_before(text, after)
        if [each.token_type for each in tokens[index : index + 3]] == _EMPTY_KEYS:
            fix = "to ask about everyone at once, leave GROUP BY out."
            raise _refusal(text, token, "This GROUP BY has no key.", fix)
        if token.token_type is TokenType.EQ and after is not None and after.token_type in _AFTER_EQ:
            what = f"={after.text} compares nothing."
            raise QueryError(what, text=text, span=(token.start, after.end + 1), fix=f"write {after.text}=.")
        if token.token_type in _OPENING and _closes(tokens, index):
            raise _gap(text, token, after)
    _check_parentheses(text, tokens)
    _check_is(text, tokens)


def _check_is(text: str, tokens: Sequence[Token]) -> None:
    """Refuses IS after a comparison with no AND, OR or other separator between them."""
    compared = [False]  # one entry for each open parenthesis
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            compared.append(False)
        elif kind is TokenType.R_PAREN:
            compared.pop()
        elif kind is TokenType.IS and compared[-1]:
            fix = "add brackets: (a = b) IS NULL, or a = (b IS NULL)."
            raise _refusal(text, token, "IS after a comparison is ambiguous.", fix)
        elif kind in _COMPARING or kind in _PARTING:
            compared[-1] = kind in _COMPARING


def _closes(tokens: Sequence[Token], index: int) -> bool:
    """Returns whether the token at `index` has nothing after it: a clause or a list ends there."""
    before = tokens[index - 1].token_type if index else None
    token = tokens[index].token_type
    if before in _NAME_SIGNS and token not in _NAME_SIGNS:  # it is a name here; the parser decides whether it may be
        return False
    if index + 1 == len(tokens):
        return True
    after = tokens[index + 1].token_type
    if token is TokenType.DISTINCT and after in (TokenType.FROM, TokenType.ON):  # x IS DISTINCT FROM y; DISTINCT ON (x)
        return before is TokenType.SELECT and after is TokenType.FROM
    if token in _NAME_SIGNS and after in _NAMELIKE_CLAUSES:
        return False
    if after in _SIDES:
        return index + 2 < len(tokens) and tokens[index + 2].token_type in (TokenType.JOIN, TokenType.OUTER)
    return after in _CLOSING


def _gap(text: str, token: Token, after: Token | None) -> QueryError:
    if token.token_type is TokenType.COMMA:
        return _refusal(text, token, "Nothing follows this comma.", "leave the comma out, or write what follows it.")
    if after is not None and after.token_type is TokenType.COMMA:
        return _nothing_before(text, after)
    if token.token_type in _NEEDED:
        return _refusal(text, token, f"Nothing follows {token.text.upper()}.", "write what follows it.")
    word = " ".join(token.text.upper().split())[:20]
    names = [each.text for each in (token, after) if each is not None and each.token_type in _NAMELIKE_CLAUSES]
    name = f'; if {names[0]} is a name, write "{names[0]}" in double quotes' if names else ""
    return _refusal(text, token, f"Nothing follows {word}.", f"write what follows it, or leave {word} out{name}.")


def _nothing_before(text: str, comma: Token) -> QueryError:
    return _refusal(text, comma, "Nothing stands before this comma.", "leave the comma out, or write what comes before it.")


def _check_parentheses(text: str, tokens: Sequence[Token]) -> None:
    open_: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            open_.append(token)
        elif token.token_type is TokenType.R_PAREN:
            if not open_:
                raise _refusal(
                    text, token, "This closing parenthesis has no opening one.", "remove it, or add the opening one."
                )
            open_.pop()
    if open_:
        raise _refusal(text, open_[-1], "This parenthesis is not closed.", "close it.")


def check_counts(text: str, tokens: Sequence[Token], tree: exp.Expr) -> None:
    """Refuses BETWEEN without AND and WHEN without THEN: the tree has more of them than the text."""
    needed = {
        TokenType.AND: [*tree.find_all(exp.And, exp.Between), *_frames(tree)],
        TokenType.THEN: [branch for case in tree.find_all(exp.Case) for branch in case.args.get("ifs") or ()],
    }
    forms = {TokenType.AND: ("BETWEEN", "x BETWEEN 1 AND 9"), TokenType.THEN: ("WHEN", "CASE WHEN x > 1 THEN 1 ELSE 0 END")}
    for word, nodes in needed.items():
        if sum(token.token_type is word for token in tokens) < len(nodes):
            form, example = forms[word]
            first = next(token for token in tokens if token.token_type is TokenType[form])
            raise _refusal(text, first, f"{form} is not followed by {word.name} everywhere.", f"write {example}.")


def _frames(tree: exp.Expr) -> list[exp.Expr]:
    """Returns the frames of windows that are written with BETWEEN."""
    return [spec for spec in tree.find_all(exp.WindowSpec) if spec.args.get("end") is not None]


def _refusal(text: str, token: Token, what: str, fix: str) -> QueryError:
    return QueryError(what, text=text, span=(token.start, token.end + 1), fix=fix)


LONGEST = 50_000  # characters
DEEPEST = 120  # levels of nesting, so that no walk over the tree runs out of stack
_OWN_PARSERS = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "POSITION")


class Narrow(Dialect):
    """Plain SQL without known functions: COUNT(x), f(x) and RANDOM() are all parsed as calls of the written name."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        KEYWORDS: ClassVar[dict[str, Any]] = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV, "**": TokenType.DSTAR}

    class Parser(parser.Parser):
        EXPONENT: ClassVar[dict[Any, Any]] = {TokenType.CARET: exp.Pow, TokenType.DSTAR: exp.Pow}
        BITWISE: ClassVar[dict[Any, Any]] = {
            kind: node for kind, node in parser.Parser.BITWISE.items() if kind is not TokenType.CARET
        }
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {name: parser.Parser.FUNCTION_PARSERS[name] for name in _OWN_PARSERS}


_WORDS = """
    L_PAREN R_PAREN COMMA DOT DASH PLUS DCOLON SEMICOLON STAR SLASH DIV MOD CARET DSTAR LT LTE GT GTE NOT EQ NEQ AND OR DPIPE
    STRING NUMBER IDENTIFIER VAR TRUE FALSE NULL
    SELECT FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT OFFSET ASC DESC WITH ALIAS DISTINCT ALL UNION
    JOIN INNER LEFT RIGHT FULL CROSS OUTER ON USING EXISTS IN IS LIKE ILIKE BETWEEN CASE WHEN THEN ELSE END FILTER
    OVER PARTITION_BY ROWS RANGE ROW QUALIFY WINDOW PIVOT FOR
    L_BRACKET R_BRACKET ARRAY
    ROLLUP CUBE GROUPING_SETS
"""
_NAMELIKE_WORDS = """
    BOOLEAN INT BIGINT SMALLINT TINYINT FLOAT DOUBLE DECIMAL VARCHAR TEXT DATE TIMESTAMP YEAR
    NAME TYPE KEY SOURCE ROLE TAG TIME INDEX LANGUAGE MONEY UUID POINT LIST MAP OBJECT
"""
_MOMENTS = "CURRENT_DATE CURRENT_DATETIME CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP"
_NAMELIKE = frozenset(TokenType[word] for word in _NAMELIKE_WORDS.split())  # also names, without quotes
_ALLOWED = _NAMELIKE | frozenset(TokenType[word] for word in _WORDS.split())
_VOLATILE = frozenset(TokenType[word] for word in _MOMENTS.split())
_PARAMETERS = frozenset({TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON, TokenType.DOLLAR})
_SETS = frozenset({TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS})  # a list in parentheses follows
_NAMING = frozenset({TokenType.FROM, TokenType.JOIN})  # a name follows


def read(text: str, params: Mapping[str, Any] | None = None) -> tuple[exp.Expr, list[Token]]:
    """The one SELECT (or UNION) the text holds, with the values of its parameters, and its tokens."""
    found = fill(text, _tokens(text), params)
    if not found:
        raise QueryError("The question is empty.", fix="write a SELECT statement.")
    opening = next((token for token in found if token.token_type is not TokenType.L_PAREN), found[0])
    if opening.token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.PIVOT):
        word = opening.text.split()[0].upper()[:20] if opening.text.split() else opening.text
        raise QueryError(
            f"Only a SELECT is answered, and this begins with {word}.",
            text=text,
            span=_span(opening),
            fix="begin with SELECT, as in SELECT COUNT(*) AS n FROM people.",
        )
    _check_tokens(text, found)
    return _parsed(text, found, exp.Expr), found


def written_out(text: str, params: Mapping[str, Any]) -> str:
    """Returns the text with the values of its parameters written out, for the ledger and for people."""
    return with_values(text, _tokens(text), params)


def shown_values(text: str, params: Mapping[str, Any]) -> str:
    """Returns the values of a text's parameters as SQL writes them, for the ledger and for people.

    >>> shown_values("age >= ? AND city = ?", {"1": 18, "2": "Arl"}), shown_values("age >= :low", {"low": 18})
    ("[18, 'Arl']", '{low: 18}')
    """
    tokens = _tokens(text)
    values = {place.name: value_of(text, tokens, place, params[place.name]) for place in places(text, tokens)}
    if all(name.isdigit() for name in values):
        return f"[{', '.join(values[name] for name in sorted(values, key=int))}]"
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"


def parameters(text: str) -> list[Place]:
    """Returns the parameters of a text; none if it cannot be read, which `read` refuses."""
    try:
        return places(text, _tokens(text)) if any(sign in text for sign in "?$:") else []
    except QueryError:
        return []


def statements(text: str) -> list[str]:
    """Returns the statements of a text, which semicolons separate. Comments around a statement are left out.

    >>> statements("-- one; two\\nSELECT 1; /* ; */ SELECT ';' -- end\\n;")
    ['SELECT 1', "SELECT ';'"]
    """
    return [text[start:end] for start, end in statement_spans(text)]


def statement_spans(text: str) -> list[tuple[int, int]]:
    """Returns the places of the statements of a text: the first character of each, and the one after its last."""
    found: list[tuple[int, int] | None] = [None]
    for token in _tokens(text):
        if token.token_type is TokenType.SEMICOLON:
            found.append(None)
        else:
            start, end = _span(token)
            found[-1] = (start if found[-1] is None else found[-1][0], end)
    return [span for span in found if span is not None]


def read_expression(text: str, params: Mapping[str, Any] | None = None) -> exp.Expr:
    """Parses one expression, for the fluent reader, with the values of its parameters."""
    tokens = _tokens(text)
    if not tokens:
        raise QueryError("The expression is empty.", fix="write an expression such as 'age >= 18'.")
    tokens = tokens if params is None else fill(text, tokens, params)
    _check_tokens(text, tokens)
    if tokens[-1].token_type is TokenType.SEMICOLON:
        raise QueryError("An expression has no semicolon.", text=text, span=_span(tokens[-1]), fix="leave it out.")
    return _parsed(text, tokens, exp.Condition)


def _tokens(text: str) -> list[Token]:
    if len(text) > LONGEST:
        raise QueryError(f"The question is longer than {LONGEST} letters.", fix="ask in smaller parts.")
    try:
        return list(Narrow().tokenize(text))
    except SqlglotError:
        raise QueryError(
            "The question cannot be read: a quote or a comment is not closed.", fix="close every quote and comment."
        ) from None


def _check_tokens(text: str, tokens: list[Token]) -> None:
    depth, here = 0, placed(tokens)
    for index, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > DEEPEST // 2:
            raise QueryError("The question is nested too deeply.", text=text, span=_span(token), fix="ask more simply.")
        if token.token_type is TokenType.SEMICOLON and index < len(tokens) - 1:
            raise QueryError(
                "Only one statement is answered at a time.", text=text, span=_span(token), fix="ask one at a time."
            )
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.token_type is TokenType.NUMBER and after is not None and after.start == token.end + 1 and _is_word(after):
            raise QueryError("This is not a number.", text=text, span=(token.start, after.end + 1), fix="write 16 or 1.5e3.")
        alone = token.token_type in _SETS and (after is None or after.token_type is not TokenType.L_PAREN)
        if ((token.token_type not in _ALLOWED and index not in here) or alone) and not _is_nulls_first(tokens, index):
            before = tokens[index - 1].token_type if index else None
            if before is TokenType.ALIAS or (before in _NAMING and token.token_type not in REASONS):
                raise _reserved(text, token)
            _refuse(text, token, after)
    check_gaps(text, tokens)
    if any(token.token_type is TokenType.INTERVAL for token in tokens):
        check_intervals(text, tokens)


def _is_nulls_first(tokens: Sequence[Token], index: int) -> bool:
    """Returns whether a token is the FIRST of NULLS FIRST."""
    return tokens[index].token_type is TokenType.FIRST and index > 0 and tokens[index - 1].text.upper() == "NULLS"


def _reserved(text: str, token: Token) -> QueryError:
    return QueryError(
        f"{token.text.upper()[:40]} is a word of SQL, and here it is used as a name.",
        text=text,
        span=_span(token),
        fix=f'write "{token.text[:40]}" in double quotes, or choose another name.',
    )


def _is_word(token: Token) -> bool:
    return token.token_type is not TokenType.STRING and token.text[:1].isidentifier()


def _refuse(text: str, token: Token, after: Token | None) -> None:
    usual = FOLLOWED.get(token.token_type)
    is_name = usual is not None and (after is None or after.token_type is not usual)
    if token.token_type is TokenType.COLON and "[" in text[: token.start]:
        reason = ("A part of a text is not written like this.", "write SUBSTRING(x, 1, 2), LEFT(x, 2) or RIGHT(x, 2).")
    elif token.token_type in _PARAMETERS:
        reason = (
            f"{token.text} is not a parameter here.",
            "write ?, $1 or :name in a SELECT or in where(), and give its value in params.",
        )
    elif token.token_type in _VOLATILE:
        reason = (
            f"{token.text.upper()} changes from one moment to the next.",
            constant_for(token.text.upper()),
        )
    else:
        shown = token.text.upper()[:20]
        quoted = token.text.isidentifier()
        reason = (None if is_name else REASONS.get(token.token_type)) or (
            f"{shown} is not part of the SQL that dither answers.",
            f'leave it out; if it is a name, write "{token.text}" in double quotes.' if quoted else "leave it out.",
        )
    raise QueryError(reason[0], text=text, span=_span(token), fix=reason[1])


def _parsed(text: str, tokens: list[Token], into: type[exp.Expr]) -> exp.Expr:
    reader = Narrow().parser()
    try:
        if into is exp.Expr:
            parsed = reader.parse(tokens, text)
            trees = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
        else:
            trees = [tree for tree in reader.parse_into(into, tokens, text) if tree is not None]
    except ParseError as error:
        raise _unreadable(text, tokens, error) from None
    except (SqlglotError, RecursionError, ValueError, AttributeError, IndexError, TypeError, KeyError):
        # sqlglot raises other errors on some texts; they depend on the question alone.
        raise QueryError("The question cannot be read as SQL.", fix="check its spelling.") from None
    if len(trees) != 1:
        raise QueryError("Exactly one statement is answered at a time.", fix="ask one SELECT.")
    _check_depth(text, trees[0])
    _check_nothing_dropped(text, tokens, trees[0])
    check_counts(text, tokens, trees[0])
    return trees[0]


def _unreadable(text: str, tokens: list[Token], error: ParseError) -> QueryError:
    place = error.errors[0] if error.errors else {}
    where = [token for token in tokens if (token.line, token.col) == (place.get("line"), place.get("col"))]
    before = tokens[tokens.index(where[0]) - 1] if where and tokens.index(where[0]) else None
    for first, second in itertools.pairwise(tokens):
        words = (first.text.upper(), second.text.upper())
        if reason := MISWRITTEN.get(words) or MISWRITTEN.get(("", words[1])):
            return QueryError(reason[0], text=text, span=_span(second), fix=reason[1])
    if where and where[0].token_type is TokenType.FROM:
        fix = "write SELECT ... FROM ... WHERE ... GROUP BY ... ORDER BY ..."
        return QueryError("FROM cannot stand here.", text=text, span=_span(where[0]), fix=fix)
    if before is not None and before.token_type is TokenType.ALIAS and where[0].text.isidentifier():
        return _reserved(text, where[0])
    if where and tokens[0].token_type is TokenType.PIVOT and where[0].token_type in (TokenType.ORDER_BY, TokenType.LIMIT):
        start = where[0].start
        fix = f"put it into parentheses: SELECT * FROM ({text[:start].strip()}) {text[start:].strip()}"
        return QueryError("A PIVOT statement ends with GROUP BY.", text=text, span=_span(where[0]), fix=fix)
    return QueryError(
        "The question cannot be read as SQL from here on." if where else "The question cannot be read as SQL.",
        text=text,
        span=_span(where[0]) if where else None,
        fix="check commas, parentheses and the order of clauses.",
    )


def with_hint(error: QueryError, text: str, names: Iterable[str]) -> QueryError:
    """Adds a hint to a refusal if a word of SQL near its span is also the name of a column."""
    if error.span is None or "double quotes" in error.fix:
        return error
    tokens = _tokens(text)
    at = next((index for index, token in enumerate(tokens) if token.start >= error.span[0]), len(tokens))
    near = [token for token in tokens[max(1, at - 1) : at + 2] if token.token_type not in _NAMES | _NAMELIKE]
    columns = {name.lower(): name for name in names if name.isidentifier()}
    name = next((columns[token.text.lower()] for token in near if token.text.lower() in columns), None)
    if name is None:
        return error
    fix = f'if {name} is meant as the column, write "{name}" in double quotes; else {error.fix}'
    return QueryError(error.what, text=error.text, span=error.span, fix=fix)


_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER})
_FRAMES = frozenset({"UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT"})
_WINDOWS = frozenset({"IGNORE", "RESPECT", "GROUPS"})  # words of windows, which are in the tree without a place
_UNMARKED = frozenset({"CAST", "TRY_CAST", "EXTRACT", "WITHIN", "GROUP", "NULLS", "LAST"}) | _FRAMES | _WINDOWS


def _check_nothing_dropped(text: str, tokens: list[Token], tree: exp.Expr) -> None:
    """Refuses names, constants and DISTINCT that are in the text but not in the tree: sqlglot dropped them."""
    marked = {node.meta["start"] for node in tree.walk() if "start" in node.meta}
    here = placed(tokens)
    for index, token in enumerate(tokens):
        if index in here:
            continue
        if index and tokens[index - 1].token_type is TokenType.STAR and token.text.upper() in ("EXCLUDE", "EXCEPT", "REPLACE"):
            fix = "name the columns that you need; in the answer, aggregates such as COUNT(*)."
            what = f"* {token.text.upper()} is not supported: the answer has no rows, and a subquery needs only some columns."
            raise QueryError(what, text=text, span=_span(token), fix=fix)
        part = index > 1 and tokens[index - 2].text.upper() == "EXTRACT"
        part = part or (token.token_type is TokenType.NUMBER and index > 0 and tokens[index - 1].token_type is TokenType.DOT)
        if token.token_type in _NAMES and token.start not in marked and token.text.upper() not in _UNMARKED and not part:
            fix = MEANINGLESS.get(token.text.upper(), "leave it out.")
            raise QueryError(f"{token.text[:40]} has no meaning here.", text=text, span=_span(token), fix=fix)
    _check_window_words(text, [token for token in tokens if token.start not in marked], tree)
    spans = [token for token in tokens if token.token_type is TokenType.INTERVAL]
    if len(spans) != len(list(tree.find_all(exp.Interval))):
        raise QueryError("This INTERVAL cannot be read.", text=text, span=_span(spans[-1]), fix="write INTERVAL 3 MONTH.")
    in_text = [token for token in tokens if token.token_type is TokenType.DISTINCT]
    in_tree = list(tree.find_all(exp.Distinct, exp.NullSafeEQ, exp.NullSafeNEQ))
    in_tree += [node for node in tree.find_all(exp.SetOperation) if node.args.get("distinct")]
    if len(in_text) > len(in_tree):
        raise QueryError("DISTINCT has no meaning here.", text=text, span=_span(in_text[-1]), fix="leave it out.")
    sets = [token for token in tokens if token.token_type in _SETS]
    if len(sets) != len(list(tree.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))):
        word = sets[-1].text.upper()
        raise QueryError(
            f"{word} has no meaning here.", text=text, span=_span(sets[-1]), fix=f"write it in GROUP BY: {word} (a, b)."
        )


def _check_window_words(text: str, tokens: Sequence[Token], tree: exp.Expr) -> None:
    """Refuses IGNORE, RESPECT and GROUPS where sqlglot dropped them. `tokens`: those without a place in the tree."""
    groups = [spec for spec in tree.find_all(exp.WindowSpec) if str(spec.args.get("kind")).upper() == "GROUPS"]
    nulls = [node for node in tree.find_all(exp.IgnoreNulls, exp.RespectNulls) if node.find_ancestor(exp.Window) is not None]
    ignored = sum(isinstance(node, exp.IgnoreNulls) for node in nulls)
    for word, count in {"IGNORE": ignored, "RESPECT": len(nulls) - ignored, "GROUPS": len(groups)}.items():
        written = [token for token in tokens if token.token_type is TokenType.VAR and token.text.upper() == word]
        if len(written) != count:
            span = _span(written[-1]) if written else None
            raise QueryError(f"{word} has no meaning here.", text=text, span=span, fix="leave it out.")


def _check_depth(text: str, tree: exp.Expr) -> None:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise QueryError("The question is nested too deeply.", text=text, fix="ask more simply; use IN for long lists.")
        level = [child for node in level for child in node.iter_expressions()]


def _span(token: Token) -> tuple[int, int]:
    return token.start, token.end + 1


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """Returns the span of a node in the text: from the first to the last known place in its subtree."""
    starts: list[int] = []
    ends: list[int] = []
    for part in node.walk():
        if "start" in part.meta and "end" in part.meta:
            starts.append(part.meta["start"])
            ends.append(part.meta["end"] + 1)
    return (min(starts), max(ends)) if starts else None
