"""What is read from an answer is free: the same releases asked again another way are given from the ledger, and right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd
import pytest

from dither.curator import Curator
from dither.curator import open as open_curator
from planning.test_identity import SAME, WRITTEN
from planning.test_runs import filled, frames

MANY = (
    "SELECT region, active, AVG(age) AS a, COUNT(*) AS n, SUM(income) AS s, MEDIAN(age) AS m "
    "FROM people GROUP BY region, active"
)
AGAIN = [
    "SELECT active, region, MEDIAN(age) AS m, SUM(income) AS s, COUNT(*) AS n, AVG(age) AS a "
    "FROM people GROUP BY active, region",
    "SELECT SUM(income) AS s, active, AVG(age) AS a, region, MEDIAN(age) AS m, COUNT(*) AS n "
    "FROM people GROUP BY region, active",
    "SELECT p.active, p.region, COUNT(*) AS n, MEDIAN(p.age) AS m, SUM(p.income) AS s, AVG(p.age) AS a "
    "FROM (SELECT * FROM people) AS p GROUP BY p.active, p.region ORDER BY n DESC",
]


@pytest.fixture
def survey() -> Iterator[Curator]:
    with open_curator(filled(frames()), ledger=":memory:") as curator:
        yield curator


def truth(text: str) -> list[dict[str, Any]]:
    people = frames()["people"]  # noqa: F841 - DuckDB finds it by its name
    text = text.replace("mean(AGE) a", "avg(age) AS a")
    return duckdb.sql(text).df().to_dict("records")


@pytest.mark.slow
@pytest.mark.parametrize("text", SAME)
def test_another_way_to_read_an_answer_is_free(survey: Curator, text: str) -> None:
    survey.ask(WRITTEN, epsilon=1)
    spent, head = survey.budget.spent.epsilon, survey.ledger.head().number
    assert survey.quote(text, epsilon=1).again is not None
    assert survey.ask(text, epsilon=1).replayed
    assert (survey.budget.spent.epsilon, survey.ledger.head().number) == (spent, head)


def test_what_is_hidden_is_kept(survey: Curator) -> None:
    hidden = survey.ask(f"{WRITTEN} HAVING COUNT(*) > 1000000", epsilon=1)
    assert len(hidden) == 0
    first, top = survey.ask(WRITTEN, epsilon=1), survey.ask(f"{WRITTEN} ORDER BY n DESC LIMIT 1", epsilon=1)
    assert first.replayed
    assert len(first) == 4
    assert top["n"] == [max(first["n"])]
    assert first.margins().keys() == {"a", "n"}


@pytest.mark.parametrize("text", AGAIN)
def test_stored_numbers_come_out_under_their_own_names(survey: Curator, text: str) -> None:
    """Nearly without noise, so that numbers in the wrong column or group cannot pass."""
    survey.ask(MANY, epsilon=10**5)
    again = survey.ask(text, epsilon=10**5)
    assert again.replayed
    found = pd.DataFrame(again.to_dict()).sort_values(["region", "active"]).reset_index(drop=True)
    expected = pd.DataFrame(truth(MANY)).sort_values(["region", "active"]).reset_index(drop=True)
    for name in ("region", "active", "n"):
        assert found[name].tolist() == expected[name].tolist()
    for name in ("a", "s"):
        assert found[name].tolist() == pytest.approx(expected[name].clip(lower=0).tolist(), rel=0.02)


def test_that_another_order_would_be_noticed(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: without the order of the text, numbers would come out in the wrong place."""
    monkeypatch.setattr("dither.planning.records._inverse", lambda order: order)
    monkeypatch.setattr("dither.planning.records._sorted", lambda texts: tuple(range(1, len(texts))) + ((0,) if texts else ()))
    with pytest.raises((AssertionError, IndexError, KeyError)):
        test_stored_numbers_come_out_under_their_own_names(survey, AGAIN[0])


def test_a_quote_says_that_anothers_answer_counts_in_a_quota() -> None:
    catalog = filled(frames())
    limited = replace(catalog, budget=replace(catalog.budget, per_analyst=100))
    with open_curator(limited, ledger=":memory:") as survey:
        survey.ask(WRITTEN, epsilon=1, analyst="ana")
        assert "counts in the quota" in str(survey.quote(WRITTEN, epsilon=1, analyst="ben"))
        assert "counts in the quota" not in str(survey.quote(WRITTEN, epsilon=1, analyst="ana"))
        survey.ask(WRITTEN, epsilon=1, analyst="ben")
        assert "counts in the quota" not in str(survey.quote(WRITTEN, epsilon=1, analyst="ben"))
