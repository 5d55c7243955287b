"""Running sums: whole, unbiased, within their margins, at one price; continued without drawing anything twice."""

from __future__ import annotations

import copy
import json
import os
import pickle
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.exact import replay
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.streams.terms import FIRST, MOST_STEPS, Terms

PRICES: list[dict[str, Any]] = [{"rho": "1/8"}, {"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}]
TINY: list[dict[str, Any]] = [{"rho": 10**9}, {"epsilon": 500}]  # so little noise that it rounds to 0
NUMBERS = np.array([3, 0, -2, 7, 7, 1, 0, 0, 2**39, -5] * 20)


@pytest.mark.parametrize("price", TINY)
@pytest.mark.parametrize("horizon", [200, 1024, None])
def test_without_noise_it_is_the_sum(price: dict[str, Any], horizon: int | None) -> None:
    running = dt.RunningSum(horizon, **price)
    assert running.feed(NUMBERS).tolist() == np.cumsum(NUMBERS).tolist()
    assert not running.margins("0.99", 100).any()


@pytest.mark.parametrize("price", PRICES)
def test_sums_are_whole_and_steps_are_counted(price: dict[str, Any]) -> None:
    running = dt.RunningSum(10, **price)
    assert type(running.feed(5)) is int
    assert running.feed(np.array([1, 2], dtype=np.uint8)).dtype == np.int64
    assert running.feed([3, 4]).shape == (2,)
    assert running.feed([]).shape == (0,)
    assert running.step == 5


def test_the_price_is_stated() -> None:
    assert dt.RunningSum(10, rho="1/8").loss() == dt.ZCDP("1/8")
    by_delta = dt.RunningSum(10, epsilon=1, delta="1e-6").loss()
    assert isinstance(by_delta, dt.ZCDP)
    assert by_delta.epsilon("1e-6") <= 1
    pure = dt.RunningSum(1024, epsilon="1/2", contributions=7).loss()
    assert pure == dt.Pure("1/2")
    assert pure.zcdp().rho == Fraction(1, 8) / 3  # three levels
    assert dt.RunningSum(None, epsilon="1/2").loss().zcdp().rho == Fraction(1, 8)


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize(("contributions", "largest"), [(2, 1), (1, 6), (3, 5)])
def test_more_contributions_need_more_noise(price: dict[str, Any], contributions: int, largest: int) -> None:
    one, more = dt.RunningSum(100, **price), dt.RunningSum(100, **price, contributions=contributions, largest=largest)
    grown = more.margins("0.9")[-1] / one.margins("0.9")[-1]
    assert 0.8 * largest * contributions**0.5 < grown < 1.1 * largest * contributions
    assert f"contributions={contributions}, largest={largest}" in repr(more)
    assert "believed" in repr(more)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("horizon", [100, None])
def test_sums_are_unbiased_and_margins_hold(price: dict[str, Any], horizon: int | None) -> None:
    runs, steps = 600, 100
    errors = np.array(
        [dt.RunningSum(horizon, **price).feed(np.ones(steps, dtype=int)) - np.arange(1, steps + 1) for _ in range(runs)]
    )
    running = dt.RunningSum(horizon, **price)
    spread = errors.std(axis=0)
    assert (np.abs(errors.mean(axis=0)) < 5 * spread / runs**0.5).all()
    for confidence in (0.5, 0.9, 0.99):
        within = (np.abs(errors) <= running.margins(confidence, steps)).mean(axis=0)
        assert (within > confidence - 5 * (confidence * (1 - confidence) / runs) ** 0.5).all()
        narrow = (np.abs(errors) <= running.margins(confidence, steps) // 2).mean(axis=0)
        assert narrow.mean() < confidence  # half the margin would not do


@given(
    price=st.sampled_from([{"rho": "1/8"}, {"epsilon": 1}]),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_array_gives_what_its_parts_give_from_the_same_noise(price: dict[str, Any], cuts: list[int], seed: int) -> None:
    design = Terms.of(150, price.get("epsilon"), None, price.get("rho"), 1, 1).segment(0)
    drawn = np.random.default_rng(seed).integers(-(2**22), 2**22, 150)
    whole, last = design.follow(design.first, 0, drawn)
    parts, state, ends = [], design.first, sorted({0, 150, *cuts})
    for first, end in pairwise(ends):
        noise, state = design.follow(state, first, drawn[first:end])
        parts += noise.tolist()
    assert parts == whole.tolist()
    assert state == last


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("horizon", [400, None])
def test_the_noise_does_not_depend_on_the_numbers(price: dict[str, Any], horizon: int | None) -> None:
    released = []
    for numbers in (np.zeros(400, dtype=int), np.resize(NUMBERS, 400)):
        with replay.stream(b"same"):
            released.append(dt.RunningSum(horizon, **price).feed(numbers))
    assert (released[1] - released[0]).tolist() == np.cumsum(np.resize(NUMBERS, 400)).tolist()


def one_by_one(running: dt.RunningSum, steps: int, resumed: int | None = None) -> list[int]:
    found = []
    for step in range(steps):
        if step == resumed:
            running = dt.RunningSum.resume(running.state())
        found.append(running.feed(step))
    return found


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("horizon", [100, None])
@pytest.mark.parametrize("resumed", [0, 1, 50, FIRST, FIRST + 1])
def test_resuming_draws_nothing_again(price: dict[str, Any], horizon: int | None, resumed: int) -> None:
    with replay.stream(b"same"):
        straight = one_by_one(dt.RunningSum(horizon, **price), 80)
    with replay.stream(b"same"):
        assert one_by_one(dt.RunningSum(horizon, **price), 80, resumed) == straight


@pytest.mark.parametrize("price", PRICES)
def test_a_stream_that_has_ended_resumes_and_takes_no_more(price: dict[str, Any]) -> None:
    running = dt.RunningSum(5, **price)
    running.feed([1] * 5)
    again = dt.RunningSum.resume(running.state())
    assert again.feed([]).tolist() == []
    for use in (lambda: again.feed(1), again.margin):
        with pytest.raises(dt.ArgumentError):
            use()


def test_that_a_state_without_its_noise_would_be_noticed() -> None:
    running = dt.RunningSum(100, rho="1/8")
    running.feed(np.zeros(50, dtype=int))
    fields = json.loads(running.state())
    forgotten = json.dumps(fields | {"noise": [0] * 5}).encode()
    with replay.stream(b"same"):
        right = dt.RunningSum.resume(running.state()).feed(np.zeros(50, dtype=int))
    with replay.stream(b"same"):
        assert dt.RunningSum.resume(forgotten).feed(np.zeros(50, dtype=int)).tolist() != right.tolist()


@pytest.mark.parametrize("price", PRICES)
def test_too_many_steps_are_refused_before_anything_is_drawn(price: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    running = dt.RunningSum(5, **price)
    running.feed([1, 2, 3])
    before = running.state()
    for kind in (Gaussian, Geometric):
        monkeypatch.setattr(kind, "release", lambda *_: pytest.fail("something was drawn"))
    with pytest.raises(dt.ArgumentError, match="takes 2 more steps"):
        running.feed([1, 2, 3])
    assert running.state() == before
    with pytest.raises(dt.ArgumentError, match="at most"):
        running.margins("0.9", 6)


@pytest.mark.parametrize(
    "wrong", [1.5, "3", None, True, np.array([1.0]), np.array([True]), np.ones((2, 2), dtype=int), [[1], [2, 3]]]
)
def test_numbers_are_refused_by_type_and_nothing_is_drawn(wrong: Any) -> None:
    running = dt.RunningSum(5, rho=1)
    with pytest.raises(dt.ArgumentError):
        running.feed(wrong)
    assert running.step == 0


@pytest.mark.parametrize("price", TINY)
def test_numbers_beyond_2_to_the_40_count_as_that(price: dict[str, Any]) -> None:
    running = dt.RunningSum(8, **price)
    huge = np.array([2**62, -(2**62)]), np.array([2**64 - 1], dtype=np.uint64)
    assert running.feed(10**100) == 2**40
    assert running.feed(huge[0]).tolist() == [2**41, 2**40]
    assert running.feed(huge[1]).tolist() == [2**41]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"rho": 1, "delta": "1e-6"},
        {"delta": "1e-6"},
        {"rho": 0},
        {"epsilon": 10**6},
        {"epsilon": "1e-30"},
        {"rho": "1e-30"},
        {"rho": 10**40},
    ],
)
def test_a_price_is_needed(wrong: dict[str, Any]) -> None:
    with pytest.raises(dt.ArgumentError):
        dt.RunningSum(5, **wrong)


@pytest.mark.parametrize("wrong", [0, -1, 2**20 + 1, 2.5, True])
def test_a_horizon_is_a_count(wrong: Any) -> None:
    with pytest.raises(dt.ArgumentError):
        dt.RunningSum(wrong, rho=1)


def test_without_a_horizon_segments_grow() -> None:
    terms = Terms.of(None, None, None, 1, 1, 1)
    assert [terms.length(number) for number in (0, 1, 2, 6, 7, 8)] == [64, 256, 1024, 2**18, 2**20, 2**20]
    assert terms.steps == MOST_STEPS
    margins = dt.RunningSum(None, rho=1).margins("0.95", 5000)
    assert (np.diff(margins[[0, 63, 319, 1343, 4999]]) >= 0).all()


@pytest.mark.parametrize("price", [{"rho": "1/20000"}, {"epsilon": "1/100"}])
def test_not_knowing_the_horizon_costs_little(price: dict[str, Any]) -> None:
    for steps in (64, 1000, 5000):
        known, unknown = dt.RunningSum(steps, **price).margins("0.95"), dt.RunningSum(None, **price).margins("0.95", steps)
        assert unknown.max() < 1.75 * known.max()


def test_a_fork_does_not_continue_it() -> None:
    running = dt.RunningSum(5, rho=1)
    child = os.fork()
    if not child:
        try:
            running.feed(1)
        except dt.DitherError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert isinstance(running.feed(1), int)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_is_not_copied(copied: Any) -> None:
    with pytest.raises(dt.DitherError, match="cannot be copied"):
        copied(dt.RunningSum(5, rho=1))


def test_it_does_not_show_what_is_secret() -> None:
    running = dt.RunningSum(5, rho="1/1000", largest=1000)
    running.feed([123456, 654321])
    assert "777777" not in repr(running)
    assert b"777777" in running.state()  # the state has it: it is secret


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"design": {}},
        {"noise": [0]},
        {"noise": ["x"] * 5},
        {"step": -1},
        {"step": 10**9},
        {"begun": 99},
        {"segment": -3},
        {"segment": 1},
        {"segment": 10**30},
        {"begun": 64, "step": 64},
        {"terms": {"horizon": 5}},
        {"total": 1.5},
    ],
)
def test_what_is_no_state_is_refused_in_words(change: dict[str, Any]) -> None:
    for horizon in (5, None):
        fields = json.loads(dt.RunningSum(horizon, rho=1).state())
        with pytest.raises(dt.ArgumentError, match="no state"):
            dt.RunningSum.resume(json.dumps(fields | change).encode())
    for other in (b"", b"{}", b"\xff", None, "x" * 10):
        with pytest.raises(dt.ArgumentError, match="no state"):
            dt.RunningSum.resume(other)  # type: ignore[arg-type]


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    running = dt.RunningSum(50, rho=1)
    released = running.feed(np.ones(30, dtype=int))
    assert running.plot(tmp_path / "sum.png", released).stat().st_size > 1000
    with pytest.raises(dt.ArgumentError, match="30 steps"):
        running.plot(tmp_path / "more.png", [0] * 31)
