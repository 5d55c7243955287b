"""Counts per person: everyone is in the histogram, also those with more rows than max_rows; suggest sees them as they are."""

from __future__ import annotations

import pandas as pd

from dither.catalog.values import Budget, Catalog, ColumnFacts, Table, Unit
from dither.curator import open as open_curator

COUNTS = {1: 300, 3: 100, 40: 600}  # so many people have so many rows
INNER = "(SELECT person, COUNT(*) AS c, SUM(x) AS s FROM t GROUP BY person) q"


def survey(max_rows: int = 5):  # type: ignore[no-untyped-def]
    people = [count for count, number in COUNTS.items() for _ in range(number)]
    rows = pd.DataFrame({"person": [who for who, count in enumerate(people) for _ in range(count)]}).assign(x=1)
    number = ColumnFacts("int", low=0, high=1)
    table = Table(rows, unit=Unit("person"), max_rows=max_rows, max_groups=3, columns={"x": number})
    return open_curator(Catalog({"t": table}, Budget(10**6)), ledger=":memory:")


def test_a_histogram_of_counts_has_everyone() -> None:
    answer = survey().ask(f"SELECT c, COUNT(*) AS n FROM {INNER} GROUP BY c", epsilon=1000)
    assert dict(zip(answer["c"], answer["n"], strict=True)) == {0: 0, 1: 300, 2: 0, 3: 100, 4: 0, 5: 600}
    assert "c is held to [0, 5], so 5 means 5 or more" in str(answer)


def test_so_has_one_of_what_is_computed_from_counts_and_sums() -> None:
    inside = f"(SELECT person, BUCKET(c, 5) AS k FROM {INNER}) r"
    answer = survey().ask(f"SELECT k, COUNT(*) AS n FROM {inside} GROUP BY k", epsilon=1000)
    assert answer["n"] == [400, 600]
    assert "5 means 5 or more" in str(answer)
    answer = survey().ask(f"SELECT FLOOR(s) AS k, COUNT(*) AS n FROM {INNER} GROUP BY FLOOR(s)", epsilon=1000)
    assert answer["n"] == [0, 300, 0, 100, 0, 600]
    assert "s is held to [0, 5]" in str(answer)


def test_conditions_see_the_count_itself() -> None:
    assert survey().ask(f"SELECT COUNT(*) AS n FROM {INNER} WHERE c > 30", epsilon=1000)["n"] == [600]


def test_suggest_may_propose_more_than_is_declared() -> None:
    assert survey(max_rows=2).suggest("t.x", epsilon=1000).max_rows == 63
    assert survey(max_rows=2).suggest("t.x", epsilon=10).max_rows == 63
