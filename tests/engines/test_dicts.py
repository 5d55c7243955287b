"""The columns of a dict become what pa.array makes of them, and pandas is not imported for that."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.engines.duckdb.dicts import array

HARD: tuple[Any, ...] = (
    [],
    [None, None],
    [1, None, -(2**63), 2**63 - 1],
    [1.5, None, float("inf")],
    [True, None, False] * 5,
    ["", None, "é", "😀", "a\0b"],
    [1, 1.5],
    np.arange(5),
    np.arange(10)[::2],
    np.array([1.0, np.nan]),
    np.array([1, 2], dtype="int32"),
    np.array(["a", "b"]),
    np.array([True, False]),
    np.array(["2024-02-29"], dtype="datetime64[D]"),
    pa.array([1, 2]),
)
PLAIN = st.one_of(*(st.lists(st.none() | each, max_size=20) for each in (st.integers(-9, 9), st.text(), st.booleans())))


def same(values: Any) -> bool:
    """Whether both are one array, NaN included."""
    ours, theirs = pa.table({"x": array(values)}).column(0), pa.table({"x": values}).column(0)
    ours.validate(full=True)
    return bool(ours.type == theirs.type) and repr(ours.to_pylist()) == repr(theirs.to_pylist())


@pytest.mark.parametrize("values", HARD, ids=lambda values: type(values).__name__)
def test_a_column_is_what_arrow_makes_of_it(values: Any) -> None:
    assert same(values)


@given(PLAIN)
def test_any_list_of_one_type_is_too(values: list[Any]) -> None:
    assert same(values)


@pytest.mark.parametrize("values", [[2**63], [1, True], ["\ud800"], [object()]], ids=lambda values: type(values).__name__)
def test_what_arrow_refuses_is_refused(values: list[Any]) -> None:
    with pytest.raises((pa.ArrowException, OverflowError, UnicodeError)):
        pa.table({"x": array(values)})


ANSWER = """
import sys, dither as dt
people = dt.Table({frame}, unit="row", columns={{"age": dt.between(0, 99), "sex": dt.values("f", "m")}})
with dt.open(dt.Catalog(tables={{"people": people}}, budget=dt.Budget(epsilon=9)), ":memory:") as survey:
    survey.ask("SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex", epsilon=1).rows
print(*sorted({{"pandas", "pyarrow.compute", "scipy"}} & set(sys.modules)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "loaded"),
    [
        ('{"age": [30, 40, None], "sex": ["f", "m", "f"]}', ""),
        ('__import__("pandas").DataFrame({"age": [30], "sex": ["f"]})', "pandas"),
    ],
)
def test_a_first_answer_loads_only_what_it_needs(frame: str, loaded: str) -> None:
    done = subprocess.run([sys.executable, "-c", ANSWER.format(frame=frame)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:1] == loaded.split()
