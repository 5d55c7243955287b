"""Expressions are shown as SQL that reads back as the same expression."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.catalog.values import Budget, Catalog, ColumnFacts, Table
from dither.errors import QueryError
from dither.query.functions.registry import FUNCTIONS
from dither.query.nodes import Call, Column, Expression, Literal
from dither.query.show import show_expression, show_value
from dither.query.sql.expressions import computed
from dither.query.sql.select import parse
from expressions.generate import COLUMNS, expressions

TABLE = Table("r.parquet", unit="row", columns={f"{name}_": ColumnFacts(facts.kind) for name, facts in COLUMNS.items()})
ONE = Catalog({"r": TABLE}, Budget(1))


def over(node: Expression) -> Expression:
    """Returns the expression as the SQL reader builds it: AND, OR and || of two, signs inside constants."""
    if isinstance(node, Column):
        return Column(f"r.{node.name}_")
    if isinstance(node, Literal):
        return node
    parts = [over(part) for part in node.arguments]
    first = parts[0]
    if node.name in ("and", "or", "concat"):
        for part in parts[1:]:
            first = Call(node.name, (first, part))
        return first
    if node.name in ("smallest", "largest"):  # the reader writes LEAST, and fitting.py decides
        return Call({"smallest": "least", "largest": "greatest"}[node.name], tuple(parts))
    if node.name == "row":  # can stand in COUNT(DISTINCT ...) only
        return Call("concat", tuple(parts[:2]))
    if node.name == "neg" and isinstance(first, Literal) and isinstance(first.value, (int, Fraction)):
        return Literal(-first.value)
    return Call(node.name, tuple(parts))


def flat(node: Expression) -> Expression:
    """Flattens AND inside AND, as shown."""
    if not isinstance(node, Call):
        return node
    parts = [flat(part) for part in node.arguments]
    if node.name in ("and", "or"):
        inner = [part.arguments if isinstance(part, Call) and part.name == node.name else (part,) for part in parts]
        parts = [each for several in inner for each in several]
    exact = computed(node.name, *parts, None) if len(parts) == 2 else None  # decimal constants are computed when they are read
    return Call(node.name, tuple(parts)) if exact is None else exact


def read(text: str) -> Expression:
    return parse(f"SELECT {text} AS k, COUNT(*) AS n FROM r GROUP BY {text}", ONE).keys[0].expression


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_what_is_shown_reads_back(name: str) -> None:
    read_back = []

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        built = data.draw(expressions(name))
        if built is None:
            return
        expression = over(built[0])
        if name == "row":
            expression = over(Call("length", (built[0],)))
        try:
            found = read(show_expression(expression))
        except QueryError:
            return  # a constant where SQL takes none, such as NULL in a list
        read_back.append(expression)
        assert flat(found) == flat(expression), show_expression(expression)

    check()
    assert read_back


@pytest.mark.parametrize(
    "text",
    [
        "r.i_ > 3",
        "(r.i_ + 1) * 2 >= 18.0",
        "NOT (r.i_ = 1 OR r.i_ = 2) AND r.flag_",
        "r.region_ IN ('north', 'it''s') OR r.region_ NOT LIKE 'a%'",
        "CASE WHEN r.i_ > 3 THEN 1 WHEN r.flag_ IS NULL THEN 0 END",
        "CAST(r.v_ AS INTEGER) IS NOT NULL",
        "r.date_ >= DATE '2024-01-01' AND r.time_ < TIMESTAMP '2024-01-01 12:30:00'",
        "-(-r.i_) < -0.5",
        "(r.flag_ = TRUE) = FALSE",
    ],
)
def test_shown_twice_is_shown_the_same(text: str) -> None:
    shown = show_expression(read(text))
    assert show_expression(read(shown)) == shown
    assert flat(read(shown)) == flat(read(text))


def test_analysts_see_operators_and_their_own_constants() -> None:
    age = Column("p.age")
    assert show_expression(Call("gt", (age, Literal(3)))) == "p.age > 3"
    assert show_expression(Call("le", (age, Literal(Fraction(18))))) == "p.age <= 18.0"
    assert show_expression(Call("not", (Call("in_list", (age, Literal(1), Literal(2))),))) == "p.age NOT IN (1, 2)"
    assert show_value("two\nlines, it's") == "'two\\nlines, it''s'"


def test_a_subquery_is_shown_in_its_words_or_by_its_name() -> None:
    value = Column("#subquery 2.max_cost", words="(SELECT MAX(cost) ...)")
    condition = Call("not", (Call("is_null", (value,)),))
    assert show_expression(condition) == "(SELECT MAX(cost) ...) IS NOT NULL"
    assert show_expression(condition, names=True) == "#subquery 2.max_cost IS NOT NULL"
