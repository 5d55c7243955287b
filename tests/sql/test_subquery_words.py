"""Subqueries as people write them: words that change nothing are heard, and no inner name reaches the reader."""

from __future__ import annotations

import pytest

from dither.query.sql import parse
from sql.survey import CATALOG


@pytest.mark.parametrize(
    "asked",
    [
        "person_id IN (SELECT {}v.person_id FROM visits v)",
        "region NOT IN (SELECT {}name FROM regions)",
        "age NOT IN (SELECT {}cost FROM visits v WHERE v.person_id = p.person_id)",
        "EXISTS (SELECT {}ward FROM visits v WHERE v.person_id = p.person_id)",
        "active OR EXISTS (SELECT {}ward FROM visits v WHERE v.person_id = p.person_id)",
        "active OR region IN (SELECT {}name FROM regions)",
        "person_id IN (SELECT {}person_id FROM visits GROUP BY person_id)",
    ],
)
def test_distinct_in_a_list_changes_nothing(asked: str) -> None:
    plain, distinct = (f"SELECT COUNT(*) FROM people p WHERE {asked.format(word)}" for word in ("", "DISTINCT "))
    assert parse(distinct, CATALOG) == parse(plain, CATALOG)
