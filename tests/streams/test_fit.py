"""The table of buffers: as good as scipy finds them, and near the square root."""

from __future__ import annotations

import numpy as np
import pytest

from dither.streams import fit
from dither.streams.constants import BITS, LONGEST, buffers


def stored(horizon: int) -> tuple[fit.Floats, fit.Floats]:
    """Poles and zeros of the buffers."""
    poles, weights = (np.array(each) / (1 << BITS) for each in buffers(horizon))
    return poles, np.linalg.eigvalsh(np.diag(poles) - np.sqrt(np.outer(weights, weights)))[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [64, 1024, LONGEST])
def test_scipy_finds_no_better_buffers(horizon: int) -> None:
    assert fit.worst_step(*stored(horizon), horizon) <= 1.0005 * fit.worst_step(*fit.fit(horizon), horizon)


def test_that_check_can_fail() -> None:
    assert fit.worst_step(*stored(64), 1024) > 1.0005 * fit.worst_step(*stored(1024), 1024)


@pytest.mark.parametrize(("horizon", "most"), [(3, 1.0001), (365, 1.0003), (1024, 1.0003), (5000, 1.002), (LONGEST, 1.016)])
def test_buffers_are_near_the_square_root(horizon: int, most: float) -> None:
    assert 1 - 1e-9 <= fit.worst_step(*stored(horizon), horizon) / fit.square_root(horizon) < most


def test_sums_of_squares_are_those_of_the_series() -> None:
    poles, zeros = stored(16)
    shares, bases = fit.answer_weights(poles, zeros)
    b = [float((shares * bases**k).sum()) for k in range(16)]
    c = [1.0] + [float((fit.weights(poles, zeros) * poles**k).sum()) for k in range(15)]
    assert fit.sum_of_squares(shares, bases, 16) == pytest.approx(sum(x * x for x in b))
    assert np.convolve(b, c)[:16] == pytest.approx(np.ones(16))  # B C adds up
