"""Conditions narrow public keys to the possible ones, and never drop a key that a row has."""

from __future__ import annotations

import datetime
import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dither.catalog.values import Budget, Catalog, ColumnFacts, Table, Unit
from dither.engines.reference import Reference
from dither.errors import QueryError
from dither.query.functions.domains import facts
from dither.query.functions.registry import columns
from dither.query.nodes import Aggregate, Column
from dither.query.read import read
from dither.query.resolve import narrowing
from dither.query.resolve.relations import Resolved
from dither.query.work import Cell, Sums, Work


def day(year: int, month: int = 1, of_month: int = 1) -> Fraction:
    return Fraction((datetime.date(year, month, of_month) - datetime.date(1970, 1, 1)).days)


def between(kind: str, low: object, high: object) -> ColumnFacts:
    return ColumnFacts(kind, Fraction(low), Fraction(high))  # type: ignore[arg-type]


MODES = ("AIR", "MAIL", "RAIL", "SHIP", "TRUCK")
PEOPLE = Table(
    "people.parquet",
    unit=Unit("person"),
    max_rows=1,
    key="person",
    columns={
        "person": ColumnFacts("int"),
        "age": between("int", 17, 90),
        "income": between("real", 0, 250_000),
        "mode": ColumnFacts("text", values=MODES),
        "maybe": ColumnFacts("text", values=("x", "y", None)),
        "city": ColumnFacts("text"),
        "size": ColumnFacts("int"),
        "active": ColumnFacts("bool"),
        "born": between("date", day(1900), day(1999, 12, 31)),
        "seen": between("timestamp", day(2023), day(2025) - Fraction(1, 86_400_000_000)),
    },
)
VISITS = Table(
    "visits.parquet",
    unit=Unit("person", ("people", "person")),
    max_rows=5,
    max_groups=3,
    columns={"cost": between("int", 0, 1000), "ward": ColumnFacts("text", values=("a", "b", "c"))},
)
CATALOG = Catalog(tables={"people": PEOPLE, "visits": VISITS}, budget=Budget(Fraction(1), Fraction(1, 10**6)))
KINDS = {
    "people": {name: str(column.kind) for name, column in PEOPLE.columns.items()},
    "visits": {"person": "int", "cost": "int", "ward": "text"},
}


def keys_of(question: str) -> list[tuple[Any, ...] | None]:
    return [known.values for known in read(question, CATALOG).operands().keys]


def only(where: str, key: str) -> tuple[Any, ...] | None:
    """Returns the public values of one key under a condition."""
    (values,) = keys_of(f"SELECT {key} AS k, COUNT(*) AS n FROM people WHERE {where} GROUP BY k")
    return values


@pytest.mark.parametrize(
    ("where", "key", "expected"),
    [
        ("mode IN ('MAIL', 'SHIP')", "mode", ("MAIL", "SHIP")),
        ("mode LIKE '%AI%'", "mode", ("AIR", "MAIL", "RAIL")),
        ("mode <> 'AIR' AND income > 5", "LOWER(mode)", ("mail", "rail", "ship", "truck")),
        ("mode = 'AIR' OR mode = 'RAIL'", "mode", ("AIR", "RAIL")),
        ("mode = 'AIR' OR income > 5", "mode", MODES),
        ("(mode = 'AIR' AND age > 3) OR mode = 'RAIL'", "mode", ("AIR", "RAIL")),
        ("NOT (mode = 'AIR' OR age > 30)", "mode", ("MAIL", "RAIL", "SHIP", "TRUCK")),
        ("age BETWEEN 18 AND 20", "age", (18, 19, 20)),
        ("age > 88", "age", (89, 90)),
        ("21 >= age AND age % 2 = 0", "age", (18, 20)),
        ("age IN (20, 30, 95)", "age", (20, 30)),
        ("income < 100000", "FLOOR(income / 50000)", (0, 1)),
        ("income <= 100000", "FLOOR(income / 50000)", (0, 1, 2)),
        ("income > 240000", "FLOOR(income / 50000)", (4, 5)),
        ("income > 260000", "FLOOR(income / 50000)", (5,)),  # rows beyond the bounds are in group 5, as without WHERE
        ("born BETWEEN DATE '1980-11-15' AND DATE '1981-01-03'", "DATE_TRUNC('month', born)", 3),
        ("born >= DATE '1999-12-30'", "born", 2),
        ("YEAR(born) = 1950", "DATE_TRUNC('quarter', born)", 4),
        ("YEAR(born) >= 1998", "YEAR(born)", (1998, 1999)),
        ("seen >= DATE '2024-11-15'", "DATE_TRUNC('month', seen)", 2),
        ("seen >= DATE '2024-11-15'", "HOUR(seen)", 24),
        ("seen BETWEEN TIMESTAMP '2024-05-01 10:00:00' AND TIMESTAMP '2024-05-01 12:30:00'", "HOUR(seen)", (10, 11, 12)),
        ("active", "active", (True,)),
        ("NOT active", "active", (False,)),
        ("maybe IS NULL", "maybe", (None,)),
        ("maybe IS NOT NULL", "maybe", ("x", "y")),
        ("maybe = 'x'", "COALESCE(maybe, 'none')", ("x",)),
        ("age >= 65", "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END", ("old",)),
        ("city IN ('Wien', 'Graz')", "city", ("Graz", "Wien")),  # not declared: the condition lists them
        ("size BETWEEN 3 AND 5", "size", (3, 4, 5)),
        ("size > 3", "size", None),
        ("MONTH(born) < 3", "MONTH(born)", (1, 2)),  # also for days outside the bounds
        ("HOUR(seen) IN (7, 9) AND seen < DATE '2024-03-01'", "HOUR(seen)", (7, 9)),
        ("FLOOR(income / 50000) >= 4 AND age > 20", "FLOOR(income / 50000)", (4, 5)),
        ("LOWER(mode) LIKE 'r%' OR LOWER(mode) = 'air'", "LOWER(mode)", ("air", "rail")),
        ("MONTH(born) = 2 OR age > 3", "MONTH(born)", 12),
        ("MONTH(born) = 2", "MONTH(born) + 1", 12),  # of another expression: days outside the bounds may have any month
        ("SUBSTRING(city FROM 1 FOR 2) IN ('Wi', 'Gr')", "SUBSTRING(city FROM 1 FOR 2)", ("Gr", "Wi")),  # TPC-H Q22
        ("LENGTH(city) BETWEEN 2 AND 4", "LENGTH(city)", (2, 3, 4)),
        ("LENGTH(city) > 2", "LENGTH(city)", None),
        ("age < 24", "age % 10", 10),  # a row of age 5, outside the bounds, has a key of this list
    ],
)
def test_conditions_narrow_keys(where: str, key: str, expected: Any) -> None:
    found = only(where, key)
    assert (len(found or ()) if isinstance(expected, int) else found) == expected


def test_a_condition_and_a_rounding_together() -> None:
    """The reproducer: of 37 keys, those that ages below 24 can have."""
    assert only("age < 24", "FLOOR(age / 2)") == (8, 9, 10, 11)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("SELECT a, COUNT(*) AS n FROM (SELECT age + 1 AS a FROM people WHERE age < 20) t WHERE a > 18 GROUP BY a", [(19, 20)]),
        (
            "SELECT ward, mode, COUNT(*) AS n FROM visits JOIN people ON visits.person = people.person "
            "WHERE mode = 'AIR' AND ward < 'c' GROUP BY ward, mode",
            [("a", "b"), ("AIR",)],
        ),
        (
            "WITH v AS (SELECT person, ward FROM visits WHERE ward = 'a') SELECT ward, COUNT(*) AS n FROM people "
            "LEFT JOIN v ON v.person = people.person GROUP BY ward",
            [("a", "b", "c")],  # of the side that may be missing nothing is concluded
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM (SELECT person, ward, COUNT(*) AS k FROM visits WHERE ward <> 'b' "
            "GROUP BY person, ward) t WHERE k > 1 GROUP BY ward",
            [("a", "c")],
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM (SELECT person, ward FROM visits WHERE ward = 'a' UNION ALL "
            "SELECT person, ward FROM visits WHERE ward = 'b') t GROUP BY ward",
            [("a", "b", "c")],  # declared in both parts; a condition of one part narrows nothing
        ),
        (
            "SELECT p.age AS a, COUNT(*) AS n FROM people p JOIN (SELECT p.person, p.age AS b FROM people p WHERE p.age < 20) "
            "q ON p.person = q.person WHERE p.age > 88 GROUP BY p.age",
            [(89, 90)],  # two tables named p: their columns are not mixed up
        ),
    ],
)
def test_conditions_of_subqueries_and_joins_narrow(question: str, expected: list[Any]) -> None:
    assert keys_of(question) == expected


def test_a_key_that_no_declared_value_gives_is_refused() -> None:
    for where, key in (("mode = 'FOO'", "mode"), ("age > 130", "age"), ("age > 30 AND age < 20", "age")):
        with pytest.raises(QueryError, match="No declared value"):
            only(where, key)


def test_aggregates_keep_their_declared_bounds() -> None:
    question = read("SELECT AVG(age) AS a FROM people WHERE age BETWEEN 18 AND 20", CATALOG)
    (known,) = question.operands().arguments.values()
    assert (known.low, known.high) == (17, 90)


# --- nothing is dropped -----------------------------------------------------------------------------------------

CONDITIONS = (
    *("age < 24", "age >= 85", "age IN (16, 17, 91)", "NOT age > 50", "age = 130", "age % 3 = 1", "25 > age", "age <> 90"),
    *("income < 60000", "income > 240000.5", "income > 300000", "income = 0", "income IS NULL OR income < 100"),
    *("mode = 'AIR'", "mode IN ('MAIL', 'none')", "mode LIKE '%I%'", "mode IS NULL", "mode > 'N'"),
    *("maybe IS NULL", "maybe = 'x' OR maybe IS NULL", "COALESCE(maybe, 'z') <> 'y'", "active", "active IS NULL"),
    *("born < DATE '1910-02-03'", "YEAR(born) > 1997", "born >= DATE '1999-12-30'", "MONTH(born) = 2"),
    *("seen >= DATE '2024-11-05'", "HOUR(seen) < 9 AND seen < TIMESTAMP '2024-03-09 08:07:00'"),
    *("age % 10 IN (1, 7)", "FLOOR(income / 50000) >= 4", "LOWER(mode) <> 'air'", "COALESCE(maybe, 'none') = 'none'"),
    *("CAST(age / 2 AS INT) = 12 OR CAST(age / 2 AS INT) > 44", "HOUR(seen) < 9", "MONTH(seen) IN (1, 12)", "MONTH(born) <> 2"),
    *("age < 24 OR mode = 'AIR'", "age < 24 AND mode <> 'AIR'", "size IN (1, 2)", "size < 3", "city = 'a'"),
)
KEYS = (
    *("age", "CAST(age / 2 AS INT)", "age % 10", "FLOOR(income / 50000)", "ABS(FLOOR(income / 100000) - 1)", "mode"),
    *("LOWER(mode)", "COALESCE(maybe, 'none')", "maybe", "active", "born", "YEAR(born)", "DATE_TRUNC('month', born)"),
    *("MONTH(seen)", "HOUR(seen)", "CAST(seen AS DATE)", "MONTH(born)"),
    *("CASE WHEN age < 18 THEN 'child' WHEN age > 100 THEN mode ELSE 'adult' END", "age > 95"),
    *(
        "CASE WHEN income > 275000 THEN 'top' ELSE 'rest' END",
        "size",
        "city",
        "CLAMP(size, 1, 3)",
        "mode || COALESCE(maybe, '-')",
    ),
)
FORMS = (
    "SELECT {key} AS k, COUNT(*) AS n FROM people WHERE {where} GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM (SELECT {key} AS k, age, mode FROM people WHERE {where}) t WHERE age < 100 GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM (SELECT person, {key} AS k, MAX(age) AS age FROM people WHERE {where} GROUP BY person, k) t "
    "GROUP BY k",
    "SELECT {key} AS k, COUNT(*) AS n FROM people JOIN visits ON visits.person = people.person WHERE {where} AND ward <> 'b' "
    "GROUP BY k",
)


PEOPLE_MADE = 50


def made_up(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Returns people and visits, many of them outside the declared bounds and values."""
    dice = random.Random(seed)
    days = (datetime.date(1899, 12, 31), datetime.date(1900, 1, 1), datetime.date(1999, 12, 31), datetime.date(2000, 2, 9))
    moments = (datetime.datetime(2022, 12, 31, 23), datetime.datetime(2025, 1, 1))
    people = [
        {
            "person": number,
            "age": dice.choice([None, 0, 16, 17, 18, 23, 24, 89, 90, 91, 130, dice.randint(17, 90)]),
            "income": dice.choice([None, -1.0, 0.0, 59_999.99, 60_000.0, 250_000.0, 275_000.5, 1e9, dice.uniform(0, 250_000)]),
            "mode": dice.choice([None, "none", *MODES]),
            "maybe": dice.choice([None, "x", "y", "w"]),
            "city": dice.choice([None, "a", "b"]),
            "size": dice.choice([None, -1, 0, 1, 2, 3, 7]),
            "active": dice.choice([None, True, False]),
            "seen": dice.choice([None, *moments, datetime.datetime(2024, dice.randint(1, 12), 9, 8, 7)]),
            "born": dice.choice([None, *days, datetime.date(1900, 1, 1) + datetime.timedelta(days=dice.randint(0, 36_523))]),
        }
        for number in range(PEOPLE_MADE)
    ]
    visits = [
        {"person": dice.randrange(PEOPLE_MADE), "cost": dice.randint(0, 1000), "ward": dice.choice("abc")}
        for _ in range(PEOPLE_MADE)
    ]
    return {"people": people, "visits": visits}


def in_the_data(question: Resolved, tables: dict[str, list[dict[str, Any]]]) -> set[Any]:
    """Returns the keys that the rows have, by the reference engine."""
    query = question.query
    work = Work(query.source, query.keys, None, question.by_unit, None, (Sums((Cell(constant=1),), 100),))
    return {group.key[0] for group in Reference(tables, KINDS).run(work, b"")}


def dropped(text: str, seed: int) -> set[Any]:
    """Returns the keys of rows that are public without conditions, and are not with them."""
    try:
        question = read(text, CATALOG)
    except QueryError:
        return set()
    (narrowed,) = question.operands().keys
    (key,) = question.query.keys
    full = facts(key.expression, question.scope)
    if narrowed.values is None or full.values is None:
        return set()
    return (in_the_data(question, made_up(seed)) & set(full.values)) - set(narrowed.values)


@pytest.mark.slow
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_no_key_of_a_row_is_dropped(form: int) -> None:
    every = itertools.product(CONDITIONS, KEYS)
    for number, (where, key) in enumerate(itertools.islice(every, form, None, 1 + form)):  # fewer of the larger forms
        text = FORMS[form].format(where=where, key=key)
        assert dropped(text, number) == set(), text


@pytest.mark.parametrize("broken", ["_outside", "limits", "_about"])
def test_that_check_finds_a_dropped_key(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "_outside":
        monkeypatch.setattr(narrowing, "_outside", lambda *_: ())  # as if no row lay outside its bounds
    elif broken == "_about":  # as if a condition about a column were about its key
        key = Column("#key")
        monkeypatch.setattr(narrowing, "_about", lambda each, _: narrowing.substituted(each, dict.fromkeys(columns(each), key)))
    else:
        monkeypatch.setattr(narrowing, "limits", lambda condition, known: (Fraction(18), None))  # never below 18
    narrowing._narrow.cache_clear()
    found = [
        (where, key)
        for number, (where, key) in enumerate(itertools.product(CONDITIONS[:6], KEYS[:4]))
        if dropped(FORMS[0].format(where=where, key=key), number)
    ]
    narrowing._narrow.cache_clear()
    assert found


def test_a_large_column_listed_by_its_condition_loses_no_row_within_its_bounds() -> None:
    question = read("SELECT born, COUNT(*) AS n FROM people WHERE born < DATE '1900-02-01' GROUP BY born", CATALOG)
    (narrowed,) = question.operands().keys
    within = {key for key in in_the_data(question, made_up(1)) if key >= datetime.date(1900, 1, 1)}
    assert within <= set(narrowed.values or ())
    assert len(narrowed.values or ()) == 31


def test_narrowed_keys_are_asked_of_the_engine() -> None:
    question = read("SELECT mode, COUNT(*) AS n FROM people WHERE mode = 'AIR' GROUP BY mode", CATALOG)
    assert replace(question, narrowed={}).operands().keys[0].values == MODES
    assert question.query.aggregates == (Aggregate("n", "count"),)
