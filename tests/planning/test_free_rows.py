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


def others(**facts: object) -> Curator:
    """100 people, of whom 50 have a region that nobody declared."""
    regions = ["north"] * 30 + ["south"] * 20 + ["west"] * 50
    people = pd.DataFrame({"id": range(100), "region": regions, "sex": ["F", "M"] * 50})
    columns = {"region": dt.values("north", "south", **facts), "sex": dt.values("F", "M")}
    table = dt.Table(people, unit="id", key="id", columns=columns)
    return dt.open(dt.Catalog({"people": table}, dt.Budget(epsilon=10**6)), ledger=":memory:")


BANDS = "SELECT CASE WHEN region = 'north' THEN 'n' ELSE 'rest' END AS band, COUNT(*) AS n FROM people GROUP BY 1"


@pytest.mark.parametrize("condition", ["region = 'south'", "LENGTH(region) = 5", "region <> 'north' AND region < 'u'"])
def test_a_group_that_holds_other_values_is_no_declared_one(condition: str) -> None:
    """The band 'rest' once passed for the south, because no other region was declared: 70 people instead of 20."""
    with others(null=False) as curator:
        curator.ask(BANDS, epsilon=900)
        with pytest.raises(dt.DitherError, match="No earlier answer gives this"):
            curator.ask(f"{TOTAL} WHERE {condition}", free=True)


@pytest.mark.parametrize(("condition", "people"), [("region = 'north'", 30), ("region <> 'north'", 70)])
def test_conditions_that_hold_for_all_rows_of_such_groups_are_free(condition: str, people: int) -> None:
    with others(null=False) as curator:
        curator.ask(BANDS, epsilon=900)
        assert curator.ask(f"{TOTAL} WHERE {condition}", free=True)["n"] == [people]


@pytest.mark.parametrize("condition", ["region IS NULL", "COALESCE(region, 'x') = 'x'", "region <> 'north'"])
def test_the_group_for_other_values_of_a_list_is_not_null(condition: str) -> None:
    """Tables that are put together have one more group, for other values. It once passed for the rows without a region."""
    with others() as curator:
        assert curator.quote([REGIONS, SEXES, BOTH], epsilon=900).together
        curator.ask([REGIONS, SEXES, BOTH], epsilon=900)
        with pytest.raises(dt.DitherError, match="No earlier answer gives this"):
            curator.ask(f"{TOTAL} WHERE {condition}", free=True)


def test_a_total_of_such_a_list_has_all_rows() -> None:
    with others() as curator:
        curator.ask([REGIONS, SEXES, BOTH], epsilon=900)
        found = curator.ask(TOTAL, free=True)
        assert found["n"] == [100]
        assert "other values" not in str(found)
