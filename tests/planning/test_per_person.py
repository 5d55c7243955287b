"""Counts and sums per person are of all the person's rows, also beyond max_rows, and suggest sees them as they are."""

from __future__ import annotations

import pandas as pd
import pytest

from dither.catalog.values import Budget, Catalog, ColumnFacts, Table, Unit
from dither.curator import open as open_curator
from dither.errors import QueryError

COUNTS = {1: 300, 3: 100, 40: 600}  # so many people have so many rows
INNER = "(SELECT person, COUNT(*) AS c, SUM(x) AS s FROM t GROUP BY person) q"


def survey(max_rows: int = 5, delta: str = "0"):  # type: ignore[no-untyped-def]
    people = [count for count, number in COUNTS.items() for _ in range(number)]
    rows = pd.DataFrame({"person": [who for who, count in enumerate(people) for _ in range(count)]}).assign(x=1)
    number = ColumnFacts("int", low=0, high=1)
    table = Table(rows, unit=Unit("person"), max_rows=max_rows, max_groups=3, columns={"x": number})
    return open_curator(Catalog({"t": table}, Budget(10**6, delta)), ledger=":memory:")


def histogram(question: str, **budget: str) -> dict[int, int]:
    with survey(**budget) as curator:
        answer = curator.ask(question, epsilon=1000)
    return {k: n for k, n in answer.rows if n}


def test_a_histogram_of_counts_has_everyone_where_they_are() -> None:
    for key in ("LEAST(c, 50)", "CLAMP(c, 0, 50)", "LEAST(s, 50)", "FLOOR(LEAST(s, 50))"):
        assert histogram(f"SELECT {key} AS k, COUNT(*) AS n FROM {INNER} GROUP BY 1") == COUNTS
    assert histogram(f"SELECT LEAST(c, 2) AS k, COUNT(*) AS n FROM {INNER} GROUP BY 1") == {1: 300, 2: 700}
    assert histogram(f"SELECT BUCKET(LEAST(c, 50), 5) AS k, COUNT(*) AS n FROM {INNER} GROUP BY 1") == {0: 400, 40: 600}


def test_counts_as_keys_can_be_discovered() -> None:
    assert histogram(f"SELECT c, COUNT(*) AS n FROM {INNER} GROUP BY c", delta="1e-6") == COUNTS
    assert histogram(f"SELECT BUCKET(c, 5) AS k, COUNT(*) AS n FROM {INNER} GROUP BY k", delta="1e-6") == {0: 400, 40: 600}


@pytest.mark.parametrize("asked", ["SELECT c, COUNT(*) AS n FROM {} GROUP BY c", "SELECT AVG(c) AS n FROM {}"])
def test_without_bounds_a_refusal_says_what_to_write(asked: str) -> None:
    with survey() as curator, pytest.raises(QueryError) as refused:
        curator.ask(asked.format(INNER), epsilon=1)
    assert "CLAMP(c, 0, 20)" in refused.value.fix
    assert refused.value.charged == "nothing"


def test_conditions_see_the_count_itself() -> None:
    with survey() as curator:
        assert curator.ask(f"SELECT COUNT(*) AS n FROM {INNER} WHERE c > 30", epsilon=1000)["n"] == [600]
        assert curator.ask(f"SELECT COUNT(*) AS n FROM {INNER} WHERE c <= 5", epsilon=1000)["n"] == [400]


def test_suggest_may_propose_more_than_is_declared() -> None:
    assert survey(max_rows=2).suggest("t.x", epsilon=1000).max_rows == 63
    assert survey(max_rows=2).suggest("t.x", epsilon=10).max_rows == 63


SAYS = "t.x is clipped to [0, 1]"


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT AVG(CLAMP(s, 0, 50)) AS a FROM (SELECT person, SUM(x) AS s FROM t GROUP BY person) q",
        "SELECT AVG(CLAMP(s, 0, 50)) AS a FROM (SELECT person, SUM(x) / COUNT(*) AS s FROM t GROUP BY person) q",
        "SELECT COUNT(*) AS n FROM (SELECT person, AVG(x) AS s FROM t GROUP BY person) q WHERE s > 0",
        "SELECT COUNT(DISTINCT person) AS n FROM t WHERE person IN (SELECT person FROM t GROUP BY person HAVING SUM(x) > 3)",
    ],
)
def test_an_answer_says_that_values_were_clipped_inside_a_subquery(asked: str) -> None:
    with survey() as curator:
        assert SAYS in curator.ask(asked, epsilon=1).footer()
        assert SAYS in str(curator.quote(asked, epsilon=1))


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT AVG(CLAMP(s, 0, 50)) AS a FROM (SELECT person, COUNT(x) AS s FROM t GROUP BY person) q",
        "SELECT AVG(CLAMP(s, 0, 50)) AS a FROM (SELECT person, SUM(CASE WHEN x = 1 THEN 1 ELSE 0 END) s FROM t GROUP BY 1) q",
        "SELECT AVG(CLAMP(s, 0, 50)) AS a FROM (SELECT person, SUM(CLAMP(x, 0, 1)) AS s FROM t GROUP BY person) q",
    ],
)
def test_it_does_not_say_so_where_nothing_can_be_outside(asked: str) -> None:
    with survey() as curator:
        assert "clipped to [0, 1]" not in curator.ask(asked, epsilon=1).footer()
