"""Amplification by shuffling: the certified bound against plain enumeration, and a twin that is too small."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import dither as dt


def enumerated(epsilon0: float, n: int, epsilon: float) -> float:
    """The same sum term by term, in floats, for small n."""
    clone, heads = math.exp(-epsilon0), math.exp(epsilon0) / (math.exp(epsilon0) + 1)
    total = 0.0
    for c in range(n):
        mass = math.comb(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
        for a in range(c + 2):
            here, before = (math.comb(c, k) / 2**c if 0 <= k <= c else 0.0 for k in (a, a - 1))
            one, other = heads * before + (1 - heads) * here, (1 - heads) * before + heads * here
            total += mass * max(0.0, one - math.exp(epsilon) * other)
    return total


@pytest.mark.parametrize(
    "case", [("1", 20, "0.3"), ("0.5", 50, "0.1"), ("2", 10, "1"), ("1", 1, "0.2"), ("1", 2, "0"), ("3", 40, "0.5")]
)
def test_the_bound_is_the_sum(case: tuple[str, int, str]) -> None:
    own, n, epsilon = case
    found = float(dt.shuffled_delta(own, n, epsilon))
    assert found == pytest.approx(enumerated(float(own), n, float(epsilon)), rel=1e-9)


def test_it_reaches_the_known_number() -> None:
    """Ten thousand reports at epsilon 1, delta 1e-6: the literature's numeric bound is 0.0530."""
    assert Fraction("0.0529") < dt.shuffled_epsilon(1, 10_000, "1e-6") < Fraction("0.0531")


def shuffled_responses(p: float, n: int, epsilon: float) -> float:
    """The exact delta of n shuffled binary responses, whoever the others are: the worst of their numbers of ones."""

    def count(ones: int, mine: int) -> list[float]:
        law = [1.0]
        for value in [1] * ones + [0] * (n - 1 - ones) + [mine]:
            up = p if value else 1 - p
            law = [(law[k] if k < len(law) else 0) * (1 - up) + (law[k - 1] if k else 0) * up for k in range(len(law) + 1)]
        return law

    def spill(left: list[float], right: list[float]) -> float:
        return sum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(left, right, strict=True))

    return max(max(spill(count(k, 0), count(k, 1)), spill(count(k, 1), count(k, 0))) for k in range(n))


@pytest.mark.parametrize(("own", "n"), [("1", 12), ("1/2", 30), ("2", 25)])
def test_real_shuffled_responses_stay_within_it(own: str, n: int) -> None:
    p = math.exp(Fraction(own)) / (math.exp(Fraction(own)) + 1)
    for epsilon in ("0", "0.1", "0.3"):
        exact = shuffled_responses(p, n, float(epsilon))
        assert exact <= float(dt.shuffled_delta(own, n, epsilon))


def test_that_check_can_fail() -> None:
    """As if twice as many honest reports were there."""
    p = math.exp(2) / (math.exp(2) + 1)
    assert shuffled_responses(p, 6, 0.1) > float(dt.shuffled_delta(2, 200, "0.1"))


def test_more_reports_hide_more() -> None:
    found = [dt.shuffled_epsilon(1, n, "1e-5") for n in (1, 100, 1000, 5000)]
    assert found == sorted(found, reverse=True)
    assert found[0] <= 1


@pytest.mark.parametrize("bad", [(0, 10, "1e-6"), (1, 0, "1e-6"), (1, 10, 0), (1, 10, 1), ("x", 10, "1e-6")])
def test_odd_arguments_are_refused_in_words(bad: tuple[object, ...]) -> None:
    with pytest.raises(dt.DitherError):
        dt.shuffled_epsilon(*bad)  # type: ignore[arg-type]
