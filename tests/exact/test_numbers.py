"""Numbers are read exactly as a person writes them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.catalog import values
from dither.errors import ArgumentError
from dither.exact import numbers


@pytest.mark.parametrize(
    "value", [0.1, "0.1", "1/10", " 1e-1 ", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1)]
)
def test_a_tenth_is_a_tenth(value: object) -> None:
    assert numbers.rational(value, "epsilon") == Fraction(1, 10)  # type: ignore[arg-type]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_what_it_prints(value: float) -> None:
    assert numbers.rational(value, "x") == Fraction(repr(value))


@pytest.mark.parametrize(
    "value", ["nan", "inf", float("nan"), float("inf"), np.inf, True, None, "", "1/0", "0x10", "1e99999", [1], 10**401, 1j]
)
def test_what_is_not_a_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"^epsilon "):
        numbers.rational(value, "epsilon")  # type: ignore[arg-type]


def test_limits() -> None:
    assert numbers.between(1, "p", 0, 1) == 1
    with pytest.raises(ArgumentError, match=r"p must lie in \[0, 1\), and it is 1"):
        numbers.between(1, "p", 0, 1, open_high=True)
    with pytest.raises(ArgumentError, match="above 0"):
        numbers.positive(0, "scale")
    with pytest.raises(ArgumentError, match="at least 0"):
        numbers.not_negative(-1, "x")
    assert numbers.whole(np.int64(3), "n") == 3
    for wrong in (1.0, True, "1"):
        with pytest.raises(ArgumentError, match="n must be a whole number"):
            numbers.whole(wrong, "n")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["1e-301", "1e300", "1/3", " 1_000 ", "-0.5", 5e-324, np.float32(0.1), Decimal("1e-301"), 7])
def test_a_number_is_read_alike_wherever_it_is_written(value: Any) -> None:
    exact = numbers.rational(value, "x")
    assert numbers.parse_number(value) == exact
    assert values.amount(value) == exact


@pytest.mark.parametrize(
    "value", ["nan", float("inf"), True, None, "", "1/0", "1/000", "0x10", "1e1000", "1e401", [1], 1j, "1" * 2001]
)
def test_what_one_reader_refuses_all_refuse(value: Any) -> None:
    assert numbers.parse_number(value) is None
    assert values.amount(value) is None
    with pytest.raises(ArgumentError):
        numbers.rational(value, "x")


@given(st.fractions() | st.builds(lambda n, e: Fraction(n) * Fraction(10) ** e, st.integers(-999, 999), st.integers(-350, 350)))
def test_what_is_spelled_reads_the_same(value: Fraction) -> None:
    assert numbers.parse_number(numbers.encode_toml(value).strip('"')) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(1, 10**350), "1e-350"),
        (Fraction(-1, 10**9999), "-1e-9999"),
        (Fraction(1, 3**9000), "8.10415097481e-4295"),
        (Fraction(3**9000 + 1, 2 * 3**9000), "0.5"),
        (Fraction(10**350 + 1, 2), "5e349"),
        (Fraction(10**5000), "1e5000"),
        (Fraction(0), "0"),
        (Fraction(10**30), "1.000000e30"),
    ],
)
def test_numbers_of_any_size_are_shown(value: Fraction, shown: str) -> None:
    assert numbers.show(value) == shown
