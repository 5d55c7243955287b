"""Compares neighbouring Parquet files: every stored type with its extreme values, with and without statistics.

Other cases exchange rows in memory, where a reader has nothing to reject and no statistics to prune by. Here a file is written,
opened through the public API and asked about, then written again without one person, and asked the same. Files have one, few or
many row groups, so that statistics leave some of them out. If a file cannot be opened, nobody can ask: the curator sees why.
"""

from __future__ import annotations

import datetime
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dither as dt
from dither.audit.ourselves.cases import Violation, judge
from dither.audit.ourselves.observe import Observation, Trace, observe, open_curator
from dither.curator import STEPS, Steps
from dither.engines.duckdb.backend import DuckDBBackend
from dither.errors import CatalogError

_FIRST, _LAST = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
_NOON = datetime.datetime(2020, 2, 29, 12)


def _whole(kind: pa.DataType) -> tuple[Any, ...]:
    bits = kind.bit_width
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)
    return (None, low, high, high - 1, 0, 3, 50)


def _times(unit: str) -> tuple[Any, ...]:
    """Returns timestamps as whole numbers of their unit: readers reject the extreme ones, or wrap."""
    seconds = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    most = (2**63 - 1) // (1000 if unit == "s" else 1)  # Parquet stores seconds as milliseconds
    return (None, 0, most, -most, most // 2, -most // 2, 1_583_000_000 * seconds, -62_135_596_800 * min(seconds, 10**6))


_REALS = (None, float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.5, 49.0)
_TEXTS = (None, "", "a", "A", "a ", "x" * 4000, "\u0061\u0301", "a\0b")
TYPES: Mapping[str, tuple[pa.DataType, tuple[Any, ...], str]] = {
    **{str(kind): (kind, _whole(kind), "number") for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): (kind, _whole(kind), "number") for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float": (pa.float32(), _REALS, "number"),
    "double": (pa.float64(), (*_REALS, 1e308, -1e308), "number"),
    "decimal": (pa.decimal128(38, 2), (None, Decimal(10) ** 35, -(Decimal(10) ** 35), Decimal("3.25")), "number"),
    "string": (pa.string(), _TEXTS, "text"),
    "large_string": (pa.large_string(), _TEXTS, "text"),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), _TEXTS, "text"),
    "bool": (pa.bool_(), (None, True, False), "truth"),
    "date32": (pa.date32(), (None, _FIRST, _LAST, _NOON.date()), "day"),
    "date64": (pa.date64(), (None, _FIRST, _LAST, _NOON.date()), "day"),
    **{f"timestamp[{unit}]": (pa.timestamp(unit), _times(unit), "day") for unit in ("s", "ms", "us", "ns")},
    "timestamp[us, UTC]": (pa.timestamp("us", "UTC"), _times("us"), "day"),
}
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "number": (
        "SELECT COUNT(*) AS n, SUM(x) AS s FROM t",
        "SELECT COUNT(x) AS n FROM t WHERE x > 3",
        "SELECT AVG(x) AS a FROM t WHERE age > 9",
    ),
    "text": ("SELECT COUNT(*) AS n FROM t WHERE x = 'a'", "SELECT COUNT(x) AS n FROM t WHERE age > 9 AND x < 'b'"),
    "truth": ("SELECT COUNT(*) AS n FROM t WHERE x", "SELECT COUNT(x) AS n FROM t WHERE age > 9"),
    "day": (
        "SELECT COUNT(*) AS n FROM t WHERE x >= DATE '2020-01-01'",
        "SELECT COUNT(x) AS n FROM t WHERE age > 9 AND x < DATE '2020-03-01'",
    ),
}


@dataclass(frozen=True)
class StoredCase:
    """One file: its type of column, its rows, who is left out on the other side, how it is written, and the question."""

    kind: str
    rows: tuple[tuple[int, int, Any], ...]  # person, age, x
    person: int
    statistics: bool
    group: int
    question: str

    def table(self, without: int | None = None) -> pa.Table:
        kept = [row for row in self.rows if row[0] != without]
        stored = TYPES[self.kind][0]
        if pa.types.is_dictionary(stored):
            values = pa.array([row[2] for row in kept], stored.value_type).dictionary_encode()
        else:
            values = pa.array([row[2] for row in kept], stored)
        return pa.table(
            {
                "person": pa.array([r[0] for r in kept], pa.int64()),
                "age": pa.array([r[1] for r in kept], pa.int64()),
                "x": values,
            }
        )

    def __str__(self) -> str:
        how = f"{'with' if self.statistics else 'without'} statistics, {self.group} rows a group"
        mine = [row for row in self.rows if row[0] == self.person]
        return f"{self.question}\nx is {self.kind}, {how}\nleft out on the other side: {mine!r}"


def any_stored(rng: random.Random) -> StoredCase:
    """Generates a file and a question about it."""
    kind = rng.choice(list(TYPES))
    _, extremes, topic = TYPES[kind]
    people = rng.choice([2, 5, 9])
    rows = [
        (person, rng.randint(0, 20), rng.choice(extremes)) for person in range(people) for _ in range(rng.choice([1, 1, 3]))
    ]
    rows += [(people, rng.randint(0, 20), extreme) for extreme in extremes]
    rng.shuffle(rows)
    return StoredCase(
        kind, tuple(rows), rng.choice([people, 0]), rng.random() < 0.5, rng.choice([1, 3, 1000]), rng.choice(QUESTIONS[topic])
    )


def compare_stored(case: StoredCase, steps: Steps = STEPS) -> tuple[Violation | None, bool]:
    """Asks about both files, and returns what is wrong and whether both were answered."""
    with tempfile.TemporaryDirectory(prefix="dither-audit-") as folder:
        path = Path(folder) / "t.parquet"
        before = _ask(case, path, case.table(), None, steps)
        after = _ask(case, path, case.table(case.person), before.trace if before else None, steps)
    if before is None or after is None:
        return None, False  # the curator sees why; nobody can ask
    return judge(before, after), before.answer is not None


def _ask(case: StoredCase, path: Path, table: pa.Table, like: Trace | None, steps: Steps) -> Observation | None:
    pq.write_table(table, path, write_statistics=case.statistics, row_group_size=case.group)
    facts = dt.between(-10, 50) if TYPES[case.kind][2] == "number" else dt.column()
    columns = {"age": dt.between(0, 120), "x": facts}
    declared = dt.Table(str(path), unit="person", max_rows=3, max_groups=1, columns=columns)
    try:
        curator = open_curator(dt.Catalog({"t": declared}, dt.Budget(10**6, "1/2")), steps, DuckDBBackend(threads=1))
    except CatalogError:
        return None
    try:
        return observe(curator, case.question, 1, "1e-6", like=like)
    finally:
        curator.close()
