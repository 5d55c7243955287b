"""Every composition of the reference table is priced from above, within 1e-6 of the exact optimum."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dither.exact.balls import above, ball, lower, upper, working
from dither.privacy import parts
from dither.privacy.accountant import closed
from dither.privacy.losses import ZCDP, Curve, Loss, total

DELTA = Fraction(1, 10**6)
GAP = Fraction(1, 10**6)
MILLION = 10**6

# composition: (loss, exact epsilon at 1e-6 as printed)
ROWS: dict[str, tuple[Loss, str]] = {
    "100 Laplace 0.1": (Curve.of(parts.Laplace("0.1"), 100), "4.692667414680"),
    "1000 Gaussian sigma 50": (Curve.of(parts.Gaussian("1/2500"), 1000), "2.921600590427"),
    "50 Laplace + 100 Gaussian + 20 response": (
        total(
            [
                Curve.of(parts.Laplace("0.1"), 50),
                Curve.of(parts.Gaussian("1/400"), 100),
                Curve.of(parts.Response("0.2"), 20),
            ]
        ),
        "6.0175694516",
    ),
    "100 response 0.1": (Curve.of(parts.Response("0.1"), 100), "4.774567588108"),
    "100 discrete Laplace 0.1": (Curve.of(parts.DiscreteLaplace("0.1", 1), 100), "4.774567588108"),
    "1000 Laplace 1": (Curve.of(parts.Laplace(1), 1000), "486.297509443"),
    "a million Laplace 0.001": (Curve.of(parts.Laplace("0.001"), MILLION), "4.885616941379"),
    "a million Gaussian sigma 1000": (Curve.of(parts.Gaussian("1e-6"), MILLION), "4.886554117462"),
    "100 (0.1, 1e-9)": (Curve.of(parts.Response("0.1", "1e-9"), 100), "4.787723760812"),
    "heterogeneous pure": (
        total([Curve.of(parts.Response(e), n) for e, n in (("0.05", 50), ("0.1", 50), ("0.2", 10))]),
        "4.741278468855",
    ),
    "100 bounded range 0.1": (Curve.of(parts.BoundedRange("0.1"), 100), "2.246026"),
    "one Gaussian mu 0.1": (Curve.of(parts.Gaussian("0.01")), "0.3968573776"),
    "one Gaussian mu 1": (Curve.of(parts.Gaussian(1)), "4.8865541175"),
    "one Gaussian mu 4": (Curve.of(parts.Gaussian(16)), "26.3569639253"),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_price_is_the_exact_optimum_from_above(name: str) -> None:
    loss, printed = ROWS[name]
    # The printed digits are exact up to half a unit of the last one.
    half = Fraction(1, 2 * 10 ** len(printed.partition(".")[2]))
    exact = Fraction(printed)
    found = loss.epsilon(DELTA)
    assert exact - half <= found <= (exact + half) * (1 + GAP)


@pytest.mark.parametrize(("mu2", "printed"), [("0.01", "0.3406693647"), (1, "4.3771780957"), (16, "24.3816108831")])
def test_single_gaussians_at_another_delta(mu2: str | int, printed: str) -> None:
    found = Curve.of(parts.Gaussian(mu2)).epsilon("1e-5")
    assert Fraction(printed) - Fraction(1, 10**10) <= found <= Fraction(printed) * (1 + GAP)


@pytest.mark.parametrize(
    ("rho", "printed"),
    [("0.005", "0.429941"), ("0.02", "0.899935"), ("0.125", "2.419093"), ("0.5", "5.221534"), (2, "11.688596")],
)
def test_zcdp_converts_by_the_optimal_formula(rho: str | int, printed: str) -> None:
    found = ZCDP(rho).epsilon(DELTA)
    assert abs(found - Fraction(printed)) < Fraction(1, 10**6)
    assert ZCDP(rho).delta(found) <= DELTA * (1 + GAP)


def test_the_subsampled_row_meets_its_six_digits() -> None:
    found = Curve.of(parts.SubsampledGaussian("0.01", 1), 1000).epsilon(DELTA)
    assert Fraction("2.1245") < found <= Fraction("2.12452")


def test_the_textbook_sigma_is_unsafe_at_epsilon_ten() -> None:
    with working(128):
        sigma2 = upper(2 * (ball(Fraction(5, 4)) / ball(DELTA)).log() / 100)
    true = Curve.of(parts.Gaussian(1 / sigma2)).delta(10)
    assert Fraction("1.89e-6") < true < Fraction("1.91e-6")


def test_known_calibrations_of_the_continuous_gaussian() -> None:
    for epsilon, delta, sigma in ((1, "1e-5", "3.7306316348"), ("0.1", "1e-6", "36.3046904262"), (10, "1e-6", "0.5410868318")):
        price = Curve.of(parts.Gaussian(1 / Fraction(sigma) ** 2)).delta(epsilon)
        assert abs(price / Fraction(delta) - 1) < Fraction(1, 10**8)


def test_a_looser_gap_would_be_noticed() -> None:
    # The twin: the zCDP route is valid but not optimal, and the check above tells them apart.
    loss, printed = ROWS["100 response 0.1"]
    assert loss.zcdp().epsilon(DELTA) > Fraction(printed) * (1 + GAP)


def test_closed_form_and_contour_agree_on_gaussians() -> None:
    exact = closed.delta(((parts.Gaussian("1/400"), 100),))
    assert exact is not None
    with working(200):
        at = exact(Fraction(2))
    # A response so weak that it changes nothing visible sends the same Gaussians through the contour.
    nearly = total([Curve.of(parts.Gaussian("1/400"), 100), Curve.of(parts.Response("1e-30"))]).delta(2)
    assert lower(at) <= nearly <= above(lambda: at) * (1 + GAP)
