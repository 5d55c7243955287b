"""Golden questions: functions of dates, text and numbers, as people write them for DuckDB."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

import dither as dt

CITIES = ("Köln", "KÖLN", "  Ulm ", "ulm-west", "St. Pölten", "a,b,c", "", None, "Zürich 8001")
PLANS = ("basic", "Plus", "PRO", None)
FIRST, LAST = datetime.date(2023, 1, 1), datetime.date(2025, 12, 31)


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one person out. Person 0 has many visits, others few or none."""
    people = [
        {
            "id": i,
            "age": None if i % 13 == 0 else 18 + i * 7 % 60,
            "city": CITIES[(i * i + i // 5) % 9],
            "plan": PLANS[i % 4],
            "joined": None if i % 17 == 0 else FIRST + datetime.timedelta(days=i * 37 % 1096),
            "noted": None if i % 19 == 0 else f"{1 + i % 31}.{1 + i % 13}.{1990 + i % 30}",
            "active": None if i % 7 == 0 else i % 3 == 0,
        }
        for i in range(120)
    ]
    visits = [
        {
            "id": i * 7 % 90 if i % 5 else 0,
            "day": None if i % 23 == 0 else FIRST + datetime.timedelta(days=(i * i + i) % 1096),
            "left_": None if i % 29 == 0 else FIRST + datetime.timedelta(days=(i * i + i) % 1096 + i % 40),
            "seen": datetime.datetime(2024, 1 + i % 12, 1 + i % 28, i % 24, i * 7 % 60, i * 11 % 60),
            "cost": None if i % 31 == 0 else round(i * 1.37 % 90 - 20, 2),
            "units": None if i % 11 == 0 else i * 5 % 17 - 6,
        }
        for i in range(260)
    ]
    kept = {"people": people, "visits": visits}
    return {name: pa.Table.from_pylist([row for row in rows if row["id"] != without]) for name, rows in kept.items()}


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    days = dt.between(FIRST, datetime.date(2026, 3, 31))
    people = {
        "age": dt.between(0, 120),
        "city": dt.values(*(city for city in CITIES if city is not None), null="group"),
        "plan": dt.values(*(plan for plan in PLANS if plan is not None), null="group"),
        "joined": dt.between(FIRST, LAST),
        "noted": dt.column(),
        "active": dt.column(),
    }
    visits = {
        "day": days,
        "left_": days,
        "seen": dt.column(),
        "cost": dt.between(-100, 100, step="0.01"),
        "units": dt.between(-10, 20),
    }
    return dt.Catalog(
        {
            "people": dt.Table(data["people"], unit="id", max_rows=1, max_groups=1, key="id", columns=people),
            "visits": dt.Table(
                data["visits"],
                unit={"column": "id", "references": "people.id"},
                max_rows=60,
                max_groups=20,
                columns=visits,
            ),
        },
        dt.Budget(10**9, "1e-3", left_out=False),
    )


def _counted(condition: str, of: str = "people") -> str:
    return f"SELECT COUNT(*) AS n FROM {of} WHERE {condition}"


CONDITIONS = {
    # dates
    "joined >= '2024-01-01'": "text beside a date",
    "joined BETWEEN '2023-6-1' AND '2024-06-30'": "text between",
    "joined IN ('2023-01-01', '2023-02-07')": "text in a list",
    "joined <= DATE '2024-12-01' - INTERVAL '90' DAY": "interval on a constant",
    "joined < DATE '2023-01-31' + INTERVAL 1 MONTH": "a month after January 31",
    "joined + INTERVAL 3 MONTH > '2024-02-29'": "interval on a column",
    "joined - INTERVAL '1 year' < '2023-03-01'": "interval in one text",
    "INTERVAL 2 WEEK + joined > DATE '2024-05-05'": "interval first",
    "joined + 30 > DATE '2024-01-01' AND joined - 7 < '2025-05-05'": "days added",
    "DATE_PART('year', joined) = 2024 AND DATE_PART('dow', joined) <> 0": "date_part",
    "EXTRACT(doy FROM joined) > 100 AND EXTRACT(week FROM joined) < 30": "extract",
    "joined >= MAKE_DATE(2024, 2, 29)": "make_date",
    "joined = LAST_DAY(joined) OR DAYOFMONTH(joined) = 1": "last_day",
    "STRFTIME(joined, '%B %-d') = 'March 1' OR STRFTIME('%u', joined) = '1'": "strftime either way",
    # text
    "SUBSTRING(city FROM 1 FOR 2) = 'Kö' OR SUBSTRING(city, 3) = 'm'": "substring from for",
    "city ILIKE 'kö%'": "ilike",
    "city NOT ILIKE '%L%'": "not ilike",
    "LOWER(city) = 'köln' AND UPPER(plan) <> 'PRO'": "lower and upper in all alphabets",
    "SPLIT_PART(city, ',', 2) = 'b'": "split_part",
    "REPLACE(city, 'ö', 'oe') = 'Koeln'": "replace",
    "LEFT(city, 2) = 'St' OR RIGHT(city, 4) = '8001'": "left and right",
    "STARTS_WITH(city, 'K') OR ENDS_WITH(city, 'st') OR CONTAINS(city, 'lt')": "starts, ends, contains",
    "POSITION('l' IN city) > 2 OR STRPOS(city, 'ü') = 2": "position",
    "LTRIM(city) = 'Ulm ' AND RTRIM(city) = '  Ulm' AND TRIM(city) = 'Ulm'": "trim",
    "REGEXP_MATCHES(city, '^[A-Z][a-zöü]+( \\d{4})?$')": "regexp_matches",
    "REGEXP_FULL_MATCH(plan, 'b.*c|P[A-Z]+')": "regexp_full_match",
    "NOT REGEXP_MATCHES(city, '[.,-]')": "not regexp_matches",
    "CONCAT(city, '/', plan) = 'Köln/'": "concat leaves NULL out",
    "LENGTH(city) > 5 AND city || plan <> ''": "length and ||",
    # operators
    "age // 10 = 3": "whole division",
    "age IS DISTINCT FROM 25": "is distinct from",
    "age IS NOT DISTINCT FROM NULL": "is not distinct from null",
    "plan IS NOT DISTINCT FROM city OR active IS DISTINCT FROM TRUE": "is distinct of columns",
    "age ^ 2 > 900 AND age ** 2 < 4000 AND POWER(age, 1) > 3": "powers",
    "MOD(age, 7) = 3 AND SIGN(age - 40) = 1": "mod and sign",
    "GREATEST(age, 30) = 30 AND LEAST(age, NULL, 50) < 49": "greatest and least with NULL",
    "NULLIF(age, 25) IS NULL OR IFNULL(age, 99) = 99": "nullif and ifnull",
    "IF(active, age, 0) > 30": "if",
    "CASE plan WHEN 'basic' THEN 1 WHEN 'PRO' THEN 2 ELSE 3 END = 2": "case like decode",
    "CAST(age / 2 AS INTEGER) = 12": "cast rounds halves to even",
    "CAST(age / 7 AS DECIMAL(10, 1)) = 4.1": "cast to a decimal",
}
VISITED = {
    "left_ - day > 20": "date minus date",
    "DATE_DIFF('month', day, left_) = 1 OR DATE_DIFF('week', day, left_) = 3": "date_diff",
    "DATEDIFF('hour', seen, TIMESTAMP '2024-06-01 12:00:00') > 100": "datediff of timestamps",
    "seen >= '2024-05-01 10:30:00' AND HOUR(seen) < 12 AND MINUTE(seen) > 10 AND SECOND(seen) <> 3": "timestamps",
    "seen + INTERVAL 90 MINUTE < TIMESTAMP '2024-03-01 00:00:00'": "minutes added",
    "day + INTERVAL (units) DAY > left_": "interval of a column",
    "units // 4 = -1 OR units % 4 = -3": "negative whole division",
}
QUESTIONS: list[tuple[str, str]] = [
    *((_counted(condition), what) for condition, what in CONDITIONS.items()),
    *((_counted(condition, "visits"), what) for condition, what in VISITED.items()),
    (_counted("STRPTIME(noted, '%d.%m.%Y') >= '2005-01-01'"), "strptime"),
    ("SELECT YEAR(joined) AS y, COUNT(*) AS n FROM people WHERE joined IS NOT NULL GROUP BY y", "years"),
    ("SELECT DAYNAME(joined) AS d, COUNT(*) AS n FROM people WHERE joined IS NOT NULL GROUP BY d", "days by name"),
    ("SELECT MONTHNAME(joined) AS m, COUNT(*) AS n FROM people WHERE joined IS NOT NULL GROUP BY m", "months by name"),
    (
        "SELECT DAYOFWEEK(joined) AS d, COUNT(*) AS n FROM people WHERE joined IS NOT NULL GROUP BY d ORDER BY d",
        "days of the week",
    ),
    ("SELECT STRFTIME(joined, '%Y-%m') AS m, COUNT(*) AS n FROM people WHERE joined IS NOT NULL GROUP BY m", "months as text"),
    (
        "SELECT DATE_TRUNC('quarter', day) AS q, COUNT(*) AS n FROM visits WHERE day < '2026-01-01' GROUP BY 1 ORDER BY 1",
        "quarters",
    ),
    ("SELECT AVG(left_ - day) AS days, SUM(DATE_DIFF('day', day, left_)) AS total FROM visits", "days added up"),
    ("SELECT LOWER(plan) AS p, COUNT(*) AS n FROM people GROUP BY p", "small letters as a key"),
    ("SELECT UPPER(LEFT(city, 1)) AS c, COUNT(*) AS n FROM people GROUP BY c", "first letters"),
    ("SELECT SPLIT_PART(city, '-', 1) AS c, COUNT(*) AS n FROM people GROUP BY c", "parts as keys"),
    ("SELECT REGEXP_MATCHES(city, '[0-9]') AS digits, COUNT(*) AS n FROM people GROUP BY digits", "a pattern as a key"),
    ("SELECT LENGTH(REPLACE(city, ' ', '')) AS n, COUNT(*) AS people FROM people GROUP BY 1", "lengths"),
    ("SELECT COUNT_IF(age > 40) AS old, SUM(active) AS active, COUNT(*) AS n FROM people", "count_if and sums of conditions"),
    ("SELECT plan, COUNT_IF(age > 40) FILTER (WHERE active) AS n FROM people GROUP BY plan", "count_if with a filter"),
    ("SELECT COUNT(DISTINCT (city, plan)) AS pairs FROM people", "different pairs"),
    ("SELECT COUNT(DISTINCT (units // 3, day > '2024-06-06')) AS pairs FROM visits", "different pairs of expressions"),
    ("SELECT WIDTH_BUCKET(age, 20, 70, 5) AS b, COUNT(*) AS n FROM people WHERE age IS NOT NULL GROUP BY b", "width_bucket"),
    ("SELECT age // 20 * 20 AS b, COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 79 GROUP BY b", "whole division as a key"),
    ("SELECT SUM(ROUND(cost, 1)) AS r, SUM(TRUNC(cost, 1)) AS t, SUM(TRUNC(cost)) AS w FROM visits", "rounded below"),
    ("SELECT ROUND(cost, -1) AS c, COUNT(*) AS n FROM visits WHERE cost BETWEEN -20 AND 64 GROUP BY 1 ORDER BY 1", "by tens"),
    ("SELECT SUM(LEAST(units, 5)) AS a, SUM(GREATEST(units, 0, NULL)) AS b FROM visits", "least and greatest added up"),
    ("SELECT plan, COUNT(*) AS n FROM people GROUP BY plan ORDER BY n DESC, plan FETCH FIRST 2 ROWS ONLY", "fetch first"),
    ("SELECT plan, COUNT(*) AS n FROM people GROUP BY plan ORDER BY plan OFFSET 1 ROWS FETCH NEXT 1 ROW ONLY", "fetch next"),
]
_BUCKETS = "CASE WHEN age < 20 THEN 0 WHEN age >= 70 THEN 6 ELSE CAST(floor((age - 20) / 10) AS INTEGER) + 1 END"
_OTHERWISE = {"WIDTH_BUCKET(age, 20, 70, 5)": _BUCKETS, "STRPTIME(": "TRY_STRPTIME("}  # DuckDB has no bucket; it fails on texts
PLAIN = {
    question: question.replace(one, two) for question, _ in QUESTIONS for one, two in _OTHERWISE.items() if one in question
}
