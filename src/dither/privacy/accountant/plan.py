"""Which certified evaluators to use for a composition, tightest first.

0. A few equal subsampled Gaussian releases: a law on a fine grid that dominates theirs (grid.py).
1. Everything on one lattice of workable size: exact sum over one period (lattice.py), or,
   for few releases, over all values (atoms.py).
2. The integrand dies out by itself, as with Gaussian noise: the plain contour (contour.py).
3. Heavy atoms at the ends of each loss, as with Laplace noise: the law of "every release hit an end" is a lattice and
   goes to lattice.py; the rest is a smooth positive measure, to which smoothing costs only second order in tau.
4. Anything else: the smoothed contour for the whole law; valid, and tight unless heavy atoms sit at epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dither.privacy.accountant.atoms import listed
from dither.privacy.accountant.contour import Contour
from dither.privacy.accountant.grid import MOST as MOST_ON_GRID
from dither.privacy.accountant.grid import Grid
from dither.privacy.accountant.lattice import Lattice
from dither.privacy.accountant.product import Guide, Product
from dither.privacy.parts import Part, SubsampledGaussian

MANY = 200

Parts = tuple[tuple[Part, int], ...]
Evaluator = Callable[[Fraction], arb]


class Plan:
    """The finite part of a composition in one direction: guides now, evaluators near a given epsilon on demand."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.whole = Product(parts)
        rho = sum(float(part.zcdp()[0]) * count for part, count in parts)
        self.scale = max(math.sqrt(2 * rho), 1e-150)
        self.guide = Guide(self.whole, None, self.scale)
        ends = [(part.ends, count) for part, count in parts]
        self.ends: Product | None = None
        if all(end is not None for end, _ in ends):
            self.ends = Product(tuple((end, count) for end, count in ends if end is not None))

    def evaluators(self, epsilon: float, log_delta: float) -> list[Evaluator]:
        """Functions of epsilon whose sum bounds delta, sharp near this epsilon."""
        part, count = self.parts[0]
        if len(self.parts) == 1 and isinstance(part, SubsampledGaussian) and count <= MOST_ON_GRID:
            return [Grid(part, count, self.guide, epsilon, log_delta)]
        lattice = Lattice(self.whole, self.guide, epsilon, log_delta)
        if lattice.feasible:
            return [_exact(lattice)]
        plain = Contour(self.whole, None, self.guide, epsilon, log_delta, smooth=False)
        if plain.nodes:
            plain.prepare()
            return [plain]
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
        return [_exact(atoms), rest]


def _nothing_known(epsilon: Fraction) -> arb:
    return arb(1)


def _exact(lattice: Lattice) -> Evaluator:
    """The lattice's integral, or the list of its values where nearly every node would count."""
    if lattice.choose() > MANY:
        found = listed(lattice.whole)
        if found is not None:
            return found
    lattice.prepare()
    return lattice
