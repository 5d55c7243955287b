"""The caps of tables also hold the defaults of questions that read several tables, where defaults add up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dither as dt
from dither.curator import Curator
from dither.planning import bounds

BOTH = "(SELECT person, kind FROM calls UNION ALL SELECT person, kind FROM texts UNION ALL SELECT person, kind FROM calls) t"
COUNT = f"SELECT kind, COUNT(*) AS n FROM {BOTH} GROUP BY kind"


@pytest.fixture
def survey() -> Iterator[Curator]:
    """Person 1 has ten rows of each kind in each table; calls allow 4 rows, texts 5."""
    rows = {"person": [1] * 30, "kind": ["a", "b", "c"] * 10}
    columns = {"kind": dt.values("a", "b", "c")}
    unit = {"column": "person", "references": "people.person"}
    caps = {"max_rows": 4, "max_groups": 2}
    tables = {
        "people": dt.Table({"person": [1]}, unit="person", max_rows=1, key="person", columns={}),
        "calls": dt.Table(rows, unit=unit, max_rows=4, max_groups=1, caps=caps, columns=columns),
        "texts": dt.Table(rows, unit=unit, max_rows=5, max_groups=1, columns=columns),
    }
    with dt.open(dt.Catalog(tables, dt.Budget(10**6, left_out=False)), ledger=":memory:") as curator:
        yield curator


def largest(curator: Curator, **terms: int) -> tuple[int, int]:
    """Returns the most rows of person 1 in a group, and its groups."""
    numbers = curator.ask(COUNT, epsilon=2000, **terms)["n"]
    return max(numbers), sum(number > 0 for number in numbers)


def test_defaults_that_add_up_stay_within_the_caps(survey: Curator) -> None:
    assert largest(survey) == (4, 2)


def test_the_default_written_out_is_the_same_question(survey: Curator) -> None:
    survey.ask(COUNT, epsilon=500)
    assert survey.ask(COUNT, epsilon=500, max_rows=4, max_groups=2).replayed


def test_a_question_without_caps_adds_up(survey: Curator) -> None:
    only = "(SELECT person, kind FROM texts UNION ALL SELECT person, kind FROM texts) t"
    plan = survey.quote(f"SELECT kind, COUNT(*) AS n FROM {only} GROUP BY kind", epsilon=1).plan
    assert (plan.work.measures[0].max_rows, plan.work.max_groups) == (10, 2)  # type: ignore[union-attr]


def test_that_uncapped_defaults_are_caught(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong version: defaults are taken as they are."""
    monkeypatch.setattr(bounds, "_capped", lambda query, catalog, name: getattr(query, name))
    assert largest(survey) == (13, 3)
