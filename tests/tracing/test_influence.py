"""No value moves further than its influence says: random programs on every small data set and all its neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.tracing.bounded import Bounded
from dither.tracing.influence import MOST_RUNS, Influence
from dither.tracing.private import Private, inside

LOW, HIGH, N = -1, 1, 3
Step = Callable[[list[Any]], Any]


def _vector(values: list[Any]) -> Any:
    return next(each for each in reversed(values) if isinstance(each, Private) and not repr(each).startswith("<a "))


STEPS: dict[str, Step] = {
    "add": lambda v: v[-1] + v[-2] if len(v) > 1 else v[-1] + v[-1],
    "subtract": lambda v: v[0] - v[-1],
    "public": lambda v: 2 - v[-1],
    "scale": lambda v: v[-1] * -3,
    "weights": lambda v: _vector(v)[[0, 1, 0]] * [1, -2, 3],
    "multiply": lambda v: v[-1] * v[0][1],
    "divide": lambda v: v[-1] / 2,
    "floor": lambda v: v[-1].floor(2),
    "clip": lambda v: v[-1].clip(-1, 2),
    "clip to halves": lambda v: (v[-1] / 3).clip(0, 1, step="1/2"),
    "minimum": lambda v: v[-1].minimum(v[0]),
    "maximum": lambda v: v[-1].maximum(v[0][2]),
    "absolute": lambda v: abs(v[-1]),
    "sum": lambda v: _vector(v).sum(),
    "cumulate": lambda v: _vector(v).cumsum(),
    "smallest": lambda v: _vector(v).min(),
    "largest": lambda v: _vector(v).max(),
    "slice": lambda v: _vector(v)[1:],
    "choose": lambda v: _vector(v)[[0, 0, 1]],
    "table": lambda v: v[-1].clip(-2, 2, step=1).apply(lambda x: (x - 1) ** 2, step="1/2"),
    "join": lambda v: _vector(v).concat(v[0][0]),
    "dot": lambda v: v[0] @ [3, 0, -1],
}


def computed(steps: list[str], data: tuple[int, ...]) -> list[Bounded]:
    """Runs the steps on records, and returns what all private values are inside."""
    seen: list[Bounded] = []

    def program(x: Any) -> None:
        values = [x]
        for step in steps:
            try:
                values.append(STEPS[step](values))
            except dt.ArgumentError:  # lengths that do not fit: the same for all data
                continue
        seen.extend(inside(value) for value in values)

    dt.trace(program, dt.records(list(data), LOW, HIGH))
    return seen


def moves(value: Bounded) -> Any:
    """The influence written out: a row per output, a column per record."""
    runs, table = value.influence, np.zeros((value.outputs, value.influence.records), dtype=object)
    for output, start, stop, move in zip(runs.output, runs.start, runs.stop, runs.move, strict=True):
        table[output, start:stop] += int(move)
    return table


def breaches(steps: list[str]) -> list[str]:
    """What the values of all data sets disagree about: bounds, moves, or a value that moves further."""
    found: dict[tuple[int, ...], list[Bounded]] = {
        data: computed(steps, data) for data in itertools.product(range(LOW, HIGH + 1), repeat=N)
    }
    wrong = []
    first = next(iter(found.values()))
    allowed = [moves(value) for value in first]
    for data, values in found.items():
        for one, same, table in zip(first, values, allowed, strict=True):
            if not (np.array_equal(moves(same), table) and same.step == one.step and np.array_equal(same.high, one.high)):
                wrong.append("moves or bounds depend on values")
            if np.any(same.exact < same.low) or np.any(same.exact > same.high):
                wrong.append("a value is out of its bounds")
        for place in range(N):
            other = (*data[:place], LOW if data[place] != LOW else HIGH, *data[place + 1 :])
            for one, same, table in zip(values, found[other], allowed, strict=True):
                if np.any(np.abs(one.exact - same.exact) > table[:, place]):
                    wrong.append(f"record {place} moves a value further")
    return wrong


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6))
def test_no_value_moves_further_than_its_influence_says(steps: list[str]) -> None:
    assert breaches(steps) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", sorted(STEPS))
def test_each_operation_keeps_its_bounds(step: str) -> None:
    assert breaches([step]) == []
    assert breaches(["weights", step]) == []


@pytest.mark.parametrize(
    ("home", "name", "wrong", "steps"),
    [
        (Influence, "plus", lambda self, other: self, ["multiply"]),
        (Influence, "either", lambda self, other: self, ["slice", "sum", "public", "minimum"]),
        (Influence, "scaled", lambda self, by: self, ["scale"]),
        (Influence, "cumulated", lambda self: self, ["cumulate"]),
        (Influence, "largest", lambda self: self.take(np.array([0])), ["smallest"]),
        (Influence, "added", lambda self: self.take(np.array([0])), ["sum"]),
        (Influence, "capped", lambda self, widths: self.scaled(np.zeros(self.outputs, dtype=np.int64)), ["public"]),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_that_a_broken_rule_would_be_found(
    home: Any, name: str, wrong: Any, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, name, wrong)
    assert breaches(steps) != []


# --- rows -------------------------------------------------------------------------------------------------------


def row_program(table: Any) -> dict[str, Any]:
    short = table.clip_norm(2)
    weighted = short * table[:, 0]
    return {
        "sum": table.sum(),
        "short": short.sum(),
        "weighted": weighted.sum(),
        "coarse": weighted.truncate(2).sum(),
        "dot": (table @ [1, -2]).clip(-3, 3).sum(),
        "mapped": table.map(lambda row: row[0] / row[1], -2, 2, "1/4"),
    }


def rows_of(data: tuple[tuple[int, int], ...]) -> dict[str, Bounded]:
    seen: dict[str, Bounded] = {}
    dt.trace(lambda table: seen.update({k: inside(v) for k, v in row_program(table).items()}), dt.records(data, -2, 2))
    return seen


def test_rows_move_no_further_together_than_their_norm_says() -> None:
    values = [rows_of(((a, b), (1, -2))) for a, b in itertools.product(range(-2, 3), repeat=2)]
    tight = 0
    for one, other in itertools.product(values, repeat=2):
        for name, value in one.items():
            apart = other[name].exact - value.exact
            load = value.load()
            assert int(np.abs(apart).sum()) <= int(load.total[0]), name
            assert int((apart * apart).sum()) <= int(load.squares[0]), name
            tight += name == "short" and int((apart * apart).sum()) == int(load.squares[0])
    assert tight  # a row of length 2 and its opposite are 4 apart


def test_that_the_norm_of_one_row_would_be_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = rows_of(((2, 0), (0, 0)))["short"], rows_of(((-2, 0), (0, 0)))["short"]
    apart = one.exact - other.exact
    assert int((apart * apart).sum()) > int(one.load().squares[0]) // 4


def test_a_row_that_is_too_long_is_shortened_in_whole_numbers() -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(-1000, 1001, size=(500, 3))
    seen: list[Any] = []
    dt.trace(lambda table: seen.append(table.clip_norm(700)[:, :]), dt.records(data, -1000, 1000))
    dt.trace(
        lambda table: seen.extend(inside(table.clip_norm(700)[:, j]).exact for j in range(3)), dt.records(data, -1000, 1000)
    )
    short = np.stack(seen[1:], axis=1)
    lengths = (short**2).sum(axis=1)
    assert lengths.max() <= 700**2
    long = (data**2).sum(axis=1) > 700**2
    assert np.array_equal(short[~long], data[~long])
    assert lengths[long].min() > 690**2  # and no shorter than rounding makes it


# --- many records -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_cumulative_sums_are_a_million_runs() -> None:
    seen: list[Bounded] = []
    dt.trace(lambda x: seen.append(inside(x.cumsum())), dt.records(np.ones(10**6, dtype=np.int64), 0, 1))
    runs = seen[0].influence
    assert len(runs.output) == 10**6
    load = seen[0].load()
    assert load.most() == (10**6, 10**6, 10**6)
    assert int(load.total[-1]) == 1  # the last record moves one sum


def test_too_many_runs_are_refused_by_the_bounds_alone() -> None:
    weights = np.arange(1, 10_001)
    for value in (0, 1):
        with pytest.raises(dt.ArgumentError, match=f"at most {MOST_RUNS}"):
            dt.trace(lambda x: (x * weights).cumsum(), dt.records([value] * 10_000, 0, 1))


def test_overflow_is_refused_by_the_bounds_alone() -> None:
    for value in (0, 2**40):
        with pytest.raises(dt.ArgumentError, match=r"more than 2\^60 steps"):
            dt.trace(lambda x: x[0] * x[1], dt.records([value, value], 0, 2**40))
        with pytest.raises(dt.ArgumentError, match=r"more than 2\^60 steps"):
            dt.trace(lambda x: (x * 2**19).sum(), dt.records([value] * 10, 0, 2**40))


@pytest.mark.slow
def test_totals_beyond_64_bits_are_exact() -> None:
    wide = dt.Geometric.with_scale(2**39, sensitivity=1)
    trace = dt.trace(lambda x: [x.release(wide) for _ in range(40)], dt.records([0], 0, 2**58))
    assert trace.loss().epsilon(0) == 40 * 2**19
    assert "ε = 20971520" in trace.report


def test_a_release_that_hides_nothing_is_refused_by_its_price() -> None:
    sharp = dt.Geometric.with_scale(1, sensitivity=1)
    with pytest.raises(dt.ArgumentError, match="would cost a record ε = 1048576"):
        dt.trace(lambda x: x.release(sharp), dt.records([0], 0, 2**20))
