"""Tables in which every bound is needed: few units with many rows each, hard values in every column.

Generated tables of twelve rows cannot see a share that is rounded instead of cut. These have units with 40 and more rows in a
group, sums of both signs, and more groups and values than any unit may keep.
"""

from __future__ import annotations

import functools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from dither.engines.sql.dialect import Dialect
from dither.query.nodes import Call, Column, Literal, Named
from dither.query.work import Bins, Cell, Distinct, Measure, Quantised, Sums, Work
from engines.tables import DATES, INTS, KINDS, REALS, TEXTS, TIMES
from engines.works import plain

Table = list[dict[str, Any]]
Keys = tuple[tuple[Named, ...], tuple[tuple[Any, ...], ...] | None]


@functools.cache
def _rows(size: int, units: int) -> tuple[dict[str, Any], ...]:
    dice = random.Random(7)
    values: dict[str, list[Any]] = {"i": INTS, "x": [*REALS, 3.5, 40.25, 88.0], "t": TEXTS[:6], "b": [True, False], "d": DATES}
    columns = values | {"s": TIMES, "who": list(range(units))}
    return tuple({name: dice.choice([*columns[name], None]) for name in KINDS} for _ in range(size))


def crowd(size: int = 2000, units: int = 40) -> Table:
    return [dict(row) for row in _rows(size, units)]


KEYS: dict[str, Keys] = {
    "texts": ((Named("t", Column("t")),), None),
    "public texts": ((Named("t", Column("t")),), (("a", "ab", "", None),)),
    "other public texts": ((Named("t", Column("t")),), (("a", "ab", "A"),)),
    "truths": ((Named("b", Column("b")), Named("t", Column("t"))), None),
    "days": ((Named("d", Column("d")),), None),
    "buckets": ((Named("k", Call("bucket", (Column("x"), Literal(10)))),), None),
    "numbers": ((Named("i", Column("i")), Named("b", Column("b"))), ((0, 1, 7, None), (True, False))),
    "nothing": ((), None),
}

HALVES = Quantised(Column("x"), Fraction(0), Fraction(1, 2), 200)
WHOLE = Quantised(Column("i"), Fraction(-3), Fraction(1), 1000)
POSITIVE = Call("gt", (Column("i"), Literal(0)))
MEASURES: dict[str, tuple[Measure, ...]] = {
    "sums": (
        Sums((Cell(HALVES, linear=1), Cell(HALVES, constant=200, linear=-1), Cell(HALVES, null=200), Cell(constant=1)), 3),
        Sums((Cell(HALVES, square=1), Cell(WHOLE, constant=-7, linear=-3, null=5)), 2, POSITIVE),
    ),
    "histograms": (
        Bins(Quantised(Column("x"), Fraction(0), Fraction(10), 10), 2),
        Bins(Quantised(Column("i"), Fraction(0), Fraction(1), 5), 1, POSITIVE),
    ),
    "values": tuple(
        Distinct(Column(name), most) for name, most in (("x", 2), ("t", 3), ("s", 1), ("i", 2), ("d", 2), ("b", 1))
    ),
}


def bounded(keys: str, most: int | None, measures: tuple[Measure, ...]) -> Work:
    """Returns a Work in which units lose groups, rows and values."""
    named, known = KEYS[keys]
    return Work(plain("t", "t"), named, known, True, most, measures, count_units=True)


def own_groups(units: int = 60) -> Table:
    """Returns rows in which every group belongs to one unit, so that the groups that come out are the choice itself."""
    empty = dict.fromkeys(KINDS)
    return [
        {**empty, "who": unit, "i": 100 * unit + group, "t": str(group)} for unit in range(units) for group in range(unit % 7)
    ]


def kept_of(groups: Any) -> dict[int, list[int]]:
    """Returns the groups of `own_groups` that each unit kept."""
    kept: dict[int, list[int]] = {}
    for group in groups:
        kept.setdefault(group.key[0] // 100, []).append(group.key[0])
    return {unit: sorted(keys) for unit, keys in kept.items()}


OWN = (Named("i", Column("i")),)


def tie(dialect: type[Dialect], monkeypatch: pytest.MonkeyPatch, different: int = 1) -> None:
    """Lets a dialect print hashes with so many different values. They still take the secret."""
    right = dialect.keyed_hash

    def coarse(self: Dialect, purpose: str, columns: Any) -> str:
        equal = f"(CASE WHEN {right(self, purpose, columns)} IS NULL THEN 1 ELSE 0 END)"
        return equal if different == 1 else f"({columns[1].text} % {different} + {equal})"

    monkeypatch.setattr(dialect, "keyed_hash", coarse)


# --- hard values on coarse, fine and very fine grids --------------------------------------------------------------

HARD = [0.0, -0.0, 5e-324, 0.49999999999999994, 0.5, 1.5, 2.5, -0.5, 119.5, 120.5, 2.0**52 + 1, 2.0**53 + 2, 1e300, -1e300]
HARD += [math.inf, -math.inf, math.nan]
# The lower bound, the step, and the number of steps. Above 2^62 steps, integers need the engine's wide type.
GRIDS = [("0", "1", 120), ("-7", "1/3", 1000), ("0", "1", 2**51 + 1), (f"-{2**40}", "1", 2**55), ("0.1", "0.1", 3)]
GRIDS += [("0", "1/1024", 2**62), ("0", f"1/{2**60}", 2**80)]


def quantised() -> Work:
    """Returns sums of hard values on every grid, by a public key. Rows with another key are in no group."""
    grids = [(Fraction(low), Fraction(step), steps) for low, step, steps in GRIDS]
    arguments = [Quantised(Column(name), *grid) for grid in grids for name in ("x", "i")]
    sums = tuple(Sums((Cell(each, linear=1), Cell(each, constant=1), Cell(each, null=1)), 1) for each in arguments)
    return Work(plain("t", "t"), (Named("t", Column("t")),), (("a", None),), False, None, sums)


def hard_rows() -> Table:
    """Returns a row for each hard value and key, public or not."""
    wholes = [int(x) if abs(x) < 2**62 else None for x in HARD]
    pairs = [*zip(HARD, wholes, strict=True), (None, None)]
    return [{**dict.fromkeys(KINDS), "t": key, "x": x, "i": i} for x, i in pairs for key in ("a", None, "b")]
