"""Chooses a degree bound privately: large enough to keep the edges, small enough for little noise.

    q_theta = edges of the graph projected with theta - ceil(weight theta)       Delta_theta = theta

for public candidates theta up to a public cap. The first term falls short of all edges by what the bound leaves out; the second
is the noise that the bound will need. One node moves q_theta by at most Delta_theta = theta (projection.py): scores are those
of *projected* graphs, since the number of edges itself moves without limit. Small bounds have small sensitivities, so one
sensitivity for all, the cap, would drown them. The scores are therefore compared in units of their own:

    score_theta = min over all candidates z of ((q_theta - t Delta_theta) - (q_z - t Delta_z)) / (Delta_theta + Delta_z)

One node moves each numerator by at most Delta_theta + Delta_z, each quotient by at most 1, and so the smallest of them: the
exponential mechanism chooses with sensitivity 1. t is public; t = 2 ln(candidates / 0.05) / epsilon, rounded up, makes a
candidate of large sensitivity win only by more than its own noise.
Reference: Raskhodnikova and Smith, FOCS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dither.graphs.projection import project
from dither.graphs.reading import Content
from dither.mechanisms.exponential import Exponential

SENSITIVITY = 1


def candidates(cap: int) -> tuple[int, ...]:
    """Returns 1, 2, 4, … up to the cap, and the cap.

    >>> candidates(10)
    (1, 2, 4, 8, 10)
    """
    return tuple(sorted({cap, *(1 << i for i in range(cap.bit_length()) if 1 << i <= cap)}))


def mechanism(epsilon: Fraction, cap: int) -> Exponential:
    return Exponential(epsilon=epsilon, sensitivity=SENSITIVITY, candidates=candidates(cap))


def qualities(graph: Content, cap: int, weight: Fraction) -> list[int]:
    """Returns q for each candidate. Private."""
    return [len(project(graph, theta).ends) - math.ceil(weight * theta) for theta in candidates(cap)]


def scores(quality: Sequence[int], cap: int, epsilon: Fraction) -> list[Fraction]:
    """Returns the score of each candidate. Private."""
    moves = candidates(cap)
    t = math.ceil(2 * math.log(20 * len(moves)) / float(epsilon))
    net = [q - t * move for q, move in zip(quality, moves, strict=True)]
    return [min(Fraction(a - b, x + y) for b, y in zip(net, moves, strict=True)) for a, x in zip(net, moves, strict=True)]
