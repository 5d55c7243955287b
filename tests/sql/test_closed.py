"""The importer is closed: classes and arguments that are not on its lists are refused, and no text makes it stumble."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from dither.errors import QueryError
from dither.query.functions.registry import FUNCTIONS as REGISTRY
from dither.query.nodes import Call, Column, Literal
from dither.query.resolve.relations import resolve
from dither.query.sql import expressions
from dither.query.sql.expressions import BINARY, FUNCTIONS
from dither.query.sql.gate import read
from dither.query.sql.names import Field, Scope
from dither.query.sql.select import parse
from sql.survey import CATALOG
from sql.test_golden import cases

SCOPE = Scope("", (Field("t", "x", "t.x"),))
READ = {*BINARY, *expressions._READERS, exp.Column}
KINDS = [found for found in vars(exp).values() if isinstance(found, type) and issubclass(found, exp.Expression)]
CLASSES = sorted(set(KINDS), key=str)
QUESTIONS = [question for name in ("sql_to_nodes.txt", "sql_to_error.txt") for _, question, _ in cases(name)]
WORDS = sorted(
    {word for question in QUESTIONS for word in question.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()}
)


def test_every_other_class_of_sqlglot_is_refused() -> None:
    others = [found for found in CLASSES if found not in READ]
    assert len(others) > 500
    for found in others:
        with pytest.raises(QueryError):
            expressions.expression(found(this=exp.column("x"), expression=exp.column("x")), SCOPE)


@pytest.mark.parametrize("found", sorted(READ, key=str), ids=lambda found: found.__name__)
def test_an_argument_that_is_not_on_the_list_is_refused(found: type[exp.Expr]) -> None:
    node = found(this=exp.column("x"), expression=exp.column("x"), surprise=exp.true())
    with pytest.raises(QueryError):
        expressions.expression(node, SCOPE)


def test_every_function_that_sql_can_name_is_in_the_registry() -> None:
    assert {*FUNCTIONS.values(), *BINARY.values()} <= {*REGISTRY}


def outcome(text: str) -> str:
    try:
        resolve(parse(text, CATALOG), CATALOG, text)
    except QueryError as refusal:
        return "refused" if refusal.fix else f"refused without a way out: {text}"
    return "answered"


@pytest.mark.slow
def test_mixed_up_questions_are_answered_or_refused() -> None:
    dice = random.Random(7)
    seen = {"answered": 0, "refused": 0}
    for _ in range(3000):
        words = dice.choice(QUESTIONS).split()
        for _ in range(dice.randint(0, 3)):
            at = dice.randrange(len(words) + 1)
            words[at : at + dice.randint(0, 2)] = dice.choices(WORDS, k=dice.randint(0, 2))
        seen[outcome(" ".join(words))] += 1
    assert seen["answered"] > 200
    assert seen["refused"] > 300


@given(st.text(max_size=60))
def test_any_text_is_answered_or_refused(text: str) -> None:
    assert outcome(text) == "refused"


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_words_are_answered_or_refused(words: list[str]) -> None:
    outcome("SELECT " + " ".join(words))


@given(value=st.text(max_size=20))
def test_a_text_constant_stays_itself(value: str) -> None:
    found = read(f"SELECT '{value.replace(chr(39), chr(39) * 2)}'")[0]
    constant = expressions.expression(found.expressions[0], Scope(""))
    assert constant == Literal(value)


@given(value=st.integers(0, 2**62) | st.decimals(0, 10**6, places=4))
def test_a_number_is_read_exactly(value: Any) -> None:
    found = read(f"SELECT -{value}")[0]
    constant = expressions.expression(found.expressions[0], Scope(""))
    assert isinstance(constant, Literal)
    assert constant.value == -value


def test_precedence_is_that_of_sql() -> None:
    found = read("SELECT NOT x = 1 AND x + 2 * 3 > 4 OR x IS NULL")[0]
    tree = expressions.expression(found.expressions[0], SCOPE)
    x = Column("t.x")
    first = Call("not", (Call("eq", (x, Literal(1))),))
    second = Call("gt", (Call("add", (x, Call("mul", (Literal(2), Literal(3))))), Literal(4)))
    assert tree == Call("or", (Call("and", (first, second)), Call("is_null", (x,))))


def test_a_long_chain_of_ctes_is_answered() -> None:
    names = ["people", *(f"c{i}" for i in range(50))]
    steps = [f"{new} AS (SELECT age FROM {old})" for old, new in itertools.pairwise(names)]
    assert outcome(f"WITH {', '.join(steps)} SELECT COUNT(*) FROM c49") == "answered"


def test_a_with_inside_a_with_is_not_read_without_end() -> None:
    question = "SELECT age FROM people"
    for depth in range(25):
        question = f"WITH c{depth} AS ({question}) SELECT age FROM c{depth}"
    begun = time.monotonic()
    assert outcome(f"WITH z AS ({question}) SELECT COUNT(*) FROM z") == "refused"
    assert time.monotonic() - begun < 30


def test_ctes_cannot_multiply_without_end() -> None:
    names = ["people", *(f"c{i}" for i in range(30))]
    steps = [f"{new} AS (SELECT a.age FROM {old} a JOIN {old} b ON a.age = b.age)" for old, new in itertools.pairwise(names)]
    assert outcome(f"WITH {', '.join(steps)} SELECT COUNT(*) FROM c29") == "refused"
