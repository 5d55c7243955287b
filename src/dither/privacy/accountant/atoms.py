"""Computes delta(epsilon) of a few releases with few outcomes, by listing every value of the sum in balls.

With few releases a lattice law's transform does not die out, so nearly all nodes of its period would count. Listing the
values is exact and cheaper. Outcomes too rare to list (a Gaussian's tail on the integers) count as lost.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dither.exact.balls import ball
from dither.privacy.accountant.product import Product

MOST_WORK = 40_000

Law = dict[Fraction, arb]


class Atoms:
    """Evaluates delta for a law given value by value."""

    def __init__(self, law: Law, lost: arb) -> None:
        self.law = law
        self.lost = lost

    def __call__(self, epsilon: Fraction) -> arb:
        delta = self.lost
        for value, weight in self.law.items():
            if value > epsilon:
                delta -= weight * ball(epsilon - value).expm1()
        return delta


def list_atoms(product: Product, log_delta: float) -> Atoms | None:
    """Returns the evaluator, or None if a factor has too many outcomes, the list is too long, or too much is lost."""
    law: Law = {Fraction(0): arb(1)}
    work, lost = 0, arb(0)
    for factor, count in product.factors:
        one = factor.atoms()
        if one is None or count > MOST_WORK:
            return None
        lost += factor.beyond() * count
        for _ in range(count):
            work += len(law) * len(one)
            if work > MOST_WORK:
                return None
            grown: Law = {}
            for value, weight in law.items():
                for more, share in one:
                    grown[value + more] = grown.get(value + more, arb(0)) + weight * share
            law = grown
    return Atoms(law, lost) if lost < arb(log_delta - 30).exp() else None
