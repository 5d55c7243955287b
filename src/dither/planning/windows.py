"""Computes window functions over a noisy table: the order of rows, frames, places, LAG and LEAD. As in DuckDB."""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dither.planning.folds import Members
from dither.planning.rows import UNKNOWN, Result, Row, Rows, is_noisy, ordered
from dither.query.functions.base import Cell
from dither.query.functions.registry import evaluator
from dither.query.nodes import Across, Expression, Frame, Literal

Ends = tuple[int, int]  # the first place, and the one after the last


def with_window(across: Across, table: Rows) -> Rows:
    """Adds the column of a window function."""
    compute = [evaluator(each) for each in across.partition]
    parts: dict[Any, list[Row]] = {}
    for row in table.rows:
        parts.setdefault(tuple(value(row.values) for value in compute), []).append(row)
    for members in parts.values():
        rows = ordered(members, across.order)
        rest = Members(across, rows, table)
        for row, (value, source) in zip(rows, _window(across, rows, rest), strict=True):
            row.with_value(across.name, value, source)
    noisy = table.noisy | ({across.name} if is_noisy(across, table) else set())
    return replace(table, noisy=frozenset(noisy))


def _window(across: Across, rows: Sequence[Row], members: Members) -> list[Result]:
    if across.function in _PLACES:
        unknown = UNKNOWN if members.unsure else None
        return [(value, unknown) for value in _PLACES[across.function](across, len(rows), _peers(across, rows))]
    if across.function in ("lag", "lead"):
        return _moved(across, rows, members)
    frames = _frames(across, rows)
    if across.function in ("first_value", "last_value", "nth_value"):
        return _picked(across, rows, members, frames)
    return members.over(frames)


def _peers(across: Across, rows: Sequence[Row]) -> list[Ends]:
    """Returns for each row the first and the end of the rows that ORDER BY does not tell apart."""
    compute = [evaluator(each.expression) for each in across.order]
    found = [tuple(value(row.values) for value in compute) for row in rows]
    result: list[Ends] = []
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and found[stop] == found[start]:
            stop += 1
        result += [(start, stop)] * (stop - start)
        start = stop
    return result


def _dense(peers: Sequence[Ends]) -> list[Cell]:
    places = {start: place for place, start in enumerate(sorted({start for start, _ in peers}), start=1)}
    return [places[start] for start, _ in peers]


def _tiles(count: int, tiles: int) -> list[Cell]:
    """Returns the parts of NTILE: as equal as possible, the first ones larger."""
    size, more = divmod(count, tiles)
    large = more * (size + 1)
    return [i // (size + 1) + 1 if i < large else more + (i - large) // max(size, 1) + 1 for i in range(count)]


_PLACES: Mapping[str, Callable[[Across, int, Sequence[Ends]], list[Cell]]] = {
    "row_number": lambda across, n, peers: list(range(1, n + 1)),
    "rank": lambda across, n, peers: [start + 1 for start, _ in peers],
    "dense_rank": lambda across, n, peers: _dense(peers),
    "percent_rank": lambda across, n, peers: [start / (n - 1) if n > 1 else 0.0 for start, _ in peers],
    "cume_dist": lambda across, n, peers: [stop / n for _, stop in peers],
    "ntile": lambda across, n, peers: _tiles(n, _whole(across.arguments[0])),
}


def _whole(expression: Expression) -> int:
    """Returns a constant that the reader has checked."""
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, int) else 1


def _moved(across: Across, rows: Sequence[Row], members: Members) -> list[Result]:
    """Returns LAG and LEAD: the argument some rows before or after, or the default."""
    distance = _whole(across.arguments[1]) if len(across.arguments) > 1 else 1
    distance = -distance if across.function == "lag" else distance
    default = across.arguments[2] if len(across.arguments) > 2 else Literal(None)
    value, other = evaluator(across.arguments[0]), evaluator(default)
    seen, unsure = _seen(across, rows, members)
    result: list[Result] = []
    for place, row in enumerate(rows):
        found = _away(seen, place, distance)
        from_row, expression = (row, default) if found is None else (rows[found], across.arguments[0])
        shown = (other if found is None else value)(from_row.values)
        result.append((shown, UNKNOWN if unsure else from_row.source(expression)))
    return result


def _seen(across: Across, rows: Sequence[Row], members: Members) -> tuple[list[int], bool]:
    """Returns the places of rows that are not passed over by IGNORE NULLS, and whether noise decides which they are."""
    if not across.skips_nulls:
        return list(range(len(rows))), members.unsure
    seen = [place for place, values in enumerate(members.values) if values[0] is not None]
    by_noise = any(values[0] is None and rows[i].source(across.arguments[0]) for i, values in enumerate(members.values))
    return seen, members.unsure or by_noise


def _away(seen: Sequence[int], place: int, distance: int) -> int | None:
    """Returns the place some seen rows before or after a row, whether it is seen or not; None if there is none. At distance 0
    it is the row itself."""
    if not distance:
        return place
    at = bisect_left(seen, place) + distance if distance < 0 else bisect_right(seen, place) + distance - 1
    return seen[at] if 0 <= at < len(seen) else None


def _picked(across: Across, rows: Sequence[Row], members: Members, frames: Sequence[Ends]) -> list[Result]:
    """Returns FIRST_VALUE, LAST_VALUE and NTH_VALUE of each frame."""
    argument, nth = across.arguments[0], _whole(across.arguments[1]) - 1 if across.function == "nth_value" else 0
    seen, unsure = _seen(across, rows, members)
    result: list[Result] = []
    for start, stop in frames:
        low, high = bisect_left(seen, start), bisect_left(seen, stop)
        at = high - 1 if across.function == "last_value" else low + nth
        row = rows[seen[at]] if low <= at < high else None
        value, source = (None, None) if row is None else (evaluator(argument)(row.values), row.source(argument))
        result.append((value, UNKNOWN if unsure else source))
    return result


# --- frames -----------------------------------------------------------------------------------------------------


def _frames(across: Across, rows: Sequence[Row]) -> list[Ends]:
    """Returns the first and the end of each row's frame."""
    count, frame = len(rows), across.frame
    if frame is None:
        return [(0, stop) for _, stop in _peers(across, rows)] if across.order else [(0, count)] * count
    if frame.kind == "range":
        return _ranges(across, frame, rows)
    each = [(place, place + 1) for place in range(count)]
    ends = each if frame.kind == "rows" else sorted(set(_peers(across, rows)))  # what the frame counts
    frames = []
    for place, (first, stop) in enumerate(ends):
        low = 0 if frame.start is None else min(max(place + frame.start, 0), len(ends))
        high = len(ends) if frame.end is None else min(max(place + frame.end + 1, 0), len(ends))
        found = (ends[low][0], ends[high - 1][1]) if low < high else (first, first)
        frames += [found] * (stop - first)
    return frames


def _ranges(across: Across, frame: Frame, rows: Sequence[Row]) -> list[Ends]:
    """Returns frames between values. NULLs are peers of each other, and at no distance from other values."""
    peers, count = _peers(across, rows), len(rows)
    if frame.first is None and frame.last is None:
        return [(0 if frame.start is None else p[0], count if frame.end is None else p[1]) for p in peers]
    (order,) = across.order
    value = evaluator(order.expression)
    keys = [_measured(value(row.values), order.descending) for row in rows]
    values = [key for key in keys if key is not None]
    before = len(keys) - len(values) if order.nulls_first else 0
    ends = [None if each is None else evaluator(each) for each in (frame.first, frame.last)]
    frames = []
    for row, key, own in zip(rows, keys, peers, strict=True):
        at = [None if end is None or key is None else _measured(end(row.values), order.descending) for end in ends]
        start = own[0] if at[0] is None else before + bisect_left(values, at[0])
        stop = own[1] if at[1] is None else before + bisect_right(values, at[1])
        low, high = 0 if frame.start is None else start, count if frame.end is None else stop
        frames.append((low, max(low, high)))
    return frames


def _measured(value: Any, descending: bool) -> Any:
    """Returns a value as a number that grows in the order of the rows; None for NULL."""
    if isinstance(value, datetime.date):
        moment = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
        value = (moment - datetime.datetime.min) // datetime.timedelta(microseconds=1)
    return None if value is None else -value if descending else value
