"""What people write and dither does not answer: each refusal names a way that works, and the way is asked.

Three columns: what is written, what the refusal must name, and the same question written that way with the user's own names.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

import pytest

import dither as dt
from dither.curator import Curator

FIRST, LAST = datetime.date(2020, 1, 1), datetime.date(2025, 12, 31)

OUTPUTS = [
    ("ARRAY_AGG(age)", "COUNT(*) AS n ... GROUP BY x", "SELECT age, COUNT(*) AS n FROM people GROUP BY age"),
    ("LIST_AGG(age)", "COUNT(*) AS n ... GROUP BY x", "SELECT age, COUNT(*) AS n FROM people GROUP BY age"),
    ("JSON_AGG(region)", "COUNT(*) AS n ... GROUP BY x", "SELECT region, COUNT(*) AS n FROM people GROUP BY region"),
    (
        "LISTAGG(region, ',') WITHIN GROUP (ORDER BY region)",
        "GROUP BY x",
        "SELECT region, COUNT(*) AS n FROM people GROUP BY 1",
    ),
    ("FIRST(region)", "MODE(x)", "SELECT MODE(region) AS x FROM people"),
    ("ANY_VALUE(region)", "MODE(x)", "SELECT MODE(region) AS x FROM people"),
    (
        "ARG_MAX(region, age)",
        "ORDER BY m DESC LIMIT 1",
        "SELECT region, AVG(age) AS m FROM people GROUP BY region ORDER BY m DESC LIMIT 1",
    ),
    ("BIT_XOR(age)", "x // 2 % 2", "SELECT SUM(age // 2 % 2) AS x FROM people"),
    ("PRODUCT(age)", "EXP(SUM(LN(CLAMP(x, 1, 100))))", "SELECT EXP(SUM(LN(CLAMP(age, 1, 100)))) AS x FROM people"),
    ("SUMKAHAN(income)", "SUM(x)", "SELECT SUM(income) AS x FROM people"),
    ("MAD(age)", "MEDIAN(ABS(x - 40))", "SELECT MEDIAN(ABS(age - 40)) AS x FROM people"),
    ("SEM(age)", "STDDEV(x) / SQRT(COUNT(x))", "SELECT STDDEV(age) / SQRT(COUNT(age)) AS x FROM people"),
    ("ENTROPY(region)", "COUNT(*) AS n ... GROUP BY x", "SELECT region, COUNT(*) AS n FROM people GROUP BY region"),
    ("RESERVOIR_QUANTILE(age, 0.5)", "QUANTILE(x, 0.5)", "SELECT QUANTILE(age, 0.5) AS x FROM people"),
    ("PERCENTILE_APPROX(age, 0.5)", "APPROX_QUANTILE(x, 0.5)", "SELECT APPROX_QUANTILE(age, 0.5) AS x FROM people"),
    (
        "APPROX_TOP_K(region, 3)",
        "ORDER BY n DESC LIMIT 3",
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 3",
    ),
    ("SUM(DISTINCT age)", "COUNT(DISTINCT x)", "SELECT COUNT(DISTINCT age) AS x FROM people"),
    ("COUNT(DISTINCT age, region)", "COUNT(DISTINCT (x, y))", "SELECT COUNT(DISTINCT (age, region)) AS x FROM people"),
    ("RANK(3) WITHIN GROUP (ORDER BY age)", "COUNT_IF(x < 3)", "SELECT COUNT_IF(age < 3) AS x FROM people"),
    (
        "CUME_DIST(3) WITHIN GROUP (ORDER BY age)",
        "COUNT_IF(x < 3) / COUNT(*)",
        "SELECT COUNT_IF(age < 3) / COUNT(*) AS x FROM people",
    ),
    ("EVERY(age > 3)", "COUNT_IF(NOT x > 3)", "SELECT COUNT_IF(NOT age > 3) AS x FROM people"),
    ("TRIMMED_MEAN(age)", "AVG(CLAMP(x, 5, 95))", "SELECT AVG(CLAMP(age, 5, 95)) AS x FROM people"),
    ("AVG(joined)", "AVG(YEAR(joined))", "SELECT AVG(YEAR(joined)) AS x FROM people"),
    ("COUNT(COLUMNS(*))", "AVG(x) AS x, AVG(y) AS y", "SELECT AVG(age) AS x, AVG(income) AS y FROM people"),
]
CONDITIONS = [
    ("SOUNDEX(city) = 'S530'", "x LIKE 'Sm_th%'", "city LIKE 'Sm_th%'"),
    ("LEVENSHTEIN(city, 'Wien') < 2", "REGEXP_MATCHES(x, '^Sm[iy]th')", "REGEXP_MATCHES(city, '^Sm[iy]th')"),
    ("MD5(city) = 'a'", "x = 'a'", "city = 'a'"),
    ("ASCII(city) = 65", "LEFT(x, 1) = 'A'", "LEFT(city, 1) = 'A'"),
    ("REPEAT(city, 2) = 'aa'", "x || x", "city || city = 'aa'"),
    ("REGEXP_LIKE(city, 'a')", "REGEXP_MATCHES(x, 'pattern')", "REGEXP_MATCHES(city, 'a')"),
    ("city ~* 'a'", "REGEXP_MATCHES(LOWER(x), 'pattern')", "REGEXP_MATCHES(LOWER(city), 'a')"),
    ("city ~ 'a'", "REGEXP_MATCHES(x, 'pattern')", "REGEXP_MATCHES(city, 'a')"),
    ("city GLOB 'a*'", "x LIKE 'a%'", "city LIKE 'a%'"),
    ("city SIMILAR TO 'a%'", "x LIKE 'a%'", "city LIKE 'a%'"),
    ("city[1:2] = 'Wi'", "LEFT(x, 2)", "LEFT(city, 2) = 'Wi'"),
    ("city COLLATE nocase = 'wien'", "LOWER(x)", "LOWER(city) = 'wien'"),
    ("FORMAT('{}', age) = '3'", "CAST(x AS VARCHAR)", "CAST(age AS VARCHAR) = '3'"),
    ("TO_CHAR(joined, 'YYYY') = '2020'", "STRFTIME(x, '%Y-%m-%d')", "STRFTIME(joined, '%Y') = '2020'"),
    ("TIME_BUCKET(INTERVAL 1 MONTH, joined) = joined", "DATE_TRUNC('month', x)", "DATE_TRUNC('month', joined) = joined"),
    ("DATE_BIN(INTERVAL 1 DAY, joined) = joined", "DATE_TRUNC('month', x)", "DATE_TRUNC('day', joined) = joined"),
    ("YEARWEEK(joined) = 202001", "ISOYEAR(x) * 100 + WEEK(x)", "ISOYEAR(joined) * 100 + WEEK(joined) = 202001"),
    ("DECADE(joined) = 202", "FLOOR(YEAR(x) / 10) * 10", "FLOOR(YEAR(joined) / 10) * 10 = 2020"),
    ("CENTURY(joined) = 21", "CEIL(YEAR(x) / 100)", "CEIL(YEAR(joined) / 100) = 21"),
    ("AGE(joined) > 3", "DATE_DIFF('day', a, b)", "DATE_DIFF('day', joined, DATE '2026-01-01') > 3"),
    ("EPOCH_MS(joined) > 3", "DATE_DIFF('day', a, b)", "DATE_DIFF('day', DATE '1970-01-01', joined) > 3"),
    ("DATEADD(day, 3, joined) > joined", "x + INTERVAL 1 MONTH", "joined + INTERVAL 3 DAY > joined"),
    ("DATEPART(year, joined) = 2020", "YEAR(x)", "YEAR(joined) = 2020"),
    ("WEEKDAY(joined) = 1", "ISODOW(x)", "ISODOW(joined) = 1"),
    ("ISNAN(income)", "x IS NULL", "income IS NULL"),
    ("ISFINITE(income)", "x IS NOT NULL", "income IS NOT NULL"),
    ("age ISNULL", "x IS NULL", "age IS NULL"),
    ("PI() < age", "3.141592653589793", "3.141592653589793 < age"),
    ("LOG2(age) > 1", "LN(x) / LN(2)", "LN(age) / LN(2) > 1"),
    ("CBRT(age) > 1", "SIGN(x) * POWER(ABS(x), 1.0 / 3)", "SIGN(age) * POWER(ABS(age), 1.0 / 3) > 1"),
    ("age << 2 > 9", "x * 4", "age * 4 > 9"),
    ("age & 1 = 1", "// and %", "age % 2 = 1"),
    ("(age > 3) XOR (age > 5)", "(x AND NOT y) OR (y AND NOT x)", "(age > 3 AND NOT age > 5) OR (age > 5 AND NOT age > 3)"),
    ("LIST_CONTAINS([1, 2], age)", "x IN (1, 2, 3)", "age IN (1, 2)"),
    ("(age, region) IN ((1, 'north'))", "a = 1 AND b = 2", "age = 1 AND region = 'north'"),
    ("ROW(age, 1) = ROW(1, 1)", "one column for each value", "age = 1"),
    ("IFF(age > 1, TRUE, FALSE)", "IF(x > 1, y, z)", "IF(age > 1, TRUE, FALSE)"),
    ("NVL(age, 1) = 1", "COALESCE(x, y)", "COALESCE(age, 1) = 1"),
    ("ZEROIFNULL(age) = 1", "COALESCE(x, 0)", "COALESCE(age, 0) = 1"),
    ("NULLIFZERO(age) = 1", "NULLIF(x, 0)", "NULLIF(age, 0) = 1"),
    ("DECODE(age, 1, 'a') = 'a'", "CASE x WHEN 1 THEN 'a'", "CASE age WHEN 1 THEN 'a' ELSE 'b' END = 'a'"),
    ("CHARINDEX('a', city) = 1", "POSITION('a' IN x)", "POSITION('a' IN city) = 1"),
    ("joined AT TIME ZONE 'UTC' > joined", "leave AT TIME ZONE out", "joined > joined"),
    ("age BETWEEN SYMMETRIC 5 AND 3", "BETWEEN LEAST(a, b) AND GREATEST(a, b)", "age BETWEEN LEAST(5, 3) AND GREATEST(5, 3)"),
    ("CURRENT_USER = city", "write a constant", "'ada' = city"),
]
WHOLE = [
    (
        "SELECT TOP 10 COUNT(*) AS n FROM people",
        "LIMIT 10",
        "SELECT region, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY n DESC LIMIT 10",
    ),
    (
        "SELECT COUNT(*) FILTER WHERE age > 3 FROM people",
        "FILTER (WHERE x > 3)",
        "SELECT COUNT(*) FILTER (WHERE age > 3) AS n FROM people",
    ),
    (
        "SELECT COUNT(*) AS n FROM people CROSS APPLY visits",
        "JOIN ... ON",
        "SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.person_id = v.person_id",
    ),
    ("SELECT COUNT(*) AS n INTO x FROM people", "leave INTO and its table out", "SELECT COUNT(*) AS n FROM people"),
    (
        "SELECT COUNT(*) AS n FROM (VALUES (1), (2)) t (x)",
        "x IN (1, 2, 3)",
        "SELECT COUNT(*) AS n FROM people WHERE age IN (1, 2)",
    ),
    ("FROM people SELECT COUNT(*)", "SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people"),
    (
        "SELECT COUNT(*) AS n FROM people NATURAL JOIN visits",
        "USING (column)",
        "SELECT COUNT(*) AS n FROM people JOIN visits USING (person_id)",
    ),
    (
        "SELECT COUNT(*) AS n FROM people SEMI JOIN visits USING (person_id)",
        "x IN (SELECT x FROM ...)",
        "SELECT COUNT(*) AS n FROM people WHERE person_id IN (SELECT person_id FROM visits)",
    ),
]
INTERNAL = re.compile(r"TUPLE|NULL SAFE|BITWISE|\b(gt|lt|ge|le|eq|ne)\(|exp\.|Anonymous|sqlglot|Traceback|None", re.IGNORECASE)


@pytest.fixture(scope="module")
def survey() -> Iterator[Curator]:
    people = {
        "person_id": [1, 2],
        "age": [30, 40],
        "income": [1.5, 2.5],
        "region": ["north", "south"],
        "city": ["Wien", "Graz"],
    }
    columns = {
        "age": dt.between(0, 120),
        "income": dt.between(0, 1000),
        "region": dt.values("north", "south"),
        "city": dt.column(),
        "joined": dt.between(FIRST, LAST),
    }
    tables = {
        "people": dt.Table({**people, "joined": [FIRST, LAST]}, unit="person_id", key="person_id", max_rows=1, columns=columns),
        "visits": dt.Table(
            {"person_id": [1, 1, 2], "cost": [1, 2, 3]},
            unit={"column": "person_id", "references": "people.person_id"},
            max_rows=9,
            columns={"cost": dt.between(0, 9)},
        ),
    }
    with dt.open(dt.Catalog(tables, dt.Budget(10**6)), ":memory:") as curator:
        yield curator


def questions() -> list[tuple[str, str, str]]:
    rows = "SELECT COUNT(*) AS n FROM people WHERE "
    asked = [(f"SELECT {written} AS x FROM people", named, way) for written, named, way in OUTPUTS]
    return [*asked, *((rows + written, named, rows + way) for written, named, way in CONDITIONS), *WHOLE]


def test_there_are_enough() -> None:
    assert len(questions()) >= 60


@pytest.mark.parametrize(("written", "named", "way"), questions())
def test_a_refusal_names_a_way_that_works(survey: Curator, written: str, named: str, way: str) -> None:
    with pytest.raises(dt.QueryError) as refused:
        survey.quote(written, epsilon=1)
    assert named in refused.value.fix
    assert not INTERNAL.search(f"{refused.value.what} {refused.value.fix}")
    assert survey.ask(way, epsilon=1, left_out=False).rows is not None
