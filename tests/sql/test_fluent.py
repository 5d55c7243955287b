"""The fluent reader gives the same Query as SQL, and the same refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import QueryError
from dither.query import fluent as dt
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from sql.survey import CATALOG

CONDITIONS = [
    "age >= 18",
    "active",
    "region IN ('north', 'south') OR age < 3",
    "NOT (income / 2 > 100.5)",
    "city LIKE 'B%'",
    "active OR person_id IN (SELECT person_id FROM visits)",
]
KEYS = ["region", "active", "city", "people.region"]
NAMED_KEYS = ["BUCKET(age, 10)", "YEAR(born)", "CASE WHEN age > 17 THEN 'adult' ELSE 'child' END"]
AGGREGATES: list[tuple[dt.FluentAggregate | str, str]] = [
    (dt.count(), "COUNT(*)"),
    (dt.count("income"), "COUNT(income)"),
    (dt.count(where="active"), "COUNT(*) FILTER (WHERE active)"),
    (dt.count_distinct("city"), "COUNT(DISTINCT city)"),
    (dt.count_units(), "COUNT_UNITS()"),
    (dt.sum_("income / 12"), "SUM(income / 12)"),
    (dt.mean("age", where="active"), "AVG(age) FILTER (WHERE active)"),
    (dt.variance("age"), "VARIANCE(age)"),
    (dt.variance("age", population=True), "VAR_POP(age)"),
    (dt.stddev("age"), "STDDEV(age)"),
    (dt.stddev("age", population=True), "STDDEV_POP(age)"),
    (dt.median("age"), "MEDIAN(age)"),
    (dt.quantile("age", 0.9), "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)"),
    (dt.min_("age"), "MIN(age)"),
    (dt.max_("age"), "MAX(age)"),
    (dt.clipped("income"), "CLIPPED(income)"),
    ("SUM(age) / COUNT(*)", "SUM(age) / COUNT(*)"),
]


@pytest.mark.slow
@given(
    where=st.lists(st.sampled_from(CONDITIONS), max_size=3),
    keys=st.lists(st.sampled_from(KEYS), max_size=2, unique_by=lambda key: key.rsplit(".", 1)[-1]),
    named=st.lists(st.sampled_from(NAMED_KEYS), max_size=2, unique=True),
    aggregates=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4),
    having=st.none() | st.just("a0 > 10"),
    descending=st.none() | st.booleans(),
    limit=st.none() | st.integers(0, 9),
)
def test_both_readers_give_one_query(
    where: list[str],
    keys: list[str],
    named: list[str],
    aggregates: list[tuple[dt.FluentAggregate | str, str]],
    having: str | None,
    descending: bool | None,
    limit: int | None,
) -> None:
    fluent = dt.table(CATALOG, "people")
    for condition in where:
        fluent = fluent.where(condition)
    names = {f"k{i}": key for i, key in enumerate(named)}
    fluent = fluent.group_by(*keys, **names).agg(**{f"a{i}": asked for i, (asked, _) in enumerate(aggregates)})
    outputs = [*keys, *(f"{key} AS {name}" for name, key in names.items())]
    text = "SELECT " + ", ".join([*outputs, *(f"{sql} AS a{i}" for i, (_, sql) in enumerate(aggregates))]) + " FROM people"
    if where:
        text += " WHERE " + " AND ".join(f"({condition})" for condition in where)
    if keys or named:
        text += " GROUP BY " + ", ".join([*keys, *named])
    if having:
        fluent, text = fluent.having(having), f"{text} HAVING {having}"
    if descending is not None:
        fluent, text = fluent.order_by("a0", descending=descending), f"{text} ORDER BY a0 {'DESC' if descending else 'ASC'}"
    if limit is not None:
        fluent, text = fluent.limit(limit), f"{text} LIMIT {limit}"
    assert fluent.query == parse(text, CATALOG)
    assert resolve(fluent.query, CATALOG) == resolve(parse(text, CATALOG), CATALOG)


def test_joins_are_the_same() -> None:
    fluent = (
        dt.table(CATALOG, "people").join("visits", using="person_id").join("regions", on="name = people.region", how="left")
    )
    text = "SELECT SUM(cost) AS s FROM people JOIN visits USING (person_id) LEFT JOIN regions ON name = people.region"
    assert fluent.agg(s=dt.sum_("cost")).query == parse(text, CATALOG)


def test_aggregation_per_person_is_the_same() -> None:
    fluent = dt.table(CATALOG, "visits").where("cost > 3").per_unit("ward", n=dt.count()).group_by("ward").agg(m=dt.mean("n"))
    text = (
        "SELECT ward, AVG(n) AS m FROM (SELECT person_id, ward, COUNT(*) AS n FROM visits WHERE cost > 3"
        " GROUP BY person_id, ward) AS visits GROUP BY ward"
    )
    assert fluent.query == parse(text, CATALOG)


def test_different_questions_differ() -> None:
    people = dt.table(CATALOG, "people")
    assert people.where("age > 3").agg(n=dt.count()).query != people.where("age > 4").agg(n=dt.count()).query


def test_a_step_leaves_the_earlier_question_alone() -> None:
    people = dt.table(CATALOG, "people")
    before = people.agg(n=dt.count())
    before.where("age > 3").limit(3)
    assert before.query == parse("SELECT COUNT(*) AS n FROM people", CATALOG)


def test_a_refusal_points_into_the_chain() -> None:
    with pytest.raises(QueryError) as refusal:
        _ = dt.table(CATALOG, "people").where("age > 3").group_by("regoin").agg(n=dt.count()).query
    assert '.group_by("regoin")\n' + " " * 15 + "^^^^^^" in str(refusal.value)


@pytest.mark.parametrize("piece", ["age > 3; DROP TABLE people", "age > 3) OR (1 = 1", "", "SELECT 1", "age >", "RANDOM() < 1"])
def test_a_piece_cannot_become_more_than_an_expression(piece: str) -> None:
    with pytest.raises(QueryError):
        _ = dt.table(CATALOG, "people").where(piece).agg(n=dt.count()).query


@pytest.mark.parametrize("how", ["outer", "cross", ""])
def test_unknown_joins_are_refused(how: str) -> None:
    with pytest.raises(QueryError):
        dt.table(CATALOG, "people").join("visits", using="person_id", how=how)


# --- misuse, and how a question looks ------------------------------------------------------------------------------

BEGUN = dt.table(CATALOG, "people")
MISUSED: dict[str, Callable[[], object]] = {
    "where(3)": lambda: BEGUN.where(3),  # type: ignore[arg-type]
    "agg(3)": lambda: BEGUN.agg(n=3),  # type: ignore[arg-type]
    "agg()": BEGUN.agg,
    'agg(n="age")': lambda: BEGUN.agg(n="age").query,
    "group_by(3)": lambda: BEGUN.group_by(3),  # type: ignore[arg-type]
    "mean(3)": lambda: dt.mean(3),  # type: ignore[arg-type]
    "mean(None)": lambda: dt.mean(None),  # type: ignore[arg-type]
    "quantile without p": lambda: dt.quantile("age"),
    "quantile of 90": lambda: dt.quantile("age", 90),
    "limit(-1)": lambda: BEGUN.limit(-1),
    'limit("x")': lambda: BEGUN.limit("x"),  # type: ignore[arg-type]
    "join(3)": lambda: BEGUN.join(3, using="person_id"),  # type: ignore[arg-type]
    "table(3)": lambda: dt.table(CATALOG, 3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("misuse", MISUSED)
def test_misuse_is_refused_with_what_to_write(misuse: str) -> None:
    with pytest.raises(QueryError) as refusal:
        MISUSED[misuse]()
    assert refusal.value.fix


def test_a_question_looks_like_sql() -> None:
    asked = BEGUN.where("age >= 18").group_by("region").agg(n=dt.count(), age=dt.mean("age", where="active"))
    filtered = "AVG(age) FILTER(WHERE active) AS age"
    assert repr(asked) == f"SELECT region, COUNT(*) AS n, {filtered} FROM people WHERE age >= 18 GROUP BY region"
    assert repr(BEGUN.where("active")) == "FROM people WHERE active"
    long = BEGUN.where(" AND ".join(["age >= 18"] * 100)).agg(n=dt.count())
    assert len(repr(long)) <= 400
    assert str(long).count("age >= 18") == 100
    assert parse(str(long), CATALOG) == long.query


def test_an_aggregate_looks_like_sql() -> None:
    shown = [repr(each) for each in (dt.count(), dt.count_distinct("city"), dt.quantile("age", 0.9), dt.count_units())]
    assert shown == ["COUNT(*)", "COUNT(DISTINCT city)", "QUANTILE(age, 0.9)", "COUNT_UNITS()"]
    assert repr(dt.sum_("age", where="active")) == "SUM(age) FILTER (WHERE active)"


def test_a_table_that_is_nearly_right_is_named() -> None:
    for wrong in (lambda: dt.table(CATALOG, "peple").agg(n=dt.count()).query, lambda: dt.table(CATALOG, "peple").per_unit()):
        with pytest.raises(QueryError, match="did you mean people"):
            wrong()
