"""Golden questions: aggregates beyond sums and means."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

import dither as dt

REGIONS, SEXES = ("east", "north", "south"), ("f", "m")
CHECK = "SELECT COVAR_POP(cost, hours) AS c FROM visits"  # person 0 has far more visits than one person may count for


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one person out. Person 0 has many visits, and some numbers are NULL or negative."""
    dice = random.Random(7)
    people = []
    for i in range(301):
        age = min(90, int(18 + dice.expovariate(1 / 20)))
        income = round(800 * (age - 30) + dice.gauss(0, 9000))
        people.append(
            {
                "person": i,
                "region": dice.choice(["east", "east", "north"]),
                "sex": SEXES[i % 2],
                "age": None if i % 17 == 3 else age,
                "income": None if i % 13 == 4 else float(income),
                "height": 140 + dice.randint(0, 60),
            }
        )
    visits = [
        {"person": i % 90 if i < 400 else 0, "cost": dice.randint(-20, 80), "hours": dice.randint(1, 12)} for i in range(500)
    ]
    kept = [[row for row in rows if row["person"] != without] for rows in (people, visits)]
    return {"people": pa.Table.from_pylist(kept[0]), "visits": pa.Table.from_pylist(kept[1])}


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    people = {
        "region": dt.values(*REGIONS),
        "sex": dt.values(*SEXES),
        "age": dt.between(0, 120),
        "income": dt.between(-50000, 150000, step=1),
        "height": dt.between(100, 250),
    }
    visits = {"cost": dt.between(-100, 500), "hours": dt.between(0, 24)}
    held = {
        "people": dt.Table(data["people"], unit="person", max_rows=1, max_groups=1, columns=people),
        "visits": dt.Table(data["visits"], unit="person", max_rows=120, max_groups=4, columns=visits),
    }
    return dt.Catalog(held, dt.Budget(epsilon=10**12, left_out=False))


QUESTIONS = [
    ("SELECT CORR(income, age) AS r FROM people", "a correlation"),
    ("SELECT CORR(age, income) AS r FROM people", "a correlation, the other way round"),
    ("SELECT sex, CORR(income, age) AS r FROM people GROUP BY sex", "a correlation in each group"),
    ("SELECT CORR(income, age) FILTER (WHERE sex = 'f') AS r FROM people", "a correlation of some rows"),
    ("SELECT CORR(age, age) AS r FROM people", "a column with itself"),
    ("SELECT CORR(income, -age) AS r FROM people", "a correlation below zero"),
    ("SELECT CORR(cost, hours) AS r FROM visits", "a correlation with heavy users"),
    ("SELECT COVAR_POP(income, age) AS c FROM people", "the covariance of a population"),
    ("SELECT COVAR_SAMP(income, age) AS c, COVAR_POP(age, income) AS d FROM people", "both covariances"),
    (CHECK, "a covariance with heavy users"),
    ("SELECT REGR_SLOPE(income, age) AS b, REGR_INTERCEPT(income, age) AS a FROM people", "a line"),
    ("SELECT sex, REGR_SLOPE(income, age) AS b FROM people WHERE region = 'east' GROUP BY sex", "a slope in each group"),
    ("SELECT REGR_R2(income, age) AS r, REGR_COUNT(income, age) AS n FROM people", "how much a line explains"),
    ("SELECT REGR_COUNT(income, age) AS n FROM people", "rows without a NULL"),
    ("SELECT REGR_AVGX(income, age) AS x, REGR_AVGY(income, age) AS y FROM people", "means of rows without a NULL"),
    ("SELECT CORR(income, age) AS r, COUNT(*) AS n, AVG(age) AS m FROM people", "beside a count and a mean"),
    ("SELECT 100 * CORR(income, age) AS share FROM people", "arithmetic on a correlation"),
    ("SELECT SKEWNESS(age) AS s FROM people", "skewness"),
    ("SELECT KURTOSIS(age) AS k, KURTOSIS_POP(age) AS p, SKEWNESS(age) AS s FROM people", "kurtosis"),
    ("SELECT sex, SKEWNESS(income) AS s FROM people GROUP BY sex", "skewness in each group"),
    ("SELECT SKEWNESS(cost) AS s FROM visits", "skewness with heavy users"),
    ("SELECT MODE(region) AS m FROM people", "the most frequent text"),
    ("SELECT sex, MODE(region) AS m FROM people GROUP BY sex", "the most frequent text in each group"),
    ("SELECT MODE(BUCKET(age, 10)) AS m FROM people", "the most frequent number"),
    ("SELECT MODE(age >= 30) AS m FROM people", "the most frequent truth"),
    ("SELECT MODE(region) FILTER (WHERE sex = 'm') AS m, COUNT(*) AS n FROM people", "the most frequent of some rows"),
    ("SELECT MODE(region) = 'east' AS e FROM people", "a comparison with the most frequent"),
    ("SELECT GEOMEAN(height) AS g FROM people", "a geometric mean"),
    ("SELECT sex, GEOMETRIC_MEAN(CLAMP(height, 150, 190)) AS g, AVG(height) AS a FROM people GROUP BY sex", "beside a mean"),
    ("SELECT SUM(height * age) / SUM(height) FILTER (WHERE age IS NOT NULL) AS w FROM people", "a weighted mean"),
    ("SELECT QUANTILE(height, [0.25, 0.5, 0.75]) AS q FROM people", "a list of quantiles"),
    ("SELECT sex, QUANTILE_DISC(age, [0.1, 0.9]) AS q FROM people GROUP BY sex", "a list in each group"),
    ("SELECT PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY age) AS q FROM people", "a discrete percentile"),
    ("SELECT PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY age DESC) AS q FROM people", "a percentile from above"),
    ("SELECT APPROX_QUANTILE(height, 0.5) AS q FROM people", "an approximate quantile"),
    ("SELECT APPROX_COUNT_DISTINCT(sex) AS n FROM people", "an approximate count of values"),
    ("SELECT APPROX_COUNT_DISTINCT(person) AS n FROM people", "an approximate count of people"),
    ("SELECT HISTOGRAM(sex) AS n FROM people", "a histogram of declared values"),
    ("SELECT sex, HISTOGRAM(BUCKET(height, 50)) AS n FROM people GROUP BY sex", "a histogram of bins in each group"),
]

# What DuckDB is asked where it writes the answer in another shape, or only approximately.
CLAMPED = "GREATEST(150, LEAST(190, height))"
PLAIN = {
    "SELECT MODE(BUCKET(age, 10)) AS m FROM people": "SELECT MODE(FLOOR(age / 10) * 10) AS m FROM people",
    "SELECT sex, GEOMETRIC_MEAN(CLAMP(height, 150, 190)) AS g, AVG(height) AS a FROM people GROUP BY sex": (
        f"SELECT sex, GEOMETRIC_MEAN({CLAMPED}), AVG(height) FROM people GROUP BY sex"
    ),
    "SELECT QUANTILE(height, [0.25, 0.5, 0.75]) AS q FROM people": (
        "SELECT QUANTILE_DISC(height, 0.25), QUANTILE_DISC(height, 0.5), QUANTILE_DISC(height, 0.75) FROM people"
    ),
    "SELECT sex, QUANTILE_DISC(age, [0.1, 0.9]) AS q FROM people GROUP BY sex": (
        "SELECT sex, QUANTILE_DISC(age, 0.1), QUANTILE_DISC(age, 0.9) FROM people GROUP BY sex"
    ),
    "SELECT APPROX_QUANTILE(height, 0.5) AS q FROM people": "SELECT QUANTILE_DISC(height, 0.5) FROM people",
    "SELECT APPROX_COUNT_DISTINCT(sex) AS n FROM people": "SELECT COUNT(DISTINCT sex) FROM people",
    "SELECT APPROX_COUNT_DISTINCT(person) AS n FROM people": "SELECT COUNT(DISTINCT person) FROM people",
    "SELECT HISTOGRAM(sex) AS n FROM people": "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    "SELECT sex, HISTOGRAM(BUCKET(height, 50)) AS n FROM people GROUP BY sex": (
        "SELECT s.sex, b, COUNT(height) FROM (SELECT UNNEST(['f', 'm']) AS sex) s, (SELECT UNNEST([100, 150, 200, 250]) AS b) "
        "LEFT JOIN people p ON p.sex = s.sex AND FLOOR(height / 50) * 50 = b GROUP BY s.sex, b"
    ),
}
