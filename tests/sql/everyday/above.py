"""Golden questions: everything above the noisy result."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

import dither as dt

REGIONS, SEXES = ("east", "north", "south"), ("f", "m")
COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
BOTH = "SELECT region, sex, COUNT(*) AS n, SUM(age) AS s, AVG(income) AS a FROM people GROUP BY region, sex"
MONTHS = "SELECT MONTH(day) AS m, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY MONTH(day)"


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one person out. Person 0 has many visits, and some numbers are NULL or negative."""
    people = [
        {
            "person": i,
            "region": REGIONS[(i * i + i // 7) % 3],
            "sex": SEXES[(i // 3) % 2],
            "age": None if i % 11 == 0 else 18 + i * 7 % 60,
            "income": None if i % 13 == 0 else float(i * 37 % 2000 - 400),
        }
        for i in range(300)
    ]
    visits = [
        {
            "person": i % 100 if i < 350 else 0,
            "day": datetime.date(2025, 1 + (i * i + i // 3) % 4, 1 + i % 28),
            "cost": float(i * 13 % 90 - 20),
        }
        for i in range(400)
    ]
    kept = [[row for row in rows if row["person"] != without] for rows in (people, visits)]
    regions = {"name": ["east", "north", "south"], "area": [10.0, 20.0, 40.0], "coast": [True, False, True]}
    return {"people": pa.Table.from_pylist(kept[0]), "visits": pa.Table.from_pylist(kept[1]), "regions": pa.table(regions)}


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    people = {
        "region": dt.values(*REGIONS),
        "sex": dt.values(*SEXES),
        "age": dt.between(0, 120),
        "income": dt.between(-1000, 5000, step=1),
    }
    visits = {
        "day": dt.between(datetime.date(2025, 1, 1), datetime.date(2025, 4, 30)),
        "cost": dt.between(-100, 500, step=1),
    }
    held = {
        "people": dt.Table(data["people"], unit="person", max_rows=1, max_groups=1, columns=people),
        "visits": dt.Table(data["visits"], unit="person", max_rows=60, max_groups=4, columns=visits),
        "regions": dt.Table(data["regions"], public=True, key="name"),
    }
    return dt.Catalog(held, dt.Budget(epsilon=10**12, left_out=False))


QUESTIONS: list[tuple[str, str]] = [
    (
        "SELECT region, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY region",
        "share of the total",
    ),
    ("SELECT region, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY region", "percent of the total"),
    (
        "SELECT region, sex, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY region) AS share FROM people GROUP BY region, sex",
        "share within a part",
    ),
    (f"SELECT m, n, n - LAG(n) OVER (ORDER BY m) AS more FROM ({MONTHS}) t", "difference to the group before"),
    (f"SELECT m, n / LAG(n, 2) OVER (ORDER BY m) - 1 AS growth FROM ({MONTHS}) t ORDER BY m", "growth over two groups"),
    (f"SELECT m, LEAD(c, 1, -1) OVER (ORDER BY m) AS later FROM ({MONTHS}) t", "LEAD with a default"),
    (f"SELECT m, SUM(n) OVER (ORDER BY m) AS so_far FROM ({MONTHS}) t ORDER BY m DESC", "running total"),
    (
        f"SELECT m, AVG(c) OVER (ORDER BY m ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS smooth FROM ({MONTHS}) t",
        "moving average",
    ),
    (
        f"SELECT m, SUM(n) OVER (ORDER BY m ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ({MONTHS}) t",
        "a frame that may be empty",
    ),
    (f"SELECT m, COUNT(*) OVER (ORDER BY m DESC) AS k, MAX(n) OVER () AS top FROM ({MONTHS}) t", "COUNT and MAX over groups"),
    ("SELECT region, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY region", "rank by a noisy number"),
    (
        f"SELECT region, sex, DENSE_RANK() OVER (ORDER BY region) AS d, RANK() OVER (ORDER BY region) AS r FROM ({BOTH}) t",
        "ties of ranks",
    ),
    (
        f"SELECT region, sex, ROW_NUMBER() OVER (PARTITION BY region ORDER BY n DESC) AS i FROM ({BOTH}) t",
        "row numbers within a part",
    ),
    (f"SELECT region, sex, NTILE(4) OVER (ORDER BY region, sex) AS q FROM ({BOTH}) t", "four parts of six groups"),
    (
        f"SELECT region, sex, PERCENT_RANK() OVER (ORDER BY region) AS p, CUME_DIST() OVER (ORDER BY sex) AS c FROM ({BOTH}) t",
        "shares of ranks",
    ),
    (
        f"SELECT m, FIRST_VALUE(n) OVER w AS f, LAST_VALUE(n) OVER w AS l, NTH_VALUE(n, 2) OVER w AS s FROM ({MONTHS}) t "
        "WINDOW w AS (ORDER BY m)",
        "first, last and second value of a named window",
    ),
    (
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 2",
        "QUALIFY beside aggregates",
    ),
    (
        f"SELECT region, sex, n FROM ({BOTH}) t QUALIFY n = MAX(n) OVER (PARTITION BY region)",
        "the largest of each part",
    ),
    (f"SELECT region, n FROM ({COUNT}) WHERE n > 10 ORDER BY n DESC, region LIMIT 2", "WHERE, ORDER BY and LIMIT around it"),
    (f"SELECT region, n * 2 AS twice, n > 100 AS large FROM ({COUNT}) t WHERE region <> 'east'", "computed columns around it"),
    (f"SELECT MAX(n) AS top, MIN(n) AS low FROM ({COUNT})", "MAX and MIN of groups"),
    (f"SELECT ARG_MAX(region, n) AS most, ARG_MIN(region, n) AS least FROM ({COUNT}) t", "the largest and the smallest group"),
    (
        f"SELECT MAX_BY(m, c) AS most, MEDIAN(n) AS mid, AVG(n) AS mean, STDDEV(n) AS sd FROM ({MONTHS}) t",
        "statistics of groups",
    ),
    (f"SELECT COUNT(*) AS k, COUNT(DISTINCT region) AS r, SUM(n) AS n, VAR_POP(n) AS v FROM ({BOTH}) t", "counts of groups"),
    (
        f"WITH c AS ({BOTH}) SELECT region, SUM(n) AS n, AVG(a) AS a FROM c GROUP BY region HAVING SUM(n) > 3 ORDER BY region",
        "GROUP BY around GROUP BY, by a CTE",
    ),
    (
        f"SELECT sex, SUM(n) FILTER (WHERE region = 'east') AS e, SUM(n) AS n FROM ({BOTH}) t GROUP BY sex",
        "FILTER around it",
    ),
    (
        f"WITH c AS ({COUNT}), d AS (SELECT *, n / SUM(n) OVER () AS share FROM c) SELECT region FROM d WHERE share > 0.1",
        "two SELECTs around it",
    ),
    (f"SELECT DISTINCT region FROM ({BOTH}) t ORDER BY region", "DISTINCT around it"),
    (
        "WITH m AS (SELECT COUNT(*) AS a FROM people WHERE sex = 'm'), f AS (SELECT COUNT(*) AS b, AVG(age) AS g FROM people) "
        "SELECT a / b AS share, g FROM m, f",
        "scalar CTEs side by side",
    ),
    (
        "SELECT a - b AS more FROM (SELECT COUNT(*) AS a FROM people WHERE age > 40) x CROSS JOIN "
        "(SELECT COUNT(*) AS b FROM people WHERE age <= 40) y",
        "CROSS JOIN of two numbers",
    ),
    (
        "SELECT region, GREATEST(COUNT(*), 50) AS g, LEAST(SUM(age), 9) AS l, "
        "CASE WHEN COUNT(*) > 90 THEN 'many' ELSE 'few' END AS w FROM people GROUP BY region",
        "GREATEST, LEAST and CASE over aggregates",
    ),
    ("SELECT region, ROUND(AVG(income), 1) AS a, ROUND(SUM(age), -2) AS s FROM people GROUP BY region", "ROUND to digits"),
    (
        f"SELECT region, ROUND(100.0 * n / SUM(n) OVER (), 1) AS pct FROM ({COUNT}) t ORDER BY pct DESC",
        "a rounded percentage, sorted",
    ),
    (
        "SELECT COUNT(*) AS n, n / 2 AS half, AVG(age) AS a FROM people",
        "an output that names the one before",
    ),
    (
        "PIVOT (SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex) ON sex USING SUM(n) GROUP BY region",
        "PIVOT of a noisy table",
    ),
    ("PIVOT people ON sex USING COUNT(*) AS c, AVG(age) GROUP BY region", "PIVOT of people's rows"),
    (
        f"SELECT region, f_n / m_n AS r FROM ({BOTH}) PIVOT (SUM(n) AS n FOR sex IN ('m', 'f') GROUP BY region)",
        "PIVOT in FROM, with listed values",
    ),
    (
        f"WITH c AS ({COUNT}) SELECT region, n / (SELECT SUM(n) FROM c) AS share FROM c WHERE n >= (SELECT MIN(n) FROM c)",
        "a scalar subquery over the same result",
    ),
]
