"""Reads aggregates and window functions over a noisy table: SUM(n), ARG_MAX(k, n), SUM(n) OVER (PARTITION BY k ORDER BY m).

frames.py reads the frames of windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.query.nodes import Across, Column, Expression, Literal, Order, fresh
from dither.query.outer import ANY, BY_WORD, KINDS, WHOLE
from dither.query.sql.frames import read_frame
from dither.query.sql.names import Scope, matching, name_of, only, place, refuse
from dither.text import did_you_mean

Read = Callable[[exp.Expr], Expression]
_MOST = 10**9


def is_fold(node: exp.Expr) -> bool:
    """Returns whether a node is an aggregate of a noisy table, with or without FILTER."""
    call = node.this if isinstance(node, exp.Filter) else node
    word = call.this.upper() if isinstance(call, exp.Anonymous) and isinstance(call.this, str) else ""
    return word in BY_WORD and KINDS[BY_WORD[word]].folds


def read_call(node: exp.Expr, scope: Scope, read: Read, *, over: bool) -> Across:
    """Reads an aggregate or a window function, without OVER and without a name."""
    node, skips = _without_nulls(node, scope)
    call, where = node, None
    if isinstance(call, exp.Filter):
        only(scope, call, "this expression", "FILTER")
        call, where = call.this, read(call.expression.this)
    if not isinstance(call, exp.Anonymous) or not isinstance(call.this, str):
        raise refuse(scope, node, "OVER follows a window function.", "write SUM(n) OVER (), RANK() OVER (ORDER BY n), ...")
    only(scope, call, "this expressions", "A window function")
    word = call.this.upper()
    name = BY_WORD.get(word)
    if name is None or (not over and not KINDS[name].folds):
        words = sorted(each for each, meaning in BY_WORD.items() if over or KINDS[meaning].folds)
        near = did_you_mean(word, words).rstrip() or f"use one of {', '.join(words)}."
        raise refuse(scope, call, f"{word[:40]} cannot be computed over a noisy result.", near)
    arguments = list(call.expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct) and name == "count":
        only(scope, arguments[0], "expressions", "DISTINCT")
        name, arguments = "count_distinct", list(arguments[0].expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star) and name == "count":
        only(scope, arguments[0], "", "*")
        arguments = []
    _check_count(name, word, arguments, call, scope)
    span = place(scope.text, call)
    values = tuple(read(each) for each in arguments)
    _check_whole(name, word, values, call, scope)
    if skips is not None and (KINDS[name].folds or KINDS[name].takes[:1] != (ANY,)):
        raise refuse(scope, call, f"{word} takes no IGNORE NULLS or RESPECT NULLS.", "leave it out.")
    return Across("", name, values, where, skips_nulls=bool(skips), span=span)


def _without_nulls(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, bool | None]:
    """Returns a call without IGNORE NULLS or RESPECT NULLS, and whether NULLs are passed over (None: neither is written)."""
    call = node.this if isinstance(node, exp.Filter) else node
    inside = call.expressions[-1:] if isinstance(call, exp.Anonymous) else []
    for each in (node, *inside):  # LAG(x) IGNORE NULLS OVER (...), LAG(x IGNORE NULLS) OVER (...)
        if isinstance(each, (exp.IgnoreNulls, exp.RespectNulls)):
            only(scope, each, "this", "NULLS")
            if each is node:
                return each.this, isinstance(each, exp.IgnoreNulls)
            plain = call.copy()
            plain.set("expressions", [*plain.expressions[:-1], plain.expressions[-1].this])
            if call is node:
                return plain, isinstance(each, exp.IgnoreNulls)
            return exp.Filter(this=plain, expression=node.args["expression"]), isinstance(each, exp.IgnoreNulls)
    return node, None


def _check_count(name: str, word: str, arguments: list[exp.Expr], call: exp.Expr, scope: Scope) -> None:
    kind = KINDS[name]
    if not kind.least <= len(arguments) <= len(kind.takes) or any(isinstance(each, exp.Distinct) for each in arguments):
        shown = ", ".join(("x", "y" if kind.folds else "1", "0")[: max(kind.least, min(1, len(kind.takes)))])
        raise refuse(scope, call, f"{word} is not written like this.", f"write {word}({shown}).")


def _check_whole(name: str, word: str, values: tuple[Expression, ...], call: exp.Expr, scope: Scope) -> None:
    """Refuses a distance or a number of parts that is no constant."""
    for value, takes in zip(values, KINDS[name].takes, strict=False):
        number = value.value if isinstance(value, Literal) else None
        least = 0 if name in ("lag", "lead") else 1
        if takes == WHOLE and (isinstance(number, bool) or not isinstance(number, int) or not least <= number < _MOST):
            raise refuse(scope, call, f"{word} needs a constant whole number here.", f"write a number of at least {least}.")


@dataclass
class Windows:
    """Collects the window functions of one SELECT."""

    select: exp.Select
    scope: Scope
    found: list[Across] = field(default_factory=list)
    used: set[int] = field(default_factory=set)  # the named windows that OVER names, by id

    def check(self) -> None:
        """Refuses QUALIFY without a window function, and a window of the WINDOW clause that no OVER names: it was not read."""
        qualify = self.select.args.get("qualify")
        if qualify is not None and not self.found:
            fix = "filter groups with HAVING, and the rows of a question around this one with WHERE."
            raise refuse(self.scope, qualify.this, "QUALIFY filters by a window function, and there is none.", fix)
        for each in self.select.args.get("windows") or ():
            if id(each) not in self.used:
                raise refuse(
                    self.scope, each.this, "No window function uses this window.", "leave it out, or write OVER and its name."
                )

    def add(self, node: exp.Window, read: Read) -> Column:
        """Reads a window function, unless it is there already, and returns its column."""
        across = read_call(node.this, self.scope, read, over=True)
        only(self.scope, node, "this partition_by order spec over alias", "OVER")
        spec = self._named(node) if node.args.get("alias") is not None else node
        across = replace(
            across,
            partition=tuple(read(each) for each in spec.args.get("partition_by") or ()),
            order=_order(spec, self.scope, read),
            frame=read_frame(spec, self.scope, read),
        )
        span = place(self.scope.text, node.this)
        for old in self.found:
            if old == replace(across, name=old.name):
                return Column(old.name, span=span, words=_words(old))
        name = fresh("window", {each.name for each in self.found})
        self.found.append(replace(across, name=name))
        return Column(name, span=span, words=_words(across))

    def _named(self, node: exp.Window) -> exp.Expr:
        """Returns the window of WINDOW w AS (...) that `OVER w` names."""
        if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            raise refuse(self.scope, node, "A named window is used as it is.", "write OVER w.")
        name, quoted = name_of(self.scope, node.args["alias"])
        named = [each for each in self.select.args.get("windows") or () if isinstance(each.this, exp.Identifier)]
        found = matching(name, quoted, named, lambda each: str(each.this.this))
        if len(found) != 1:
            raise refuse(self.scope, node, f"There is no window {name}.", "write OVER (...), or name it: WINDOW w AS (...).")
        window: exp.Expr = found[0]
        self.used.add(id(window))
        only(self.scope, window, "this partition_by order spec", "WINDOW")
        return window


def _words(across: Across) -> str:
    words = KINDS[across.function].words
    return f"{words[0] if words else 'COUNT'}(...) OVER (...)"


def _order(spec: exp.Expr, scope: Scope, read: Read) -> tuple[Order, ...]:
    clause = spec.args.get("order")
    if clause is None:
        return ()
    only(scope, clause, "expressions", "ORDER BY")
    for item in clause.expressions:
        only(scope, item, "this desc nulls_first", "ORDER BY")
    items = ((item, item.args.get("desc"), item.args.get("nulls_first")) for item in clause.expressions)
    return tuple(Order(read(item.this), bool(desc), bool(first)) for item, desc, first in items)
