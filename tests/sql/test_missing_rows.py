"""Where a window of one person has no row, NULL is a value of the key: the question alone decides which keys are listed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dt
from dither.query.read import read

CATALOG = dt.Catalog(
    {
        "t": dt.Table(
            pa.table({"i": [1]}),
            unit="i",
            max_groups=9,
            columns={
                "s": dt.values("a", "b"),
                "k": dt.between(1, 2, kind="int"),
                "x": dt.between(0, 10, step="0.5"),
                "n": dt.column(kind="int"),
                "g": dt.values("a", null="group"),
            },
        )
    },
    dt.Budget(1),
)
BY = "OVER (PARTITION BY i ORDER BY x)"


def keys(value: str, key: str = "v", where: str = "TRUE") -> tuple[object, ...] | None:
    """Returns the public values of a key made of a column v of a subquery."""
    inner = f"SELECT {value} AS v, s, x FROM t"
    return (
        read(f"SELECT {key} AS key, COUNT(*) AS c FROM ({inner}) u WHERE {where} GROUP BY 1", CATALOG).operands().keys[0].values
    )


@pytest.mark.parametrize(
    ("value", "key", "listed"),
    [
        (f"LAG(s) {BY}", "v", ("a", "b", None)),
        (f"LEAD(s, 3) {BY}", "v", ("a", "b", None)),
        (f"LAG(s, 0) {BY}", "v", ("a", "b")),
        (f"LAG(s, 1, 'c') {BY}", "v", ("a", "b", "c")),
        (f"LAG(s, 1, 'a') {BY}", "v", ("a", "b")),
        (f"LAG(g) {BY}", "v", ("a", None)),
        (f"LAG(k) {BY}", "v + 1", (2, 3, None)),
        (f"LAG(n) {BY}", "v > 7", (False, True, None)),
        (f"x - LAG(x) {BY}", "v > 0", (False, True, None)),
        (f"LAG(x) {BY}", "v > x", (False, True, None)),
        (f"LAG(n) {BY}", "v IS NULL", (False, True)),
        (f"LAG(n) {BY}", "COALESCE(v > 7, FALSE)", (False, True)),
        (f"LAG(s) {BY}", "COALESCE(v, 'none')", ("a", "b", "none")),
        (f"FIRST_VALUE(s) {BY}", "v", ("a", "b")),
        ("LAST_VALUE(s) OVER (PARTITION BY i ORDER BY x ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)", "v", ("a", "b", None)),
        ("FIRST_VALUE(s) OVER (PARTITION BY i ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "v", ("a", "b")),
        ("NULLIF(s, 'b')", "v", ("a",)),
        ("n", "v > 7", (False, True)),
    ],
)
def test_a_row_that_is_not_there_gives_a_key(value: str, key: str, listed: tuple[object, ...]) -> None:
    assert keys(value, key) == listed


@pytest.mark.parametrize(
    ("where", "listed"),
    [("v IS NOT NULL", ("a", "b")), ("v <> 'a'", ("b",)), ("v IS NULL", (None,)), ("v = 'a' OR v IS NULL", ("a", None))],
)
def test_conditions_narrow_it_like_other_keys(where: str, listed: tuple[object, ...]) -> None:
    assert keys(f"LAG(s) {BY}", where=where) == listed


def test_a_condition_on_another_row_keeps_it() -> None:
    assert keys(f"LAG(n) {BY}", "v > 7", "v > 5 OR v IS NULL") == (False, True, None)
    assert keys(f"LAG(n) {BY}", "v > 7", "v > 5") == (False, True)
