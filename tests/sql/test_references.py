"""Rows with a dangling reference count if the row itself has the unit, and are left out if the unit must be looked up."""

from __future__ import annotations

import pytest

import dither as dt

CATALOG = dt.Catalog(
    tables={
        "people": dt.Table({"person_id": [1, 2, 3], "age": [30, 40, 50]}, unit="person_id", max_rows=1),
        "visits": dt.Table(
            {"person_id": [1, 2, 8, 9, None], "visit_id": [10, 20, 80, 90, 95]},
            unit={"column": "person_id", "references": "people.person_id"},
            max_rows=1,
            key="visit_id",
        ),
        "drugs": dt.Table(
            {"visit_id": [10, 80, 77, None], "dose": [1, 1, 1, 1]},
            unit={"column": "visit_id", "references": "visits.visit_id"},
            max_rows=1,
        ),
    },
    budget=dt.Budget(epsilon=1000),
)


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("visits", 4),  # also of 8 and 9, who are not among people; the one without a person is nobody's
        ("visits JOIN people USING (person_id)", 2),
        ("drugs", 2),  # of visits 10 and 80; there is no visit 77 that could say whose it is
    ],
)
def test_rows_of_unknown_people_are_counted_as_the_catalog_page_says(asked: str, rows: int) -> None:
    answer = dt.open(CATALOG, ledger=":memory:").ask(f"SELECT COUNT(*) AS n FROM {asked}", epsilon=200)
    assert answer["n"][0] == rows  # noise other than 0 has a chance below exp(-100)


def test_a_table_without_a_unit_is_advised_the_unit_of_the_others() -> None:
    pupils = dt.Table({"pupil": [1]}, unit="pupil", max_rows=1)
    with pytest.raises(dt.CatalogError, match='write unit="pupil"'):
        dt.Catalog(tables={"pupils": pupils, "marks": dt.Table({"pupil": [1]})}, budget=dt.Budget(epsilon=1))
