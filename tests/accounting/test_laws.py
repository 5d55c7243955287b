"""Laws of losses that every part and every kind keeps, found by the registry."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dither.errors import ArgumentError, PriceError
from dither.privacy import parts
from dither.privacy.losses import ZCDP, Approx, Curve, Loss, Pure, total
from dither.privacy.parts import Part, registry

PARTS: list[Part] = [part for kind in registry() for part in kind.examples()]
KINDS: list[Loss] = [Pure("1/3"), Pure(1, rho="1/8"), Approx("0.1", "1e-9"), ZCDP("1/2"), ZCDP("0.1", "1e-9")]
LOSSES: list[Loss] = [*KINDS, *(Curve.of(part) for part in PARTS)]
DELTA = Fraction(1, 10**5)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_n_copies_are_n_times_one(loss: Loss, n: int) -> None:
    if n:
        assert total([loss] * n) == loss.repeat(n)
        assert total([loss] * n).zcdp() == loss.repeat(n).zcdp()
    assert loss.repeat(0).epsilon(DELTA) == 0


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_the_price_is_the_same_however_the_copies_were_listed(part: Part) -> None:
    one = Curve.of(part)
    assert (one + one + one).epsilon(DELTA) == Curve.of(part, 3).epsilon(DELTA)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_more_releases_cost_more_and_more_delta_costs_less(part: Part) -> None:
    by_count = [Curve.of(part, n).epsilon(DELTA) for n in (1, 3, 10)]
    assert by_count == sorted(by_count)
    by_delta = [Curve.of(part, 3).epsilon(d) for d in ("1e-8", "1e-5", "1e-2")]
    assert by_delta == sorted(by_delta, reverse=True)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_the_curve_is_at_least_as_good_as_every_downward_statement(part: Part) -> None:
    curve = Curve.of(part, 5)
    assert curve.epsilon(DELTA) <= curve.zcdp().epsilon(DELTA)
    if part.pure is not None:
        assert curve.epsilon() == 5 * part.pure
        assert curve.epsilon(DELTA) <= 5 * part.pure


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_delta_undoes_epsilon(part: Part) -> None:
    curve = Curve.of(part, 2)
    assert curve.delta(curve.epsilon(DELTA)) <= DELTA * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize(
    "part",
    [part for part in PARTS if not isinstance(part, (parts.BoundedRange, parts.Subsampled, parts.SubsampledGaussian))],
    ids=str,
)
def test_a_group_of_two_pays_more_than_one(part: Part) -> None:
    if part.lost:
        with pytest.raises(PriceError):
            Curve.of(part).group(2)
    else:
        assert Curve.of(part).group(2).epsilon(DELTA) > Curve.of(part).epsilon(DELTA)


def test_unlike_kinds_add_downward() -> None:
    pure, approx, zcdp, curve = Pure("1/2"), Approx("1/4", "1e-9"), ZCDP("1/8"), Curve.of(parts.Gaussian(1))
    assert pure + pure == Pure(1)
    assert pure + approx == approx + pure == Approx("3/4", "1e-9")
    assert pure + zcdp == ZCDP("1/4")
    assert approx + zcdp == ZCDP(Fraction(1, 32) + Fraction(1, 8), "1e-9")
    assert curve + pure == Curve.of(parts.Gaussian(1)) + Curve.of(parts.Response("1/2"))
    assert curve + zcdp == ZCDP("5/8")
    assert total([]) == Pure(0)


def test_sums_are_exact_rationals() -> None:
    assert total([Pure(0.1)] * 10) == Pure(1)
    assert Pure(1) + Pure("1e-17") != Pure(1)


def test_a_pure_sum_keeps_the_better_zcdp_statement() -> None:
    assert Pure("0.1").repeat(100).zcdp() == ZCDP("1/2")
    assert Pure("0.1", rho="1/800").repeat(100).zcdp() == ZCDP("1/8")
    assert Pure("0.1").repeat(100).epsilon("1e-6") == ZCDP("1/2").epsilon("1e-6")


def test_group_privacy_of_approximate_losses() -> None:
    epsilon, delta = Approx(1, "1e-6").group(3).pair()
    assert epsilon == 3
    e = Fraction("2.718281828459045")
    assert abs(delta / ((1 + e + e * e) / 10**6) - 1) < Fraction(1, 10**12)
    assert Pure("1/2").group(3) == Pure("3/2")
    assert ZCDP("1/2").group(3) == ZCDP("9/2")


def test_prices_that_do_not_exist_are_refused() -> None:
    for loss, delta in (
        (ZCDP(1), 0),
        (Curve.of(parts.Gaussian(1)), 0),
        (Approx(1, "1e-6"), "1e-7"),
        (Curve.of(parts.Response("0.1", "1e-6"), 10), "1e-6"),
    ):
        with pytest.raises(PriceError):
            loss.epsilon(delta)
    with pytest.raises(PriceError):
        ZCDP(1).curve()
    with pytest.raises(PriceError):
        ZCDP(1, "1e-6").group(2)


@pytest.mark.parametrize("bad", [-1, "nan", "inf", float("nan"), True, None])
def test_bad_numbers_name_the_argument(bad: object) -> None:
    for make in (Pure, ZCDP, parts.Response, parts.Laplace, parts.Gaussian):
        with pytest.raises(ArgumentError):
            make(bad)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="delta"):
        Pure(1).epsilon(2)
    with pytest.raises(ArgumentError, match="n must"):
        Pure(1).repeat(-1)


def test_one_response_is_the_exact_optimum_of_one_pure_release() -> None:
    assert abs(Pure(1).epsilon("1e-6") - Curve.of(parts.Response(1)).epsilon("1e-6")) < Fraction(1, 10**8)
    assert Pure(1).delta(1) == 0
    assert Approx("1/2", "1e-6").delta("1/2") == Fraction(1, 10**6)
