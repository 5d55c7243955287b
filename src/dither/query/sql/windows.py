"""Reads aggregates and window functions over a noisy table: SUM(n), ARG_MAX(k, n), SUM(n) OVER (PARTITION BY k ORDER BY m)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.query.nodes import Across, Column, Expression, Frame, Literal, Order, fresh
from dither.query.outer import BY_WORD, KINDS, WHOLE
from dither.query.sql.names import Scope, matching, name_of, only, place, refuse
from dither.text import did_you_mean

Read = Callable[[exp.Expr], Expression]
_FRAME = "write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW."
_MOST = 10**9


def is_fold(node: exp.Expr) -> bool:
    """Returns whether a node is an aggregate of a noisy table, with or without FILTER."""
    call = node.this if isinstance(node, exp.Filter) else node
    word = call.this.upper() if isinstance(call, exp.Anonymous) and isinstance(call.this, str) else ""
    return word in BY_WORD and KINDS[BY_WORD[word]].folds


def read_call(node: exp.Expr, scope: Scope, read: Read, *, over: bool) -> Across:
    """Reads an aggregate or a window function, without OVER and without a name."""
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
    return Across("", name, values, where, span=span)


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
            frame=_frame(spec, self.scope),
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
        only(scope, item, "this desc", "ORDER BY")  # refuses NULLS FIRST: NULLs come last
    return tuple(Order(read(item.this), bool(item.args.get("desc"))) for item in clause.expressions)


def _frame(spec: exp.Expr, scope: Scope) -> Frame | None:
    clause = spec.args.get("spec")
    if clause is None:
        return None
    only(scope, clause, "kind start start_side end end_side", "A frame")
    if str(clause.args.get("kind")).upper() != "ROWS":
        raise refuse(scope, spec, "Only frames of ROWS are supported.", _FRAME)
    start = _bound(clause.args.get("start"), clause.args.get("start_side"), spec, scope)
    end = _bound(clause.args.get("end") or "CURRENT ROW", clause.args.get("end_side"), spec, scope)
    if start == "after" or end == "before" or (isinstance(start, int) and isinstance(end, int) and start > end):
        raise refuse(scope, spec, "This frame has no rows.", _FRAME)
    first, last = (each if isinstance(each, int) else None for each in (start, end))
    return Frame(first, last)


def _bound(written: object, side: object, spec: exp.Expr, scope: Scope) -> int | str:
    """Returns the distance from the current row; "before" and "after" for UNBOUNDED PRECEDING and FOLLOWING."""
    after = str(side).upper() == "FOLLOWING"
    if isinstance(written, str):
        word = written.upper()
        return 0 if word == "CURRENT ROW" else "after" if after else "before"
    number = str(written.this) if isinstance(written, exp.Literal) and not written.args.get("is_string") else ""
    if not number.isdigit() or int(number) > _MOST:
        raise refuse(scope, spec, "A frame counts whole rows.", _FRAME)
    return int(number) if after else -int(number)
