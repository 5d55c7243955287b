"""Draws follow the stated law; a law ten per cent off is rejected."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from distribution.allowance import share
from distribution.fit import events_fit, fits
from dither.exact import balls, entropy
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Coin, ExpCoin, Flat
from dither.exact.laws.derived import Clamped, Finite, Moved
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from dither.exact.samplers.choice import draw_index

MANY = 1 << 18
TENTH = Fraction(11, 10)
FIFTH = Fraction(6, 5)
SCALES = [
    Fraction(1, 2),
    Fraction(1),
    Fraction(10),
    Fraction(40),
    Fraction(81, 2),
    *(Fraction(10) ** e for e in (3, 4, 5, 6, 9, 12)),
]
SIGMAS = [Fraction(1, 2), Fraction(1), Fraction(10), Fraction(100), Fraction(128), *(Fraction(10) ** e for e in (3, 4, 6, 12))]


def more() -> arb:
    return balls.ball(TENTH)


def third() -> arb:
    return balls.ball(Fraction(1, 3))


def tables() -> list[tuple[str, Law, Law]]:
    """(name, the law, one about ten per cent off) of the remaining laws."""
    weights = tuple(Fraction(k, 3) for k in (0, 1, 2, 2, 5))
    return [
        ("one-sided geometric", OneSided(Fraction(7, 2)), OneSided(Fraction(7, 2) * TENTH)),
        ("one-sided geometric", OneSided(10**7), OneSided(10**7 * TENTH)),
        ("cut geometric", Cut(Fraction(9, 2), 7), Cut(Fraction(9, 2) * TENTH, 7)),
        ("cut geometric", Cut(10**6, 10**6), Cut(10**6 * FIFTH, 10**6)),
        ("categorical", Categorical(weights), Categorical(tuple(w * TENTH for w in weights))),
        ("flat", Flat(10), Flat(11)),
        ("flat", Flat(10**6), Flat(11 * 10**5)),
        ("coins", Coin("1/3"), Coin(TENTH / 3)),
        ("coins", ExpCoin("1/2"), ExpCoin(TENTH / 2)),
        ("finite", Finite((third, third, third)), Finite((lambda: third() * more(), third, lambda: third() * (2 - more())))),
        ("finite", Clamped(Moved(TwoSided(5), 3), 0, 9), Clamped(Moved(TwoSided(5 * TENTH), 3), 0, 9)),
    ]


@pytest.mark.parametrize("scale", SCALES)
def test_two_sided_noise_follows_its_formula(scale: Fraction) -> None:
    sample, allowed = TwoSided(scale).draw(MANY), share("two-sided geometric", len(SCALES))
    assert fits(sample, TwoSided(scale), allowed)
    assert not fits(sample, TwoSided(scale / TENTH), allowed)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_noise_follows_its_formula(sigma: Fraction) -> None:
    sample, allowed = Gaussian(sigma**2).draw(MANY), share("gaussian", len(SIGMAS))
    assert fits(sample, Gaussian(sigma**2), allowed)
    assert not fits(sample, Gaussian((sigma / TENTH) ** 2), allowed)


@pytest.mark.parametrize(("name", "law", "wrong"), tables(), ids=str)
def test_every_other_law_is_what_is_drawn(name: str, law: Law, wrong: Law) -> None:
    sample, allowed = law.draw(MANY), share(name, 2)
    assert fits(sample, law, allowed)
    assert not fits(sample, wrong, allowed)


ONE_BY_ONE = [
    (TwoSided(3), TwoSided(3 * FIFTH)),  # of so few draws, one in two thousand would fit a scale that is a tenth off
    (TwoSided(10**9), TwoSided(10**9 * FIFTH)),
    (Gaussian(10**8), Gaussian(10**8 * TENTH**2)),
]


@pytest.mark.parametrize(("law", "wrong"), ONE_BY_ONE, ids=str)
def test_single_draws_follow_the_same_law(law: Law, wrong: Law) -> None:
    sample = np.array([law.draw() for _ in range(1 << 15)])
    assert fits(sample, law, share("one draw at a time", 3))
    assert not fits(sample, wrong, share("one draw at a time", 3))


def remainders(law: Law, size: int, modulus: int) -> list[float]:
    found = np.bincount(law.draw(size) % modulus, minlength=modulus) / size
    return [float(s) for s in found]


@pytest.mark.parametrize("scale", [1000, 10**6, 10**12])
def test_low_digits_are_right_too(scale: int) -> None:
    # Given its sign, X or -1 - X is geometric, whose remainder mod 16 is cut geometric.
    cut = Cut(scale, 15)
    with balls.working(128):
        a = balls.exp(Fraction(-1, scale))
        chances = [float((cut.pmf(r) + a * cut.pmf(15 - r)) / (1 + a)) for r in range(16)]
    assert events_fit(remainders(TwoSided(scale), MANY, 16), chances, MANY, share("low digits", 6))


@pytest.mark.parametrize("sigma", [1000, 10**6, 10**12])
def test_low_digits_of_gaussian_noise_are_fair(sigma: int) -> None:
    # By Poisson summation the remainders mod 16 differ from 1/16 by less than exp(-2 pi^2 (sigma / 16)^2).
    assert events_fit(remainders(Gaussian(sigma**2), MANY, 16), [1 / 16] * 16, MANY, share("low digits", 6))


def test_unfair_low_digits_would_be_noticed() -> None:
    even = TwoSided(10**6).draw(MANY) // 2 * 2
    shares = [float(s) for s in np.bincount(even % 16, minlength=16) / MANY]
    assert not events_fit(shares, [1 / 16] * 16, MANY, share("low digits", 6))


def test_index_follows_scores() -> None:
    scores = np.array([5, 7, 7, 0, -(10**15), 6])
    n, rate = 4000, Fraction(1, 2)
    seen = np.bincount([draw_index(scores, rate) for _ in range(n)], minlength=6) / n
    weights = np.exp(0.5 * (scores - 7.0))
    chances = [float(c) for c in weights / weights.sum()]
    chances[4] = 1e-300
    assert events_fit([float(s) for s in seen], chances, n, share("categorical", 2))
    assert not events_fit([float(s) for s in seen], [1 / 6] * 6, n, share("categorical", 2))


def test_bits_are_fair() -> None:
    words = entropy.words64(1 << 14)
    shares = [float(np.count_nonzero(words >> np.uint64(b) & np.uint64(1)) / len(words)) for b in range(64)]
    assert events_fit(shares, [0.5] * 64, len(words), share("fair bits"))


@pytest.mark.long
@pytest.mark.parametrize("scale", SCALES)
def test_two_sided_noise_in_depth(scale: Fraction) -> None:
    sample = TwoSided(scale).draw(1 << 25)
    assert fits(sample, TwoSided(scale), share("other", 40), cuts=200)


@pytest.mark.long
@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_noise_in_depth(sigma: Fraction) -> None:
    sample = Gaussian(sigma**2).draw(1 << 25)
    assert fits(sample, Gaussian(sigma**2), share("other", 40), cuts=200)
