"""Chooses the certified evaluators for a composition, tightest first.

1. Everything on one lattice of workable size: exact sum over one period (lattice.py), or,
   for few releases, over all values (atoms.py).
2. Releases on samples: listed if they are few, else the contour with every node in floats (sampled.py).
3. The integrand dies out by itself, as with Gaussian noise: the plain contour (contour.py).
4. Few releases on several lattices: listed (atoms.py).
5. Heavy atoms at the ends of each loss, as with Laplace noise: the law of "every release hit an end" is a lattice and
   goes to lattice.py; the rest is a smooth positive measure, to which smoothing costs only second order in tau.
6. Anything else: the smoothed contour for the whole law; valid, and tight unless heavy atoms sit at epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dither.privacy.accountant.atoms import MOST_WORK, list_atoms
from dither.privacy.accountant.contour import Contour
from dither.privacy.accountant.lattice import Lattice
from dither.privacy.accountant.product import Guide, Product
from dither.privacy.accountant.sampled import evaluators_of, guess_epsilon, guide_of, sampled
from dither.privacy.parts import Part

MANY = 200

Parts = tuple[tuple[Part, int], ...]
Evaluator = Callable[[Fraction], arb]


class Plan:
    """The finite part of a composition in one direction. Makes guides at once, evaluators near an epsilon on demand."""

    def __init__(self, parts: Parts, log_delta: float = -50.0) -> None:
        self.parts = parts
        self.whole = Product(parts)
        rho = sum(float(part.zcdp()[0]) * count for part, count in parts)
        self.scale = max(math.sqrt(2 * rho), 1e-150)
        self.sampled = sampled(parts)
        self.guide = guide_of(parts, log_delta) if self.sampled else Guide(self.whole, None, self.scale)
        ends = [(part.ends, count) for part, count in parts]
        self.ends: Product | None = None
        if all(end is not None for end, _ in ends):
            self.ends = Product(tuple((end, count) for end, count in ends if end is not None))

    def guess(self, log_delta: float) -> float:
        """Returns a rough epsilon at this delta."""
        return guess_epsilon(self.parts, self.guide, log_delta) if self.sampled else self.guide.epsilon(log_delta)

    def evaluators(self, epsilon: float, log_delta: float) -> list[Evaluator]:
        """Returns functions of epsilon whose sum bounds delta, tight near this epsilon."""
        lattice = Lattice(self.whole, self.guide, epsilon, log_delta)
        if lattice.feasible:
            return [_exact(lattice, log_delta)]
        if self.sampled:
            few = list_atoms(self.whole, log_delta) if _short(self.parts) else None
            return [few] if few else evaluators_of(self.parts, self.guide, epsilon, log_delta)
        plain = Contour(self.whole, None, self.guide, epsilon, log_delta, smooth=False)
        if plain.nodes:
            plain.prepare()
            return [plain]
        few = list_atoms(self.whole, log_delta)
        if few is not None:
            return [few]
        if self.ends is not None:
            split = self._split(self.ends, epsilon, log_delta)
            if split:
                return split
        smoothed = Contour(self.whole, None, self.guide, epsilon, log_delta, smooth=True)
        if not smoothed.nodes:
            return [_nothing_known]
        smoothed.prepare()
        return [smoothed]

    def _split(self, ends: Product, epsilon: float, log_delta: float) -> list[Evaluator]:
        atoms = Lattice(ends, Guide(ends, None, self.scale), epsilon, log_delta)
        if not atoms.feasible:
            return []
        rest = Contour(self.whole, ends, Guide(self.whole, ends, self.scale), epsilon, log_delta, smooth=True)
        if not rest.nodes:
            return []
        rest.prepare()
        return [_exact(atoms, log_delta), rest]


def _short(parts: Parts) -> bool:
    """Returns whether listing is short, if no two ways to a sum of different outcomes give the same value."""
    sums = 1
    for part, count in parts:
        outcomes = len(part.atoms() or ())
        sums *= math.comb(min(count, MOST_WORK) + outcomes - 1, outcomes - 1) if outcomes else MOST_WORK
    return sums < MOST_WORK // 40


def _nothing_known(epsilon: Fraction) -> arb:
    return arb(1)


def _exact(lattice: Lattice, log_delta: float) -> Evaluator:
    """Returns the lattice's integral, or the list of its values if nearly every node would count."""
    if lattice.choose() > MANY:
        atoms = list_atoms(lattice.whole, log_delta)
        if atoms is not None:
            return atoms
    lattice.prepare()
    return lattice
