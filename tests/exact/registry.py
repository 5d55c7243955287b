"""Every law of the package with parameters at the edges of what it accepts."""

from __future__ import annotations

from fractions import Fraction

from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Coin, ExpCoin, Flat
from dither.exact.laws.derived import Clamped, Finite, Given, Moved
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from dither.exact.laws.joint import Branching, Product
from dither.exact.laws.mixture import Mixture

EXAMPLES: tuple[Law, ...] = (
    TwoSided("1/1000"),
    TwoSided("1/2"),
    TwoSided(1),
    TwoSided("7/3"),
    TwoSided(40),
    TwoSided("81/2"),
    TwoSided(1000),
    TwoSided(10**12),
    OneSided("1/3"),
    OneSided(11),
    OneSided(10**9),
    Cut("1/2", 0),
    Cut(3, 10),
    Cut(10**12, 1),
    Cut(5, 100),
    Cut(10**4, 10**5),
    Gaussian("1/1000000"),
    Gaussian("1/10"),
    Gaussian(1),
    Gaussian("22/7"),
    Gaussian(10**4),
    Gaussian(10**10),
    Gaussian(10**24),
    Categorical((0,)),
    Categorical((0, 1, "1/2", 1, "-3/7")),
    Categorical((0, 10**9, 10**9 - 1)),
    Flat(1),
    Flat(6),
    Flat(10**30),
    Coin(0),
    Coin("1/3"),
    Coin(1),
    ExpCoin(0),
    ExpCoin("2/3"),
    ExpCoin(1000),
    Moved(Gaussian(2), -5),
    Moved(TwoSided(10), 10**20),
    Clamped(TwoSided(2), -1, 4),
    Clamped(Moved(TwoSided(2), 3), 0, 6),
    Clamped(Flat(5), 7, 9),
    Clamped(Flat(5), -2, 3),
    Clamped(Gaussian(9), 2, 2),
    Product((Coin("1/3"), Cut(2, 2))),
    Branching(Coin("1/3"), (Flat(2), Cut(2, 3))),
    Given(TwoSided(3), -4),
    Given(Gaussian(9), 2),
    Given(Cut(3, 10), 7),
    Mixture((Fraction(1, 3), Fraction(2, 3)), (TwoSided(2), Moved(TwoSided(2), 3))),
    Finite((lambda: balls.ball(Fraction(1, 3)), lambda: balls.ball(0), lambda: balls.ball(Fraction(2, 3)))),
)


def middle(law: Law) -> int:
    """Returns a value of high probability."""
    first, last = law.span()
    if isinstance(law, Moved):
        return middle(law.law) + law.by
    return 0 if first is None else first if last is None else (first + last) // 2


def width(law: Law) -> int:
    """Returns roughly how far the law is spread."""
    if isinstance(law, (Moved, Clamped)):
        return width(law.law)
    if isinstance(law, (TwoSided, OneSided, Cut)):
        return int(law.scale) + 1
    if isinstance(law, Gaussian):
        return round(float(law.variance) ** 0.5) + 1
    first, last = law.span()
    return 1 if first is None or last is None else last - first + 1
