"""Lists the samplers to walk: one of each family, by single draws and by arrays, and whole mechanisms.

Not walked, because none of their words falls into few ranges: arrays that take a 64-bit word modulo n (dice for more than 512
sides, members of a class of equal candidates), and the low bits of very wide noise, which are fair bits with a late
acceptance. tests/exact checks those by other means. Of wide noise the tables are walked here, digit by digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import arb

from dither.audit.exact.prices import kinds
from dither.audit.exact.walk import NEAR, Batch, WalkResult, walk
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Coin, ExpCoin, Flat
from dither.exact.laws.derived import Clamped, Finite, Moved
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from dither.exact.samplers.digits import Digits, Middle, Top
from dither.mechanisms.base import Example, Mechanism

NOT_WALKED = (
    "arrays of dice with more than 512 sides, and arrays of Categorical draws: a 64-bit word modulo n",
    "arrays of geometric noise above scale 40 as a whole: of these the tables of the digits are walked, and single draws at 41",
    "geometric noise wider than scale 16,384 below its tables, and Gaussian noise above sigma 128: fair bits, late acceptance",
    "NoisyMax and SparseVector as a whole: their noise is walked, their comparisons are not",
    "Sampled as a whole: its coins and the mechanisms inside are walked, each alone",
)
_WIDE = Fraction(1, 1 << 24)  # noise of several digits: changes are located to this mass
_COINS = Fraction(1, 1 << 32)  # a mechanism that flips several coins in turn


@dataclass(frozen=True)
class Sampler:
    """A function that draws one value from `exact.entropy`, and the law it should follow."""

    name: str
    sample: Callable[[], int]
    law: Law
    batch: Batch | None = None
    near: Fraction = NEAR

    def walk(self, seconds: float = 60.0) -> WalkResult:
        return walk(self.name, self.sample, self.law, batch=self.batch, near=self.near, seconds=seconds)


def samplers() -> tuple[Sampler, ...]:
    """Returns one sampler of every family."""
    return (*_families(), *_digits(), *_mechanisms())


def _families() -> Iterator[Sampler]:
    half: tuple[Callable[[], arb], ...] = (lambda: arb(0.5), lambda: arb(0.375), lambda: arb(0.125))
    laws: tuple[tuple[str, Law], ...] = (
        ("Coin(1/3)", Coin(Fraction(1, 3))),
        ("ExpCoin(2/3)", ExpCoin(Fraction(2, 3))),
        ("Flat(6)", Flat(6)),
        ("TwoSided(1)", TwoSided(Fraction(1))),
        ("OneSided(7/3)", OneSided(Fraction(7, 3))),
        ("Cut(3, 10)", Cut(Fraction(3), 10)),
        ("Gaussian(22/7)", Gaussian(Fraction(22, 7))),
        ("Finite(1/2, 3/8, 1/8)", Finite(half)),
        ("Moved(Gaussian(2), -5)", Moved(Gaussian(Fraction(2)), -5)),
        ("Clamped(TwoSided(2), -1, 4)", Clamped(TwoSided(Fraction(2)), -1, 4)),
    )
    for name, law in laws:
        yield Sampler(f"{name}, one draw", law.draw, law)
        yield Sampler(f"{name}, arrays", _single(law), law, law.draw)
    weights = Categorical((Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1)))
    yield Sampler("Categorical(0, 1, 1/2, 1), one draw", weights.draw, weights)
    yield Sampler("TwoSided(41), one draw", TwoSided(Fraction(41)).draw, TwoSided(Fraction(41)), near=_WIDE)


def _single(law: Law) -> Callable[[], int]:
    return lambda: int(law.draw(1)[0])


def _digits() -> Iterator[Sampler]:
    """Yields the tables behind the widest noise."""
    scale = Fraction(10**12)
    wide = Digits(scale, True)
    top, middle = Top(scale, wide.m, True), Middle(scale, wide.m - wide.low, wide.low)
    yield Sampler("TwoSided(10^12), top digit", wide.top.one, top, near=_WIDE)
    yield Sampler("TwoSided(10^12), middle digit", wide.middle.one, middle)


def _mechanisms() -> Iterator[Sampler]:
    """Yields the release of every mechanism that draws few words."""
    for kind in kinds():
        if kind.__name__ not in ("NoisyMax", "SparseVector", "Sampled"):
            one = release_sampler(example_of(kind))
            yield replace(one, near=_COINS) if kind.__name__ == "PermuteAndFlip" else one


def example_of(kind: type[Mechanism]) -> Example:
    """Returns the first example; of `Threshold` one in the middle of its rule, since its ends are deterministic."""
    return kind.examples()[2 if kind.__name__ == "Threshold" else 0]


def release_sampler(example: Example) -> Sampler:
    """Returns a sampler of the mechanism's release, mapped back to the integers of its law."""
    mechanism, exact = example.mechanism, example.exact
    law = mechanism.law(exact)
    index = _index(mechanism.outcome, law)
    return Sampler(f"{type(mechanism).__name__}.release({exact!r})", lambda: index(mechanism.release(exact)), law)


def _index(outcome: Callable[[int], Any], law: Law) -> Callable[[Any], int]:
    first, last = law.span()
    if first is None or last is None:
        step = Fraction(outcome(1))
        return lambda output: int(Fraction(output) / step)
    named = {outcome(k): k for k in range(first, last + 1)}
    return lambda output: named[output]
