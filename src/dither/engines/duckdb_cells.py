"""From values to whole numbers: quantising inside the engine, and the few sums from which every cell follows.

All cells of one argument are combinations of four numbers: how many rows were counted, how many of them have a value, the
sum of q and the sum of q^2. Only those are summed over rows; "R - q" is never added up row by row. Every intermediate
integer is wide enough for 2^40 rows, which is proved from the Work before anything runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither.engines.duckdb_frame import Frame
from dither.engines.duckdb_text import INF, Sql, double, double_text, made, nearest
from dither.errors import ArgumentError
from dither.query.work import SCALE, Bins, Cell, Quantised, Sums, Work

ROWS = 1 << 40  # what every width is proved for
NARROW = 1 << 62  # within BIGINT, with room
WIDE = 1 << 126  # within HUGEINT, with room


def quantise(frame: Frame, argument: Quantised) -> Sql:
    """q as an integer from 0 to `steps`, NULL where the expression is NULL or not a number."""
    x = frame.print(argument.expression)
    high = argument.low + argument.steps * argument.step
    if _counts(x, argument, high):
        return _clipped_whole(frame.atom(x), int(argument.low), int(high))
    x = frame.atom(double(x))
    low, top, step = nearest(argument.low), nearest(high), nearest(argument.step)
    # What is not a number is above the infinity, so it falls through all arms and becomes NULL.
    bottom, limit = double_text(low), double_text(top)
    inside = f"WHEN {x.text} BETWEEN {bottom} AND {limit} THEN {x.text}"
    text = f"(CASE {inside} WHEN {x.text} < {bottom} THEN {bottom} WHEN {x.text} <= {INF} THEN {limit} END)"
    if low:
        text = f"({text} - {double_text(low)})"
    if step != 1:
        text = f"({text} / {double_text(step)})"
    # Each of these operations keeps order, so no row goes beyond what the upper bound gives.
    cut = math.floor((top - low) / step + 0.5) > argument.steps
    whole = f"CAST(floor({text} + 0.5e0) AS {'BIGINT' if argument.steps < NARROW else 'HUGEINT'})"
    if cut:
        held = frame.atom(made(whole, "int", x))
        return made(f"(CASE WHEN {held.text} > {argument.steps} THEN {argument.steps} ELSE {held.text} END)", "int", held)
    return made(whole, "int", x)


def _counts(x: Sql, argument: Quantised, high: Fraction) -> bool:
    """Whether x is stored as an integer and every integer within the bounds is a step, and all of them are exact doubles."""
    small = max(abs(argument.low), abs(high)) < 2**51
    return x.kind == "int" and x.constant is None and argument.step == 1 and argument.low.denominator == 1 and small


def _clipped_whole(x: Sql, low: int, high: int) -> Sql:
    """The same without leaving the integers: half the work."""
    inside = f"WHEN {x.text} BETWEEN {low} AND {high} THEN {x.text}"
    text = f"(CASE {inside} WHEN {x.text} < {low} THEN {low} WHEN {x.text} > {high} THEN {high} END)"
    return made(f"(CAST({text} AS BIGINT) - ({low}))" if low else text, "int", x)


@dataclass(frozen=True)
class Moments:
    """Names of the columns that hold one argument's four numbers. None: not asked for."""

    rows: str
    values: str | None = None
    linear: str | None = None
    square: str | None = None


def moments(cells: tuple[Cell, ...]) -> tuple[bool, bool]:
    """Whether the sum of q, and of q^2, is needed for one of these cells."""
    return any(cell.linear for cell in cells), any(cell.square for cell in cells)


def narrow(bound: int) -> bool:
    return bound < NARROW


def reach(cell: Cell) -> int:
    """The most one row can contribute to the cell."""
    steps = cell.argument.steps if cell.argument else 0
    value = abs(cell.constant) + abs(cell.linear) * steps + abs(cell.square) * steps**2
    return max(value, abs(cell.null), 1)


def combined(cell: Cell, found: Moments, *, wide: bool) -> str:
    """The cell's sum over the rows of one unit and group, from the four numbers."""

    def column(name: str | None) -> str:
        return f"CAST({name} AS HUGEINT)" if wide else str(name)

    if cell.argument is None:
        return f"{_times(cell.constant, column(found.rows))}"
    terms = [
        _times(cell.constant, column(found.values)) if cell.constant else "",
        _times(cell.linear, column(found.linear)) if cell.linear else "",
        _times(cell.square, column(found.square)) if cell.square else "",
        _times(cell.null, f"({column(found.rows)} - {column(found.values)})") if cell.null else "",
    ]
    return "(" + (" + ".join(term for term in terms if term) or "0") + ")"


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"({factor}) * {text}"


def bounded(cell: Cell, found: Moments, max_rows: int) -> str:
    """The sum over units of their bounded shares: S if k <= m, else S * m / k cut towards zero, as `//` does in DuckDB."""
    wide = not narrow(reach(cell) * ROWS * max_rows)
    share = combined(cell, found, wide=wide)
    # Every row of a cell without an argument counts alike, so nothing needs to be divided.
    less = f"({cell.constant * max_rows})" if cell.argument is None else f"({share}) * {max_rows} // {found.rows}"
    return f"COALESCE(sum(CASE WHEN {found.rows} <= {max_rows} THEN {share} ELSE {less} END), 0)"


def from_moments(cell: Cell, rows: int, values: int, linear: int, square: int) -> int:
    """The same in Python, for tables whose rows are their own units."""
    if cell.argument is None:
        return cell.constant * rows
    return cell.constant * values + cell.linear * linear + cell.square * square + cell.null * (rows - values)


def prove_widths(work: Work) -> None:
    """Refuses a Work whose integers could outgrow 128 bits with 2^40 rows. Depends on the question and the catalog only."""
    for measure in work.measures:
        if isinstance(measure, Sums):
            per_row = max((reach(cell) for cell in measure.cells), default=1)
            squares = max((cell.argument.steps**2 for cell in measure.cells if cell.argument and cell.square), default=1)
            most = max(per_row, squares) * measure.max_rows
        else:
            most = measure.max_rows * SCALE if isinstance(measure, Bins) else measure.max_values
        if most * ROWS >= WIDE or most < 1:
            raise ArgumentError(
                "the sums of this question could need more than 126 bits.",
                fix="declare a larger step, or narrower bounds, for the column that is added up.",
            )


def total(q: str, steps: int, power: int, where: str) -> str:
    """The sum of q or of q^2 over rows, in the narrowest integer that 2^40 rows cannot outgrow."""
    value = q if power == 1 else f"CAST({q} AS {'BIGINT' if narrow(steps**2) else 'HUGEINT'}) * {q}"
    text = f"COALESCE(sum({value}){where}, 0)"
    return f"CAST({text} AS BIGINT)" if narrow(steps**power * ROWS) else text
