"""Equated columns of a scalar subquery are not clamped, also if a person has more rows than max_rows."""

from __future__ import annotations

import pytest

from dither.engines.reference import Reference
from sql.test_engines_agree import KINDS, in_duckdb, work_of
from sql.test_marks import NOTHING
from sql.test_scalars import counted, raw

PEOPLE = [{**dict.fromkeys(KINDS["people"]), "person_id": 1, "age": age, "region": "north"} for age in (20,)]
PER_WARD = "(SELECT person_id, ward, COUNT(*) AS c FROM visits GROUP BY person_id, ward) g"
MINE = f"{PER_WARD} WHERE g.person_id = p.person_id"


@pytest.mark.parametrize("visits", [19, 20, 21, 25])
@pytest.mark.parametrize(
    "question",
    [
        f"SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM {MINE} AND g.c = p.age) > 0",
        f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM {MINE} AND g.c = p.age)",
        f"SELECT COUNT(*) FROM people p WHERE p.age IN (SELECT g.c FROM {MINE})",
    ],
)
def test_a_count_that_is_equated_is_not_held_to_max_rows(question: str, visits: int) -> None:
    row = {**dict.fromkeys(KINDS["visits"]), "person_id": 1, "ward": "a", "cost": 5}
    tables = {**NOTHING, "people": PEOPLE, "visits": [{**row, "visit_id": number} for number in range(visits)]}
    work, engine = work_of(question), in_duckdb(tables)
    assert counted(engine, work) == counted(Reference(tables, KINDS), work) == raw(engine, question) == int(visits == 20)
