"""Golden questions: keys that depend on each other show the combinations that exist, and no other."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

import dither as dt

STATES = ("CA", "NY", "PA", "TX", "WA")
REGIONS = ("West", "East", "East", None, "West")
BY_STATE = (
    "SELECT s.region, s.abbrev, COUNT(*) AS n FROM people p JOIN states s ON p.state = s.abbrev GROUP BY s.region, s.abbrev"
)
BY_MONTH = "SELECT QUARTER(born) AS q, MONTH(born) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2"


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one person out. Person 0 has many visits. A public table has a NULL and a row of nobody."""
    people = [
        {
            "person": i,
            "state": STATES[i % 5],
            "born": datetime.date(1956, 3, 10) + datetime.timedelta(days=i * 9 % 1300),
            "age": 10 + i * 7 % 60,
        }
        for i in range(700)
    ]
    visits = [{"visit": i, "person": i % 100 if i < 350 else 0, "state": STATES[i * 3 % 5]} for i in range(400)]
    states = {"abbrev": [*STATES, "ZZ"], "region": [*REGIONS, "Nowhere"], "coast": [True, True, False, True, True, False]}
    return {
        "people": pa.Table.from_pylist([row for row in people if row["person"] != without]),
        "visits": pa.Table.from_pylist([row for row in visits if row["person"] != without]),
        "states": pa.table(states),
    }


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    born = dt.between(datetime.date(1956, 3, 10), datetime.date(1959, 9, 30))
    people = {"state": dt.values(*STATES, null=False), "born": born, "age": dt.between(10, 69)}
    held = {
        "people": dt.Table(data["people"], unit="person", max_rows=1, max_groups=1, columns=people),
        "visits": dt.Table(
            data["visits"], unit="person", key="visit", max_rows=60, max_groups=5, columns={"state": dt.values(*STATES)}
        ),
        "states": dt.Table(data["states"], public=True, key="abbrev"),
    }
    return dt.Catalog(tables=held, budget=dt.Budget(epsilon=10**9, delta="1e-3"))


JOINED = "people p JOIN states s ON p.state = s.abbrev"
REAL = "s.abbrev <> 'ZZ'"  # a state of the public table in which nobody can live
QUESTIONS = [
    (BY_STATE.replace("GROUP", f"WHERE {REAL} GROUP"), "two columns of a public table"),
    (
        f"SELECT region, COUNT(*) AS states, AVG(n) AS m, MIN(n) AS least FROM "
        f"({BY_STATE.replace('GROUP', f'WHERE {REAL} GROUP')}) GROUP BY region",
        "groups of groups of a public table",
    ),
    (
        f"SELECT s.abbrev, COUNT(*) AS n FROM {JOINED} WHERE s.region = 'East' GROUP BY s.abbrev",
        "a condition on another column",
    ),
    (
        f"SELECT AVG(n) AS m FROM (SELECT s.abbrev, COUNT(*) AS n FROM {JOINED} WHERE s.region = 'East' GROUP BY s.abbrev)",
        "a mean over groups that a condition on another column leaves",
    ),
    (f"SELECT p.state, COUNT(*) AS n FROM {JOINED} WHERE s.region = 'West' GROUP BY p.state", "the other side of the join"),
    (
        f"SELECT p.state, s.region, COUNT(*) AS n FROM {JOINED} GROUP BY p.state, s.region",
        "a key of people and what it looks up",
    ),
    (f"SELECT s.region, s.coast, COUNT(*) AS n FROM {JOINED} WHERE {REAL} GROUP BY 1, 2", "two columns that are not the key"),
    (
        f"SELECT s.region = 'East' AS east, s.abbrev, COUNT(*) AS n FROM {JOINED} "
        "WHERE s.coast AND s.region IS NOT NULL GROUP BY 1, 2",
        "expressions of a public table",
    ),
    (
        f"SELECT s.region, s.abbrev, p.age < 40 AS young, COUNT(*) AS n FROM {JOINED} WHERE {REAL} GROUP BY 1, 2, 3",
        "with a key of people",
    ),
    (
        "SELECT r.region, r.abbrev, COUNT(*) AS n FROM people p JOIN (SELECT abbrev, region FROM states WHERE coast) r "
        "ON p.state = r.abbrev GROUP BY 1, 2",
        "a derived public table",
    ),
    (
        "SELECT s.region, s.abbrev, COUNT(*) AS n FROM people p LEFT JOIN states s ON p.state = s.abbrev "
        f"WHERE {REAL} GROUP BY 1, 2",
        "a left join",
    ),
    (
        "SELECT s.region, s.abbrev, COUNT(*) AS n, COUNT(DISTINCT v.person) AS k FROM visits v "
        f"JOIN states s ON v.state = s.abbrev WHERE {REAL} GROUP BY 1, 2",
        "several rows of a person",
    ),
    (
        f"SELECT s.region, s.abbrev, COUNT(*) AS n FROM {JOINED} WHERE {REAL} AND s.region IS NOT NULL "
        "GROUP BY ROLLUP (s.region, s.abbrev)",
        "totals",
    ),
    (
        f"SELECT s.region, s.abbrev, COUNT(*) AS n FROM {JOINED} WHERE {REAL} AND s.region IS NOT NULL "
        "GROUP BY CUBE (s.region, s.abbrev)",
        "all totals",
    ),
    ("SELECT MONTH(born) AS mo, MONTHNAME(born) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2", "a month and its name"),
    (f"SELECT COUNT(*) AS months, AVG(n) AS m FROM ({BY_MONTH})", "how many months"),
    (f"SELECT q, COUNT(*) AS months, AVG(n) AS m FROM ({BY_MONTH}) GROUP BY q", "months of quarters"),
    (
        "SELECT YEAR(born) AS y, MONTH(born) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2",
        "months of years, the first in March",
    ),
    (
        "SELECT YEAR(born) AS y, MONTH(born) AS m, COUNT(*) AS n FROM people WHERE born >= DATE '1957-06-01' GROUP BY 1, 2",
        "months of years after a day",
    ),
    (
        "SELECT YEAR(born) AS y, QUARTER(born) AS q, COUNT(*) AS n FROM people "
        "WHERE born >= DATE '1957-06-01' AND born < DATE '1958-02-01' GROUP BY 1, 2",
        "quarters of years between days",
    ),
    (
        "SELECT FLOOR(age / 10) * 10 AS d, age >= 40 AS old, COUNT(*) AS n FROM people GROUP BY 1, 2 ORDER BY 1, 2",
        "a decade and a condition",
    ),
    (
        "SELECT FLOOR(age / 20) AS a, FLOOR(age / 10) AS b, SUM(age) AS s FROM people "
        "WHERE age < 45 GROUP BY 1, 2 ORDER BY 1, 2",
        "two widths",
    ),
    (
        "SELECT CASE WHEN state IN ('NY', 'PA') THEN 'East' ELSE 'other' END AS r, state, COUNT(*) AS n "
        "FROM people GROUP BY 1, 2",
        "a CASE beside its column",
    ),
    (
        "SELECT DATE_TRUNC('quarter', born) AS q, DATE_TRUNC('month', born) AS m, COUNT(*) AS n FROM people "
        "GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
        "totals of quarters",
    ),
    ("SELECT MONTH(born) AS m, COUNT(*) AS n FROM people WHERE MONTH(born) < 3 GROUP BY m", "months that the condition allows"),
    (
        "SELECT LEFT(state, 1) AS s, COUNT(*) AS n FROM people WHERE LEFT(state, 1) IN ('C', 'N') GROUP BY 1",
        "beginnings that the condition lists",
    ),
    (
        "SELECT YEAR(born) AS y, AVG(age) FILTER (WHERE state = 'CA') AS ca, AVG(age) FILTER (WHERE state = 'NY') AS ny, "
        "SUM(age) FILTER (WHERE state IN ('PA', 'TX')) AS others, COUNT(*) AS n FROM people GROUP BY y",
        "means with disjoint conditions",
    ),
    (
        "SELECT AVG(age) FILTER (WHERE born < '1958-01-01') - AVG(age) FILTER (WHERE born >= '1958-01-01') AS gap, "
        "SUM(age) FILTER (WHERE born < '1958-01-01') AS old FROM people",
        "a difference of two means",
    ),
]
