"""A catalog with a graph is described and shown; its questions are asked beside the data."""

from __future__ import annotations

import pytest

import dither as dt
from dither.server.console import words
from dither.server.describe import describe


@pytest.mark.parametrize("unit", ["edge", "node"])
def test_a_graph_is_shown_in_words(unit: str) -> None:
    people = (
        dt.Table({"id": [1, 2, 3]}, public=True, key="id")
        if unit == "edge"
        else dt.Table({"id": [1, 2, 3]}, unit="id", key="id")
    )
    friends = dt.Table({"a": [1, 2], "b": [2, 3]}, edge=("a", "b"), unit=unit, nodes="people.id")
    with dt.open(dt.Catalog({"people": people, "friends": friends}, dt.Budget(1)), ledger=":memory:") as survey:
        described = describe(survey)
        assert described["tables"]["friends"]["edge"] == {"ends": ["a", "b"], "unit": unit}
        (shown,) = [each for each in words.tables(described) if each.name == "friends"]
    assert shown.protects.startswith(f"A graph: protected is one {unit}")
