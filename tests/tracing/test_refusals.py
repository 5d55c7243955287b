"""Nothing that a program can observe depends on private values, except noise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dither as dt
from tracing.programs import ONE

ATTEMPTS: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: 1 if x[0] else 2,
    "and": lambda x: x[0] and 3,
    "not": lambda x: not x[0],
    "compare": lambda x: x[0] > 1,
    "equal": lambda x: x[0] == 1,
    "unequal": lambda x: x != [1, 2, 0],
    "contains": lambda x: 1 in x,
    "min of Python": lambda x: min(x[0], x[1]),
    "sorted": sorted,
    "any": any,
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "complex": lambda x: complex(x[0]),
    "round": lambda x: round(x[0]),
    "range": lambda x: range(x[0]),
    "index": lambda x: [1, 2, 3][x[0]],
    "position": lambda x: x[x[0]],
    "format": lambda x: f"{x[0]:d}",
    "percent": lambda x: "%d" % x[0],  # noqa: UP031
    "hash": lambda x: {x[0]: 1},
    "set": lambda x: {x[0]},
    "array": np.asarray,
    "array of one": lambda x: np.array(x[0]),
    "numpy mean": np.mean,
    "numpy sum": np.sum,
    "numpy stack": lambda x: np.stack([x, x]),
    "a method that there is not": lambda x: x.mean(),
    "repeat": lambda x: "a" * x[0],
    "pickle": pickle.dumps,
    "divide by": lambda x: 1 / x[0],
    "divide by it": lambda x: x / x[0],
    "remainder": lambda x: 7 % x[0],
    "set item": lambda x: x.__setitem__(0, 5),
    "attribute": lambda x: setattr(x, "run", None),
    "length": lambda x: len(x[0]),
    "records": lambda x: dt.records(x, 0, 1),
    "return": lambda x: x,
    "return in a list": lambda x: [1, (x[0],)],
    "bounds": lambda x: x.clip(0, x[0]),
    "epsilon": lambda x: x[0].release(dt.Geometric(epsilon=x[1], sensitivity=1)),
}


def observed(attempt: Callable[[Any], Any], data: list[int]) -> str:
    """Everything that the program and its caller see: the error with its text, or the result."""
    try:
        return f"{dt.trace(attempt, dt.records(data, 0, 2)).result!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_to_look_is_refused_with_the_same_words_for_all_values(name: str) -> None:
    seen = {observed(ATTEMPTS[name], data) for data in ([0, 0, 0], [1, 2, 0], [2, 2, 2])}
    assert len(seen) == 1
    assert "Error: " in seen.pop()


def test_a_branch_is_refused_with_its_line() -> None:
    def program(x: Any) -> int:
        total = x.sum()
        if total > 2:
            return 1
        return 0

    with pytest.raises(dt.DitherError) as caught:
        dt.trace(program, dt.records([0, 1], 0, 2))
    line = program.__code__.co_firstlineno + 2
    assert f"test_refusals.py, line {line}: if total > 2:" in str(caught.value)


def test_a_private_value_shows_its_bounds_and_nothing_else() -> None:
    for data in ([0, 0], [2, 1]):
        shown = dt.trace(lambda x: (repr(x), str(x[0]), f"{(x / 4).sum()}"), dt.records(data, 0, 2)).result
        assert shown == (
            "<2 private numbers from 0 to 2>",
            "<a private number from 0 to 2>",
            "<a private number from 0 to 1 in steps of 0.25>",
        )


def test_changing_the_array_afterwards_changes_nothing() -> None:
    array = np.array([0, 0])
    records = dt.records(array, 0, 1)
    array[:] = 1
    seen: list[int] = []

    def program(x: Any) -> Any:
        before = x
        x += 5
        seen.append(before is x)
        return (x - before).sum().release(dt.Geometric(epsilon=10, sensitivity=1))

    run = dt.trace(program, records)
    assert seen == [False]
    assert run.loss().epsilon(0) == 20  # the moves of both are counted: x - x is not seen to be 0


def test_a_copy_is_the_value_itself() -> None:
    def program(x: Any) -> Any:
        return copy.copy(x) is x and copy.deepcopy(x) is x

    assert dt.trace(program, dt.records([0], 0, 1)).result is True


def test_values_of_two_runs_are_not_combined() -> None:
    def outer(x: Any) -> Any:
        return dt.trace(lambda y: (x.sum() + y.sum()).release(ONE), dt.records([1], 0, 1))

    with pytest.raises(dt.DitherError, match="two different runs"):
        dt.trace(outer, dt.records([1], 0, 1))


def test_a_value_cannot_be_released_after_its_run() -> None:
    kept: list[Any] = []
    dt.trace(kept.append, dt.records([1], 0, 1))
    with pytest.raises(dt.DitherError, match="has ended"):
        kept[0].release(ONE)


def test_two_data_sets_of_one_run_have_different_records() -> None:
    def program(x: Any, y: Any) -> Any:
        return [x.sum().release(ONE), (x.sum() + 3 * y.sum()).release(ONE)]

    run = dt.trace(program, dt.records([0, 1], 0, 1), dt.records([1], 0, 1))
    assert run.loss().epsilon(0) == 3  # the record of y; those of x pay 1 + 1
    assert run.records == 3
    assert run.releases[1].records == ((0, 3),)


def test_numbers_that_are_not_whole_need_a_step_and_every_value_is_read() -> None:
    with pytest.raises(dt.ArgumentError, match="need a grid"):
        dt.records([0.5], 0, 1)
    hard = np.array([0.26, float("nan"), float("inf"), -7.0])
    assert dt.records(hard, 0, 1, step="1/4").exact.tolist() == [1, 0, 4, 0]


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([[[1]]], {}, "one axis, or on two"),
        (["a"], {}, "must be numbers"),
        ([], {}, "must be numbers"),
        ([[1, 2], [3]], {}, "different lengths"),
        ([1], {"low": 2, "high": 1}, "low must not be above high"),
        ([1], {"low": 0, "high": 2**61}, "more than 2\\^60"),
        ([[1, 2]], {"low": [0], "high": 1}, "for each of 2 columns"),
        (np.ma.masked_array([1], [True]), {}, "masked"),
    ],
)
def test_records_are_refused_by_type_shape_and_bounds(values: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(dt.ArgumentError, match=words):
        dt.records(values, **{"low": 0, "high": 1, **options})


def test_a_function_that_fails_on_some_rows_is_not_noticed() -> None:
    def program(table: Any) -> Any:
        return table.map(lambda row: 1 / row[0], 0, 1, "1/4").sum().release(dt.Laplace(epsilon=1, sensitivity=1, grid="1/4"))

    prices = {dt.trace(program, dt.records([[value], [1]], 0, 2)).loss() for value in (0, 1, 2)}
    assert prices == {dt.Pure(1)}


def test_a_row_is_multiplied_by_its_own_numbers_only() -> None:
    with pytest.raises(dt.DitherError, match="numbers that other records move"):
        dt.trace(lambda table: table * table[:, 0].cumsum(), dt.records([[1], [2]], 0, 2))
    with pytest.raises(dt.DitherError, match="numbers that other records move"):
        dt.trace(lambda table: table * table[:, 0][[1, 0]], dt.records([[1], [2]], 0, 2))


def test_what_private_values_lack_is_refused_with_what_they_have() -> None:
    values = dt.records([1, 2, 0], 0, 2)
    for attempt in (lambda x: x.mean(), np.mean, np.sum):
        with pytest.raises(dt.DitherError, match=r"a mean is x\.sum\(\) / len\(x\)"):
            dt.trace(attempt, values)
    assert dt.trace(lambda x: hasattr(x, "mean"), values).result is False
