"""Reads the frame of a window over a noisy table: the rows around the current one that an aggregate sees.

ROWS BETWEEN 6 PRECEDING AND CURRENT ROW              rows
GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING            rows that ORDER BY does not tell apart count as one
RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW   values: the end of the frame is the ordered value minus 7 days
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dither.query.nodes import Expression, Frame
from dither.query.sql.names import Scope, only, refuse

Read = Callable[[exp.Expr], Expression]
MOST = 10**9
_FIX = "write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW."


def read_frame(spec: exp.Expr, scope: Scope, read: Read) -> Frame | None:
    """Reads the frame of a window; None if it has none."""
    clause = spec.args.get("spec")
    if clause is None:
        return None
    only(scope, clause, "kind start start_side end end_side", "A frame")
    kind = str(clause.args.get("kind")).lower()
    order = spec.args.get("order")
    if kind == "groups" and order is None:
        raise refuse(scope, spec, "GROUPS counts groups of equal rows, and without ORDER BY there are none.", _FIX)
    written = [(clause.args.get("start"), clause.args.get("start_side"))]
    written.append((clause.args.get("end") or "CURRENT ROW", clause.args.get("end_side")))
    start, end = (_bound(each, side, kind, spec, scope) for each, side in written)
    if start == "after" or end == "before" or (isinstance(start, int) and isinstance(end, int) and start > end):
        raise refuse(scope, spec, "This frame has no rows.", _FIX)
    first, last = (each if isinstance(each, int) else None for each in (start, end))
    if kind != "range":
        return Frame(first, last, kind)
    ends = [None if isinstance(each, str) else _value(each, side, spec, scope, read) for each, side in written]
    return Frame(first, last, kind, *ends)


def _bound(written: object, side: object, kind: str, spec: exp.Expr, scope: Scope) -> int | str:
    """Returns the distance from the current row; "before" and "after" for UNBOUNDED PRECEDING and FOLLOWING. A distance between
    values is -1 or 1 here: `_value` reads it."""
    after = str(side).upper() == "FOLLOWING"
    if isinstance(written, str):
        word = written.upper()
        return 0 if word == "CURRENT ROW" else "after" if after else "before"
    if kind == "range":
        return 1 if after else -1
    number = str(written.this) if isinstance(written, exp.Literal) and not written.args.get("is_string") else ""
    if not number.isdigit() or int(number) > MOST:
        raise refuse(scope, spec, "A frame counts whole rows.", _FIX)
    return int(number) if after else -int(number)


def _value(written: object, side: object, spec: exp.Expr, scope: Scope, read: Read) -> Expression:
    """Returns the value at a distance from that of the current row: less before it, unless the order is descending."""
    order = spec.args.get("order")
    items = order.expressions if order is not None else []
    if len(items) != 1:
        what = "A distance between values needs one value to order by."
        raise refuse(scope, spec, what, "write ORDER BY with one column, or a frame of ROWS.")
    if not isinstance(written, exp.Interval) and not (isinstance(written, exp.Literal) and not written.args.get("is_string")):
        what = "A frame of RANGE begins and ends at a constant distance."
        raise refuse(scope, spec, what, "write RANGE BETWEEN 2 PRECEDING AND CURRENT ROW, or INTERVAL 7 DAY PRECEDING.")
    later = (str(side).upper() == "FOLLOWING") != bool(items[0].args.get("desc"))
    node = exp.Add if later else exp.Sub
    return read(node(this=exp.Paren(this=items[0].this.copy()), expression=written.copy()))
