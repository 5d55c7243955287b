"""A mechanism on a secret sample of the units: fewer people are looked at, so each is hidden better.

    Poisson              each unit is in the sample with probability q, by a coin of its own     neighbours: add/remove
    without replacement  q n of the n units, all such sets equally likely                        neighbours: replace, n public

    epsilon' = ln(1 + q (e^epsilon - 1))        delta' = q delta        rho' = rho

Why it is private: let one unit be in one table and not in the other. Couple the samples: they are equal unless the unit is
sampled, which has probability q. So the outputs have the laws P = (1 - q) A + q B and A, with B within (epsilon, delta) of A,
and P <= ((1 - q) + q e^epsilon) A + q delta. The other way, A / P <= 1 / ((1 - q) + q e^-epsilon) for a pure epsilon, which is
no more: the harmonic mean is at most the arithmetic one. Theorem 8 has it with a delta. Without replacement, a sample with
the unit is paired with one in which another unit has its place: theorem 9. Renyi divergence is quasi-convex, and a mixture
with equal laws cannot raise it, so rho holds as it stands. It is not amplified: no proof of that is in this package. A pure
epsilon' has rho <= epsilon'^2 / 2, which may be less.
Poisson sampling hides the number of units, so it needs a statistic that does not use a public n; sampling without
replacement needs that n. The other two combinations have other formulas and are refused.
The coins are exact, fresh for every release, and never leave it: whoever sees who was sampled, or how many, has a worse
guarantee. So a release is the mechanism's own output and nothing else.
Reference: Balle, Barthe and Gaboardi, NeurIPS 2018, theorems 8 and 9; Li, Qardaji and Su, ASIACCS 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError, Fix, Python
from dither.exact.balls import above, ball, below, exp
from dither.exact.laws.base import Law
from dither.exact.laws.coins import Coin
from dither.exact.laws.mixture import Mixture
from dither.exact.numbers import Number, between, rational, show, whole
from dither.exact.samplers import uniform
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.noisy_max import NoisyMax
from dither.mechanisms.norms import L1, L2, PerCoordinate
from dither.mechanisms.permute_and_flip import PermuteAndFlip
from dither.mechanisms.sparse_vector import SparseVector
from dither.mechanisms.threshold import Threshold
from dither.mechanisms.truncated import TruncatedGeometric
from dither.privacy.losses import ZCDP, Approx, Curve, Loss, Pure
from dither.privacy.neighbours import AddRemove, Neighbours, Replace, check_neighbours

Row = tuple[int, ...]
Units = Sequence[Any] | NDArray[Any]

_NUMBERS = (Geometric, TruncatedGeometric, Laplace, Gaussian, Threshold)
_SCORES = (Exponential, PermuteAndFlip, NoisyMax, SparseVector)
_LARGEST = 4096  # the most different sums whose laws are mixed
_WIDE = 1 << 62


@dataclass(frozen=True)
class Sampled(Mechanism):
    """A mechanism on the sum over a secret sample of units. Make it by `mechanism.sampled(q)`.

    `release` takes what each unit adds to the answer: a number per unit, or a row of scores per unit for a mechanism that
    chooses. Each is cut to the mechanism's sensitivity: to [-s, s], and to [0, s] under replacement or if `monotone`.

    Guarantee: (epsilon', delta') above, between lists that differ by one unit (Poisson), or in one unit (n public).
    Relies on: one entry per unit. The answer is about the sample: `estimate` divides it by q.

    >>> noise = Geometric(epsilon=1, sensitivity=1).sampled("1/10")
    >>> round(float(noise.loss().epsilon()), 4)
    0.1586
    """

    tag: ClassVar[str] = "Sampled"
    mechanism: Mechanism
    q: Fraction
    n: int | None

    def __init__(self, mechanism: Mechanism, q: Number, n: int | None = None) -> None:
        object.__setattr__(self, "mechanism", _samplable(mechanism, n))
        object.__setattr__(self, "q", between(q, "q", 0, 1, open_low=True))
        object.__setattr__(self, "n", None if n is None else whole(n, "n", least=1))
        if self.n is not None and (self.q * self.n).denominator != 1:
            raise ArgumentError(
                f"q n must be a whole number of units, and it is {show(self.q * self.n)}.",
                fix="choose q as a number of units divided by n.",
            )

    @property
    def neighbours(self) -> AddRemove | Replace:
        """Returns the relation for which the price holds."""
        return AddRemove() if self.n is None else Replace(self.n)

    # --- the sample --------------------------------------------------------------------------------------------------

    def release(self, exact: Units) -> Any:
        rows = self._rows(exact)
        return self.mechanism.release(self._exact(_added([rows[i] for i in self._sample(len(rows))], self._width(exact))))

    def _sample(self, units: int) -> Iterable[int]:
        """Draws who is looked at. Nobody is told."""
        if self.n is None:
            return np.flatnonzero(Coin(self.q).draw(units)).tolist()
        places = list(range(units))
        size = int(self.q * units)
        for i, step in enumerate(uniform.below_each(np.arange(units, units - size, -1).astype(np.uint64)).tolist()):
            places[i], places[i + step] = places[i + step], places[i]
        return places[:size]

    def _rows(self, exact: Units) -> list[Row]:
        """Reads what each unit adds, cut to the sensitivity. Refuses by type and by public numbers only."""
        if isinstance(self.mechanism, _SCORES):
            rows = self._score_rows(exact)
        else:
            steps = base.steps(_listed(exact), self._grid)
            rows = [(int(step),) for step in np.atleast_1d(steps)]
        if self.n is not None and len(rows) != self.n:
            raise ArgumentError(f"exact must have {self.n} units, and it has {len(rows)}.", fix="give one entry for each unit.")
        low, high = self._ends
        return [tuple(min(max(value, low), high) for value in row) for row in rows]

    def _score_rows(self, exact: Units) -> list[Row]:
        width = self._width(exact)
        if isinstance(exact, np.ndarray):
            base.refuse_masked(exact, "exact")
            return [tuple(row) for row in exact.tolist()]
        return [_row(row, width) for row in exact]

    def _width(self, exact: Units) -> int:
        """Returns how many numbers the answer has, from public things: labels, or the shape of an array."""
        if not isinstance(self.mechanism, _SCORES):
            return 1
        if isinstance(exact, np.ndarray) and exact.ndim == 2 and exact.dtype.kind in "iu":
            return int(exact.shape[1])
        names = getattr(self.mechanism, "candidates", None)
        if names is not None and isinstance(exact, (list, tuple)):
            return len(names)
        raise ArgumentError(
            "exact must have a row of whole scores for each unit, in an array with two axes.",
            fix="give an integer array of units by candidates, or name the candidates and give a list.",
        )

    @property
    def _grid(self) -> Fraction:
        return getattr(self.mechanism, "grid", None) or Fraction(1)

    @property
    def _ends(self) -> tuple[int, int]:
        """Returns the least and the most that one unit adds, in steps of the grid."""
        most = min(math.floor(_alone(self.mechanism) / self._grid), _WIDE)
        upward = self.n is not None or getattr(self.mechanism, "monotone", False) or isinstance(self.mechanism, Threshold)
        return (0 if upward else -most), most

    def _exact(self, added: Row) -> Any:
        """Returns the answer that the mechanism reads."""
        if isinstance(self.mechanism, _SCORES):
            return added
        return added[0] if self._grid == 1 else self._grid * added[0]

    # --- the price ---------------------------------------------------------------------------------------------------

    def loss(self) -> Loss:
        inner = self.mechanism.loss()
        if isinstance(inner, Pure):
            return Pure(amplified(inner.epsilon(), self.q)) if self.q < 1 else inner
        if isinstance(inner, Approx):
            epsilon, delta = inner.pair()
            return Approx(amplified(epsilon, self.q), self.q * delta)
        return inner  # a rho alone is not amplified

    def zcdp(self) -> ZCDP:
        """Returns the rho of the mechanism without sampling, or that of the pure epsilon' if it is less."""
        inner, own = self.mechanism.zcdp(), self.loss()
        return min(inner, own.zcdp(), key=lambda each: each.rho) if isinstance(own, Pure) else inner

    def curve(self) -> Curve:
        loss = self.loss()
        return loss.curve() if isinstance(loss, Pure | Approx) and self.q < 1 else self.mechanism.curve()

    # --- the law -----------------------------------------------------------------------------------------------------

    def law(self, exact: Units) -> Law:
        """Returns the law of a release, the sample included, for few units: it mixes the laws of all possible sums."""
        chances = self._chances(self._rows(exact), self._width(exact))
        return Mixture(tuple(chances.values()), tuple(self.mechanism.law(self._exact(added)) for added in chances))

    def _chances(self, rows: list[Row], width: int) -> dict[Row, Fraction]:
        """Returns the probability of every sum over the sample."""
        size = None if self.n is None else int(self.q * self.n)
        found: dict[tuple[int, Row], Fraction] = {(0, (0,) * width): Fraction(1)}
        for seen, row in enumerate(rows):
            later: dict[tuple[int, Row], Fraction] = {}
            for (taken, added), chance in found.items():
                take = self.q if size is None else Fraction(size - taken, len(rows) - seen)
                more = tuple(map(sum, zip(added, row, strict=True)))
                for key, part in (((taken + (size is not None), more), take), ((taken, added), 1 - take)):
                    if part:
                        later[key] = later.get(key, Fraction(0)) + chance * part
            found = later
            if len(found) > _LARGEST:
                raise ArgumentError("The law of so many samples is too long to write down.", fix="ask for it with fewer units.")
        return {added: chance for (_, added), chance in sorted(found.items())}

    def outcome(self, k: int) -> Any:
        return self.mechanism.outcome(k)

    def estimate(self, released: Number) -> Fraction:
        """Returns what the release says about all units: a number divided by q. It is free.

        >>> Geometric(epsilon=1, sensitivity=1).sampled("1/10").estimate(7)
        Fraction(70, 1)
        """
        if isinstance(self.mechanism, (*_SCORES, Threshold)):
            raise ArgumentError("Only a noisy number can be divided by q.", fix="read the release as it is.")
        return rational(released, "released") / self.q

    def margin(self, confidence: Number, **given: Any) -> int | Fraction:
        """Returns how far the release may be from the answer of the sample: the margin of the mechanism inside.

        Who is sampled moves the estimate too: by a standard deviation of up to s sqrt(n (1 - q) / q) for n units.
        """
        stated: Callable[..., int | Fraction] = self.mechanism.margin
        return stated(confidence, **given)

    def parameters(self) -> dict[str, Any]:
        return {"of": self.mechanism, "q": self.q, "n": self.n}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        loss = self.loss()
        price = f"ε = {show(loss.pair()[0])}" if isinstance(loss, Pure | Approx) else f"ρ = {show(self.zcdp().rho)}"
        how = "by a coin for each" if self.n is None else f"{show(self.q * self.n)} of {self.n}"
        return f"{self.mechanism.words(on, who)}; on a secret sample of units, q = {show(self.q)}, {how}: {price}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        count, two = Geometric(epsilon=1, sensitivity=1), ("a", "b")
        vote = Exponential(epsilon=1, sensitivity=1, candidates=two)
        shown = Threshold(epsilon=1, delta="1/1000")
        return (
            Example(cls(count, "1/10"), (1, 1, 0), ((1, 1), (1, 1, 0, 1), (1, 1, 0, -5))),
            Example(cls(TruncatedGeometric(epsilon=2, sensitivity=1, n=4), "1/2", n=4), (1, 0, 1, 1), ((0, 0, 1, 1),)),
            Example(cls(Laplace(epsilon=1, sensitivity=1, grid="1/2"), "1/4"), (Fraction(1, 2),), ((), (0, 1))),
            Example(cls(Gaussian(epsilon=1, delta="1e-5", sensitivity=1), "1/5"), (1, 1), ((1,), (1, 1, 1))),
            Example(cls(Gaussian(rho="1/8", sensitivity=1), "1/2", n=2), (1, 0), ((0, 0), (1, 1))),
            Example(cls(vote, "1/3"), ((1, 0), (0, 1)), (((1, 0),), ((1, 0), (0, 1), (1, -1)))),
            Example(cls(shown, "1/2"), (1, 1, 1), ((1, 1), (1, 1, 1, 1))),
        )


def sampled(mechanism: Mechanism, q: Number, neighbours: Neighbours | None = None) -> Sampled:
    """Returns the mechanism on a secret sample: Poisson under add/remove, without replacement under replace with public n."""
    relation = AddRemove() if neighbours is None else check_neighbours(neighbours)
    if isinstance(relation, AddRemove):
        return Sampled(mechanism, q)
    if isinstance(relation, Replace) and relation.n is not None:
        return Sampled(mechanism, q, relation.n)
    raise ArgumentError(
        "A sample needs AddRemove(), or Replace(n) with a public n.",
        fix=Fix("write {call}, and price a group by its loss.", call=Python("neighbours=dt.Replace(n=1000)")),
    )


def amplified(epsilon: Fraction, q: Fraction) -> Fraction:
    """Returns ln(1 + q (e^epsilon - 1)), rounded up.

    >>> amplified(Fraction(1), Fraction(1)), float(amplified(Fraction(1), Fraction(1, 2)))
    (Fraction(1, 1), 0.6201145069582775)
    """

    def real() -> arb:
        return (1 + ball(q) * (exp(epsilon) - 1)).log()

    return epsilon if q == 1 or epsilon > _HUGE else min(epsilon, above(real))


def before_sampling(epsilon: Fraction, q: Fraction) -> Fraction:
    """Returns an epsilon of few digits whose price on a sample is certainly at most `epsilon`: ln(1 + (e^epsilon - 1) / q),
    rounded down.

    >>> before_sampling(Fraction(1, 10), Fraction(1, 10)), before_sampling(Fraction(1), Fraction(1))
    (Fraction(718673, 1000000), Fraction(1, 1))
    """
    if q == 1 or epsilon > _HUGE:
        return epsilon

    def real() -> arb:
        return (1 + (exp(epsilon) - 1) / ball(q)).log()

    most = below(real)
    step = Fraction(10) ** (_first_digit(most) - _DIGITS)
    found = math.floor(most / step) * step
    while amplified(found, q) > epsilon:  # both are rounded
        found -= step
    return found


_DIGITS = 6
_HUGE = 10**6  # a sample of such an epsilon costs no more than the whole, and hardly less; e^epsilon soon has no ball


def _first_digit(value: Fraction) -> int:
    """Returns the power of ten above a positive number."""
    power = len(str(math.floor(value))) if value >= 1 else 1 - len(str(math.floor(1 / value)))
    return power if Fraction(10) ** power > value else power + 1


def _samplable(mechanism: Mechanism, n: int | None) -> Mechanism:
    if not isinstance(mechanism, (*_NUMBERS, *_SCORES)):
        raise ArgumentError(
            f"Units cannot be sampled for {type(mechanism).__name__}: its answer is no sum over units.",
            fix="sample for a mechanism that adds noise to a sum, or chooses by sums of scores.",
        )
    if isinstance(mechanism, TruncatedGeometric) and n is None:
        raise ArgumentError(
            "This mechanism uses a public n, and coins for each unit hide how many there are.",
            fix=Fix("sample without replacement: {it}.", it=Python("neighbours=dt.Replace(n=1000)")),
        )
    if n is not None and getattr(mechanism, "monotone", False):
        raise ArgumentError(
            "A replaced unit moves some scores up and others down, so they are not monotone.", fix="leave out monotone."
        )
    if isinstance(mechanism, Threshold) and mechanism.keys_per_unit > 1:
        raise ArgumentError("A sample decides one key, and keys_per_unit is more.", fix="sample for one key per unit.")
    if _alone(mechanism) < (getattr(mechanism, "grid", None) or 1):
        raise ArgumentError("One unit may add less than one step, so every answer would be 0.", fix="scale the values up.")
    return mechanism


def _alone(mechanism: Any) -> Fraction:
    """Returns how far one unit may move one number."""
    norm = getattr(mechanism, "sensitivity", Fraction(1))
    if isinstance(norm, L1 | L2):
        return norm.value
    return norm.each if isinstance(norm, PerCoordinate) else Fraction(norm)


def _listed(exact: Units) -> NDArray[Any]:
    """Returns one entry per unit, in an array: of objects for a list, so that no entry decides whether it is read."""
    if isinstance(exact, np.ndarray):
        return exact
    if not isinstance(exact, (list, tuple)):
        raise ArgumentError(
            f"exact must be a list or an array with one entry per unit, and it is a {type(exact).__name__}.",
            fix="list what each unit adds.",
        )
    array = np.empty(len(exact), dtype=object)
    for place, entry in enumerate(exact):  # all at once would read a list of lists as a table, or fail
        array[place] = entry
    return array


def _row(row: Any, width: int) -> Row:
    """Reads the scores of one unit. What is no row of whole numbers counts as zeros."""
    if not isinstance(row, (list, tuple, np.ndarray)) or len(row) != width:
        return (0,) * width
    return tuple(int(value) if isinstance(value, (int, np.integer)) else 0 for value in row)


def _added(rows: list[Row], width: int) -> Row:
    return tuple(sum(row[i] for row in rows) for i in range(width))
