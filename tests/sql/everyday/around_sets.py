"""Golden questions: windows and SELECTs around grouping sets and UNION, RANGE, GROUPS, IGNORE NULLS, NULLS FIRST."""

from __future__ import annotations

from sql.everyday.several import catalog, tables

__all__ = ["QUESTIONS", "catalog", "tables"]

MARKS = "GROUPING(ward) AS gw, GROUPING(kind) AS gk"
ROLLUP = f"SELECT ward, kind, {MARKS}, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ROLLUP (ward, kind)"
BOTH = "SELECT 'f' AS k, COUNT(*) AS n FROM people WHERE sex = 'f' UNION ALL SELECT 'old', COUNT(*) FROM people WHERE age > 60"
TOWNS = "SELECT NULLIF(town, 3) AS t, sex, COUNT(*) AS n FROM people GROUP BY town, sex"
GAPS = "SELECT town, CASE WHEN town % 2 = 0 THEN NULL ELSE COUNT(*) END AS n FROM people GROUP BY town"

QUESTIONS: list[tuple[str, str]] = [
    (
        "SELECT ward, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) FILTER (WHERE GROUPING(ward) = 0) OVER () AS pct"
        " FROM visits GROUP BY ROLLUP (ward)",
        "share of the total over ROLLUP",
    ),
    (
        "SELECT ward, late, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY GROUPING(ward, late)) AS share FROM visits"
        " GROUP BY CUBE (ward, late) ORDER BY GROUPING(ward, late), ward, late",
        "share within each grouping set",
    ),
    (
        "SELECT ward, late, RANK() OVER (PARTITION BY GROUPING(ward), GROUPING(late) ORDER BY SUM(cost) DESC) AS r FROM visits"
        " GROUP BY ROLLUP (ward, late) ORDER BY 1, 2",
        "rank within each level",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 2",
        "QUALIFY over ROLLUP",
    ),
    (f"SELECT * FROM ({ROLLUP}) WHERE ward IS NULL", "the total of a ROLLUP"),
    (f"SELECT kind, n FROM ({ROLLUP}) t WHERE ward = 'a' AND gk = 0 ORDER BY kind NULLS FIRST", "a NULL key is no total"),
    (f"SELECT ward, n, s / n AS each FROM ({ROLLUP}) t WHERE gk = 1 AND gw = 0 ORDER BY n DESC, ward LIMIT 2", "one level"),
    (
        f"SELECT ward, kind, n / SUM(n) FILTER (WHERE gw = 1) OVER () AS share FROM ({ROLLUP}) t ORDER BY gw, gk, ward, kind",
        "share of the noisy grand total",
    ),
    (
        f"SELECT gk + gw AS level, COUNT(*) AS k, SUM(n) AS n, MAX(s) AS top FROM ({ROLLUP}) t GROUP BY level ORDER BY level",
        "GROUP BY around ROLLUP",
    ),
    (
        f"WITH r AS ({ROLLUP}) SELECT ward, n / (SELECT SUM(n) FROM r WHERE gw = 1) AS share FROM r WHERE gk = 1 ORDER BY ward",
        "a scalar subquery over the same ROLLUP",
    ),
    (
        "SELECT ward, n - LAG(n) OVER (ORDER BY ward NULLS FIRST) AS more FROM"
        " (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) ORDER BY ward",
        "a difference between levels",
    ),
    (
        "SELECT * FROM (SELECT ward, late, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, late))"
        " PIVOT (SUM(n) FOR late IN (TRUE, FALSE) GROUP BY ward)",
        "PIVOT of ROLLUP",
    ),
    (f"SELECT SUM(n) AS n, COUNT(*) AS parts, MIN(k) AS k FROM ({BOTH})", "SUM of a UNION"),
    (f"WITH c AS ({BOTH}) SELECT k, n / SUM(n) OVER () AS share FROM c ORDER BY k", "share in a UNION, by a CTE"),
    (
        "WITH c AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT ward, n FROM c UNION ALL"
        " SELECT 'all', SUM(n) FROM c",
        "a noisy CTE in two parts",
    ),
    (
        "SELECT k, SUM(n) AS n FROM (SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL"
        " SELECT sex, COUNT(*) FROM people WHERE age > 40 GROUP BY sex) GROUP BY k",
        "GROUP BY around UNION",
    ),
    (
        "SELECT k, n FROM (SELECT town AS k, COUNT(*) AS n FROM people GROUP BY town UNION SELECT NULL, COUNT(*) FROM people)"
        " WHERE k IS NULL OR k > 1 ORDER BY k DESC NULLS FIRST",
        "WHERE around UNION, with a NULL",
    ),
    (
        "SELECT SUM(n) AS n, AVG(n) AS a FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex UNION ALL"
        " SELECT sex, NULL FROM people GROUP BY sex HAVING COUNT(*) > 0)",
        "NULLs of a part do not count",
    ),
    (
        "SELECT 'a' AS k, COUNT(*) AS n FROM people UNION ALL (SELECT 'b', COUNT(*) FROM people WHERE age > 30 UNION ALL"
        " SELECT 'c', COUNT(*) FROM people WHERE age > 50 ORDER BY 2 DESC LIMIT 1) ORDER BY n DESC",
        "UNION in parentheses",
    ),
    (
        "SELECT k, n FROM (SELECT sex AS k, town, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, town) UNION ALL"
        " SELECT 'none', NULL, COUNT(*) FROM people WHERE age IS NULL) t WHERE town IS NULL ORDER BY n DESC, k",
        "ROLLUP inside UNION inside SELECT",
    ),
    (
        "SELECT k, top FROM (SELECT 'town' AS k, MAX(n) AS top FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town)"
        " UNION ALL SELECT 'sex', MAX(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)) t WHERE top > 3",
        "SELECTs around parts of a UNION",
    ),
    (
        f"SELECT t, sex, SUM(n) OVER (ORDER BY t RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM ({TOWNS}) x",
        "RANGE with ties and NULLs",
    ),
    (
        f"SELECT t, sex, SUM(n) OVER (ORDER BY t DESC NULLS FIRST RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS s,"
        f" COUNT(*) OVER (PARTITION BY sex ORDER BY t RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS k FROM ({TOWNS}) x",
        "RANGE after the row, falling",
    ),
    (
        f"SELECT t, sex, SUM(n) OVER (ORDER BY t GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s,"
        f" MIN(n) OVER (ORDER BY sex GROUPS 1 PRECEDING) AS m FROM ({TOWNS}) x",
        "GROUPS",
    ),
    (
        f"SELECT town, LAG(n IGNORE NULLS) OVER (ORDER BY town) AS a, LEAD(n, 1, -1 IGNORE NULLS) OVER (ORDER BY town) AS b,"
        f" LAG(n RESPECT NULLS) OVER (ORDER BY town) AS c FROM ({GAPS}) x",
        "LAG and LEAD without NULLs",
    ),
    (
        f"SELECT town, FIRST_VALUE(n IGNORE NULLS) OVER w AS f, LAST_VALUE(n IGNORE NULLS) OVER w AS l,"
        f" NTH_VALUE(n, 2 IGNORE NULLS) OVER (ORDER BY town DESC) AS s FROM ({GAPS}) x"
        " WINDOW w AS (ORDER BY town ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "FIRST, LAST and NTH without NULLs",
    ),
    (
        "SELECT kind, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY kind DESC NULLS FIRST) AS i FROM visits GROUP BY kind"
        " ORDER BY kind NULLS FIRST",
        "NULLS FIRST",
    ),
]
