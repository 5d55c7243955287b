"""Budget: attacks that get more than they pay for (PITFALLS, Budget)."""

from __future__ import annotations

import copy
import pickle
import threading
from fractions import Fraction

import pytest

import dither as dt
from dither.errors import DitherError


def test_ten_times_a_tenth_is_one_and_then_nothing_is_left() -> None:
    budget = dt.PureFilter(1)
    assert [budget.try_spend(dt.Pure(0.1)) for _ in range(10)] == [True] * 10
    assert not budget.try_spend(dt.Pure("1e-30"))


def test_that_floats_would_have_said_otherwise() -> None:
    assert sum([0.1] * 10) != 1


def test_a_tiny_spend_does_not_vanish() -> None:
    budget = dt.PureFilter(1)
    assert budget.try_spend(dt.Pure(Fraction(10**17 - 1, 10**17)))
    assert budget.try_spend(dt.Pure("1e-17"))
    assert not budget.try_spend(dt.Pure("1e-17"))


@pytest.mark.parametrize("epsilon", [-1, float("nan"), float("inf"), "-0.1", "1e999999999", "nan", None, True])
def test_no_strange_epsilon_becomes_a_loss(epsilon: object) -> None:
    with pytest.raises(DitherError):
        dt.Pure(epsilon)  # type: ignore[arg-type]


def test_checking_and_spending_is_one_step_for_racing_threads() -> None:
    budget, granted = dt.PureFilter(1), []
    gate = threading.Barrier(16)

    def spend() -> None:
        gate.wait()
        for _ in range(25):
            if budget.try_spend(dt.Pure("1/100")):
                granted.append(1)

    threads = [threading.Thread(target=spend) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 100


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_budget_cannot_be_copied_into_a_second_one(duplicate: object) -> None:
    with pytest.raises((DitherError, TypeError)):
        duplicate(dt.PureFilter(1))  # type: ignore[operator]


def test_a_hundred_responses_are_not_priced_as_one() -> None:
    answer = dt.RandomizedResponse(epsilon="1.0986")
    assert answer.curve().repeat(100).epsilon("1e-6") > 60 * answer.loss().epsilon()
    assert answer.loss().repeat(100).epsilon() == 100 * answer.loss().epsilon()
