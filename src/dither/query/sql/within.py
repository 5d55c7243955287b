"""Reads window functions in the SELECT of a subquery, and QUALIFY: LAG(x) OVER (PARTITION BY person ORDER BY day).

    ROW_NUMBER, RANK, DENSE_RANK, NTILE(n), LAG, LEAD, FIRST_VALUE, LAST_VALUE; COUNT, SUM, AVG, MIN, MAX, with FILTER

The frame is ROWS BETWEEN ... AND ... with numbers of rows. RANGE has only the ends that need no arithmetic. Without a frame,
aggregates see the rows up to this one and its peers, or without ORDER BY the whole partition, as in SQL. Whose rows a window
may look at is decided in resolve/windows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from dither.query.nodes import WINDOWS, Call, Column, Expression, Literal, Rows, Sort, Window
from dither.query.sql.names import Scope, matching, name_of, only, place, refuse

Read = Callable[[exp.Expr], Expression]  # reads an expression over the rows that the window looks at
_WORDS = {"MEAN": "avg"}
_ENDS = {"UNBOUNDED": None, "CURRENT ROW": 0}


def windows_in(nodes: Sequence[exp.Expr]) -> Iterator[exp.Window]:
    """Returns the window functions in these nodes, without those of their subqueries."""
    for node in nodes:
        if isinstance(node, exp.Window):
            yield node
        elif not isinstance(node, (exp.Select, exp.Subquery)):
            yield from windows_in(list(node.iter_expressions()))


def read_windows(nodes: Sequence[exp.Expr], scope: Scope, read: Read) -> tuple[tuple[Window, ...], dict[int, Expression]]:
    """Reads the windows in these nodes, equal ones once. Returns them, and the column of each node by its id."""
    found: dict[Window, Column] = {}
    values: dict[int, Expression] = {}
    for node in windows_in(nodes):
        window = _window(node, scope.at("in a window"), read)
        if window not in found:
            words = f"{window.function.upper()}(...) OVER (...)"
            found[window] = Column(f"#window {len(found) + 1}.{window.function}", words=words)
        values[id(node)] = replace(found[window], span=window.span)
    return tuple(replace(window, name=column.name) for window, column in found.items()), values


def _window(node: exp.Window, scope: Scope, read: Read) -> Window:
    span = place(scope.text, node)
    function, arguments = _call(node.this, scope, read)
    node = _named(node, scope)
    only(scope, node, "this partition_by order spec over", "A window")
    for part in windows_in(list(node.iter_expressions())):
        raise refuse(scope, part, "A window cannot stand inside a window.", "compute the inner one in a subquery.")
    order = _order(node, scope, read)
    partition = tuple(read(part) for part in node.args.get("partition_by") or [])
    rows = _rows(node, bool(order), scope)
    return Window("", function, arguments, partition, order, rows, span=span)


def _named(node: exp.Window, scope: Scope) -> exp.Window:
    """Returns the window that OVER w means: the one that the SELECT defines by WINDOW w AS (...)."""
    name = node.args.get("alias")
    if name is None:
        return node
    select = node.find_ancestor(exp.Select)
    defined = select.args.get("windows") if select is not None else None
    spelled, quoted = name_of(scope, name)
    found = matching(spelled, quoted, defined or [], lambda each: str(each.this.this))
    own = [part for part in ("partition_by", "order", "spec") if node.args.get(part)]
    if len(found) != 1 or own:
        fix = "write it where it is used: OVER (PARTITION BY ... ORDER BY ...)."
        raise refuse(scope, node, f"{spelled} is not a window that can be used here.", fix)
    window: exp.Window = found[0]
    return window


def _call(node: exp.Expr, scope: Scope, read: Read) -> tuple[str, tuple[Expression, ...]]:
    """Returns the function and its arguments; FILTER becomes CASE, as for aggregates."""
    condition: Expression | None = None
    for part in node.find_all(exp.IgnoreNulls, exp.RespectNulls):
        what = "Windows over a person's rows do not pass over NULLs."
        raise refuse(scope, part, what, "leave the NULLs out in a subquery below: WHERE x IS NOT NULL.")
    if isinstance(node, exp.Filter):
        only(scope, node, "this expression", "FILTER")
        condition, node = read(node.expression.this), node.this
    word = str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
    name = _WORDS.get(word, word.lower())
    if name not in WINDOWS or not isinstance(node, exp.Anonymous):
        known = ", ".join(each.upper() for each in WINDOWS)
        shown = word or " ".join(type(node).__name__.upper().split("_"))
        what = f"{shown} is not a window function here." if word else "This window function is not supported."
        raise refuse(scope, node, what, f"use one of {known}.")
    only(scope, node, "this expressions", "A window function")
    inner = [part for part in node.expressions if not (name == "count" and isinstance(part, exp.Star))]
    if any(isinstance(part, (exp.Distinct, exp.Star)) for part in inner):
        raise refuse(scope, node, "DISTINCT and * cannot stand here.", "count in a subquery that groups by the unit.")
    least, most = WINDOWS[name]
    least = least if name == "count" or most != 1 else 1
    if not least <= len(inner) <= most:
        raise refuse(scope, node, f"{word} is not written like this.", f"write {word}({'x' if most else ''}) OVER (...).")
    arguments = tuple(read(part) for part in inner)
    if condition is None:
        return name, arguments
    if name not in ("count", "sum", "avg", "min", "max"):
        raise refuse(scope, node, f"{word} takes no FILTER.", "filter in WHERE.")
    value = arguments[0] if arguments else Literal(1)
    return name, (Call("case", (condition, value, Literal(None)), span=condition.span),)


def _order(node: exp.Window, scope: Scope, read: Read) -> tuple[Sort, ...]:
    clause = node.args.get("order")
    keys = []
    for item in clause.expressions if clause is not None else []:
        only(scope, item, "this desc nulls_first", "ORDER BY")
        keys.append(Sort(read(item.this), bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
    return tuple(keys)


def _rows(node: exp.Window, ordered: bool, scope: Scope) -> Rows | None:
    """Returns the frame; None for the whole partition."""
    spec = node.args.get("spec")
    if spec is None:
        return Rows(None, 0, peers=True) if ordered else None
    only(scope, spec, "kind start start_side end end_side", "A frame")
    peers = str(spec.args.get("kind")).upper() != "ROWS"
    ends = [_end(spec.args.get(name), spec.args.get(f"{name}_side"), node, scope) for name in ("start", "end")]
    _check_ends(spec, ends, node, scope)
    if peers and (str(spec.args["kind"]).upper() != "RANGE" or any(ends)):
        fix = "write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW."
        raise refuse(scope, node, "Only ROWS can count from the row itself.", fix)
    if ends == [None, None]:
        return None
    return Rows(ends[0], ends[1], peers) if ordered or not peers else None


def _check_ends(spec: exp.Expr, ends: list[int | None], node: exp.Window, scope: Scope) -> None:
    sides = [str(spec.args.get(f"{name}_side") or "").upper() for name in ("start", "end")]
    turned = (ends[0] is None and sides[0] == "FOLLOWING") or (ends[1] is None and sides[1] == "PRECEDING")
    if turned or (ends[0] is not None and ends[1] is not None and ends[0] > ends[1]):
        fix = "write the earlier row first: ROWS BETWEEN 6 PRECEDING AND CURRENT ROW."
        raise refuse(scope, node, "This frame ends before it begins.", fix)


def _end(written: object, side: object, node: exp.Window, scope: Scope) -> int | None:
    if written is None:  # ROWS 6 PRECEDING
        return 0
    if isinstance(written, str) and written.upper() in _ENDS:
        return _ENDS[written.upper()]
    if isinstance(written, exp.Literal) and not written.is_string and str(written.this).isdigit():
        number = int(str(written.this)[:12])
        return -number if str(side).upper() == "PRECEDING" else number
    raise refuse(scope, node, "A frame begins and ends at a constant number of rows.", "write ROWS BETWEEN 6 PRECEDING AND ...")
