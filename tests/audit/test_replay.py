"""Replay of other code: every correct example passes, and its broken twin is found with a small counterexample."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.audit.replay.pairs import REPLACE, Column, Records, source
from dither.audit.replay.replay import replay
from dither.audit.replay.shifts import Move, delta_at, gaussian_delta, log_density, tail_probability
from dither.audit.verdict import NOT_FOUND, VIOLATES

KEYS = "abcd"


def clamp(value: Any, low: float = 0.0, high: float = 10.0) -> float:
    """Clamps; NaN and None become the lower bound."""
    if value is None or not value > low:
        return low
    return min(value, high)


def total(data: Any) -> float:
    return math.fsum(clamp(value) for value in data)


# --- correct, and broken in one thing -------------------------------------------------------------------------------


def noisy_sum(data: Any, noise: Any) -> Any:
    return total(data) + noise.laplace(10)


def released_sum(data: Any, noise: Any) -> Any:
    return noise.laplace(10, at=total(data))


def sum_without_clamp(data: Any, noise: Any) -> Any:
    return noise.laplace(10, at=sum(min(value, 10) for value in data if not math.isnan(value)))


def sum_with_nan(data: Any, noise: Any) -> Any:
    return sum(0.0 if value < 0 else 10.0 if value > 10 else value for value in data) + noise.laplace(10)


def sum_with_half_noise(data: Any, noise: Any) -> Any:
    return total(data) + noise.laplace(5)


def mean_of_two_releases(data: Any, noise: Any) -> Any:
    return noise.laplace(20, at=total(data)) / max(1.0, noise.laplace(2, at=len(data)))


def mean_by_exact_count(data: Any, noise: Any) -> Any:
    return noise.laplace(10, at=total(data)) / max(1, len(data))


def sum_within_own_bounds(data: Any, noise: Any) -> Any:
    fine = [value for value in data if math.isfinite(value)] or [0.0]
    return noise.laplace(max(map(abs, fine)) or 1.0, at=math.fsum(fine))


def mean_with_scale_of_count(data: Any, noise: Any) -> Any:
    count = max(1, len(data))
    return total(data) / count + noise.laplace(10 / count)


def histogram(data: Any, noise: Any) -> Any:
    return {key: noise.geometric(1, at=count) for key, count in zip(KEYS, data, strict=True)}


def histogram_of_running_counts(data: Any, noise: Any) -> Any:
    return [noise.geometric(1, at=sum(data[: place + 1])) for place in range(len(data))]


def histogram_with_one_noise(data: Any, noise: Any) -> Any:
    shared = noise.geometric(1)
    return [count + shared for count in data]


def by_public_key(data: Any, noise: Any) -> Any:
    counts = Counter(data)
    return {key: noise.geometric(1, at=counts[key]) for key in KEYS}


def by_key_of_data(data: Any, noise: Any) -> Any:
    counts = Counter(data)
    return {key: noise.geometric(1, at=counts[key]) for key in sorted(counts, key=str)}


def by_code_of_appearance(data: Any, noise: Any) -> Any:
    codes: dict[Any, int] = {}
    counts = [0] * 12
    for word in data:
        counts[codes.setdefault(word, len(codes))] += 1
    return [noise.geometric(1, at=count) for count in counts[:4]]


def by_key_one_row_each(data: Any, noise: Any) -> Any:
    first = {row["unit"]: row for row in reversed(data)}
    sums = {key: math.fsum(clamp(row["value"]) for row in first.values() if row["key"] == key) for key in KEYS}
    return {key: noise.laplace(10, at=value) for key, value in sums.items()}


def by_key_all_rows(data: Any, noise: Any) -> Any:
    sums = {key: math.fsum(clamp(row["value"]) for row in data if row["key"] == key) for key in KEYS}
    return {key: noise.laplace(10, at=value) for key, value in sums.items()}


def roots(data: Any, noise: Any) -> Any:
    return noise.laplace(4, at=math.fsum(math.sqrt(clamp(value, 0, 16)) for value in data))


def roots_that_raise(data: Any, noise: Any) -> Any:
    return noise.laplace(4, at=math.fsum(clamp(math.sqrt(value), 0, 4) for value in data if math.isfinite(value)))


def sum_with_warning(data: Any, noise: Any) -> Any:
    if any(value > 1e6 for value in data):
        warnings.warn("a value is very large", stacklevel=1)
    return noisy_sum(data, noise)


def count_of_two_types(data: Any, noise: Any) -> Any:
    released = noise.geometric(1, at=len(data))
    return released if len(data) % 2 else float(released)


def whole_sum(data: Any, noise: Any) -> Any:
    return sum(min(max(value, 0), 2**62) for value in data) + noise.laplace(2.0**62)


def wrapping_sum(data: Any, noise: Any) -> Any:
    return int(np.clip(np.array(data, dtype=np.int64), 0, 2**62).sum()) + noise.laplace(2.0**62)


def centred(add: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def centred_sum(data: Any, noise: Any) -> Any:
        return float(Fraction(add(data)) - len(data) * 2**53) + noise.laplace(2)

    return centred_sum


def exact_sum(data: Any) -> Fraction:
    return sum((Fraction(value) for value in data), Fraction(0))


def float_sum(data: Any) -> float:
    running = 0.0
    for value in data:
        running += value
    return running


BIG = Column(lambda dice: 2.0**53 + dice.choice((0.0, 2.0)), (2.0**53,), (2.0**53,))
TIGHT = Records("near 2^53", {"": BIG}, list, REPLACE)


def best(data: Any, noise: Any) -> Any:
    return noise.choice(data, 1)


def best_at_twice_the_price(data: Any, noise: Any) -> Any:
    return noise.choice(data, 1, sensitivity=0.5)


CORRECT: list[tuple[Any, dict[str, Any]]] = [
    (noisy_sum, {}),
    (released_sum, {}),
    (mean_of_two_releases, {}),
    (histogram, {"data": "counts"}),
    (by_public_key, {"data": "words"}),
    (by_key_one_row_each, {"data": "rows", "ordered": True}),
    (roots, {}),
    (whole_sum, {"data": "integers"}),
    (centred(exact_sum), {"data": TIGHT}),
    (best, {"data": "answers"}),
]
BROKEN: list[tuple[Any, dict[str, Any], str]] = [
    (sum_without_clamp, {"data": replace(source("numbers"), poisoned=False)}, "loss"),
    (sum_with_nan, {}, "holes"),
    (sum_with_half_noise, {}, "loss"),
    (mean_by_exact_count, {}, "loss"),
    (sum_within_own_bounds, {}, "loss"),
    (mean_with_scale_of_count, {}, "loss"),
    (histogram_of_running_counts, {"data": "counts"}, "loss"),
    (histogram_with_one_noise, {"data": "counts"}, "shared noise"),
    (by_key_of_data, {"data": "words"}, "shape"),
    (by_code_of_appearance, {"data": "words"}, "loss"),
    (by_key_all_rows, {"data": "rows"}, "loss"),
    (roots_that_raise, {}, "outcome"),
    (sum_with_warning, {}, "warnings"),
    (count_of_two_types, {}, "shape"),
    (wrapping_sum, {"data": "integers"}, "loss"),
    (centred(float_sum), {"data": TIGHT}, "loss"),
    (best_at_twice_the_price, {"data": "answers"}, "loss"),
]


@pytest.mark.parametrize(("function", "how"), CORRECT, ids=lambda value: getattr(value, "__name__", ""))
def test_correct_code_is_not_accused(function: Any, how: dict[str, Any]) -> None:
    verdict = replay(function, 1, examples=150, seconds=300, **how)
    assert verdict.outcome == NOT_FOUND, str(verdict)
    assert verdict.epsilon <= 1 + 1e-6
    assert verdict.evidence["pairs tried"] == 150


@pytest.mark.parametrize(("function", "how", "kind"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_its_broken_twin_is_found(function: Any, how: dict[str, Any], kind: str) -> None:
    verdict = replay(function, 1, examples=600, seconds=300, **how)
    assert verdict.outcome == VIOLATES, str(verdict)
    assert verdict.evidence["kind"] == kind, str(verdict)
    assert verdict.epsilon > 1
    assert verdict.pair is not None


# --- figures --------------------------------------------------------------------------------------------------------


def test_the_loss_found_is_the_exact_one() -> None:
    assert replay(released_sum, 1, examples=100).epsilon == pytest.approx(1, abs=1e-9)
    assert replay(sum_with_half_noise, 1, examples=100).epsilon == pytest.approx(2, abs=1e-9)
    assert replay(histogram, 1, data="counts", examples=50).epsilon == pytest.approx(1, abs=1e-9)
    assert replay(histogram, 1, data="counts", neighbours="replace", examples=50).epsilon == pytest.approx(2, abs=1e-9)


def test_observed_sensitivity_is_told() -> None:
    evidence = replay(mean_of_two_releases, 1, examples=100).evidence
    assert evidence["largest move of a location, in scales"] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("sigma", "outcome"), [(3.7306316348, NOT_FOUND), (3.72, VIOLATES)])
def test_gaussian_noise_is_judged_by_its_delta(sigma: float, outcome: str) -> None:
    def noisy_count(data: Any, noise: Any) -> Any:
        return len(data) + noise.gaussian(sigma)

    assert replay(noisy_count, 1, Fraction(1, 100_000), examples=30).outcome == outcome


def test_gaussian_noise_is_never_pure() -> None:
    assert replay(lambda data, noise: len(data) + noise.gaussian(100), 1, examples=30).outcome == VIOLATES


def test_a_scale_that_depends_on_data_is_found_with_delta_too() -> None:
    assert replay(mean_by_exact_count, 1, Fraction(1, 10**6), examples=50).outcome == VIOLATES
    assert replay(released_sum, 1, Fraction(1, 10**6), examples=50).outcome == NOT_FOUND


def test_bounds_on_delta_agree_with_known_figures() -> None:
    assert gaussian_delta(0.3406693647, 0.1) == pytest.approx(1e-5, rel=1e-6)
    one = [Move("laplace", 1.0, 1.0)]
    assert delta_at(one, 0.5) == pytest.approx(1 - math.exp(-0.25))
    assert delta_at(one, 1.0) == 0
    assert delta_at([*one, *one], 1.5) == pytest.approx(0.25 * (1 - math.exp(-0.5)))


def test_laws_add_up_to_one() -> None:
    weights = [math.exp(log_density("geometric", k, 1.7)) for k in range(-200, 201)]
    assert math.fsum(weights) == pytest.approx(1)
    assert tail_probability("geometric", 3, 1.7) == pytest.approx(math.fsum(weights[203:]))
    assert tail_probability("geometric", -2, 1.7) == pytest.approx(math.fsum(weights[198:]))
    for kind in ("laplace", "gaussian"):
        grid = [math.exp(log_density(kind, k / 100, 1.7)) / 100 for k in range(-4000, 4001)]
        assert math.fsum(grid) == pytest.approx(1, abs=1e-4)
        assert tail_probability(kind, 1, 1.7) == pytest.approx(math.fsum(grid[4100:]), abs=2e-3)
