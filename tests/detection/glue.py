"""Defects around the noise: data, keys, streams, errors, sizes. Each is a small, typical program that makes one output."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from detection.case import INF, Case, Law, lap

ONE = Fraction(1)
KEYS = ("a", "b", "c")
VISITS = ((("a", "a", "b"), ("a", "a", "b", "c")), (("a", "b"), ("b",)))


def each_run(program: Callable[[Generator, Any], Any]) -> Law:
    """Runs a program n times."""
    return lambda rng, data, n: [program(rng, data) for _ in range(n)]


def noise(rng: Generator, scale: float = 1.0) -> float:
    return float(lap(rng, scale, 1)[0])


def declared_keys(rng: Generator, rows: Any) -> dict[str, float]:
    return {key: rows.count(key) + noise(rng) for key in KEYS}


def guarded_ratio(rng: Generator, rows: Any) -> Any:
    """A noisy sum over a noisy count, half the price each; the division is always safe."""
    top, bottom = sum(rows) + noise(rng, 2.0), len(rows) + noise(rng, 2.0)
    return top / max(1.0, bottom)


def present_keys(rng: Generator, rows: Any) -> dict[str, float]:
    return {key: rows.count(key) + noise(rng) for key in set(rows)}


def empty_cells_bare(rng: Generator, rows: Any) -> list[float]:
    return [rows.count(key) + noise(rng) if key in rows else 0.0 for key in KEYS]


def exact_not_null(rng: Generator, rows: Any) -> list[float]:
    known = [row for row in rows if row is not None]
    return [len(known), sum(known) + noise(rng)]


def error_tells(rng: Generator, rows: Any) -> Any:
    return sum(1 / row for row in rows) + noise(rng)


def codes_by_appearance(rng: Generator, rows: Any) -> list[float]:
    codes = list(dict.fromkeys(rows))
    return [(rows.count(codes[place]) if place < len(codes) else 0) + noise(rng) for place in range(3)]


def forked_stream(rng: Generator, rows: Any) -> list[float]:
    same = int(rng.integers(2**62))
    return [value + noise(np.random.default_rng(same)) for value in (rows.count("a"), rows.count("b"))]


def keyed_by_text(rng: Generator, rows: Any) -> Any:
    seed = hashlib.sha256(b"SELECT COUNT(*) FROM visits").digest()
    return len(rows) + noise(np.random.default_rng(list(seed)))


def result_size(rng: Generator, rows: Any) -> list[float]:
    return [noise(rng) for _ in rows]


def nobody_no_row(rng: Generator, rows: Any) -> list[float]:
    matching = [row for row in rows if row == "c"]
    return [len(matching) + noise(rng)] if matching else []


def scale_from_count(rng: Generator, rows: Any) -> Any:
    return sum(rows) / len(rows) + noise(rng, 1 / len(rows))


def null_becomes_bound(rng: Generator, rows: Any) -> Any:
    """A clamp that turns NULL into the bound 20, priced for a bound of 1."""
    return sum(20.0 if row is None else min(max(row, 0.0), 1.0) for row in rows) + noise(rng)


def rerun_five_times(rng: Generator, rows: Any) -> list[float]:
    return [len(rows) + noise(rng) for _ in range(5)]


def variance_centred(rng: Generator, rows: Any) -> Any:
    """A sum of values in [-1, 1], noised for [0, 1]: under-noised by two when a row is replaced."""
    return sum(rows) + noise(rng)


def median_itself(rng: Generator, rows: Any) -> Any:
    """Noise for a sensitivity estimated on the data at hand."""
    ordered = sorted(rows)
    gap = max(b - a for a, b in pairwise(ordered))
    return float(ordered[len(ordered) // 2] + noise(rng, gap or 1.0))


APPEARANCE = ((("b", "a", "a", "a", "a"), ("a", "a", "a", "a")),)
RIGHT = (
    Case("histogram over declared keys", each_run(declared_keys), ONE, VISITS, 1.0, "released systems"),
    Case("guarded ratio", each_run(guarded_ratio), ONE, (((1, 0), (1, 0, 1)), ((1,), ())), 1.0, "composition"),
)
WRONG = (
    Case("rare keys shown", each_run(present_keys), ONE, VISITS, INF, "Korolova et al. 2009"),
    Case("empty cells without noise", each_run(empty_cells_bare), ONE, VISITS, INF, "released systems"),
    Case(
        "exact count of not-null",
        each_run(exact_not_null),
        ONE,
        (((1, 0), (1, 0, None)), ((1,), (1, 1))),
        INF,
        "released systems",
    ),
    Case("error tells", each_run(error_tells), ONE, (((1, 2), (1, 2, 0)),), INF, "released systems"),
    Case("codes in order of appearance", each_run(codes_by_appearance), ONE, APPEARANCE, 7.0, "released systems"),
    Case("forked stream", each_run(forked_stream), ONE, VISITS, INF, "released systems"),
    Case("noise keyed by query text", each_run(keyed_by_text), ONE, VISITS, INF, "released systems"),
    Case("result size", each_run(result_size), ONE, VISITS, INF, "released systems"),
    Case("nobody, no row", each_run(nobody_no_row), ONE, VISITS, INF, "released systems"),
    Case(
        "scale from the exact count",
        each_run(scale_from_count),
        ONE,
        (((1, 0), (1, 0, 1)), ((1, 1), (1,))),
        INF,
        "released systems",
    ),
    Case("NULL becomes the bound", each_run(null_becomes_bound), ONE, (((1.0,), (1.0, None)),), 20.0, "released systems"),
    Case("re-run five times", each_run(rerun_five_times), ONE, VISITS, 5.0, "released systems"),
    Case("bounds halved, row replaced", each_run(variance_centred), ONE, (((1, -1), (1, 1)),), 2.0, "released systems"),
    Case(
        "scale from local gaps",
        each_run(median_itself),
        ONE,
        (((0, 1, 2), (0, 1, 9)), ((0, 1, 2), (0, 2, 2))),
        INF,
        "Nissim et al. 2007",
    ),
)
GLUE = RIGHT + WRONG
