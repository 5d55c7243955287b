"""Trees for running sums: the price holds on every output of small streams, and fails if a level is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dither.mechanisms.geometric import Geometric
from dither.mechanisms.norms import L1
from dither.streams.tree import Tree, best_branching, most_nodes

EPSILON = Fraction(1)
Stream = Callable[[tuple[int, ...]], int]


def tree(horizon: int, branching: int, levels: int, contributions: int = 1) -> Tree:
    return Tree(horizon, EPSILON, contributions, 1, branching, levels)


def noisy(made: Tree, drawn: tuple[int, ...], stream: Stream) -> tuple[int, ...]:
    """The sums that are released if this is drawn; the stream sees those before."""
    noise = made.follow(made.first, 0, np.array(drawn))[0].tolist()
    seen: tuple[int, ...] = ()
    total = 0
    for each in noise:
        total += stream(seen)
        seen = (*seen, total + each)
    return seen


def most(made: Tree, noise: Geometric, one: Stream, other: Stream, reach: int = 2) -> Fraction:
    """The largest log ratio of one output's probabilities, over all draws up to `reach`."""
    wide = reach + 2
    draws = {noisy(made, drawn, other): drawn for drawn in product(range(-wide, wide + 1), repeat=made.horizon)}
    found = Fraction(0)
    for drawn in product(range(-reach, reach + 1), repeat=made.horizon):
        back = draws.get(noisy(made, drawn, one))
        if back is not None:
            found = max(found, (sum(map(abs, back)) - sum(map(abs, drawn))) / noise.scale)
    return found


def fixed(*numbers: int) -> Stream:
    return lambda seen: numbers[len(seen)]


def adaptive(*changed: int) -> Stream:
    return lambda seen: int(bool(seen) and seen[-1] > 0) + changed[len(seen)]


PAIRS = [(fixed(*(0,) * 4), fixed(*(int(i == at) for i in range(4)))) for at in range(4)]
PAIRS += [(adaptive(0, 0, 0, 0), adaptive(1, 0, 0, 0)), (adaptive(0, 0, 1, 0), adaptive(0, 0, 0, 0))]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_price_holds_on_small_streams(pair: tuple[Stream, Stream]) -> None:
    made = tree(4, 2, 2)
    assert most(made, made.noise, *pair) <= EPSILON


def test_a_forgotten_level_is_noticed() -> None:
    made, forgotten = tree(4, 2, 2), Geometric(epsilon=EPSILON, sensitivity=L1(1))
    assert most(made, made.noise, *PAIRS[0]) == EPSILON
    assert most(made, forgotten, *PAIRS[0]) > EPSILON


def test_two_steps_of_one_unit_cost_twice_as_much() -> None:
    both = fixed(0, 0, 0, 0), fixed(1, 1, 0, 0)
    assert most(tree(4, 2, 2, 2), tree(4, 2, 2, 2).noise, *both) <= EPSILON
    assert most(tree(4, 2, 2), tree(4, 2, 2).noise, *both) > EPSILON


@pytest.mark.parametrize(("horizon", "branching", "levels"), [(16, 2, 4), (27, 3, 3), (100, 5, 3), (7, 7, 1), (1, 1, 1)])
def test_the_noise_of_a_sum_is_that_of_the_nodes_it_adds_up(horizon: int, branching: int, levels: int) -> None:
    made = tree(horizon, branching, levels)
    drawn = np.random.default_rng(3).integers(-50, 50, horizon)
    after: dict[int, int] = {0: 0}
    for t in range(1, horizon + 1):
        level = max(level for level in range(levels) if t % branching**level == 0)
        after[t] = after[t - branching**level] + int(drawn[t - 1])
    assert made.follow(made.first, 0, drawn)[0].tolist() == [after[t] for t in range(1, horizon + 1)]


@pytest.mark.parametrize(("horizon", "branching", "levels"), [(16, 2, 4), (30, 4, 3), (7, 7, 1), (100, 5, 3)])
def test_nodes_are_counted(horizon: int, branching: int, levels: int) -> None:
    made = tree(horizon, branching, levels)
    used = np.zeros(horizon, dtype=int)
    for at in range(horizon):
        used += made.follow(made.first, 0, np.eye(horizon, dtype=int)[at])[0]
    assert made.nodes.tolist() == used.tolist()
    assert most_nodes(horizon, branching, levels) == used.max()


def test_no_branching_is_better_than_the_best() -> None:
    for steps in (1, 2, 5, 10, 64, 365, 1000, 1024):
        branching, levels = best_branching(steps)
        assert branching**levels >= steps
        ways = [(b, h) for h in range(1, 11) for b in range(1, steps + 1) if b**h >= steps and (b - 1) ** h < steps]
        assert levels**2 * most_nodes(steps, branching, levels) == min(h**2 * most_nodes(steps, b, h) for b, h in ways)


def test_the_worst_step_of_1024_is_that_of_the_best_branching() -> None:
    made = Tree.of(1024, Fraction(1, 100), 1, 1)
    assert 22.0 < made.deviations.max() / 100 < 22.1
