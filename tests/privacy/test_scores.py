"""Sensitivities of score functions against a second enumeration, and for which statistics noise is useful."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import dither as dt


def votes(table: tuple[Any, ...], candidate: Any) -> int:
    return table.count(candidate)


def rank(table: tuple[int, ...], candidate: int) -> int:
    """How far a candidate is from being the median, doubled."""
    return -abs(2 * sum(value <= candidate for value in table) - len(table))


def largest(table: tuple[int, ...], candidate: int) -> int:
    return max(table, default=0) * candidate


def by_hand(w: Any, candidates: Any, records: Any, n: int, replaced: bool) -> Fraction:
    """Over ordered tables: one more record at the end, or the last one exchanged."""
    worst = 0
    for size in [n - 1] if replaced else range(n):
        for table in product(records, repeat=size):
            grown = [tuple(sorted((*table, record))) for record in records]
            pairs = [(a, b) for a in grown for b in grown] if replaced else [(tuple(sorted(table)), b) for b in grown]
            worst = max([worst, *(abs(w(a, r) - w(b, r)) for a, b in pairs for r in candidates)])
    return Fraction(worst)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    ("w", "candidates", "records", "n"), [(votes, "ab", "abc", 4), (rank, range(3), range(3), 4), (largest, (1, 5), (0, 2), 3)]
)
def test_enumeration_finds_the_sensitivity(w: Any, candidates: Any, records: Any, n: int, replaced: bool) -> None:
    found = dt.sensitivity.score(w, candidates, records, n, neighbours=dt.Replace() if replaced else dt.AddRemove())
    assert found.proved
    assert found.sensitivity == by_hand(w, candidates, records, n, replaced)
    left, right = found.pair
    assert abs(w(left, found.candidate) - w(right, found.candidate)) == found.sensitivity


def test_monotone_scores_are_told_apart_from_others() -> None:
    assert dt.sensitivity.score(votes, "ab", "ab", 4).monotone
    assert not dt.sensitivity.score(votes, "ab", "ab", 4, neighbours=dt.Replace()).monotone
    assert not dt.sensitivity.score(rank, range(3), range(3), 4).monotone


def test_a_choice_with_that_sensitivity_keeps_its_price_and_with_less_does_not() -> None:
    found = dt.sensitivity.score(largest, (0, 1, 2), (0, 3), 3)
    pair = [tuple(largest(table, r) for r in (0, 1, 2)) for table in found.pair]
    assert dt.verify(dt.Exponential(epsilon=1, sensitivity=found.sensitivity), [tuple(pair)]).holds
    assert not dt.verify(dt.Exponential(epsilon=1, sensitivity=found.sensitivity / 10), [tuple(pair)]).holds


def test_a_declared_bound_is_checked_on_generated_pairs() -> None:
    found = dt.sensitivity.score(votes, "ab", "abcdefgh", 500, declared=1, pairs=50)
    assert (found.sensitivity, found.proved, found.compared) == (1, False, 50)


def test_a_declared_bound_that_is_too_small_is_found() -> None:
    """The twin: every pair moves this score by two, so the first one shows it."""
    with pytest.raises(dt.ArgumentError, match=r"moves by 2 .* 1 was declared"):
        dt.sensitivity.score(lambda table, _: 2 * len(table), "a", "ab", 50, declared=1, pairs=1)


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda: dt.sensitivity.score(votes, "ab", range(100), 50), "too many tables"),
        (lambda: dt.sensitivity.score(lambda table, r: 0.5, "a", "a", 2), "int or a Fraction"),
        (lambda: dt.sensitivity.score(lambda table, r: table[0], "a", [1], 2), "w fails on a table of 0 records"),
        (lambda: dt.sensitivity.score(votes, "a", "a", 2, neighbours=dt.Group(dt.AddRemove(), 2)), "one step apart"),
        (lambda: dt.sensitivity.score(votes, "a", "a", 2, neighbours=dt.Replace()), "no two neighbouring tables"),
    ],
)
def test_what_cannot_be_compared_is_refused(give: Any, words: str) -> None:
    with pytest.raises(dt.ArgumentError, match=words):
        give()


def test_sampling_errors_are_those_of_evenly_spread_values() -> None:
    n = 1001
    found = dt.sensitivity.compare(0, 1, n)
    exact = {
        "sum of bits": math.sqrt(n / 4),
        "sum": math.sqrt(n / 12),
        "mean": math.sqrt(1 / 12 / n),
        "median": math.sqrt(1 / (4 * (n + 2))),  # the middle of n uniforms is Beta((n+1)/2, (n+1)/2)
        "variance": math.sqrt((1 / 80 - 1 / 144 * (n - 3) / (n - 1)) / n) * (n - 1) / n,
    }
    for name, sampling in exact.items():
        assert found[name].sampling == pytest.approx(sampling, rel=0.003)
        assert found[name].sampling != pytest.approx(sampling * 1.1, rel=0.003)


def test_noise_is_useful_for_averages_and_never_for_the_median() -> None:
    small, large = (dt.sensitivity.compare(0, 100, n, epsilon=1) for n in (40, 10**6))
    useful = [each.name for each in large.statistics if each.verdict == "useful"]
    assert useful == ["sum of bits", "sum", "mean", "variance"]
    assert large["median"].verdict == small["median"].verdict == "useless"
    assert large["sum without bounds"].verdict == "impossible"
    assert small["variance"].verdict == "costly"


def test_sensitivities_are_the_exact_ones() -> None:
    found = dt.sensitivity.compare(-10, 5, n=50, neighbours=dt.Replace(50))
    assert found["mean"].sensitivity == dt.sensitivity.mean(-10, 5, dt.Replace(50)) == Fraction(3, 10)
    assert found["variance"].sensitivity == dt.sensitivity.variance(-10, 5, dt.Replace(50))
    assert found["mean"].sensitivity != dt.sensitivity.mean(-10, 5, dt.Replace(49))
