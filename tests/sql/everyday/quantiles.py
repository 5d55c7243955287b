"""Three and more quantiles of a column: one release for them all."""

from __future__ import annotations

from sql.everyday.moments import catalog, tables

__all__ = ["PLAIN", "QUESTIONS", "catalog", "tables"]

QUESTIONS = [
    ("SELECT QUANTILE_CONT(height, [0.11, 0.5, 0.91]) AS q FROM people", "a list"),
    ("SELECT QUANTILE_DISC(age, [0.93, 0.07, 0.52, 0.31]) AS q FROM people", "a list in any order, with NULLs"),
    ("SELECT APPROX_QUANTILE(height, [0.21, 0.47, 0.77]) AS q FROM people", "an approximate list"),
    ("SELECT PERCENTILE_DISC([0.21, 0.47, 0.77]) WITHIN GROUP (ORDER BY height DESC) AS q FROM people", "from above"),
    ("SELECT QUANTILE_DISC(height, [0.21, 0.47, 0.77]) FILTER (WHERE sex = 'm') AS q FROM people", "a list of some rows"),
    ("SELECT sex, QUANTILE_DISC(height, [0.21, 0.47, 0.77]) AS q FROM people GROUP BY sex", "a list in each group"),
    ("SELECT MEDIAN(age) AS m, QUANTILE_DISC(age, 0.23) AS a, QUANTILE_DISC(age, 0.77) AS b FROM people", "one by one"),
    ("SELECT QUANTILE_DISC(age, 0.77) - QUANTILE_DISC(age, 0.23) AS r, MEDIAN(age) AS m FROM people", "a range and a median"),
    (
        "SELECT QUANTILE_DISC(age, [0.23, 0.77]) AS q, COUNT(*) AS n, QUANTILE_DISC(age, 0.49) AS m FROM people",
        "beside a count",
    ),
    (
        "SELECT QUANTILE_DISC(CASE WHEN age < 40 THEN 0 ELSE age END, [0.07, 0.31, 0.83, 0.93]) AS q FROM people",
        "many rows of a value",
    ),
    (
        "SELECT QUANTILE_DISC(height, [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]) AS q FROM people",
        "ten quantiles",
    ),
]


def _each(column: str, shares: list[str], rest: str = "FROM people", first: str = "", where: str = "") -> str:
    return f"SELECT {first}{', '.join(f'QUANTILE_DISC({column}, {p}){where}' for p in shares)} {rest}"


TEN = [f"0.{i}5" for i in range(10)]
TIED = "CASE WHEN age < 40 THEN 0 ELSE age END"
PLAIN = {
    QUESTIONS[0][0]: _each("height", ["0.11", "0.5", "0.91"]),
    QUESTIONS[1][0]: _each("age", ["0.93", "0.07", "0.52", "0.31"]),
    QUESTIONS[2][0]: _each("height", ["0.21", "0.47", "0.77"]),
    QUESTIONS[3][0]: _each("height", ["0.79", "0.53", "0.23"]),
    QUESTIONS[4][0]: _each("height", ["0.21", "0.47", "0.77"], where=" FILTER (WHERE sex = 'm')"),
    QUESTIONS[5][0]: _each("height", ["0.21", "0.47", "0.77"], "FROM people GROUP BY sex", "sex, "),
    QUESTIONS[6][0]: _each("age", ["0.5", "0.23", "0.77"]),
    QUESTIONS[7][0]: "SELECT QUANTILE_DISC(age, 0.77) - QUANTILE_DISC(age, 0.23), QUANTILE_DISC(age, 0.5) FROM people",
    QUESTIONS[8][
        0
    ]: "SELECT QUANTILE_DISC(age, 0.23), QUANTILE_DISC(age, 0.77), COUNT(*), QUANTILE_DISC(age, 0.49) FROM people",
    QUESTIONS[9][0]: _each(TIED, ["0.07", "0.31", "0.83", "0.93"]),
    QUESTIONS[10][0]: _each("height", TEN),
}
