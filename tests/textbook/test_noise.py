"""Laplace, geometric and Gaussian noise: the worked examples, by exact law."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dither.exact import balls
from dither.exact.laws.derived import Moved
from dither.exact.laws.gaussian import Gaussian as GaussianLaw
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.truncated import TruncatedGeometric
from dither.privacy import sensitivity
from dither.privacy.proof import verify

LAPLACE = Laplace(epsilon=1, sensitivity=10, grid="1/10")


def log_ratio(mechanism: Laplace, left: int, right: int, value: Fraction) -> arb:
    k = int(value / mechanism.grid)
    return mechanism.law(left).pmf(k).log() - mechanism.law(right).pmf(k).log()


def test_laplace_at_10_and_20_has_ratio_e_outside_and_less_inside() -> None:
    """epsilon = 1, sensitivity 10: exactly e outside [10, 20], and e^((30 - 2v)/10) at v inside."""
    found = verify(LAPLACE, [(10, 20)])
    assert (found.worst, found.holds, found.slack) == (1, True, 0)
    with balls.working(192):
        for tenth in range(-300, 600):
            value = Fraction(tenth, 10)
            inside = Fraction(30 - 2 * value) / 10
            expected = 1 if value <= 10 else -1 if value >= 20 else inside
            assert (log_ratio(LAPLACE, 10, 20, value) - balls.ball(Fraction(expected))).contains(0)
            assert abs(inside) < 1 or not 10 < value < 20


def test_laplace_noise_is_the_density_on_a_grid() -> None:
    """Pr[k g] / g nears exp(-|x|/b) / 2b, and Pr[|noise| > t b] nears e^-t, as the grid gets finer."""
    fine = Laplace(epsilon=1, sensitivity=10, grid="1/1000")
    with balls.working(128):
        for x in range(-50, 51, 10):
            density = float(fine.law(0).pmf(1000 * x)) * 1000
            assert density == pytest.approx(math.exp(-abs(x) / 10) / 20, rel=1e-7)
        for t in (1, 2, 5):
            beyond = fine.law(0).more_than(10_000 * t) + fine.law(0).at_most(-10_000 * t - 1)
            assert float(beyond) == pytest.approx(math.exp(-t), rel=1e-4)


def test_a_laplace_scale_10_percent_too_small_is_seen_at_10_and_20() -> None:
    assert verify(Laplace(epsilon="11/10", sensitivity=10, grid="1/10"), [(10, 20)], claimed=1).holds is False


@pytest.mark.parametrize(
    ("question", "move"),
    [
        ("how many diabetic people weigh more than 100 kg", sensitivity.count()),
        ("the largest weight of a diabetic person, declared 0 to 300 kg", sensitivity.maximum(0, 300)),
    ],
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(2)])
def test_the_geometric_constant(question: str, move: Fraction, epsilon: Fraction) -> None:
    """c = (1 - a) / (1 + a) with a = e^(-epsilon / sensitivity), and Pr[k] = c a^|k|."""
    mechanism = Geometric(epsilon=epsilon, sensitivity=move)
    law = mechanism.law(0)
    with balls.working(160):
        alpha = balls.exp(-epsilon / move)
        c = (1 - alpha) / (1 + alpha)
        for k in (-1000, -3, 0, 1, 40):
            assert (law.pmf(k) - c * alpha ** abs(k)).contains(0)
        assert (law.at_most(-1) + law.pmf(0) + law.more_than(0)).contains(1)
    found = verify(mechanism, [(80, 80 + int(move))])
    assert (found.worst, found.slack) == (epsilon, 0)
    assert not verify(mechanism, [(80, 81 + int(move))]).holds  # the twin: one more than the declared sensitivity


@pytest.mark.slow
@given(n=st.integers(1, 12), epsilon=st.fractions("1/5", 3, max_denominator=5))
def test_truncated_to_0_n_is_still_private(n: int, epsilon: Fraction) -> None:
    """The tails move to the ends: Pr[0] = a^x / (1 + a), Pr[n] = a^(n - x) / (1 + a); every ratio stays within e^epsilon."""
    mechanism = TruncatedGeometric(epsilon=epsilon, sensitivity=1, n=n)
    found = verify(mechanism, [(x, x + 1) for x in range(n)])
    assert (found.worst, found.holds, found.slack) == (epsilon, True, 0)
    with balls.working(160):
        alpha = balls.exp(-epsilon)
        for x in range(n + 1):
            law = mechanism.law(x)
            assert (law.pmf(0) - alpha**x / (1 + alpha)).contains(0)
            assert (law.pmf(n) - alpha ** (n - x) / (1 + alpha)).contains(0)
            assert sum((law.pmf(k) for k in range(n + 1)), arb(0)).contains(1)


@pytest.mark.parametrize("scale", [1, 5, 100])
@pytest.mark.parametrize("epsilon", [1, 100, 10**9])
def test_gaussian_noise_is_not_epsilon_private_for_any_epsilon(scale: int, epsilon: int) -> None:
    found = verify(Gaussian(scale=scale, sensitivity=1), [(0, 1)], claimed=epsilon)
    assert found.worst == math.inf
    assert not found.holds


def exact_delta(variance: Fraction, epsilon: Fraction) -> arb:
    """delta(epsilon) of discrete Gaussian noise moved by one: the best test is a half-line, so it is the largest over them."""
    moved, still = Moved(GaussianLaw(variance), 1), GaussianLaw(variance)
    best = arb(0)
    middle = int(epsilon * variance + Fraction(1, 2))  # where the log ratio (2k - 1) / 2v passes epsilon
    for t in range(middle - 2, middle + 3):
        found = moved.more_than(t) - balls.exp(epsilon) * still.more_than(t)
        best = found if found > best else best
    return best


@pytest.mark.parametrize("sigma", [1, 4, 20])
def test_the_delta_of_gaussian_noise_falls_with_epsilon_and_never_ends(sigma: int) -> None:
    """The curve delta(epsilon): positive everywhere, decreasing, and the library's price lies on or above it."""
    mechanism = Gaussian(scale=sigma, sensitivity=1)
    curve = mechanism.curve()
    before = Fraction(1)
    with balls.working(256):
        for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)):
            exact = balls.lower(exact_delta(Fraction(sigma**2), epsilon))
            assert 0 < exact < before
            assert exact <= curve.delta(epsilon) <= exact * (1 + Fraction(1, 10**5))
            before = exact


def test_the_continuous_calibration_is_not_safe_on_whole_numbers() -> None:
    """sigma = 3.7306316348 gives the continuous Gaussian (1, 1e-5); the discrete law at that sigma has 1.0346e-5."""
    with balls.working(256):
        found = exact_delta(Fraction("3.7306316348") ** 2, Fraction(1))
        assert float(found) == pytest.approx(1.0346e-5, rel=1e-4)
        ours = Gaussian(epsilon=1, delta="1e-5", sensitivity=1)
        assert exact_delta(ours.variance, Fraction(1)) <= balls.ball(Fraction(1, 10**5))


def test_the_textbook_sigma_is_unsafe_for_large_epsilon() -> None:
    """sigma = sqrt(2 ln(1.25/delta)) / epsilon at (10, 1e-6) is 0.52988; the calibrated noise is larger."""
    textbook = math.sqrt(2 * math.log(1.25e6)) / 10
    assert Gaussian(epsilon=10, delta="1e-6", sensitivity=1000).variance > (1000 * textbook) ** 2
