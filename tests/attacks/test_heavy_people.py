"""People with more rows than count: what is cut must not lose more than max_rows / k says (issue 14, no silent bias).

Each person's share is cut towards zero. On a grid of one step (a flag, a part of a FILTER) that would lose the whole person.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import dither as dt

PEOPLE = 1000


def visits(kinds: list[str], flags: list[int], **bounds: Any) -> dt.Curator:
    """Returns a curator of people who all have the same rows."""
    rows = [(person, kind, flag) for person in range(PEOPLE) for kind, flag in zip(kinds, flags, strict=True)]
    person, kind, flag = zip(*rows, strict=True)
    table = pa.table({"person": person, "kind": kind, "flag": flag})
    columns = {"kind": dt.values("a", "b"), "flag": dt.between(0, 1, kind="int", null=False)}
    return dt.open(
        dt.Catalog({"v": dt.Table(table, unit="person", columns=columns, **bounds)}, dt.Budget(10**6)), ledger=":memory:"
    )


def one(curator: dt.Curator, question: str) -> dict[str, Any]:
    (row,) = curator.ask(question, epsilon=40).to_arrow().to_pylist()
    return dict(row)


def test_a_count_beside_its_parts_is_the_count_alone() -> None:
    curator = visits(["a", "b"], [0, 0], max_rows=1)
    alone = one(curator, "SELECT COUNT(*) AS n FROM v")
    beside = one(curator, "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE kind = 'a') AS a FROM v")
    assert abs(beside["n"] - alone["n"]) < 20


def test_parts_do_not_lose_people_with_rows_in_both() -> None:
    curator = visits(["a", "b"], [0, 0], max_rows=1)
    parts = one(curator, "SELECT COUNT(*) FILTER (WHERE kind = 'a') AS a, COUNT(*) FILTER (WHERE kind = 'b') AS b FROM v")
    assert parts["a"] + parts["b"] > PEOPLE - 20


@pytest.mark.parametrize("most", [1, 3, 5, 7])
def test_the_mean_of_a_flag_is_that_of_every_person(most: int) -> None:
    curator = visits(["a"] * 10, [1] + [0] * 9, max_rows=most, max_groups=1)
    found = one(curator, "SELECT AVG(flag) AS share, COUNT(*) AS n FROM v")
    assert found["share"] == pytest.approx(0.1, abs=0.01)
    assert abs(found["n"] - most * PEOPLE) < 0.02 * most * PEOPLE


def test_a_sum_is_scaled_and_not_lost() -> None:
    curator = visits(["a"] * 10, [1] + [0] * 9, max_rows=5, max_groups=1)
    assert one(curator, "SELECT SUM(flag) AS s FROM v")["s"] == pytest.approx(PEOPLE / 2, abs=20)
