"""Joins that must not multiply rows, and joins that may, a little."""

from __future__ import annotations

import pytest

from dither.errors import QueryError
from dither.query.catalog import Budget, Catalog, ColumnFacts, Table
from dither.query.resolve import resolve
from dither.query.sql import parse

KINDS = {"i": "int", "r": "real", "d": "date", "t": "timestamp", "s": "text"}
COLUMNS = {name: ColumnFacts(kind) for name, kind in KINDS.items()}


def refusal(question: str, catalog: Catalog) -> str:
    try:
        resolve(parse(question, catalog), catalog, question)
    except QueryError as error:
        return error.what
    return ""


def keyed(kind: str) -> Catalog:
    public = Table("pub.csv", public=True, key="k", columns={"k": ColumnFacts(kind), "v": ColumnFacts("int")})
    return Catalog({"p": Table("p.csv", by_row=True, columns=COLUMNS), "pub": public}, Budget(1))


@pytest.mark.parametrize(
    ("kind", "other", "unique"),
    [
        ("int", "p.i", True),
        ("int", "p.i * 1.0", False),  # in doubles 2^62 equals 2^62 + 1, so one row would match many keys
        ("int", "p.i + 0", False),
        ("int", "p.r", False),
        ("int", "CAST(p.r AS INTEGER)", True),
        ("real", "p.i", True),
        ("real", "p.r", True),
        ("text", "p.s", True),
        ("date", "p.d", True),
        ("date", "p.t", False),
    ],
)
@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN"])
def test_a_unique_key_is_unique_only_when_compared_in_its_own_kind(kind: str, other: str, unique: bool, how: str) -> None:
    found = refusal(f"SELECT COUNT(*) FROM p {how} pub ON {other} = pub.k", keyed(kind))
    assert found == "" if unique else "multiply rows" in found


def test_a_public_row_side_is_held_to_the_same() -> None:
    assert "multiply rows" in refusal("SELECT COUNT(*) FROM pub JOIN p ON pub.k = p.i * 1.0", keyed("int"))
    assert refusal("SELECT COUNT(*) FROM pub JOIN p ON pub.k = p.i", keyed("int")) == ""
    grouped = "SELECT COUNT(*) FROM p JOIN (SELECT k, COUNT(*) AS n FROM pub GROUP BY k) q ON p.i * 1.0 = q.k"
    assert "multiply rows" in refusal(grouped, keyed("int"))
