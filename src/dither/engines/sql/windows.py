"""Prints window functions within one unit.

Each SELECT passes on the columns of its source, with -0.0 as 0.0 and NaN as NULL, so that rows that sort alike are alike. NULLs
are sorted by a key of their own, because engines disagree about their place. Sums are of whole numbers, as in relations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dither.engines.sql.dialect import Sql, build, cannot_compute, fix_zero, nan_to_null, unify
from dither.engines.sql.frame import Frame, Printed, exact_total, select, summed
from dither.query.nodes import Rows, Sort, Window, WithinUnit

_SEEING = frozenset({"first_value", "last_value", "count", "sum", "avg", "min", "max"})


def within_unit(node: WithinUnit, frame: Frame, source: Printed) -> Printed:
    """Prints the rows of the source with the values of the windows."""
    own = [_key(frame, column) for column in source.columns]
    values = [_window(frame, each) for each in node.windows]
    return select(frame, [*source.names, *(each.name for each in node.windows)], [*own, *values])


def _key(frame: Frame, x: Sql) -> Sql:
    return frame.atom(fix_zero(frame, nan_to_null(frame, x)))


def _window(frame: Frame, window: Window) -> Sql:
    if window.function in frame.dialect.missing:
        raise cannot_compute(frame.dialect, window.function, window.span)
    partition = [_key(frame, frame.print(part)) for part in window.partition]
    keys = [*window.order, *(Sort(tie) for tie in window.ties)]
    order = [_key(frame, frame.print(key.expression)) for key in keys]
    sorted_by = [text for key, x in zip(keys, order, strict=True) for text in _sort(key, x)]
    over = [f"PARTITION BY {', '.join(x.text for x in partition)}"] if partition else []
    over += [f"ORDER BY {', '.join(sorted_by)}"] if sorted_by else []
    over += [_rows(window.rows or Rows())] if window.function in _SEEING and sorted_by else []
    return _over(frame, window, f" OVER ({' '.join(over)})", [*partition, *order])


def _sort(key: Sort, x: Sql) -> list[str]:
    unknown = f"({x.text} IS {'NOT ' if key.nulls_first else ''}NULL)"
    return [unknown, f"{x.text} DESC" if key.descending else x.text]


def _rows(rows: Rows) -> str:
    """Prints a frame; a row before the first is the first."""

    def end(place: int | None, side: str) -> str:
        if place is None:
            return f"UNBOUNDED {side}"
        return "CURRENT ROW" if place == 0 else f"{abs(place)} {'PRECEDING' if place < 0 else 'FOLLOWING'}"

    return f"{'RANGE' if rows.peers else 'ROWS'} BETWEEN {end(rows.start, 'PRECEDING')} AND {end(rows.end, 'FOLLOWING')}"


def _over(frame: Frame, window: Window, over: str, keys: Sequence[Sql]) -> Sql:
    name = window.function
    if name in ("sum", "avg", "min", "max", "first_value", "last_value"):
        x = _key(frame, frame.print(window.arguments[0]))
        return _OF_ONE[name](frame, x, over, keys)
    if name in ("lag", "lead"):
        return _shifted(frame, window, over, keys)
    arguments = [_key(frame, frame.print(argument)) for argument in window.arguments]
    inner = "*" if name == "count" and not arguments else ", ".join(map(_argument, arguments))
    return build(f"{name}({inner}){over}", "int", *arguments, *keys)


def _shifted(frame: Frame, window: Window, over: str, keys: Sequence[Sql]) -> Sql:
    value, offset, default = (frame.print(argument) for argument in window.arguments)
    x, other = (_key(frame, each) for each in unify(frame, [value, default])) if default.kind != "null" else (value, default)
    x = _key(frame, x)
    inner = f"{x.text}, {_argument(offset)}" + (f", {other.text}" if default.kind != "null" else "")
    return build(f"{window.function}({inner}){over}", x.kind, x, *keys)


def _argument(x: Sql) -> str:
    """Prints a number of rows or parts as plain digits, because engines want their default integer there."""
    return str(x.constant) if isinstance(x.constant, int) else x.text


def _plain(name: str) -> Callable[[Frame, Sql, str, Sequence[Sql]], Sql]:
    def printer(frame: Frame, x: Sql, over: str, keys: Sequence[Sql]) -> Sql:
        return build(f"{frame.dialect.exact_aggregate(name, x.kind)}({x.text}){over}", x.kind, x, *keys)

    return printer


def _sum(frame: Frame, x: Sql, over: str, keys: Sequence[Sql]) -> Sql:
    number = summed(frame, x)
    total = frame.atom(build(f"{frame.dialect.unit_sum(number.text)}{over}", "int", number, *keys))
    return build(exact_total(frame.dialect, total.text), "real", total)


def _average(frame: Frame, x: Sql, over: str, keys: Sequence[Sql]) -> Sql:
    number = summed(frame, x)
    total = frame.atom(build(f"{frame.dialect.unit_sum(number.text)}{over}", "int", number, *keys))
    count = frame.atom(build(f"count({number.text}){over}", "int", number, *keys))
    return build(f"({exact_total(frame.dialect, total.text)} / NULLIF({count.text}, 0))", "real", total, count)


_OF_ONE: dict[str, Callable[[Frame, Sql, str, Sequence[Sql]], Sql]] = {
    "sum": _sum,
    "avg": _average,
    **{name: _plain(name) for name in ("min", "max", "first_value", "last_value")},
}
