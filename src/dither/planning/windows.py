"""Computes window functions over a noisy table: the order of rows, frames, places, LAG and LEAD. As in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dither.planning.folds import Members
from dither.planning.rows import UNKNOWN, Result, Row, Rows, is_noisy, ordered
from dither.query.functions.base import Cell
from dither.query.functions.registry import evaluator
from dither.query.nodes import Across, Expression, Literal


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
        return [_picked(across, rows, members, start, stop) for start, stop in frames]
    return members.over(frames)


def _peers(across: Across, rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Returns for each row the first and the end of the rows that ORDER BY does not tell apart."""
    compute = [evaluator(each.expression) for each in across.order]
    found = [tuple(value(row.values) for value in compute) for row in rows]
    result: list[tuple[int, int]] = []
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and found[stop] == found[start]:
            stop += 1
        result += [(start, stop)] * (stop - start)
        start = stop
    return result


def _dense(peers: Sequence[tuple[int, int]]) -> list[Cell]:
    places = {start: place for place, start in enumerate(sorted({start for start, _ in peers}), start=1)}
    return [places[start] for start, _ in peers]


def _tiles(count: int, tiles: int) -> list[Cell]:
    """Returns the parts of NTILE: as equal as possible, the first ones larger."""
    size, more = divmod(count, tiles)
    large = more * (size + 1)
    return [i // (size + 1) + 1 if i < large else more + (i - large) // max(size, 1) + 1 for i in range(count)]


_PLACES: Mapping[str, Callable[[Across, int, Sequence[tuple[int, int]]], list[Cell]]] = {
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
    result: list[Result] = []
    for place, row in enumerate(rows):
        there = 0 <= place + distance < len(rows)
        from_row, expression = (rows[place + distance], across.arguments[0]) if there else (row, default)
        shown = (value if there else other)(from_row.values)
        result.append((shown, UNKNOWN if members.unsure else from_row.source(expression)))
    return result


def _picked(across: Across, rows: Sequence[Row], members: Members, start: int, stop: int) -> Result:
    """Returns FIRST_VALUE, LAST_VALUE and NTH_VALUE of a frame."""
    nth = _whole(across.arguments[1]) - 1 if across.function == "nth_value" else 0
    place = stop - 1 if across.function == "last_value" else start + nth
    if not start <= place < stop:
        return None, UNKNOWN if members.unsure else None
    row, argument = rows[place], across.arguments[0]
    return evaluator(argument)(row.values), UNKNOWN if members.unsure else row.source(argument)


def _frames(across: Across, rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Returns the first and the end of each row's frame."""
    count = len(rows)
    if across.frame is None:
        return [(0, stop) for _, stop in _peers(across, rows)] if across.order else [(0, count)] * count
    first, last = across.frame.start, across.frame.end
    frames = []
    for place in range(count):
        start = 0 if first is None else min(max(place + first, 0), count)
        stop = count if last is None else min(max(place + last + 1, 0), count)
        frames.append((start, max(start, stop)))
    return frames
