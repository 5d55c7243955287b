"""How far sums of noise reach, compared with their law, which is computed by adding up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dither.planning import margins

CASES = [
    ((1, 2), (1.0, 1.5), (5, 4)),
    ((2, 3), (0.8, 2.0), (6, 3)),
    ((1, 5), (3.0, 0.7), (2, 9)),
    ((1,), (2.5,), (12,)),
]


def law(scale: float, gaussian: bool, far: int) -> np.ndarray:
    places = np.arange(-far, far + 1, dtype=np.float64)
    mass = np.exp(-(places**2) / (2 * scale**2)) if gaussian else np.exp(-np.abs(places) / scale)
    return np.asarray(mass / mass.sum())


def exact(times: tuple[int, ...], scales: tuple[float, ...], counts: tuple[int, ...], gaussian: bool) -> int:
    """Returns the smallest t, by adding one variable after the other."""
    total = np.ones(1)
    for time, scale, count in zip(times, scales, counts, strict=True):
        one = law(scale, gaussian, math.ceil(45 * scale))
        spread = np.zeros(time * (len(one) - 1) + 1)
        spread[::time] = one
        for _ in range(count):
            total = np.convolve(total, spread)
    middle = len(total) // 2
    inside = total[middle] + np.cumsum(total[middle + 1 :] + total[middle - 1 :: -1])
    return 0 if total[middle] >= 0.95 else int(np.searchsorted(inside, 0.95)) + 1


@pytest.mark.parametrize("gaussian", [False, True], ids=["geometric", "Gaussian"])
@pytest.mark.parametrize(("times", "scales", "counts"), CASES)
def test_a_sum_reaches_as_far_as_its_law_says(
    times: tuple[int, ...], scales: tuple[float, ...], counts: tuple[int, ...], gaussian: bool
) -> None:
    given = (np.array(each, dtype=np.float64) for each in (times, scales, counts))
    assert margins.whole_sum(*given, 0.95, gaussian) == exact(times, scales, counts, gaussian)


@pytest.mark.parametrize(("times", "scales", "counts"), CASES)
def test_the_bound_for_many_values_is_close(times: tuple[int, ...], scales: tuple[float, ...], counts: tuple[int, ...]) -> None:
    """What is used instead, with a step for each variable, is never below."""
    spread, many = np.array(times) * np.array(scales), np.array(counts, dtype=np.float64)
    found, truth = margins.laplace_sum(spread, many, 0.95), exact(times, scales, counts, False)
    assert found + float(np.dot(times, counts)) >= truth
    assert found <= 1.1 * truth + 1


def test_a_law_of_too_many_values_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quote of a question that forty earlier answers give took seconds. This one would compute fifty million sines."""
    made: list[int] = []
    wave = margins._log_wave
    monkeypatch.setattr(margins, "_log_wave", lambda *given: made.append(len(given[0])) or wave(*given))
    times, scales = np.array([1.0, 2.0] * 20), np.linspace(1e3, 1e4, 40)
    assert margins.whole_sum(times, scales, np.ones(40), 0.95, False) is None
    assert margins.whole_sum(np.ones(40), scales, np.ones(40), 0.95, False) is not None  # twin: here most nodes are flat
    assert sum(made) <= 2 * margins._MOST_VALUES
