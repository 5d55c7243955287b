"""Golden questions: subqueries over public tables above the groups, and aggregates that only order or filter them."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

import dither as dt

REGIONS = ("east", "north", "south", "west")  # the west is in no public table
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
NAMED = "(SELECT long FROM regions r WHERE r.name = p.region)"


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one person out. Person 0 has many visits. Public tables have NULLs and equal rows."""
    people = [
        {
            "person": i,
            "region": REGIONS[(i * i + i // 7) % 3 if i % 20 else 3],
            "age": None if i % 11 == 0 else 18 + i * 7 % 60,
            "born": datetime.date(1950 + i % 7 % 4, 1, 1),
        }
        for i in range(300)
    ]
    visits = [
        {"visit": i, "person": i % 100 if i < 350 else 0, "ward": i % 5, "cost": float(i * 13 % 90 - 20)} for i in range(400)
    ]
    kept = [[row for row in rows if row["person"] != without] for rows in (people, visits)]
    regions = {
        "name": ["east", "north", "south", "far"],
        "long": ["The East", "The North", None, "Far away"],
        "area": [10.25, 20.5, None, 7.0],
        "coast": [True, False, True, None],
        "since": [datetime.date(1990, 5, 1), datetime.date(2001, 1, 1), None, datetime.date(1970, 1, 1)],
    }
    limits = {"kind": ["low", "low", "high", "none"], "least": [3, 90, 100, None], "share": [0.125, 0.125, 0.3, None]}
    return {
        "people": pa.Table.from_pylist(kept[0]),
        "visits": pa.Table.from_pylist(kept[1]),
        "regions": pa.table(regions),
        "limits": pa.table(limits),
        "nothing": pa.table({"name": pa.array([], pa.string()), "x": pa.array([], pa.float64())}),
    }


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    born = dt.between(datetime.date(1950, 1, 1), datetime.date(1953, 12, 31))
    people = {"region": dt.values(*REGIONS), "age": dt.between(0, 120), "born": born}
    visits = {"ward": dt.values(*range(5)), "cost": dt.between(-100, 500, step=1)}
    held = {
        "people": dt.Table(data["people"], unit="person", max_rows=1, max_groups=1, columns=people),
        "visits": dt.Table(data["visits"], unit="person", key="visit", max_rows=60, max_groups=5, columns=visits),
        "regions": dt.Table(data["regions"], public=True, key="name"),
        "limits": dt.Table(data["limits"], public=True),
        "nothing": dt.Table(data["nothing"], public=True),
    }
    return dt.Catalog(held, dt.Budget(epsilon=10**12, left_out=False))


QUESTIONS: list[tuple[str, str]] = [
    (f"{BY_REGION} HAVING COUNT(*) > (SELECT MAX(least) FROM limits WHERE kind = 'low')", "a number in HAVING"),
    (f"{BY_REGION} HAVING n > (SELECT AVG(share) * 400 FROM limits)", "a mean of fractions"),
    (f"{BY_REGION} HAVING region IN (SELECT name FROM regions WHERE coast)", "IN in HAVING"),
    (f"{BY_REGION} HAVING region NOT IN (SELECT long FROM regions)", "NOT IN a list with NULL"),
    (f"{BY_REGION} HAVING region NOT IN (SELECT name FROM nothing)", "NOT IN an empty list"),
    (
        "SELECT region, COUNT(*) AS n FROM people p GROUP BY region "
        "HAVING EXISTS (SELECT 1 FROM regions r WHERE r.name = p.region AND r.area > 5)",
        "EXISTS in HAVING, with the group's key",
    ),
    (f"SELECT region, {NAMED} AS long, COUNT(*) AS n FROM people p GROUP BY region", "a name for each group, NULLs too"),
    (f"SELECT {NAMED} AS long, COUNT(*) AS n FROM people p GROUP BY region ORDER BY {NAMED}, n", "a name in ORDER BY"),
    (
        "SELECT p.region, ROUND(COUNT(*) / (SELECT area FROM regions r WHERE r.name = p.region), 3) AS density "
        "FROM people p GROUP BY p.region",
        "a density",
    ),
    (
        "SELECT COUNT(*) AS n, (SELECT SUM(least) FROM limits) AS s, (SELECT COUNT(*) FROM nothing) AS none, "
        "(SELECT MAX(x) FROM nothing) AS x, (SELECT x FROM nothing) AS y FROM people",
        "sums, and tables without rows",
    ),
    (
        "SELECT region, (SELECT COUNT(*) FROM regions r WHERE r.name = p.region) AS known, COUNT(*) AS n "
        "FROM people p GROUP BY region",
        "a count for each group, 0 without rows",
    ),
    (
        "SELECT region, (SELECT since FROM regions r WHERE r.name = p.region) AS since, "
        "(SELECT BOOL_OR(coast) FROM regions) AS any_coast, COUNT(*) AS n FROM people p GROUP BY region",
        "dates and conditions",
    ),
    (
        "WITH least AS (SELECT MAX(least) AS m FROM limits WHERE kind = 'low') "
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > (SELECT m FROM least)",
        "a CTE of a public table",
    ),
    (
        f"SELECT region, n, n - (SELECT MIN(least) FROM limits) AS above FROM ({BY_REGION}) t "
        "WHERE n > (SELECT MIN(least) FROM limits) ORDER BY above DESC",
        "a SELECT around it, the same subquery twice",
    ),
    (
        f"SELECT t.region, (SELECT long FROM regions r WHERE r.name = t.region) AS long FROM ({BY_REGION}) t "
        "WHERE t.region IN (SELECT name FROM regions)",
        "a name in a SELECT around it",
    ),
    (
        "SELECT MAX(n) + (SELECT MAX(least) FROM limits) AS m, SUM(n * (SELECT MAX(share) FROM limits)) AS s "
        f"FROM ({BY_REGION})",
        "beside aggregates of noisy groups, and inside them",
    ),
    (
        "SELECT YEAR(born) AS y, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) + (SELECT MIN(least) FROM limits)) AS place "
        "FROM people GROUP BY YEAR(born) QUALIFY place < (SELECT MIN(least) + 1 FROM limits)",
        "in a window function and in QUALIFY",
    ),
    (
        "SELECT ward + 2 AS k, COUNT(*) AS n FROM visits GROUP BY ward + 2 HAVING ward + 2 IN (SELECT least FROM limits)",
        "a key that is computed",
    ),
    (
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region "
        "HAVING COUNT(*) > (SELECT MAX(least) FROM limits GROUP BY kind HAVING kind = 'low')",
        "GROUP BY inside",
    ),
    (
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region "
        "HAVING CASE WHEN (SELECT MAX(share) FROM limits) > 0.25 THEN region <> 'east' ELSE TRUE END",
        "inside CASE, with a key only",
    ),
    (
        f"SELECT t.region, t.n, (SELECT kind FROM limits l WHERE l.least = t.n) AS kind FROM ({BY_REGION}) t",
        "looked up by a noisy number",
    ),
    (
        "SELECT SUM(cost) AS s FROM visits HAVING SUM(cost) > (SELECT MIN(share) FROM limits WHERE kind IN ('low', 'high'))",
        "one row",
    ),
    (
        f"{BY_REGION} HAVING COUNT(*) > (SELECT least FROM limits WHERE least IS NOT NULL ORDER BY share DESC, 1 LIMIT 1) "
        "OR region = (SELECT name FROM regions ORDER BY since LIMIT 1)",
        "the first row in an order",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE visit IN (SELECT visit FROM visits GROUP BY visit HAVING SUM(cost) > 2)",
        "rows grouped by their own id",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits v WHERE (SELECT SUM(cost) FROM visits b WHERE b.visit = v.visit) > 2 "
        "GROUP BY ward",
        "a row's own id in a subquery for a value",
    ),
    ("SELECT region NOT IN (SELECT name FROM regions) AS k, COUNT(*) AS n FROM people GROUP BY 1", "a key below, by its place"),
    (
        "SELECT region IN (SELECT name FROM regions) AS k, COUNT(*) AS n FROM people GROUP BY ROLLUP (k)",
        "a key below, in grouping sets",
    ),
    (
        "SELECT region IN (SELECT name FROM regions) AS k, COUNT(*) AS n FROM people GROUP BY k "
        "HAVING NOT (region IN (SELECT name FROM regions)) OR COUNT(*) > (SELECT MAX(least) FROM limits)",
        "a key below in HAVING, beside a number above",
    ),
    ("SELECT region FROM people GROUP BY region ORDER BY COUNT(*) DESC, region", "a count in ORDER BY only"),
    ("SELECT region FROM people GROUP BY region HAVING AVG(age) > 30 ORDER BY region", "a mean in HAVING only"),
    ("SELECT ward FROM visits GROUP BY ward ORDER BY SUM(cost) LIMIT 2", "a sum in ORDER BY only, with LIMIT"),
    (
        "SELECT region FROM people GROUP BY region QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1",
        "a count in QUALIFY only",
    ),
]
