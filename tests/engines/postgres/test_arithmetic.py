"""Guarded arithmetic gives in PostgreSQL what IEEE doubles give in Python, at the very edges of overflow and underflow."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from dither.engines.postgres.arithmetic import EXP_FIRST, EXP_LAST, first, last, least_step
from dither.query.functions.registry import evaluate
from dither.query.nodes import Call, Column, Expression, Literal, Named, Scan
from dither.query.work import Work
from engines.places import Place, PostgresPlace

pytestmark = pytest.mark.slow
KINDS = {"n": "int", "x": "real", "y": "real"}
NAMES = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@pytest.fixture(params=["postgres"])
def place(request: pytest.FixtureRequest) -> Any:
    made = PostgresPlace(request.getfixturevalue("postgres"))
    yield made
    made.close()


def values(place: Place, expression: Expression, rows: list[tuple[float, float]]) -> list[Any]:
    table = [{"n": n, "x": x, "y": y} for n, (x, y) in enumerate(rows)]
    keys = (Named("n", Column("t.n")), Named("v", expression))
    work = Work(Scan("t", "t"), keys, None, False, None, (), plain=True)
    engine = place.engine({"t": table}, {"t": KINDS})
    engine.prepare(work)
    return [value for _, value in sorted((group.key for group in engine.run(work, b"")), key=lambda key: key[0])]


def edges(count: int = 3000) -> list[tuple[float, float]]:
    """Pairs whose sum, product or quotient is at an edge of the doubles, and a last bit away from it."""
    dice, found = random.Random(3), []
    ends = [2.0**1023, 1.7976931348623157e308, 5e-324, 2.0**-1022, 2.0**-1074, 2.0**-538, 2.0**512, 2.0**-512, 1.0]
    for _ in range(count):
        x = math.ldexp(dice.uniform(0.5, 1), dice.randint(-1074, 1024)) if dice.random() < 0.7 else dice.choice(ends)
        target = dice.choice([2.0**-1074, 2.0**-1022, 1.7976931348623157e308])
        near = target / x if dice.random() < 0.5 else x / target if dice.random() < 0.5 else target - x
        y = near if math.isfinite(near) and near else dice.choice(ends)
        for _ in range(dice.randint(0, 3)):
            y = math.nextafter(y, dice.choice([0.0, math.inf]))
        y = y / 2 if dice.random() < 0.3 else y
        found.append((x * dice.choice([1, -1]), y * dice.choice([1, -1])))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_columns_at_the_edges(place: Place, name: str) -> None:
    rows = edges()
    expression = Call(name, (Column("t.x"), Column("t.y")))
    for (x, y), ours in zip(rows, values(place, expression, rows), strict=True):
        assert ours == evaluate(expression, {"t.x": x, "t.y": y}), (name, x.hex(), y.hex())


def test_products_that_are_just_above_half_of_the_smallest_double(place: Place) -> None:
    """2^-1075 (1 + 2^-53 or less): rounding says 1, and Dekker's error says on which side the product lies."""
    rows = []
    for k in range(1, 200):
        a = 1 + k * 2.0**-52
        b = 1 / a
        for factor in (b, math.nextafter(b, 2), math.nextafter(b, 0)):
            rows.append((math.ldexp(a, -500), math.ldexp(factor, -575)))
    expression = Call("mul", (Column("t.x"), Column("t.y")))
    found = values(place, expression, rows)
    assert found == [x * y for x, y in rows]
    assert {0.0, 5e-324} <= set(found)


@pytest.mark.parametrize("constant", [3.0, 0.1, -1e-300, 2.0**-1074, 1e300, -(2.0**1023), 1.7976931348623157e308])
@pytest.mark.parametrize("name", NAMES)
def test_constants_at_the_edges(place: Place, name: str, constant: float) -> None:
    around = [constant, 1 / constant if abs(constant) > 1e-300 else 1e300, 5e-324, 1.7976931348623157e308, 2.0**-1022]
    around += [1.7976931348623157e308 / constant, 5e-324 / constant, 5e-324 * constant, 1.7976931348623157e308 - constant]
    xs = [z for x in around if math.isfinite(x) for z in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf), -x)]
    rows = [(x, 0.0) for x in [*xs, 0.0, -0.0, math.inf, -math.inf, math.nan]]
    for both in ((Column("t.x"), Literal(constant)), (Literal(constant), Column("t.x"))):
        expression = Call(name, both)
        for (x, _), ours in zip(rows, values(place, expression, rows), strict=True):
            row = {"t.x": None if math.isnan(x) else x}
            expected = evaluate(expression, row)
            assert ours == expected or (ours != ours and expected is None), (name, x.hex(), constant)


def test_exponentials_at_their_ends(place: Place) -> None:
    xs = [EXP_LAST, math.nextafter(EXP_LAST, 1e9), EXP_FIRST, math.nextafter(EXP_FIRST, -1e9), 0.0, math.inf, -math.inf]
    expression = Call("exp", (Column("t.x"),))
    found = values(place, expression, [(x, 0.0) for x in xs])
    assert found == [evaluate(expression, {"t.x": x}) for x in xs]


def test_thresholds_are_the_first_and_last_that_hold() -> None:
    assert last(lambda x: x * 3 < math.inf) * 3 < math.inf
    assert math.nextafter(last(lambda x: x * 3 < math.inf), math.inf) * 3 == math.inf
    edge = first(lambda x: x >= -2.5)
    assert edge == -2.5
    assert (least_step(0.0, 7.0)) / 7 > 0 == math.nextafter(least_step(0.0, 7.0), 0) / 7
