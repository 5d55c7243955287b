"""Golden questions: intervals, flags of patterns, -x of whole numbers, NULL groups of windows, parameters, free lists."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

import dither as dt
from sql.everyday import person, words


def tables(without: int | None = None) -> dict[str, pa.Table]:
    """The tables of two other files; `without` leaves one person out of both."""
    return {**words.tables(without), **person.tables(without)}


def catalog(data: dict[str, pa.Table]) -> dt.Catalog:
    """A catalog with generous bounds."""
    held = {**words.catalog(data).tables, **person.catalog(data).tables}
    return dt.Catalog(held, dt.Budget(10**12, "1e-3", left_out=False))


def _counted(condition: str, of: str = "people") -> str:
    return f"SELECT COUNT(*) AS n FROM {of} WHERE {condition}"


CONDITIONS = {
    "joined + INTERVAL '1 year 2 months' > '2025-03-31'": "years and months",
    "joined - INTERVAL '1 month 1 day' < DATE '2023-05-30'": "months before days, backwards",
    "joined + INTERVAL '-1 month 3 days' >= '2024-02-29'": "units of both signs",
    "joined + INTERVAL '2 weeks 1 day' < '2024-01-01' OR joined > DATE '2024-01-31' + INTERVAL '1 quarter 1 d'": "short units",
    "joined + INTERVAL '1 day 12 hours' > TIMESTAMP '2024-06-01 12:00:00'": "days and hours of a date",
    "REGEXP_MATCHES(city, 'k.?ln', 'i')": "any case by an option",
    "REGEXP_MATCHES(city, '(?i)ÖLN')": "any case by a flag",
    "REGEXP_MATCHES(city, '(?i)ULM(?-i)-w')": "a flag and off again",
    "REGEXP_MATCHES(city, '(?i:KÖ)ln') OR REGEXP_MATCHES(plan, '[^P]lus', 'i')": "a flag for a group",
    "REGEXP_MATCHES(city, 'a,b', 'l') OR REGEXP_MATCHES(city, 't. p', 'il')": "a plain text",
    "REGEXP_MATCHES(city, '(?m)^[A-Z]') AND REGEXP_MATCHES(city, '.', 's')": "lines and line feeds",
    "REGEXP_FULL_MATCH(plan, 'BASIC|plus', 'i')": "all of the text in any case",
    "-age // 7 = -5 OR -(-age) = 40": "the negative of a whole number",
}
VISITED = {
    "seen + INTERVAL '1 month 2 days 3 hours 4 minutes' < TIMESTAMP '2024-03-01 00:00:00'": "all units of a timestamp",
    "-units // 4 = -1 AND -units % 3 <> 1": "negatives of both signs",
}
BY = "OVER (PARTITION BY customer ORDER BY day, number)"
GROUPS = "(SELECT plan, COUNT(*) AS n, SUM(age) AS years FROM people GROUP BY plan)"
FILLED: list[tuple[str, Any, str]] = [
    (_counted("age >= ? AND plan = ?"), [30, "basic"], _counted("age >= 30 AND plan = 'basic'")),
    (
        _counted("age BETWEEN $1 AND $1 + 20 OR plan IN (:plans)"),
        {"1": 30, "plans": ["PRO", "Plus"]},
        _counted("age BETWEEN 30 AND 50 OR plan IN ('PRO', 'Plus')"),
    ),
    (
        _counted("joined >= :day AND NULLIF(city, :none) IS NOT NULL"),
        {"day": datetime.date(2024, 2, 29), "none": ""},
        _counted("joined >= DATE '2024-02-29' AND NULLIF(city, '') IS NOT NULL"),
    ),
    (
        _counted("REGEXP_MATCHES(city, :pattern, 'i') AND joined < DATE '2025-01-01' + INTERVAL (:days) DAY"),
        {"pattern": "k|z", "days": 30},
        _counted("REGEXP_MATCHES(city, 'k|z', 'i') AND joined < DATE '2025-01-31'"),
    ),
    (
        "SELECT plan, SUM(age * $factor) AS s FROM people GROUP BY plan HAVING COUNT(*) > $least",
        {"factor": 0.5, "least": -3},
        "SELECT plan, SUM(age * 0.5) AS s FROM people GROUP BY plan HAVING COUNT(*) > -3",
    ),
]
QUESTIONS: list[tuple[str, str]] = [
    *((_counted(condition), what) for condition, what in CONDITIONS.items()),
    *((_counted(condition, "visits"), what) for condition, what in VISITED.items()),
    ("SELECT -LEAST(age // 30, 2) AS a, COUNT(*) AS n FROM people WHERE age >= 30 GROUP BY a", "a negative key"),
    ("SELECT -COUNT(*) AS n, -COUNT(*) // 7 AS weeks, -SUM(units) // 30 AS u FROM visits", "negatives of counts and sums"),
    (f"SELECT plan, -n // 7 AS w, (n + 1) // 4 AS q, years // 200 AS y FROM {GROUPS}", "whole division above the groups"),
    (f"SELECT SUM(-n) AS s, -MAX(n) // 7 AS m FROM {GROUPS}", "negatives across groups"),
    (
        "SELECT y, n FROM (SELECT DATE_TRUNC('year', joined) AS y, COUNT(*) AS n FROM people WHERE joined IS NOT NULL "
        "GROUP BY y) WHERE y >= '2024-01-01' AND y < DATE '2023-11-30' + INTERVAL '1 year 2 months'",
        "a text beside a date above the groups",
    ),
    (f"SELECT s, COUNT(*) AS n FROM (SELECT LAG(status) {BY} AS s FROM orders) t GROUP BY s", "the NULL group of LAG"),
    (f"SELECT m, COUNT(*) AS n FROM (SELECT MONTH(LEAD(day, 2) {BY}) AS m FROM orders) t GROUP BY m", "and of a part of LEAD"),
    (
        f"SELECT d > 0 AS more, COUNT(*) AS n FROM (SELECT total - LAG(total) {BY} AS d FROM orders) t GROUP BY more",
        "and of a condition",
    ),
    (
        f"SELECT s = x AS same, COUNT(*) AS n FROM (SELECT status AS x, LAG(status) {BY} AS s FROM orders) u GROUP BY 1",
        "and of a comparison",
    ),
    (
        f"SELECT s, COUNT(*) AS n FROM (SELECT LAG(status, 1, 'none') {BY} AS s FROM orders) t GROUP BY s",
        "the default of LAG is a value",
    ),
    (
        "SELECT s, COUNT(*) AS n FROM (SELECT FIRST_VALUE(status) OVER (PARTITION BY customer ORDER BY day, number "
        "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM orders) t GROUP BY s",
        "the NULL group of FIRST_VALUE in an empty frame",
    ),
    (
        f"SELECT s, COUNT(*) AS n FROM (SELECT LAG(status) {BY} AS s FROM orders) t WHERE s IS NOT NULL GROUP BY s",
        "no NULL group",
    ),
    *((question, f"parameters: {list(values)}") for question, values, _ in FILLED),
    ("SELECT DISTINCT plan FROM people", "a free list of declared values"),
    (
        "SELECT plan, active FROM people WHERE plan <> 'PRO' AND active IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2",
        "a list of pairs",
    ),
    ("SELECT DISTINCT UPPER(plan) AS p FROM people ORDER BY p DESC", "a list of computed values"),
    ("SELECT DISTINCT name, rich FROM nations WHERE nation < 2", "a list of a public table"),
    ("SELECT brand FROM parts WHERE weight > 3 GROUP BY brand", "a list by GROUP BY"),
    (
        "SELECT plan, active, COUNT(*) AS n FROM people WHERE active IS NOT NULL GROUP BY ALL ORDER BY ALL",
        "keys and order that SELECT implies",
    ),
    ("SELECT COUNT(*) / 2 AS half, UPPER(plan) AS p FROM people GROUP BY ALL ORDER BY p", "a computed key behind an aggregate"),
]
PARAMS = {question: values for question, values, _ in FILLED}
PLAIN = {question: written for question, _, written in FILLED}
