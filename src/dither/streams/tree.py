"""Geometric noise for running sums, under pure differential privacy: a tree with the best branching.

The steps are the leaves of a tree in which every node has b children, with h levels below its root (b^h >= n). A node is the
sum of its steps. When a step ends, the largest node that ends with it (below the root) is released with geometric noise, and
the t-th sum adds up released nodes: as many at each level as the digits of t in base b say.

    noise_t = z_t + noise_(t - b^l)        l: the level of the node that ends at t

Why it is private. A step is in one node of each level, so a unit that changes k steps by at most L each moves all nodes
together by at most h k L. Geometric noise of scale h k L / epsilon hides that, also if steps are chosen after earlier outputs
(the likelihood ratio of every run is a product over its nodes). Nodes are released after their last step, so none needs data to
come.

Why not a binary tree? The worst sum has variance 2 (h k L / epsilon)^2 times the largest sum of digits. A binary tree of 1024
steps has 10 levels and needs 10 nodes: 44.7 / epsilon. With 11 children 3 levels are enough, and 27 nodes: 22.05 / epsilon.
Reference: Dwork, Naor, Pitassi and Rothblum, STOC 2010; Chan, Shi and Song, TISSEC 2011 (binary trees).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.laws.geometric import LARGEST_SCALE, SMALLEST_SCALE
from dither.exact.numbers import show
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.norms import L1
from dither.privacy.losses import Pure

Floats = NDArray[np.float64]


def most_nodes(steps: int, branching: int, levels: int) -> int:
    """Returns the most nodes that a sum of up to `steps` steps adds up.

    >>> most_nodes(1024, 2, 10), most_nodes(1024, 11, 3), most_nodes(1024, 32, 2)
    (10, 27, 62)
    """
    best, before = 0, 0
    for level in range(levels - 1, -1, -1):  # follow the digits of `steps`; below one of them all later digits are free
        digit, steps = divmod(steps, branching**level)
        if digit:
            best = max(best, before + digit - 1 + level * (branching - 1))
        before += digit
    return max(best, before)


@lru_cache(maxsize=64)
def best_branching(steps: int) -> tuple[int, int]:
    """Returns (branching, levels) with the least error at the worst step.

    >>> best_branching(1024), best_branching(7), best_branching(1)
    ((11, 3), (7, 1), (1, 1))
    """
    ways = []
    for levels in range(1, max(steps.bit_length(), 1) + 1):
        branching = math.ceil(steps ** (1 / levels)) - 1
        while branching**levels < steps:
            branching += 1
        ways.append((levels**2 * most_nodes(steps, branching, levels), levels, branching))
    _, levels, branching = min(ways)
    return branching, levels


@dataclass(frozen=True)
class Tree:
    """The noise of one stream of at most `horizon` steps, and its price: epsilon-DP.

    Relies on: one unit changes at most `contributions` steps, each by at most `largest`. Neither is checked here.
    """

    horizon: int
    epsilon: Fraction
    contributions: int
    largest: int
    branching: int
    levels: int

    @classmethod
    def of(cls, horizon: int, epsilon: Fraction, contributions: int, largest: int) -> Tree:
        made = cls(horizon, epsilon, contributions, largest, *best_branching(horizon))
        moved = made.levels * contributions * largest
        least, most = moved / LARGEST_SCALE, moved / SMALLEST_SCALE
        if not least <= epsilon <= most:
            raise ArgumentError(
                f"epsilon must be from {float(least):.3g} to {float(most):.3g} here, and it is {show(epsilon)}.",
                fix="change it, or what one unit contributes.",
            )
        return made

    @cached_property
    def noise(self) -> Geometric:
        return Geometric(epsilon=self.epsilon, sensitivity=L1(self.levels * self.contributions * self.largest))

    def loss(self) -> Pure:
        """Returns the price. At each level a unit moves nodes by at most k L in all, so their squares add up to h (k L)^2."""
        return Pure(self.epsilon, rho=self.epsilon**2 / (2 * self.levels))

    @property
    def scale(self) -> int:
        return 1

    @property
    def first(self) -> tuple[int, ...]:
        """The state before the first step: for each level, the noise of the nodes that the next sum adds up."""
        return (0,) * self.levels

    def follow(self, state: tuple[int, ...], step: int, drawn: Integers) -> tuple[Integers, tuple[int, ...]]:
        """Returns the noise of the sum after each step, and the state after them. `drawn` is z_t, one for each step."""
        steps = np.arange(step + 1, step + 1 + len(drawn))
        sums, after = np.zeros(len(drawn), dtype=np.int64), []
        for level, before in enumerate(state):
            size, larger = self.branching**level, self.branching ** (level + 1)
            top = level == self.levels - 1
            ends = (steps % size == 0) & (top | (steps % larger != 0))
            added = np.concatenate([[before], before + np.cumsum(np.where(ends, drawn, 0))])
            # Nodes of this level count from the last step at which a larger one ended; before this call, `before` does.
            since = np.zeros_like(steps) if top else np.maximum(steps - steps % larger - step, 0)
            from_here = added[1:] - np.where(since > 0, added[since], 0)
            sums += from_here
            after.append(int(from_here[-1]) if len(drawn) else before)
        return sums, tuple(after)

    def last(self, state: tuple[int, ...]) -> int:
        """Returns the noise of the last sum."""
        return sum(state)

    @cached_property
    def nodes(self) -> Integers:
        """How many nodes each sum adds up."""
        left = np.arange(1, self.horizon + 1)
        count = np.zeros_like(left)
        for _ in range(self.levels - 1):
            count += left % self.branching
            left //= self.branching
        return count + left

    @cached_property
    def deviations(self) -> Floats:
        """About the standard deviation of the noise after each step."""
        rate = 1 / (2 * float(self.noise.scale))
        one = 1 / (2 * math.sinh(rate) ** 2) if rate < 300 else 0.0  # 2 a / (1 - a)^2
        return np.asarray(np.sqrt(self.nodes * one))

    def record(self) -> dict[str, Any]:
        """Returns what a saved state is checked against."""
        return {"noise": "tree 1", "branching": self.branching, "levels": self.levels}
