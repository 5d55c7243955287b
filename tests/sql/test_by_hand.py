"""Queries built by hand from nodes obey the same rules as those from SQL."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from dither.errors import QueryError
from dither.query import show
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    Order,
    PerUnit,
    Query,
    Relation,
    Scalar,
    Scan,
    Semi,
    Union,
    Value,
)
from dither.query.resolve.relations import resolve
from dither.query.show import show_query
from dither.query.sql.select import parse
from dither.query.work import UNIT
from sql.survey import CATALOG

P, V = Scan("people", "p"), Scan("visits", "v")
ID = Named("id", Column("p.person_id"))
N = Aggregate("n", "count")
ONE = Literal(1)


def asked(source: Relation, *keys: Named) -> Query:
    return Query(source, keys, (N,), (Named("n", Column("n")),))


@pytest.mark.parametrize(
    "source",
    [
        Compute(P, (ID, Named(UNIT, ONE))),
        Compute(P, (ID, Named("#unit1", ONE))),
        Compute(P, (ID, Named("x", ONE), Named("x", ONE))),
        PerUnit(P, (ID,), (Aggregate(UNIT, "count"),)),
        PerUnit(P, (ID,), (Aggregate("#sum x", "count"),)),
        PerUnit(P, (ID,), (N, N)),
        PerUnit(P, (ID, Named(UNIT, Column("p.region"))), ()),
        PerUnit(P, (ID, Named("n", Column("p.region"))), (N,)),
        PerUnit(P, (ID, Named("id", Column("p.region"))), (N,)),
        PerUnit(Scan("regions", "r"), (Named(UNIT, Column("r.name")),), (N,)),
        Join(P, P, ((Column("p.person_id"), Column("p.person_id")),), "inner"),
        Scan("people", "#p"),
    ],
)
def test_no_name_takes_the_place_of_another(source: Relation) -> None:
    with pytest.raises(QueryError, match=r"named|# cannot begin a name"):
        resolve(asked(source), CATALOG)


def test_no_key_takes_the_place_of_an_aggregate() -> None:
    with pytest.raises(QueryError, match="named n"):
        resolve(asked(P, Named("n", Column("p.region"))), CATALOG)
    with pytest.raises(QueryError, match="# cannot begin"):
        resolve(asked(P, Named(UNIT, Column("p.region"))), CATALOG)


def test_the_parts_of_a_union_have_the_same_columns() -> None:
    with pytest.raises(QueryError, match="have different columns"):
        resolve(asked(Union((Compute(P, (ID,)), Compute(P, (Named("x", ONE),))))), CATALOG)


NO = Column("nothing")
SAME = (Column("p.person_id"), Column("v.person_id"))
PLAIN = asked(P)


@pytest.mark.parametrize(
    "query",
    [
        asked(P, Named("k", NO)),
        asked(P, Named("k", Call("upper", (NO,)))),
        asked(Filter(P, NO)),
        asked(Compute(P, (Named("x", NO),))),
        asked(Join(P, V, ((NO, SAME[1]),), "inner")),
        asked(Join(P, V, (SAME, (Column("p.age"), NO)), "inner")),
        asked(Semi(P, V, ((NO, SAME[1]),), True)),
        asked(Semi(P, Scan("towns", "t"), (), True, (NO, Column("t.town")))),
        asked(Semi(P, Scan("towns", "t"), (), True, (Column("p.city"), NO))),
        asked(PerUnit(P, (Named("k", NO),), (N,))),
        asked(PerUnit(P, (ID, Named("k", NO)), (N,))),
        asked(PerUnit(P, (ID,), (Aggregate("n", "sum", NO),))),
        *(replace(PLAIN, aggregates=(Aggregate("n", each, NO),)) for each in ("count", "count_distinct", "sum", "median")),
        replace(PLAIN, outputs=(Named("n", NO),)),
        replace(PLAIN, having=Call("gt", (NO, ONE))),
        replace(PLAIN, order=(Order(NO),)),
        # and what is no column at all
        asked(Scan("nowhere", "p")),
        asked(Union(())),
        asked(Join(P, V, (SAME,), "outer")),
        asked(PerUnit(P, (ID,), (Aggregate("n", "median", Column("p.age")),))),
        replace(PLAIN, aggregates=(Aggregate("n", "surprise", Column("p.age")),)),
        replace(PLAIN, aggregates=(Aggregate("n", "sum"),)),
        replace(PLAIN, aggregates=(Aggregate("n", "quantile", Column("p.age")),)),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_else_is_raised(query: Query) -> None:
    with pytest.raises(QueryError) as refusal:
        resolve(query, CATALOG)
    assert refusal.value.fix
    assert refusal.value.charged == "nothing"


def test_an_in_with_a_list_of_its_own_is_an_ordinary_one() -> None:
    """`listed` without `negated` is one more pair that must be equal."""
    listed = Column("p.city"), Column("t.town")
    one, two = (
        resolve(asked(Semi(P, Scan("towns", "t"), *more)), CATALOG) for more in (((), False, listed), ((listed,), False))
    )
    assert one.query == two.query


def test_a_value_looked_up_by_hand_is_that_of_sql() -> None:
    text = "SELECT COUNT(*) AS n FROM people p WHERE (SELECT MAX(v.cost) FROM visits v WHERE v.person_id = p.person_id) > 3"
    scalar = Scalar("most", (Aggregate("max_cost", "max", Column("v.cost")),))
    joined = Join(P, V, (SAME,), "left", scalar)
    by_hand = asked(Filter(joined, Call("gt", (Column("most.max_cost"), Literal(3)))))
    named = parse(text, CATALOG)
    found = [resolve(query, CATALOG).query for query in (by_hand, named)]
    assert show_query(found[0]) == show_query(found[1]).replace("#subquery 2.", "most.")


def test_a_value_looked_up_takes_no_other_name_and_looks_at_nobody_else() -> None:
    age = Scalar("p", (Aggregate("age", "max", Column("v.cost")),))
    with pytest.raises(QueryError, match=r"named p\.age"):
        resolve(asked(Join(P, V, (SAME,), "left", age)), CATALOG)
    cost = Scalar("most", (Aggregate("max_cost", "max", Column("v.cost")),))
    with pytest.raises(QueryError, match="for every row"):
        resolve(asked(Join(P, V, (SAME,), "inner", cost)), CATALOG)
    with pytest.raises(QueryError, match="about people into the question"):
        resolve(asked(Join(P, V, (), "left", cost)), CATALOG)
    with pytest.raises(QueryError, match="about other people into each row"):
        resolve(asked(Join(P, V, ((Column("p.region"), Column("v.region")),), "left", cost)), CATALOG)


def test_a_filter_by_hand_is_that_of_sql() -> None:
    adults = Aggregate("n", "sum", Column("people.age"), where=Call("gt", (Column("people.age"), Literal(17))))
    by_hand = replace(asked(Scan("people", "people")), aggregates=(adults,))
    assert by_hand == parse("SELECT SUM(age) FILTER (WHERE age > 17) AS n FROM people", CATALOG)
    with pytest.raises(QueryError, match="takes no FILTER"):
        resolve(replace(by_hand, aggregates=(replace(adults, function="count_units"),)), CATALOG)


STRANGE = [
    float("nan"),
    float("inf"),
    -float("inf"),
    b"x",
    datetime.time(1),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    10**5000,
    2**63,
    -(2**63) - 1,
    Fraction(1, 10**5000),
    "\udcff",
    Decimal("1.5"),
    [1],
    object(),
]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_constant_that_is_no_value_is_refused_wherever_it_stands(value: object) -> None:
    strange = Literal(value)  # type: ignore[arg-type]
    same = Call("eq", (strange, strange))
    for query in (
        asked(Filter(P, same)),
        asked(Compute(P, (ID, Named("x", strange)))),
        asked(P, Named("k", same)),
        asked(Semi(P, V, ((strange, strange),), True)),
        asked(PerUnit(P, (ID,), (Aggregate("n", "sum", strange),))),
        replace(PLAIN, aggregates=(Aggregate("n", "sum", strange),)),
        replace(PLAIN, outputs=(Named("n", same),)),
        replace(PLAIN, having=same),
        replace(PLAIN, order=(Order(strange),)),
        *([] if isinstance(value, (int, str, Fraction)) else [quantile(value)]),
    ):
        with pytest.raises(QueryError) as refusal:
            resolve(query, CATALOG)
        assert refusal.value.charged == "nothing"


def quantile(share: object) -> Query:
    return replace(PLAIN, aggregates=(Aggregate("n", "quantile", Column("p.age"), share),))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, True, 0, 2**63 - 1, -(2**63), 1.5, Fraction(1, 3), "é", datetime.date(2020, 1, 1)])
def test_that_check_lets_values_pass(value: Value) -> None:
    assert resolve(asked(Filter(P, Call("eq", (Literal(value), Literal(value))))), CATALOG).by_unit


@pytest.mark.parametrize("rows", [-1, 1.5, "7", True, 2**63])
def test_a_limit_is_a_number_of_rows(rows: int) -> None:
    for query in (replace(PLAIN, limit=rows), replace(PLAIN, offset=rows)):
        with pytest.raises(QueryError, match="whole number of rows"):
            resolve(query, CATALOG)


@pytest.mark.parametrize("name", ["neg", "add", "not", "is_null", "case"])
def test_a_deep_expression_is_printed_part_by_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Showing a part twice at every level would take 2^depth steps."""
    deep: Expression = Column("x")
    for _ in range(40):
        more = {"add": (deep, Literal(1)), "case": (Literal(True), deep, Literal(0))}
        deep = Call("not", (Call(name, (deep,)),)) if name == "is_null" else Call(name, more.get(name, (deep,)))
    printed: list[Expression] = []
    whole = show.show_expression

    def counted(node: Expression, names: bool = False) -> str:
        printed.append(node)
        return whole(node, names)

    monkeypatch.setattr(show, "show_expression", counted)
    assert counted(deep)
    assert len(printed) <= 200
