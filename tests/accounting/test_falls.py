"""How soon transforms die out (privacy/parts/falls.py): bounds hold at every point, for whole laws and for parts of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dither.privacy import parts
from dither.privacy.parts.falls import Fall
from dither.privacy.parts.sampled import Law

CASES = [
    (q, sigma, c, removed)
    for q in ("0.3", "0.01", "1e-4", "1e-7")
    for sigma in ("1/2", "1", "4")
    for c in (0.5, 20.0, 900.0)
    for removed in (False, True)
]
CUTS = [(-math.inf, math.inf), (-math.inf, 0.5), (-1.0, 2.0), (1.0, math.inf)]  # in u


def exact(part: parts.SubsampledGaussian, law: Law, c: float, u: np.ndarray) -> tuple[float, np.ndarray]:
    """ln phi(c), and |phi(c + iu)| / phi(c) by a plain sum over many points where the tilted law has its mass."""
    assert law.field is not None
    low, high = law.field.low, law.field.high
    for count in (4001, 40001):
        x = np.linspace(low, high, count)
        mixed = np.log1p(float(part.q) * np.expm1(law.field.slope * x + law.field.shift))
        loss = -mixed if part.removed else mixed
        logs = c * loss + (0 if part.removed else mixed) - law.field.height(x)
        heavy = x[logs > logs.max() - 45]
        low, high = max(low, heavy[0] - (x[1] - x[0])), min(high, heavy[-1] + (x[1] - x[0]))
    top = logs.max()
    weights = np.exp(logs - top) * (x[1] - x[0])
    weights[[0, -1]] /= 2
    size = float(top + math.log(weights.sum()))
    sums = np.array([abs((weights * np.exp(1j * each * loss)).sum()) for each in u]) / weights.sum()
    return size, sums


def falls(part: parts.SubsampledGaussian, cut: tuple[float, float], c: float) -> tuple[Fall, np.ndarray, np.ndarray] | None:
    law = part.law(-40.0).within(*cut)
    if law.field is None:
        return None
    size = exact(part, law, c, np.zeros(1))[0]
    fall = part.fall_of(law, c, size)
    last = fall.log_v if fall.log_v < 300 else 10.0
    u = np.exp(np.linspace(last - 16, last + 2, 60))
    return fall, u, exact(part, law, c, u)[1]


@pytest.mark.parametrize(("q", "sigma", "c", "removed"), CASES)
def test_no_transform_is_larger_than_its_bound(q: str, sigma: str, c: float, removed: bool) -> None:
    part = parts.SubsampledGaussian(q, sigma, removed)
    for cut in CUTS:
        found = falls(part, cut, c)
        if found is None:
            continue
        fall, u, sizes = found
        bounds = np.exp([fall.log(float(each)) for each in u])
        # Sums on a grid are good to about 1e-9 where a point moves little from one place to the next.
        assert (sizes <= bounds + 1e-9).all(), cut
        later = np.maximum.accumulate(sizes[::-1])[::-1]
        assert (later <= bounds + 1e-9).all(), "the bound holds from there on"


def test_that_check_can_fail() -> None:
    """The twin: a spread twice as large as it is."""
    found = falls(parts.SubsampledGaussian("1e-4", 1), CUTS[0], 20.0)
    assert found is not None
    fall, u, sizes = found
    wrong = replace(fall, shares=np.minimum(fall.shares * 4, 0.99))
    assert not (sizes <= np.exp([wrong.log(float(each)) for each in u]) + 1e-9).all()


def test_the_bound_is_close_where_integrands_die_out() -> None:
    """A million steps need 1 - |r| of about 4e-5. The bound is reached at less than three times the place where it is true."""
    for q, sigma in (("1e-3", "1/2"), ("1e-4", "1"), ("1e-4", "1/2")):
        part = parts.SubsampledGaussian(q, sigma)
        law = part.law(-40.0)
        size = exact(part, law, 2.0, np.zeros(1))[0]
        fall = part.fall_of(law, 2.0, size)
        u = np.exp(np.linspace(fall.log_v - 20, fall.log_v, 100))
        true = np.log(exact(part, law, 2.0, u)[1])
        bound = np.array([fall.log(float(each)) for each in u])
        assert u[np.argmax(bound < -4e-5)] < 3 * u[np.argmax(true < -4e-5)]


def test_laws_with_atoms_have_no_bound() -> None:
    part = parts.Subsampled(parts.DiscreteGaussian(1, 4), "1/10")
    assert part.fall_of(part.law(-40.0), 1.0, 0.0).log(1e9) == 0
    mixed = parts.Subsampled(parts.Laplace(1), "1/10")
    assert mixed.fall_of(mixed.law(-40.0), 1.0, 0.0).log(1e9) == 0
