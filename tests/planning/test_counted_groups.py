"""An answer says that groups without anybody are counted, where a SELECT around them counts or averages groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import dither as dt
from dither.answer import COUNTED

INNER = "(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)"


@pytest.fixture(scope="module")
def curator() -> Iterator[dt.Curator]:
    ids = np.arange(300)
    visits = {"person": ids, "ward": np.array(["a", "b", "c"])[ids % 2], "kind": ids % 2}
    held = dt.Table(
        visits, unit="person", max_rows=1, columns={"ward": dt.values("a", "b", "c"), "kind": dt.column(kind="int")}
    )
    catalog = dt.Catalog(tables={"visits": held}, budget=dt.Budget(epsilon=1000, delta="1e-3"))
    with dt.open(catalog, ledger=":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT COUNT(*) AS wards FROM {INNER}",
        f"SELECT AVG(n) AS m FROM {INNER}",
        f"SELECT MIN(n) AS m, MAX(n) AS k FROM {INNER} WHERE ward <> 'a'",
        f"SELECT ward, n, COUNT(*) OVER () AS wards FROM {INNER}",
        "SELECT ward, COUNT(*) AS n, AVG(COUNT(*)) OVER () AS m FROM visits GROUP BY ward",
        f"SELECT AVG(m) AS m FROM (SELECT ward, n * 2 AS m FROM {INNER})",
        "SELECT AVG(n) AS m FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward))",
    ],
)
def test_the_answer_says_so(curator: dt.Curator, question: str) -> None:
    assert COUNTED in curator.ask(question, epsilon=1).notes()


@pytest.mark.parametrize(
    "question",
    [
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        f"SELECT SUM(n) AS n FROM {INNER}",  # an empty group adds nothing
        f"SELECT COUNT(*) AS wards FROM {INNER} WHERE n > 20",
        f"SELECT COUNT(*) FILTER (WHERE n > 20) AS wards FROM {INNER}",
        "SELECT AVG(n) AS m FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 20)",
        "SELECT AVG(n) AS m FROM (SELECT COUNT(*) AS n FROM visits)",
    ],
)
def test_it_says_nothing_where_no_empty_group_counts(curator: dt.Curator, question: str) -> None:
    assert COUNTED not in curator.ask(question, epsilon=1).notes()


def test_groups_that_are_found_in_the_data_are_not_empty(curator: dt.Curator) -> None:
    question = "SELECT AVG(n) AS m FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind)"
    assert COUNTED not in curator.ask(question, epsilon=1, delta="1e-6").notes()


def test_what_it_advises_leaves_them_out(curator: dt.Curator) -> None:
    inner = INNER.replace("GROUP BY ward", "GROUP BY ward HAVING COUNT(*) > 20")
    assert curator.ask(f"SELECT COUNT(*) AS wards FROM {INNER}", epsilon=2)["wards"] == [3]
    assert curator.ask(f"SELECT COUNT(*) AS wards FROM {inner}", epsilon=2)["wards"] == [2]
