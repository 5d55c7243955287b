"""Fix two of error, number of questions and epsilon, get the third: the three agree, and no better value is missed."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.workloads.tradeoff import NOISES, WAYS

KEYS = [(way, noise) for noise in NOISES for way in WAYS]


def error(way: str, noise: str, questions: int, epsilon: Fraction) -> float:
    """A second time, by the comparison of whole workloads."""
    delta = "1e-6" if noise == "Gaussian" else None
    found = dt.Workload.thresholds(questions).compare(epsilon=epsilon, delta=delta)
    return found["one by one" if way == "one by one" else "by a strategy", "add-remove"].rmse


@pytest.mark.parametrize("key", KEYS)
def test_the_error_is_that_of_the_comparison(key: tuple[str, str]) -> None:
    found = dt.tradeoff("thresholds", questions=8, epsilon="1/2")[key]
    assert found.error == pytest.approx(error(*key, 8, Fraction(1, 2)))


def test_one_by_one_the_pure_error_is_the_formula() -> None:
    found = dt.tradeoff("thresholds", questions=8, epsilon="1/2")["one by one", "pure"]
    assert found.error == pytest.approx(sqrt(2) * 8 * 2)
    assert found.error != pytest.approx(sqrt(2) * 7 * 2)


@pytest.mark.parametrize("key", KEYS)
def test_the_number_of_questions_is_the_largest(key: tuple[str, str]) -> None:
    found = dt.tradeoff("thresholds", error=9, epsilon=1, most=12)[key]
    assert error(*key, found.questions, Fraction(1)) <= 9
    assert found.more or error(*key, found.questions + 1, Fraction(1)) > 9  # one more is too many: a check that can fail


@pytest.mark.parametrize("key", KEYS)
def test_the_price_is_the_smallest_to_three_digits(key: tuple[str, str]) -> None:
    found = dt.tradeoff("thresholds", questions=6, error=5)[key]
    assert error(*key, 6, found.epsilon) <= 5 * (1 + 1e-9)
    assert error(*key, 6, found.epsilon * Fraction(99, 100)) > 5


def test_a_workload_is_never_worse_and_gaussian_noise_wins_for_many_questions_one_by_one() -> None:
    few, many = (dt.tradeoff(dt.Workload.thresholds, questions=k, epsilon=1) for k in (2, 32))
    for found in (few, many):
        for noise in NOISES:
            assert found["as a workload", noise].error <= found["one by one", noise].error
    assert many["one by one", "Gaussian"].error < many["one by one", "pure"].error
    assert few["one by one", "Gaussian"].error > few["one by one", "pure"].error


@pytest.mark.slow
def test_the_frontier_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = dt.tradeoff("histogram", questions=4, epsilon=1).plot(tmp_path / "frontier.png", counts=(1, 2, 4))
    assert found.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 1}, "Give two"),
        ({"epsilon": 1, "questions": 2, "error": 3}, "Give two"),
        ({"question": "means", "epsilon": 1, "questions": 2}, "kind of questions"),
        ({"question": lambda k: k, "epsilon": 1, "questions": 2}, "a workload of 2 questions"),
        ({"question": lambda k: 1 / 0, "epsilon": 1, "questions": 2}, "fails for 2 questions"),
        ({"question": dt.Workload.ranges, "epsilon": 1, "questions": 2}, "a workload of 2 questions"),
        ({"questions": 8, "error": "1e-8"}, "No epsilon"),
    ],
)
def test_what_has_no_answer_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(dt.ArgumentError, match=words):
        dt.tradeoff(**given)
