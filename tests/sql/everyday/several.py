"""Golden questions: several results at one price, by UNION, ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import dither as dt

WARDS, KINDS, SEXES = ("a", "b", "c"), ("in", "out", None), ("f", "m")
CELLS = "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a"


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one person out. Person 0 has many visits in all groups; some keys and costs are NULL."""
    people = [
        {"person": i, "sex": SEXES[i // 3 % 2], "age": None if i % 11 == 0 else 18 + i * 7 % 60, "town": i % 4}
        for i in range(200)
    ]
    visits = [
        {
            "person": i % 90 if i % 12 else 0,
            "ward": WARDS[i * i % 7 % 3],
            "kind": KINDS[i // 5 % 3],
            "cost": None if i % 17 == 0 else i * 13 % 90 - 20,
            "late": i // 7 % 3 == 0,
        }
        for i in range(600)
    ]
    kept = [[row for row in rows if row["person"] != without] for rows in (people, visits)]
    towns = {"town": [0, 1, 2, 3], "land": ["hill", "hill", "sea", "sea"]}
    return {"people": pa.Table.from_pylist(kept[0]), "visits": pa.Table.from_pylist(kept[1]), "towns": pa.table(towns)}


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    people = {"sex": dt.values(*SEXES), "age": dt.between(0, 120), "town": dt.values(0, 1, 2, 3)}
    visits = {
        "ward": dt.values(*WARDS),
        "kind": dt.values(*KINDS),
        "cost": dt.between(-50, 100),
        "late": dt.column(kind="bool"),
    }
    own = {"column": "person", "references": "people.person"}
    held = {
        "people": dt.Table(data["people"], unit="person", key="person", max_rows=1, columns=people),
        "visits": dt.Table(data["visits"], unit=own, columns=visits, max_rows=40, max_groups=18),
        "towns": dt.Table(data["towns"], public=True, key="town"),
    }
    return dt.Catalog(held, dt.Budget(epsilon=10**12, left_out=False))


QUESTIONS: list[tuple[str, str]] = [
    (f"SELECT ward, kind, {CELLS} FROM visits GROUP BY ROLLUP (ward, kind)", "ROLLUP"),
    (f"SELECT ward, kind, {CELLS} FROM visits GROUP BY CUBE (ward, kind)", "CUBE"),
    (f"SELECT ward, kind, {CELLS} FROM visits GROUP BY GROUPING SETS ((ward), (kind), ())", "GROUPING SETS without the finest"),
    ("SELECT ward, kind, late, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, kind, late)", "CUBE of three keys"),
    (
        "SELECT ward, kind, GROUPING(kind) AS g, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, kind)",
        "a NULL key and a total",
    ),
    ("SELECT ward, kind, GROUPING(ward, kind) AS g, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, kind)", "GROUPING of two"),
    ("SELECT ward, GROUPING_ID(ward) AS g, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", "GROUPING_ID"),
    ("SELECT COALESCE(ward, 'all') AS w, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", "COALESCE of a total"),
    (
        "SELECT CASE WHEN GROUPING(ward) = 1 THEN 'all' ELSE UPPER(ward) END AS w, COUNT(*) AS n FROM visits"
        " GROUP BY ROLLUP (ward)",
        "CASE by GROUPING",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) HAVING GROUPING(ward) = 1", "HAVING by GROUPING"),
    ("SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, kind) HAVING COUNT(*) > 90", "HAVING by a count"),
    (
        "SELECT ward, late, SUM(cost) AS s FROM visits GROUP BY CUBE (ward, late) ORDER BY SUM(cost) DESC, ward LIMIT 4",
        "ORDER BY over all sets",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) ORDER BY n DESC LIMIT 2 OFFSET 1", "OFFSET over all sets"),
    ("SELECT ward, late, COUNT(*) AS n FROM visits GROUP BY ward, ROLLUP (late)", "a key beside ROLLUP"),
    ("SELECT ward, kind, late, COUNT(*) AS n FROM visits GROUP BY ROLLUP ((ward, kind), late)", "keys in parentheses"),
    ("SELECT ward, kind, late, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS (ROLLUP (ward, kind), late)", "nested sets"),
    ("SELECT ward, late, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward), CUBE (late)", "ROLLUP beside CUBE"),
    (
        "SELECT LENGTH(ward) AS l, late, COUNT(*) AS n FROM visits GROUP BY ROLLUP (late, LENGTH(ward))",
        "an expression as a key",
    ),
    ("SELECT late, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1)", "a position"),
    ("SELECT ward, COUNT(DISTINCT person) AS people FROM visits GROUP BY ROLLUP (ward)", "people are counted once in a total"),
    (
        "SELECT sex, town, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY CUBE (sex, town)",
        "one row",
    ),
    (
        "SELECT sex, land, COUNT(*) AS n FROM people JOIN towns USING (town) GROUP BY ROLLUP (land, sex)",
        "a public table's keys",
    ),
    (
        "SELECT p.sex, v.ward, SUM(v.cost) AS s FROM visits v JOIN people p USING (person) GROUP BY CUBE (p.sex, v.ward)",
        "keys of two tables",
    ),
    (
        "SELECT ward, COUNT(*) FILTER (WHERE late) AS late, COUNT(cost) AS known, COUNT(*) AS n FROM visits"
        " GROUP BY ROLLUP (ward)",
        "FILTER",
    ),
    (
        "SELECT ward, SUM(cost) / COUNT(*) AS each, STDDEV(cost) AS sd FROM visits GROUP BY ROLLUP (ward)",
        "computed in each set",
    ),
    (
        "SELECT 'people' AS what, COUNT(*) AS n FROM people UNION ALL SELECT 'visitors', COUNT(DISTINCT person) FROM visits",
        "UNION ALL",
    ),
    (
        "SELECT land AS k, COUNT(*) AS n FROM people JOIN towns USING (town) GROUP BY land UNION ALL"
        " SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY n DESC, k LIMIT 3",
        "ORDER BY and LIMIT over all parts",
    ),
    (
        "SELECT late, COUNT(*) AS n FROM visits GROUP BY late UNION SELECT late, COUNT(*) FROM visits GROUP BY late",
        "UNION drops",
    ),
    (
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT sex, COUNT(*) FROM people GROUP BY sex"
        " UNION ALL SELECT NULL, COUNT(*) FROM people",
        "equal parts, and a NULL",
    ),
    ("SELECT 'n' AS k, COUNT(*) AS v FROM people UNION ALL SELECT 'mean', AVG(age) FROM people", "whole numbers and reals"),
    (
        "WITH f AS (SELECT * FROM people WHERE sex = 'f') SELECT 'f' AS k, COUNT(*) AS n FROM f"
        " UNION ALL SELECT 'old', COUNT(*) FROM f WHERE age > 60 UNION ALL SELECT 'all', COUNT(*) FROM people ORDER BY 2, 1",
        "a CTE for all parts",
    ),
    (
        "(SELECT town, COUNT(*) AS n FROM people WHERE age > 60 GROUP BY town ORDER BY n DESC, town LIMIT 1) UNION ALL"
        " (SELECT LENGTH(sex), COUNT(*) FROM people GROUP BY LENGTH(sex) HAVING COUNT(*) > 1)",
        "parts with their own LIMIT",
    ),
    (
        "SELECT sex, town, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, town) UNION ALL"
        " SELECT land, NULL, COUNT(*) FROM people JOIN towns USING (town) GROUP BY land",
        "ROLLUP inside UNION",
    ),
]
