"""Measures what one person can add to the time of a question, for `dither serve --check`.

    rows of one person  x  time of a row, in the costliest questions of SIZE characters that are tried  x  SAFETY

The rows that are timed are made up, in the kinds and lengths that the catalog declares, so the figure depends on no data. It is
a measurement, not a proof: another question may cost more, a busy machine is slower, and a join to a public table with many
equal keys multiplies rows (docs/known-limits.md).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import dither as dt
from dither.catalog.values import Catalog, Table
from dither.server.clock import SIZE, STEPS, Delay
from dither.workspace import make_ledger

SAFETY = 3
_ROWS = 20_000
_CELLS = 1_000_000  # characters of made-up text
_RUNS = 3


@dataclass(frozen=True)
class Effect:
    """What one person adds in one table. `rows` is None if nothing bounds them; `seconds` is with the factor SAFETY."""

    table: str
    rows: int | None
    nanoseconds: float  # of a row
    characters: int  # of its longest text; 0 if it has none

    @property
    def seconds(self) -> float | None:
        return None if self.rows is None else self.rows * self.nanoseconds * SAFETY / 1e9

    def words(self, delay: Delay | None) -> str:
        """Says whether the clock covers it."""
        if self.rows is None or self.seconds is None:
            return f"{self.table}: nothing bounds the rows of one person, nor what they add to a time; declare most_rows"
        text = f", with texts of {self.characters:,} characters" if self.characters else ""
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        found = f"{self.table}: {rows} of one person at most, {self.nanoseconds:,.0f} ns each{text}"
        found += f"; {1000 * self.seconds:.3g} ms with a factor of {SAFETY}"
        above = delay is not None and self.seconds > delay.effect / STEPS
        return f"{found}: more than clock.effect covers" if above else found


def effects(catalog: Catalog) -> list[Effect]:
    """Returns what one person adds in each table that people are in."""
    known: dict[int, float] = {}
    found = []
    for name, table in catalog.tables.items():
        if table.public or table.edges is not None:
            continue
        longest = max((facts.longest for facts in table.columns.values() if facts.kind == "text"), default=0)
        if longest not in known:
            known[longest] = time_of_row(longest)
        found.append(Effect(name, rows_of(catalog, table), known[longest], longest))
    return found


def rows_of(catalog: Catalog, table: Table) -> int | None:
    """Returns how many rows of a table one person has at most; None if nothing bounds them."""
    if table.by_row:
        return 1
    if table.unit is None:
        return None
    own = 1 if table.key == table.unit.column else table.most_rows
    if own is None or table.unit.references is None:
        return own
    parent = rows_of(catalog, catalog.tables[table.unit.references[0]])
    return None if parent is None else own * parent


def time_of_row(longest: int) -> float:
    """Returns the nanoseconds that a row of one person takes, in the costliest of a few questions."""
    numbers = _packed("SELECT COUNT(*) AS n", lambda i: f", SUM(CASE WHEN x > {i} THEN x ELSE {i} END) AS s{i}", " FROM t")
    found = _slope(numbers, _ROWS, min(longest, 16))
    if longest:
        texts = _packed("SELECT COUNT(*) AS n FROM t WHERE x < 0", lambda i: f" OR s LIKE '%a{i}%b'", "")
        found = max(found, _slope(texts, min(max(_CELLS // longest, 200), _ROWS), longest))
    return found


def _packed(start: str, part: Callable[[int], str], end: str) -> str:
    text = start
    for number in range(SIZE):
        if len(text + part(number) + end) > SIZE:
            break
        text += part(number)
    return text + end


def _slope(question: str, rows: int, longest: int) -> float:
    """Returns the nanoseconds of a row, from tables with many rows of one person and with one."""
    return max(0.0, (_seconds(question, rows, longest) - _seconds(question, 1, longest)) / rows * 1e9)


def _seconds(question: str, rows: int, longest: int) -> float:
    """Returns the shortest time of a few in which this question is answered, about so many rows of one person."""
    frame = pa.table({"u": [1] * rows, "x": [i % 100 for i in range(rows)], "s": ["a" * longest] * rows})
    columns = {"x": dt.between(0, 100), "s": dt.column(kind="text", longest=max(longest, 1))}
    made = Catalog({"t": Table(frame, unit="u", max_rows=100, columns=columns)}, dt.Budget(epsilon=10**6))
    with tempfile.TemporaryDirectory(prefix="dither-effect-") as folder:
        place = Path(folder) / "ledger"
        make_ledger(place)
        with closing(dt.open(made, place)) as survey:
            times = []
            for _ in range(_RUNS):
                begun = time.perf_counter()
                survey.ask(question, epsilon=1, fresh=True, left_out=False)
                times.append(time.perf_counter() - begun)
    return min(times)
