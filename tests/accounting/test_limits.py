"""Prices at the edges: both directions, tiny deltas, huge epsilons, ties of floats, and values no curve may hold."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from accounting import truth
from dither.errors import ArgumentError, PriceError
from dither.privacy import parts
from dither.privacy.losses import ZCDP, Approx, Curve, Pure, total
from dither.privacy.parts import Part


def test_a_removed_unit_is_priced_like_an_added_one() -> None:
    there, back = parts.SubsampledGaussian("1/2", 1), parts.SubsampledGaussian("1/2", 1, True)
    assert Curve.of(back) == Curve.of(there)
    assert back.pure is None
    with pytest.raises(PriceError):
        Curve.of(back).epsilon(0)
    assert Curve.of(back, 2).delta(1) == Curve.of(there, 2).delta(1) > 0


@pytest.mark.parametrize("k", range(1, 101))
def test_bounded_range_has_a_price_at_every_percent(k: int) -> None:
    curve = Curve.of(parts.BoundedRange(Fraction(k, 100)), 10)
    found = curve.epsilon("1e-6")
    assert 0 < found < 10 * Fraction(k, 100)
    assert found < curve.zcdp().epsilon("1e-6")


def test_bounded_range_of_a_third() -> None:
    assert abs(float(Curve.of(parts.BoundedRange("1/3"), 10).epsilon("1e-6")) - 2.2894310) < 1e-6


TINY: list[tuple[Part, str]] = [
    (parts.Gaussian("1e-10"), "1"),
    (parts.Gaussian(1), "1e6"),
    (parts.Gaussian(1), "1e100"),
    (parts.Gaussian(1), "1e399"),
    (parts.DiscreteGaussian(1, 10**24), "1"),
    (parts.SubsampledGaussian("1/100", 10), "1e6"),
]


@pytest.mark.parametrize(("part", "at"), TINY, ids=str)
@pytest.mark.parametrize("count", [1, 3])
def test_tiny_deltas_are_short_rationals(part: Part, at: str, count: int) -> None:
    found = Curve.of(part, count).delta(at)
    assert 0 < found < Fraction(1, 10**200)
    assert found.denominator.bit_length() < 25_000
    assert ZCDP("1e-12").delta("1e300").denominator.bit_length() < 25_000


def test_no_larger_epsilon_is_meant() -> None:
    for kind in (Pure, parts.Laplace, parts.Response, parts.BoundedRange, parts.Gaussian, parts.DiscreteLaplace):
        kind(10**6)
        with pytest.raises(ArgumentError):
            kind(10**6 + 1)
    for make in (
        lambda: Approx("1e7", 0),
        lambda: ZCDP("1e13"),
        lambda: parts.DiscreteGaussian(10**4, 1),
        lambda: parts.SubsampledGaussian("1/2", "1e-4"),
    ):
        with pytest.raises(ArgumentError):
            make()


def test_sums_beyond_the_largest_epsilon_still_have_prices() -> None:
    many = Pure("1e6").repeat(10**30)
    assert many.epsilon() == 10**36
    assert many.epsilon("1e-6") <= 10**36
    assert many.delta(1) > Fraction(999, 1000)
    assert (many.curve() + Curve.of(parts.Gaussian(1))).delta(1) == 1
    assert many.curve().repeat(3).epsilon("0.1") <= 3 * 10**36
    assert Approx("1e6", "1e-9").repeat(10**6).delta(5) > Fraction(999, 1000)
    assert ZCDP("1e12").repeat(10**300).epsilon("1e-6") >= 10**312
    assert ZCDP("1e12").repeat(10**300).delta(1) == 1
    assert Curve.of(parts.Gaussian("1e6")).group(10**6).epsilon("0.1") > 10**17
    assert Curve.of(parts.Laplace("1e6"), 3).epsilon("0.1") <= 3 * 10**6


def some_part(r: random.Random) -> Part:
    size = Fraction(10) ** r.randint(-8, 5) * r.randint(1, 9)
    kind = r.choice(["response", "laplace", "steps", "gaussian", "integers", "range"])
    if kind == "integers":
        return parts.DiscreteGaussian(1, 1 / size)
    if kind == "steps":
        return parts.DiscreteLaplace(size, r.randint(1, 9))
    return {"response": parts.Response, "laplace": parts.Laplace, "gaussian": parts.Gaussian, "range": parts.BoundedRange}[
        kind
    ](size)


def check_any_size(seed: int, cases: int) -> None:
    r = random.Random(seed)
    for _ in range(cases):
        curve = total([Curve.of(some_part(r), 10 ** r.randint(0, 3)) for _ in range(r.randint(1, 2))]).curve()
        delta = Fraction(1, 10 ** r.randint(1, 12))
        found = curve.epsilon(delta)
        assert 0 <= found <= curve.zcdp().epsilon(delta), (curve, delta)
        assert 0 <= curve.delta(found) <= 1, (curve, delta)
        assert 0 <= curve.delta(found / 2) <= 1, (curve, delta)


def test_parts_of_any_size_have_prices() -> None:
    check_any_size(1, 8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 30))
def test_many_parts_of_any_size_have_prices(seed: int) -> None:
    check_any_size(seed, 60)


def test_a_pure_loss_shows_a_better_rho() -> None:
    assert repr(Pure(1)) == "Pure(epsilon=Fraction(1, 1))"
    assert repr(Pure(1, rho=0)) != repr(Pure(1))
    assert "rho" in repr(Pure("1/2") + Pure("1/2"))


def test_a_curve_holds_parts_with_counts_only() -> None:
    one = parts.Gaussian(1)
    with pytest.raises(ArgumentError):
        Curve(((one, -1),))
    with pytest.raises(ArgumentError):
        Curve((("Gaussian", 1),))  # type: ignore[arg-type]
    assert Curve(((one, 1), (one, 2), (one, 0))) == Curve.of(one, 3)


@pytest.mark.slow
def test_a_rare_tail_does_not_spoil_subsampled_prices() -> None:
    # Large orders of the transform see only an event that hardly ever happens; the price must grow like a root.
    found = [float(Curve.of(parts.SubsampledGaussian("1/1000", 5), n).epsilon("1e-6")) for n in (20, 400)]
    assert found[0] < 0.00261
    assert found[1] < 0.0129
    assert Curve.of(parts.SubsampledGaussian("1/1000", 1), 400).epsilon("1e-6") < Fraction("0.13")


def test_little_noise_after_subsampling_is_priced_quickly_as_all_of_it() -> None:
    found = Curve.of(parts.SubsampledGaussian("1/10", "1/1000"), 3).epsilon("1e-6")
    assert found == Curve.of(parts.Gaussian("1e6"), 3).epsilon("1e-6")


@pytest.mark.parametrize(
    ("curve", "delta", "exact"),
    [
        (Curve.of(parts.DiscreteGaussian(2, "11/10")) + Curve.of(parts.DiscreteLaplace("1/100", 3)), "9/100", 3.5011763),
        (Curve.of(parts.DiscreteGaussian(1, 10)) + Curve.of(parts.Response("13/25"), 2), "3/10", 0.0380530),
    ],
)
def test_mixtures_of_lattices_are_listed(curve: Curve, delta: str, exact: float) -> None:
    found = curve.epsilon(delta)
    assert float(found) < exact * (1 + 1e-6)
    assert curve.delta(found) <= Fraction(delta) * (1 + Fraction(1, 10**6))


# Each is 100 and a little, in fractions that share no factor: the common step of their lattices rounds to 0 in floats.
NO_COMMON_GRID = (
    parts.DiscreteGaussian(1, 100 * Fraction(2**600 + 1, 2**600)),
    parts.DiscreteGaussian(1, 100 * Fraction(3**378 + 2, 3**378)),
)


def test_variances_without_a_common_grid_have_a_price() -> None:
    apart = total([Curve.of(part) for part in NO_COMMON_GRID])
    alike = Curve.of(parts.DiscreteGaussian(1, 100), 2)
    assert abs(apart.epsilon("1e-6") / alike.epsilon("1e-6") - 1) < Fraction(1, 10**6)


def test_that_price_is_not_below_the_truth() -> None:
    apart = total([Curve.of(part) for part in NO_COMMON_GRID])
    exact = truth.merged_delta([(part, 1) for part in NO_COMMON_GRID], 1, 0.5)
    assert exact * (1 - 1e-9) <= float(apart.delta("1/2")) <= exact * (1 + 1e-3)
    assert float(apart.delta("1/2")) < float(apart.zcdp().delta("1/2"))
