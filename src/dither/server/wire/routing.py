"""Decides what a statement is: a question, a quote, a cursor, a setting, or something for the twin.

A statement that names a declared table is dither's. Everything else that only reads goes to the twin, which has no rows. What
neither could mean is refused. A look at names and types (LIMIT 0, WHERE 0 = 1) is no question: it is answered without rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from dither.server.wire.lexing import Statement, Word, find
from dither.text import folded

READING = ("SELECT", "WITH", "VALUES", "TABLE", "(")
_TWIN = """
    SELECT WITH VALUES TABLE ( SHOW SET RESET BEGIN START COMMIT END ROLLBACK ABORT SAVEPOINT RELEASE DECLARE FETCH MOVE CLOSE
    PREPARE EXECUTE DEALLOCATE DISCARD EXPLAIN COPY
"""
TWIN = frozenset(_TWIN.split())
# What a connection may set in its twin. Limits of time and memory are not among them.
_SETTABLE = """
    client_encoding datestyle intervalstyle timezone time names extra_float_digits search_path schema
    bytea_output client_min_messages jit lc_messages lc_monetary lc_numeric lc_time
    transaction session constraints array_nulls xmloption xmlbinary quote_all_identifiers
    check_function_bodies row_security synchronize_seqscans default_transaction_isolation transaction_isolation
    default_transaction_deferrable geqo enable_seqscan transform_null_equals ksqo
"""
SETTABLE = frozenset(_SETTABLE.split())
UTF8 = ("utf8", "utf-8", "unicode", "default", "auto")


@dataclass(frozen=True)
class Route:
    """What a statement is. `question`: the question in it, if any; `name`: of a cursor or a setting, `value`: its rest.

    kind: empty, question, probe, explain, declare, fetch, close, copy, set, show, reset, discard, deallocate, ignored, twin,
    refused.
    """

    kind: str
    statement: Statement
    question: Statement | None = None
    name: str = ""
    value: str = ""
    local: bool = False
    hold: bool = False
    style: str = "text"
    header: bool = False
    most: int | None = None  # rows of a FETCH; None: all

    def compact(self) -> Route:
        """Returns the route without the words that nobody needs any more."""
        question = None if self.question is None else self.question.compact()
        return replace(self, statement=self.statement.compact(), question=question)

    @property
    def rolls_back(self) -> bool:
        """Whether it ends a transaction as if it had not been."""
        return self.statement.heads[:1] in (("ROLLBACK",), ("ABORT",)) and "TO" not in self.statement.heads


def route(statement: Statement, tables: Collection[str], cursors: Collection[str] = ()) -> Route:
    """Returns what a statement is. `tables`: the declared ones, folded; `cursors`: those that hold answers of dither."""
    if not statement.words:
        return Route("empty", statement)
    head = statement.words[0].upper
    if head in READING:
        return _reading(statement, tables)
    found = _OWN[head](statement, tables, cursors) if head in _OWN else None
    if found is not None:
        return found
    if head not in TWIN:
        return Route("refused", statement, value="This server is read-only: it answers questions and describes its tables.")
    if head in ("PREPARE", "COPY") and names_table(statement, tables):
        return Route("refused", statement, value=f"{head} of a declared table is not done here.")
    return Route("twin", statement)


def names_table(statement: Statement, tables: Collection[str]) -> bool:
    """Returns whether a statement reads a declared table. Where tables of the catalog are read, only a name that stands where
    a table's name stands counts: columns of the catalog may have any name."""
    places = [place for place, each in enumerate(statement.words) if each.is_name and folded(each.text) in tables]
    if not places:
        return False
    if not any(each.is_name and _of_catalog(each.text) for each in statement.words):
        return True
    return any(_stands_as_table(statement.words, place) for place in places)


def _of_catalog(name: str) -> bool:
    return name.lower().startswith(("pg_", "information_schema"))


def _stands_as_table(some: Sequence[Word], place: int) -> bool:
    while place >= 2 and some[place - 1].text == ".":
        if some[place - 2].is_name and folded(some[place - 2].text) != "public":
            return False  # a column, or a table of another schema
        place -= 2
    return place > 0 and some[place - 1].upper in ("FROM", "JOIN", "ONLY")


def _reading(statement: Statement, tables: Collection[str]) -> Route:
    if not names_table(statement, tables):
        return Route("twin", statement)
    return Route("probe" if is_probe(statement) else "question", statement, question=statement)


def is_probe(statement: Statement) -> bool:
    """Returns whether a SELECT can have no rows: LIMIT 0 or WHERE 0 = 1 at its end, outside of all brackets."""
    some = statement.words
    limit, where = find(some, "LIMIT"), find(some, "WHERE")
    if limit is not None and [each.upper for each in some[limit + 1 : limit + 2]] == ["0"]:
        return all(each.depth or each.upper != "UNION" for each in some)
    if where is None or any(not each.depth and each.upper in ("UNION", "OR") for each in some):
        return False
    ends = [place for place in range(where + 1, len(some)) if not some[place].depth and some[place].upper in _AFTER_WHERE]
    condition = "".join(each.upper for each in some[where + 1 : min(ends, default=len(some))])
    return re.fullmatch(r"\(*(0=1|1=0|0<>0|1<>1|FALSE|1=2)\)*", condition) is not None


_AFTER_WHERE = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "WINDOW")


def _explain(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    at, ran = 1, False
    some = statement.words
    if at < len(some) and some[at].text == "(" and some[at].kind == "sign":
        close = next(
            (place for place in range(at + 1, len(some)) if some[place].text == ")" and not some[place].depth), len(some)
        )
        ran = any(each.upper == "ANALYZE" for each in some[at:close])
        at = close + 1
    while at < len(some) and some[at].upper in ("ANALYZE", "VERBOSE"):
        ran, at = ran or some[at].upper == "ANALYZE", at + 1
    inner = statement.after(at)
    if not names_table(inner, tables):
        return None
    if ran:
        return Route("refused", statement, value="EXPLAIN ANALYZE would run the question. EXPLAIN alone is its quote, free.")
    return Route("explain", statement, question=inner)


def _declare(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    some = statement.words
    place = find(some, "FOR")
    if place is None or len(some) < 2:
        return None
    inner = statement.after(place + 1)
    if not names_table(inner, tables):
        return None
    before = [each.upper for each in some[2:place]]
    hold = "HOLD" in before and "WITHOUT" not in before
    style = "binary" if "BINARY" in before else "text"
    return Route("declare", statement, question=inner, name=_name(some[1]), hold=hold, style=style)


def _fetch(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    """FETCH [NEXT | FORWARD] [number | ALL] [FROM | IN] cursor. Backwards is not done: an answer is read once."""
    some = statement.words
    if len(some) < 2 or _name(some[-1]) not in cursors:
        return None
    most: int | None = 1
    for each in some[1:-1]:
        if each.kind == "number" and each.text.isdecimal() and len(each.text) < 12:
            most = int(each.text)
        elif each.upper == "ALL":
            most = None
        elif each.upper not in ("NEXT", "FORWARD", "FROM", "IN"):
            return Route("refused", statement, value="A cursor on a question reads forwards: FETCH FORWARD n FROM c.")
    return Route("fetch", statement, name=_name(some[-1]), most=most, value=some[0].upper)


def _close(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    name = _name(statement.words[1]) if len(statement.words) > 1 else ""
    return Route("close", statement, name=name) if name in cursors else None


def _copy(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    """COPY (question) TO STDOUT [WITH] [(FORMAT binary, HEADER)]."""
    some = statement.words
    if len(some) < 2 or some[1].text != "(" or some[1].kind != "sign":
        return Route("refused", statement, value="Rows are never shown or written: copy a question, COPY (SELECT …) TO STDOUT.")
    close = next((place for place in range(2, len(some)) if some[place].text == ")" and not some[place].depth), len(some))
    after = [each.upper or each.text.strip("'").upper() for each in some[close + 1 :]]
    if after[:2] != ["TO", "STDOUT"]:
        return Route("refused", statement, value="COPY goes to STDOUT only.")
    inner = statement.part(2, close)
    if not names_table(inner, tables):
        return None
    style = next((word.lower() for word in after if word in ("BINARY", "CSV")), "text")
    return Route("copy", statement, question=inner, style=style, header="HEADER" in after)


def _set(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    some = list(statement.words[1:])
    local = bool(some) and some[0].upper == "LOCAL"
    if some and some[0].upper in ("LOCAL", "SESSION") and (len(some) > 1 and some[1].upper != "CHARACTERISTICS"):
        some = some[1:]
    name, rest = _setting(some)
    value = statement.text[rest[0].start :].strip() if rest else ""
    if rest and (rest[0].upper == "TO" or rest[0].text == "="):
        value = statement.text[rest[0].end :].strip()
    if name.startswith("dither."):
        return Route("set", statement, name=name, value=value, local=local)
    if name in ("client_encoding", "names"):
        wanted = value.strip("'\" ").lower()
        return None if wanted in UTF8 else Route("refused", statement, value="This server speaks UTF-8 only.")
    return None if name in SETTABLE else Route("ignored", statement, name=name)


def _show(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    name, _ = _setting(statement.words[1:])
    return Route("show", statement, name=name) if name.startswith("dither.") or name == "dither" else None


def _reset(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    name, _ = _setting(statement.words[1:])
    if name == "all" or name.startswith("dither."):
        return Route("reset", statement, name=name)
    return None if name in SETTABLE else Route("ignored", statement, name=name)


def _discard(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    whole = [each.upper for each in statement.words[1:]] == ["ALL"]
    return Route("discard", statement) if whole else Route("ignored", statement, name="DISCARD")


def _deallocate(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    """DEALLOCATE [PREPARE] name, or ALL. ODBC closes by it what it prepared by a message."""
    some = [each for each in statement.words[1:] if each.upper != "PREPARE"]
    if len(some) != 1:
        return None
    every = some[0].kind == "name" and some[0].upper == "ALL"
    return Route("deallocate", statement, name="" if every else _name(some[0]))


def _quiet(statement: Statement, tables: Collection[str], cursors: Collection[str]) -> Route | None:
    return Route("ignored", statement, name=statement.words[0].upper)


def _setting(some: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """Returns the name of a setting, such as dither.epsilon, and the words after it."""
    if not some or not some[0].is_name:
        return "", some
    name, at = some[0].text, 1
    while at + 1 < len(some) and some[at].text == "." and some[at + 1].is_name:
        name, at = f"{name}.{some[at + 1].text}", at + 2
    return name.lower(), some[at:]


def _name(word: Word) -> str:
    """Returns the name of a cursor: what is not in quotes is in small letters."""
    return word.text if word.kind == "quoted" else word.text.lower()


_OWN = {
    "EXPLAIN": _explain,
    "DECLARE": _declare,
    "FETCH": _fetch,
    "MOVE": _fetch,
    "CLOSE": _close,
    "COPY": _copy,
    "SET": _set,
    "SHOW": _show,
    "RESET": _reset,
    "DISCARD": _discard,
    "DEALLOCATE": _deallocate,
    "LISTEN": _quiet,
    "UNLISTEN": _quiet,
}
