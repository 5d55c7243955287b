"""Which rows free answers are about: rows without an earlier group are in none of its sums, and answers say so."""

from __future__ import annotations

import pandas as pd
import pytest

import dither as dt
from dither.curator import Curator

TOTAL = "SELECT COUNT(*) AS n FROM people"
REGIONS = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
SEXES = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
BOTH = "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex"
CUBE = "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY CUBE (region, sex)"

pytestmark = pytest.mark.usefixtures("recorded")


def survey() -> Curator:
    """100 people: 30 have no region, 10 no sex, and 5 neither."""
    people = pd.DataFrame(
        {
            "id": range(100),
            "region": [None] * 30 + ["north", "south"] * 35,
            "sex": [None] * 5 + ["F", "M"] * 45 + [None] * 5,
        }
    )
    columns = {"region": dt.values("north", "south"), "sex": dt.values("F", "M")}
    table = dt.Table(people, unit="id", key="id", columns=columns)
    return dt.open(dt.Catalog({"people": table}, dt.Budget(epsilon=10**6)), ledger=":memory:")


def test_a_total_of_grouping_sets_has_only_rows_with_a_finest_group() -> None:
    """It once passed for the number of all rows, and was preferred to better ones for that."""
    with survey() as curator:
        curator.ask(CUBE, epsilon=900)
        found = curator.ask(TOTAL, free=True)
        assert found["n"] == [65]  # with a region and a sex
        for name in ("region", "sex"):
            assert f"people.{name} (NULL too)" in str(found)


def test_totals_that_leave_out_other_rows_are_not_averaged() -> None:
    with survey() as curator:
        curator.ask(REGIONS, epsilon=900)
        curator.ask(SEXES, epsilon=900)
        assert curator.ask(TOTAL, free=True)["n"][0] in (70, 90)
        curator.ask(BOTH, epsilon=1000)
        assert curator.ask(TOTAL, free=True)["n"][0] in (65, 70, 90)


def test_a_total_of_all_rows_is_preferred_to_a_tighter_one_of_some() -> None:
    with survey() as curator:
        curator.ask(REGIONS, epsilon=900)
        curator.ask(TOTAL, epsilon=100)
        found = curator.ask("SELECT COUNT(*) AS m FROM people", free=True)
        assert found["m"] == [100]
        assert "NULL too" not in str(found)


@pytest.mark.parametrize(
    "condition", ["region IS NULL", "COALESCE(region, 'none') <> 'north'", "region IS DISTINCT FROM 'north'"]
)
@pytest.mark.parametrize(("earlier", "north"), [(REGIONS, 35), (CUBE, 33)])
def test_a_condition_that_picks_rows_without_a_group_is_refused(condition: str, earlier: str, north: int) -> None:
    with survey() as curator:
        curator.ask(earlier, epsilon=900)
        with pytest.raises(dt.DitherError, match="Charged: nothing"):
            curator.ask(f"{TOTAL} WHERE {condition}", free=True)
        assert curator.ask(f"{TOTAL} WHERE region = 'north'", free=True)["n"] == [north]
