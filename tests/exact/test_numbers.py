"""What a person writes is what is computed with."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
