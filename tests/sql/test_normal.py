"""Equal questions have one normal form, different questions have two, and the form means the same as the question."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.reference import Bag, rows_of
from dither.query.functions.domains import facts
from dither.query.functions.registry import FUNCTIONS, evaluate, evaluator, typed
from dither.query.nodes import Aggregate, Call, Column, Compute, Expression, Literal, Named, Query, Relation, Scan
from dither.query.normal import normal
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from dither.query.work import UNIT
from expressions.generate import COLUMNS, SCOPE, WITHOUT, expressions, rows
from expressions.relations import KINDS, NUMBERS, TEXTS, WHOLES, Tables, relations, tables
from sql.survey import CATALOG
from sql.test_engines_agree import made_up
from sql.test_golden import cases

some = settings(max_examples=25, suppress_health_check=list(HealthCheck))


def form(text: str) -> Query:
    return normal(resolve(parse(text, CATALOG), CATALOG, text).query)


# --- the form says what the question said -----------------------------------------------------------------------


def keyed(expression: Expression) -> Expression:
    """Returns the form of an expression over the columns of generate.py, named "t1.column"."""
    source = Compute(Scan("r", "r"), tuple(Named(name, Column(f"r.{name}")) for name in COLUMNS))
    return normal(Query(source, (Named("k", expression),), (), ())).keys[0].expression


COMPARED = {
    "eq": [2],
    "ne": [1, 3],
    "lt": [3],
    "le": [2, 3],
    "gt": [1],
    "ge": [1, 2],
}  # which i of 1, 2, 3 have 2 < i, and so on


def true_for(expression: Expression) -> list[int]:
    return [i for i in (1, 2, 3) if evaluate(expression, {"t1.i": i}) is True]


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_turned_round_means_the_same(name: str) -> None:
    found = keyed(Call(name, (Literal(2), Column("i"))))
    assert isinstance(found, Call)
    assert found.arguments == (Column("t1.i"), Literal(2)), "the column stands first"
    assert true_for(found) == COMPARED[name]


@pytest.mark.parametrize("name", COMPARED)
def test_a_denied_comparison_means_the_opposite(name: str) -> None:
    found = keyed(Call("not", (Call(name, (Literal(2), Column("i"))),)))
    assert true_for(found) == [i for i in (1, 2, 3) if i not in COMPARED[name]]
    assert evaluate(found, {"t1.i": None}) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@some
@given(data=st.data())
def test_an_expression_keeps_its_value_and_its_facts(name: str, data: st.DataObject) -> None:
    built = data.draw(expressions(name))
    if built is None:
        return
    expression = typed(built[0], SCOPE)
    row = data.draw(rows(expression, WITHOUT))
    found = keyed(expression)
    value, same = evaluate(expression, row), evaluate(found, {f"t1.{name}": value for name, value in row.items()})
    assert (type(same), same) == (type(value), value), (expression, found)
    assert facts(found, {f"t1.{name}": known for name, known in SCOPE.items()}) == facts(expression, SCOPE)
    assert keyed(expression) == found


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "in_list"])
def test_whole_numbers_that_are_no_doubles_keep_their_point(name: str) -> None:
    """2^53 + 1 is compared exactly, and 2^53 + 1.0 as the double 2^53."""
    near = [sign * (2**53 + step) for sign in (1, -1) for step in range(-2, 3)]
    for number in near:
        expression = Call(name, (Column("free"), Literal(Fraction(number))))
        for free in near:
            assert evaluate(keyed(expression), {"t1.free": free}) == evaluate(expression, {"free": free})


CONDITION = st.recursive(
    st.sampled_from(
        [
            *(Call(name, (Column("few"), Literal(2))) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
            Call("lt", (Column("v"), Column("few"))),
            Call("in_list", (Column("maybe"), Literal("north"), Literal("south"))),
            Call("is_null", (Column("flag"),)),
            *(Column("flag"), Literal(True), Literal(False), Literal(None)),
        ]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda parts, name: Call(name, tuple(parts)),
            st.lists(inner, min_size=1, max_size=3),
            st.sampled_from(["and", "or"]),
        ),
        st.builds(lambda part: Call("not", (part,)), inner),
    ),
    max_leaves=8,
)
ROWS = [
    {"few": few, "v": v, "maybe": maybe, "flag": flag}
    for few, v, maybe, flag in itertools.product((1, 2, None), (0.0, 2.5, None), ("north", "east", None), (True, False, None))
]


def answers(expression: Expression, prefix: str = "") -> list[Any]:
    compute = evaluator(expression)
    return [compute({f"{prefix}{name}": value for name, value in row.items()}) for row in ROWS]


@settings(max_examples=300)
@given(CONDITION)
def test_logic_of_three_values_is_kept(condition: Expression) -> None:
    assert answers(keyed(condition), "t1.") == answers(condition)


def test_that_check_can_fail() -> None:
    """The check sees NULL: NOT (few < 2) is few >= 2, and not "few >= 2 or NULL"."""
    condition = Call("not", (Call("lt", (Column("few"), Literal(2))),))
    wrong = Call("or", (Call("ge", (Column("few"), Literal(2))), Call("is_null", (Column("few"),))))
    assert answers(keyed(condition), "t1.") == answers(condition) != answers(wrong)


def bag(query: Query, found: dict[str, Bag]) -> Counter[tuple[Any, ...]]:
    """Returns the aggregated rows: unit, group and values."""
    parts = [key.expression for key in query.keys]
    parts += [each.value for each in sorted(query.aggregates, key=lambda each: each.name) if each.value is not None]
    computed = [evaluator(part) for part in parts]
    return Counter(
        (repr(row.get(UNIT)), *(repr(value(row)) for value in computed)) for row in rows_of(query.source, found).rows
    )


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(relation=relations(), found=tables(), data=st.data())
def test_a_relation_keeps_its_rows(relation: Relation, found: Tables, data: st.DataObject) -> None:
    key, argument = (data.draw(st.sampled_from([*NUMBERS, *WHOLES, *TEXTS])) for _ in range(2))
    query = Query(relation, (Named("g", key),), (Aggregate("n", "count_distinct", argument),), ())
    given = {name: Bag(tuple(KINDS[name]), list(each)) for name, each in found.items()}
    assert bag(normal(query), given) == bag(query, given)


def golden() -> list[Query]:
    return [resolve(parse(text, CATALOG), CATALOG, text).query for _, text, _ in cases("sql_to_nodes.txt")]


def test_every_golden_question_keeps_its_rows() -> None:
    given = {name: Bag(tuple(each[0]), list(each)) for name, each in made_up(7).items()}
    for query in golden():
        for asked in query.aggregates:
            one = replace(query, aggregates=(asked,))
            assert bag(normal(one), given) == bag(one, given)


def test_a_form_is_its_own_form() -> None:
    for query in golden():
        assert normal(normal(query)) == normal(query)


# --- one form ---------------------------------------------------------------------------------------------------

ADULTS = "SELECT region, COUNT(*) AS n FROM people WHERE age >= 18 AND active AND city IN ('a', 'b') GROUP BY region"
MINE = "SELECT COUNT(*) FROM visits w WHERE w.person_id = q.person_id AND 2 < w.cost"
ALIKE = [
    [
        ADULTS,
        "SELECT COUNT(*) AS m, region AS r FROM people p WHERE active AND p.city IN ('b', 'a', 'b') AND 18 <= p.age GROUP BY r",
        "SELECT region, COUNT(1) FROM people WHERE NOT (age < 18.0 OR NOT active OR city NOT IN ('a', 'b')) GROUP BY 1",
        "SELECT region, COUNT(*) FROM people WHERE (city = 'b' OR 'a' = city) AND age >= 18 AND NOT NOT active GROUP BY region",
        "WITH p AS (SELECT * FROM people) " + ADULTS.replace("people", "p"),
        "WITH p AS (SELECT region, age, active, city FROM people WHERE active) " + ADULTS.replace("people", "p"),
        ADULTS.replace("people", "(SELECT city AS city, active, age, region AS region FROM people AS q) AS r"),
        f"{ADULTS} HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 2",
        ADULTS.replace("COUNT(*) AS n", "COUNT(*) + 1 AS n, COUNT(*) AS m"),
    ],
    [
        "SELECT SUM(age) FROM people",
        "SELECT SUM(age) FROM people WHERE TRUE",
        "SELECT SUM(p.age) FROM (SELECT age FROM people WHERE NOT FALSE) p WHERE TRUE AND NOT NOT TRUE",
    ],
    [
        "SELECT SUM(age) FROM people WHERE age BETWEEN 18 AND 65",
        "SELECT SUM(age) FROM people WHERE age <= 65 AND age >= 18",
        "SELECT SUM(a) FROM (SELECT age AS a FROM people) t WHERE a <= 65.0 AND NOT 18 > a",
    ],
    [
        "SELECT COUNT(*) FILTER (WHERE age > 3), AVG(income + 1) FROM people",
        "SELECT AVG(1.0 + income), COUNT(CASE WHEN 3 < age THEN 1 END) FROM people",
    ],
    [
        "SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id AND p.region = v.region",
        "SELECT COUNT(*) FROM people JOIN visits ON people.region = visits.region AND visits.person_id = people.person_id",
    ],
    [
        f"SELECT COUNT(*) FROM people q WHERE 3 < ({MINE})",
        f"SELECT COUNT(*) FROM people p WHERE ({MINE.replace('w.', 'v.').replace(' w ', ' v ').replace('q.', 'p.')}) > 3.0",
    ],
    [
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits)",
        "SELECT COUNT(*) FROM people p WHERE p.person_id IN (SELECT v.person_id FROM visits v)",
    ],
]


@pytest.mark.parametrize("texts", ALIKE, ids=lambda texts: texts[0][:40])
def test_the_same_question_has_one_form(texts: list[str]) -> None:
    forms = [form(text) for text in texts]
    assert [text for text, found in zip(texts, forms, strict=True) if found != forms[0]] == []


DIFFERENT = [
    *(f"SELECT COUNT(*) FROM people WHERE age {sign} 18" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    "SELECT COUNT(*) FROM people WHERE age >= 18.5",
    "SELECT COUNT(*) FROM people WHERE age IS NULL",
    "SELECT COUNT(*) FROM people WHERE NOT age IS NULL",
    "SELECT COUNT(*) FROM people WHERE active",
    "SELECT COUNT(*) FROM people WHERE NOT active",
    "SELECT COUNT(*) FROM people WHERE active IS FALSE",
    "SELECT COUNT(*) FROM people WHERE active AND age >= 18",
    "SELECT COUNT(*) FROM people WHERE active OR age >= 18",
    "SELECT COUNT(*) FROM people WHERE city IN ('a', 'b')",
    "SELECT COUNT(*) FROM people WHERE city NOT IN ('a', 'b')",
    "SELECT COUNT(*) FROM people WHERE city IN ('a', 'c')",
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people WHERE FALSE",
    "SELECT COUNT(*) FROM people WHERE TRUE AND NULL",
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(city) FROM people",
    "SELECT COUNT(DISTINCT city) FROM people",
    "SELECT COUNT(DISTINCT region) FROM people",
    "SELECT COUNT(DISTINCT city), COUNT(*) FROM people",
    "SELECT region, COUNT(*) FROM people GROUP BY region",
    "SELECT region, active, COUNT(*) FROM people GROUP BY region, active",
    "SELECT region, active, COUNT(*) FROM people GROUP BY active, region",  # the order of keys is that of the stored answer
    "SELECT AVG(age - 1) FROM people",
    "SELECT AVG(1 - age) FROM people",
    "SELECT AVG(age / 2) FROM people",
    "SELECT AVG(age) FILTER (WHERE active) FROM people",
    "SELECT AVG(age) FROM people WHERE active",
    "SELECT AVG(CASE WHEN active THEN age ELSE 0 END) FROM people",
    "SELECT QUANTILE(age, 0.5) FROM people",
    "SELECT QUANTILE(age, 0.25) FROM people",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id",
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id AND p.region = v.region",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id WHERE p.region = 'north'",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id WHERE v.region = 'north'",
    "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits)",
    "SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits)",
    "SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3",
    "SELECT COUNT(*) FROM people p WHERE (SELECT MAX(cost) FROM visits v WHERE v.person_id = p.person_id) > 3",
    "SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) >= 3",
    "SELECT SUM(CLAMP(n, 0, 20)) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) t",
    "SELECT SUM(CLAMP(n, 0, 20)) FROM (SELECT person_id, COUNT(DISTINCT ward) AS n FROM visits GROUP BY person_id) t",
    "SELECT SUM(CLAMP(n, 0, 20)) FROM (SELECT person_id, ward, COUNT(*) AS n FROM visits GROUP BY person_id, ward) t",
]


def test_questions_that_differ_have_different_forms() -> None:
    found: dict[Query, str] = {}
    for text in DIFFERENT:
        other = found.setdefault(form(text), text)
        assert other == text


# --- generated rewritings ---------------------------------------------------------------------------------------

ATOMS = {
    "age >= {n}": ("{n} <= age", "NOT age < {n}", "age >= {n}.0", "NOT ({n} > age)"),
    "age <> {n}": ("{n} != age", "NOT age = {n}", "age NOT IN ({n})"),
    "city IN ('a', 'b', 'c')": (
        "city IN ('c', 'b', 'a', 'b')",
        "(city = 'a' OR city IN ('c', 'b'))",
        "NOT city NOT IN ('b', 'c', 'a')",
    ),
    "active": ("NOT NOT active", "(active)", "(active AND active)", "(active OR active)"),
    "income BETWEEN {n} AND 90": ("income <= 90 AND income >= {n}", "({n} <= income AND 90.0 >= income)"),
}


def spoken(parts: list[tuple[str, Any]], word: str, dice: random.Random | None) -> str:
    """Writes AND or OR of parts (atoms, or lists for the other word); with dice, in a random equivalent way."""
    words = {"AND": "OR", "OR": "AND"}
    found = []
    for atom, inner in dice.sample(parts, len(parts)) if dice else parts:
        if isinstance(inner, list):
            found.append(f"({spoken(inner, words[word], dice)})")
        else:
            found.append("(" + (dice.choice([atom, *ATOMS[atom]]) if dice else atom).format(n=inner) + ")")
    if dice and dice.random() < 0.3:
        return f"NOT ({f' {words[word]} '.join(f'NOT {part}' for part in found)})"
    return f" {word} ".join(found + found[: dice.randrange(2)] if dice else found)


ATOM = st.tuples(st.sampled_from(sorted(ATOMS)), st.integers(0, 60))
TREE = st.lists(st.one_of(ATOM, st.tuples(st.just(""), st.lists(ATOM, min_size=1, max_size=3))), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(TREE, st.randoms(use_true_random=False))
def test_rewritings_have_one_form(parts: list[tuple[str, Any]], dice: random.Random) -> None:
    plain = f"SELECT COUNT(*) FROM people WHERE {spoken(parts, 'AND', None)}"
    other = f"SELECT COUNT(*) AS many FROM (SELECT * FROM people AS q) AS r WHERE {spoken(parts, 'AND', dice)}"
    assert form(plain) == form(other), other


@settings(max_examples=100, deadline=None)
@given(TREE, TREE)
def test_one_form_has_one_meaning(one: list[tuple[str, Any]], two: list[tuple[str, Any]]) -> None:
    given = {name: Bag(tuple(each[0]), list(each)) for name, each in made_up(3).items()}
    texts = [f"SELECT COUNT(*) FROM people WHERE {spoken(parts, 'AND', None)}" for parts in (one, two)]
    queries = [resolve(parse(text, CATALOG), CATALOG, text).query for text in texts]
    same = normal(queries[0]) == normal(queries[1])
    assert not same or bag(queries[0], given) == bag(queries[1], given)
