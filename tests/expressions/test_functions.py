"""The meaning of each function by example, where engines tend to disagree."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

import pytest

from dither.query.functions.registry import FUNCTIONS, evaluate
from dither.query.nodes import Call, Literal

D = datetime.date
T = datetime.datetime

EXAMPLES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("add", (2**53, 1), float(2**53)),
    ("add", (1, None), None),
    ("div", (1, 0), None),
    ("div", (0, 0), None),
    ("mod", (-7, 3), -1.0),
    ("mod", (7, 0), None),
    ("sub", (math.inf, math.inf), None),
    ("mul", (0, math.inf), None),
    ("round", (2.5,), 3.0),
    ("round", (-2.5,), -3.0),
    ("round", (0.49999999999999994,), 0.0),
    ("floor", (-math.inf,), -math.inf),
    ("sqrt", (-1,), None),
    ("ln", (0,), None),
    ("exp", (1000,), math.inf),
    ("power", (0, -1), None),
    ("power", (-8, Fraction(1, 3)), None),
    ("power", (-10, 309), -math.inf),
    ("sign", (-0.0,), 0.0),
    ("least", (1, None), None),
    ("greatest", (1, Fraction(5, 2)), 2.5),
    ("clamp", (None, 0, 1), None),
    ("clamp", (math.inf, 0, 1), 1.0),
    ("bucket", (-1, 10), -10.0),
    ("eq", (2**53 + 1, 2**53), False),
    ("eq", (2**53 + 1, Fraction(2**53)), True),
    ("lt", ("Z", "a"), True),
    ("lt", ("\uffff", "\U00010000"), True),
    ("eq", (D(2024, 1, 1), T(2024, 1, 1)), True),
    ("ne", (None, None), None),
    ("is_null", (math.nan,), True),
    ("in_list", (1, 2, None), None),
    ("in_list", (1, 1, None), True),
    ("and", (False, None), False),
    ("and", (True, None), None),
    ("or", (True, None), True),
    ("not", (None,), None),
    ("case", (None, 1, 2), 2),
    ("coalesce", (None, math.nan, 3), 3),
    ("nullif", (1, 1), None),
    ("nullif", (1, None), 1),
    ("to_int", (8.5,), 8),
    ("to_int", (-3.5,), -4),
    ("to_int", (0.49999999999999994,), 0),
    ("to_int", ("12x",), None),
    ("to_int", (1e19,), None),
    ("to_int", (2**63 - 1,), 2**63 - 1),
    ("to_real", ("1.5",), 1.5),
    ("to_real", ("1e5",), None),
    ("to_real", ("nan",), None),
    ("to_text", (True,), "true"),
    ("to_text", (D(33, 1, 2),), "0033-01-02"),
    ("to_date", ("2023-02-29",), None),
    ("to_date", ("0000-01-01",), None),
    ("to_date", ("2024-01-02 23:59:59.5",), D(2024, 1, 2)),
    ("to_date", ("2024-01-02T23:59",), D(2024, 1, 2)),
    ("to_date", ("2024-01-02 24:00",), None),
    ("to_date", ("2024-01-02 1:00",), None),
    ("to_date", (T(2024, 1, 2, 3),), D(2024, 1, 2)),
    ("to_bool", ("TRUE",), True),
    ("to_bool", ("yes",), None),
    ("to_bool", (-0.0,), False),
    ("lower", ("ÄBc",), "Äbc"),
    ("upper", ("äßz",), "äßZ"),
    ("trim", (" \ta ",), "\ta"),
    ("length", ("a\U0001f600",), 2),
    ("substr", ("äbc", 2, 5), "bc"),
    ("concat", ("a", None), None),
    ("concat", ("a" * 65_536, "b"), None),
    ("like", ("a\nb", "a_b"), True),
    ("like", ("mississippi", "m%iss%pi"), True),
    ("starts_with", ("abc", ""), True),
    ("contains", ("abc", "bc"), True),
    ("year", (D.min,), 1),
    ("month", (D(2024, 12, 31),), 12),
    ("day", (D(2024, 12, 31),), 31),
    ("quarter", (D(2024, 10, 1),), 4),
    ("weekday", (D(2024, 2, 25),), 7),
    ("hour", (T(2024, 1, 1, 23, 59),), 23),
    ("date_trunc", ("week", D.min), D.min),
    ("date_trunc", ("quarter", T(2024, 5, 6, 7)), D(2024, 4, 1)),
    ("days_between", (D(2024, 2, 28), D(2024, 3, 1)), 2),
    ("neg", (0,), 0.0),
    ("abs", (-(2**63),), float(2**63)),
    ("ceil", (-0.5,), 0.0),
    ("gt", (math.inf, 1), True),
    ("ge", ("b", "a"), True),
    ("le", (False, True), True),
]


@pytest.mark.parametrize(("name", "arguments", "value"), EXAMPLES)
def test_function(name: str, arguments: tuple[Any, ...], value: Any) -> None:
    found = evaluate(Call(name, tuple(Literal(argument) for argument in arguments)), {})
    assert found == value
    assert type(found) is type(value)


def test_every_function_has_an_example() -> None:
    assert {name for name, _, _ in EXAMPLES} == set(FUNCTIONS)


def test_patterns_take_no_exponential_time() -> None:
    evaluate(Call("like", (Literal("a" * 2000), Literal("%a" * 50 + "b"))), {})
