"""Reports, limits and branches on noise."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dither as dt
from tracing.programs import ONE, noisy_elements, partial_sums

TENTH = dt.Geometric(epsilon="1/10", sensitivity=1)


# --- branches on noise ------------------------------------------------------------------------------------------

BRANCHES = {
    "if": lambda x: 1 if x.sum().release(ONE) > 0 else 2,
    "int": lambda x: [0] * abs(int(x.sum().release(ONE))),
    "float": lambda x: float(x.sum().release(ONE)),
    "index": lambda x: x[x.sum().release(ONE) * 0].release(ONE),
    "array": lambda x: np.asarray(x.release(ONE)),
    "text": lambda x: str(x.sum().release(ONE)),
    "key": lambda x: {x.sum().release(ONE): 1} and 1,
    "factor": lambda x: (x.sum().release(ONE) * x[0]).release(ONE),
    "bounds": lambda x: x.clip(0, x.sum().release(ONE) ** 2).sum().release(ONE),
    "label": lambda x: x.release(dt.Exponential(epsilon=1, sensitivity=1, candidates=("a", "b", "c"))),
    "mask": lambda x: x.release(ONE)[x.release(ONE) > 0],
}


@pytest.mark.parametrize("name", BRANCHES)
def test_what_may_depend_on_noise_makes_it_the_price_of_this_run(name: str) -> None:
    run = dt.trace(BRANCHES[name], dt.records([0, 1, 1], 0, 1))
    assert not run.fixed
    assert "price of this run" in run.report
    assert "test_run.py, line" in run.report
    with pytest.raises(dt.PriceError, match="another run of the program may cost more"):
        run.guarantee()
    with pytest.raises(dt.PriceError):
        run.curve()


def test_arithmetic_with_noisy_values_keeps_the_price_of_the_program() -> None:
    def program(x: Any) -> Any:
        noisy = x.release(ONE)
        centre = (noisy.sum() / 3).clip(-1, 1, step="1/4")
        again = ((x - centre) * np.array([1, 2, 3])).floor(1).sum().release(ONE)
        return {"sums": noisy.cumsum(), "shape": noisy.shape, "most": np.maximum(noisy, again)}

    run = dt.trace(program, dt.records([0, 1, 1], 0, 1))
    assert run.fixed
    assert run.guarantee() == run.loss()
    assert isinstance(run.result["sums"], np.ndarray)


# --- limits -----------------------------------------------------------------------------------------------------


def until_refused(x: Any) -> int:
    """Spends as much as it may, and branches on noise."""
    count = 0
    try:
        while True:
            if x[count % 2].release(TENTH) > 10**6:
                return -1
            count += 1
    except dt.BudgetError:
        return count


def test_a_limit_refuses_the_noise_that_would_exceed_it_for_some_record() -> None:
    run = dt.trace(until_refused, dt.records([0, 1], 0, 1), limit=dt.PureFilter("1/2"))
    assert run.result == 10  # five for each of two records
    assert run.loss().epsilon(0) == Fraction(1, 2)
    assert run.guarantee() == dt.Pure("1/2")
    assert "at most ε = 0.5, its limit" in run.report


def test_that_without_a_limit_per_record_it_would_be_more() -> None:
    def one_record(x: Any) -> int:
        return until_refused(x[[0, 0]])

    assert dt.trace(one_record, dt.records([0, 1], 0, 1), limit=dt.PureFilter("1/2")).result == 5


def test_nothing_is_drawn_or_charged_for_a_refused_release() -> None:
    budget = dt.PureFilter(1)

    def program(x: Any) -> Any:
        with pytest.raises(dt.BudgetError, match=r"does not allow the release in test_run\.py, line"):
            (2 * x).sum().release(ONE)
        return x.sum().release(ONE)

    run = dt.trace(program, dt.records([0, 1], 0, 1), limit=budget)
    assert run.loss() == dt.Pure(1)
    assert budget.left == dt.Pure(0)
    with pytest.raises(dt.BudgetError):
        dt.trace(lambda x: x.sum().release(ONE), dt.records([0], 0, 1), limit=budget)  # the filter is shared


def test_gaussian_noise_needs_a_limit_that_knows_it() -> None:
    noise = dt.Gaussian(rho="1/8", sensitivity=1)

    def program(x: Any) -> Any:
        return [x[0].release(noise), x[1].release(noise), x.sum().release(noise)]

    limit = dt.ZCDPFilter("1/4")
    assert dt.trace(program, dt.records([0, 1], 0, 1), limit=limit).loss() == dt.ZCDP("1/4")
    assert limit.left == dt.ZCDP(0)
    for wrong in (dt.PureFilter(10), dt.ApproxFilter(10, "1e-6")):
        with pytest.raises(dt.PriceError):
            dt.trace(program, dt.records([0, 1], 0, 1), limit=wrong)
        assert dt.trace(lambda x: x.sum().release(ONE), dt.records([0], 0, 1), limit=wrong).loss() == dt.Pure(1)


def test_what_is_not_a_filter_is_no_limit() -> None:
    for wrong in (1, dt.Pure(1), dt.Odometer()):
        with pytest.raises(dt.ArgumentError, match="limit must be a filter"):
            dt.trace(partial_sums, dt.records([0], 0, 1), limit=wrong)  # type: ignore[arg-type]


def test_threads_do_not_exceed_a_limit() -> None:
    def program(x: Any) -> Any:
        def spend() -> None:
            for _ in range(20):
                try:
                    x.sum().release(TENTH)
                except dt.BudgetError:
                    return

        threads = [threading.Thread(target=spend) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    run = dt.trace(program, dt.records([0, 1], 0, 1), limit=dt.PureFilter(1))
    assert len(run.releases) == 10
    assert run.loss() == dt.Pure(1)


def test_a_fork_releases_nothing() -> None:
    def program(x: Any) -> int:
        child = os.fork()
        if not child:
            try:
                x.sum().release(ONE)
            except dt.DitherError:
                os._exit(7)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert dt.trace(program, dt.records([0], 0, 1)).result == 7


def test_an_error_of_the_program_says_what_was_spent_before() -> None:
    def program(x: Any) -> Any:
        x.sum().release(ONE)
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        dt.trace(program, dt.records([0], 0, 1))
    assert any("has cost Pure(epsilon=Fraction(1, 1))" in note for note in caught.value.__notes__)


# --- prices -----------------------------------------------------------------------------------------------------


def test_the_largest_record_is_the_price() -> None:
    def program(x: Any) -> Any:
        return [x[:2].sum().release(ONE), x[1:].sum().release(TENTH), (3 * x[3]).release(TENTH)]

    run = dt.trace(program, dt.records([0] * 4, 0, 1))
    assert run.paid.round(6).tolist() == [1, 1.1, 0.1, 0.4]
    assert run.loss().epsilon(0) == Fraction(11, 10)


def test_noise_on_a_grid_counts_steps_of_it() -> None:
    laplace = dt.Laplace(epsilon=1, sensitivity=1, grid="1/4")
    run = dt.trace(lambda x: (x / 2).sum().release(laplace), dt.records([0, 3], 0, 4))
    assert run.loss().epsilon(0) == 2
    assert isinstance(run.result, float)
    with pytest.raises(dt.ArgumentError, match=r"in steps of 0\.125, and the noise in steps of 0\.25"):
        dt.trace(lambda x: (x / 8).sum().release(laplace), dt.records([0, 3], 0, 4))


def test_the_curve_of_a_fixed_program_is_that_of_its_releases() -> None:
    noise = dt.Gaussian(rho="1/100", sensitivity=1)
    run = dt.trace(lambda x: [x.sum().release(noise) for _ in range(20)], dt.records([0, 1], 0, 1))
    assert run.curve() == noise.curve().repeat(20)
    assert run.epsilon("1e-6") == noise.curve().repeat(20).epsilon("1e-6") < run.loss().epsilon("1e-6")


def test_a_public_value_costs_nothing() -> None:
    run = dt.trace(lambda x: (x.sum() * 0 + 5).release(ONE), dt.records([0, 1], 0, 1))
    assert run.releases == ()
    assert run.loss() == dt.Pure(0)


# --- reports ----------------------------------------------------------------------------------------------------


def test_the_report_has_lines_prices_records_and_the_rule() -> None:
    report = dt.trace(partial_sums, dt.records([0, 1] * 10, 0, 1)).report
    assert report.startswith("price of the program: ε = 20\n")
    assert "one of 20 records replaced" in report
    assert "ε adds up for each record over the releases that it moves" in report
    line = partial_sums.__code__.co_firstlineno + 5
    assert f"programs.py, line {line}: sums.append(total.release(ONE))" in report
    assert "20 times 1 number, each time ε = 1: geometric noise of scale 1; records 0 to 19" in report


@pytest.mark.slow
def test_running_sums_are_proposed_where_they_have_less_noise() -> None:
    for program in (partial_sums, lambda x: x.cumsum().release(ONE)):
        assert 'dt.RunningSum(20, epsilon="20")' in dt.trace(program, dt.records([0, 1] * 10, 0, 1)).report
    assert "\n  cheaper" not in dt.trace(noisy_elements, dt.records([0, 1] * 10, 0, 1)).report  # 20 steps: no gain
    long = dt.trace(noisy_elements, dt.records([0, 1] * 1000, 0, 2)).report
    assert 'dt.RunningSum(2000, epsilon="2", largest=2)' in long
    assert "\n  cheaper" not in dt.trace(lambda x: x.release(ONE), dt.records([0, 1] * 1000, 0, 1)).report  # nothing added up


def test_a_workload_is_proposed_where_it_has_less_noise() -> None:
    noise = dt.Gaussian(rho="1/10", sensitivity=1)

    def overlapping(x: Any) -> Any:
        return [x[a:b].sum().release(noise) for a, b in ((0, 10), (5, 20), (0, 20), (10, 20))]

    report = dt.trace(overlapping, dt.records([0, 1] * 10, 0, 1)).report
    assert 'dt.Workload.matrix([[1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]]).design(rho="3/10")' in report
    assert "ρ adds up (zCDP)" in report
    assert "\n  cheaper" not in dt.trace(lambda x: [x[:5].sum().release(noise)], dt.records([0] * 9, 0, 1)).report


@pytest.mark.slow
def test_a_picture_shows_what_each_record_paid(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = (dt.trace(each, dt.records([0, 1] * 5, 0, 1)) for each in (partial_sums, noisy_elements))
    assert first.paid.tolist() == list(range(10, 0, -1))
    assert first.plot(tmp_path / "paid.png", second).stat().st_size > 1000
    other = dt.trace(lambda x: x.sum().release(dt.Gaussian(rho=1, sensitivity=1)), dt.records([0], 0, 1))
    with pytest.raises(dt.ArgumentError, match="not both"):
        first.plot(tmp_path / "both.png", other)
