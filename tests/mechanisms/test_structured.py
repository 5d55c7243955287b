"""Choices among outputs that cannot be listed: on small spaces, the law of every step against full enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.exact.balls import ball, exp, working
from dither.mechanisms.spaces import Space, base, orders
from dither.privacy.proof import verify

EDGES = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("b", "c"), ("d", "e"), ("x", "c")]
RING = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
PATHS = dt.spaces.Paths(EDGES, "a", "e")
TREES = dt.spaces.SpanningTrees(RING)
# Each space with the number of private numbers it needs; an order needs a square of them.
SPACES: list[tuple[Space, int]] = [
    (dt.spaces.Subsets(items=5, k=2), 5),
    (dt.spaces.Subsets(items=3, k=3), 3),
    (dt.spaces.Intervals(cells=4), 4),
    (dt.spaces.Intervals(cells=1), 1),
    (PATHS, len(EDGES)),
    (TREES, len(RING)),
    (dt.spaces.Orders(items=4), 16),
]
SEVERAL = [each for each in SPACES if each[0].size > 1]
CLOSE = Fraction(1, 2**180)


def shaped(space: Space, values: list[int]) -> Any:
    n = space.items if isinstance(space, dt.spaces.Orders) else 0
    return space.read([values[i * n : (i + 1) * n] for i in range(n)] if n else values)


def follows(space: Space, numbers: Any, rate: Fraction, claimed: Fraction) -> bool:
    """Are the probabilities of the steps, multiplied, those of e^(claimed score) over all outputs that can be listed?"""
    found = base.explore(space, numbers, rate)
    with working(320):
        weights = {output: exp(claimed * space.score(numbers, output)) for output in space.listed()}
        total = sum(weights.values(), start=ball(0))
        return set(found) == set(weights) and all(abs(found[each] - weights[each] / total) < ball(CLOSE) for each in weights)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(("space", "count"), SPACES, ids=lambda each: getattr(each, "tag", ""))
def test_the_steps_have_the_law_of_the_whole_score(space: Space, count: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(-6, 6), min_size=count, max_size=count))
    assert follows(space, shaped(space, values), Fraction(1, 3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("space", "count"), [each for each in SPACES if each[0].size > 1], ids=lambda each: getattr(each, "tag", "")
)
def test_that_check_sees_a_rate_a_tenth_off(space: Space, count: int) -> None:
    assert not follows(space, shaped(space, list(range(count))), Fraction(1, 3), Fraction(11, 30))


def test_the_top_k_have_the_law_of_choices_without_those_made() -> None:
    space, values, rate = dt.spaces.TopK(items=4, k=2), [3, 0, 1, 1], Fraction(1, 2)
    found = base.explore(space, values, rate)
    with working(320):
        powers = [exp(rate * value) for value in values]
        total = sum(powers, start=ball(0))
        for first, second in permutations(range(4), 2):
            by_hand = powers[first] / total * powers[second] / (total - powers[first])
            assert abs(found[first, second] - by_hand) < ball(CLOSE)
            assert abs(space.probability(values, rate, (first, second)) - by_hand) < ball(CLOSE)


@pytest.mark.parametrize(("space", "count"), SPACES, ids=lambda each: getattr(each, "tag", ""))
def test_sizes_are_those_of_the_lists(space: Space, count: int) -> None:
    outputs = list(space.listed())
    assert len(outputs) == len(set(outputs)) == space.size


def test_floats_estimate_the_steps_of_long_orders_within_what_is_allowed() -> None:
    n, rate = 11, Fraction(1, 5)
    square = [[(7 * i + 3 * j * j) % 13 - 6 for j in range(n)] for i in range(n)]
    seen: list[float] = []

    def choose(weights: base.Weights, estimates: Any = None) -> int:
        with working(96):
            every = weights()
            total = sum(every, start=ball(0))
            seen.extend(abs(float(each / total) - estimate) for each, estimate in zip(every, estimates, strict=True))
        return 0

    dt.spaces.Orders(items=n).walk(square, rate, choose)
    assert len(seen) == sum(range(2, n + 1))
    assert max(seen) < 2.0**-40
    assert orders._log_sums([[10**9] * n] * n, rate) is None  # exponents too large for floats: balls decide


def test_large_scores_and_long_spaces_are_drawn() -> None:
    huge = 10**30
    assert dt.Structured(dt.spaces.Subsets(items=300, k=2), epsilon=1, sensitivity=2).release([huge] * 2 + [0] * 298) == (0, 1)
    assert dt.Structured(dt.spaces.Intervals(cells=500), epsilon=1, sensitivity=1).release([-huge] * 499 + [huge]) == (499, 499)
    full = dt.spaces.SpanningTrees([(i, j) for i in range(9) for j in range(i)])
    star = [huge if 0 in edge else 0 for edge in full.edges]
    tree = dt.Structured(full, epsilon=1, sensitivity=8).release(star)
    assert all(0 in full.edges[place] for place in tree)
    steps = [[huge if i < j else 0 for j in range(4)] for i in range(4)]
    assert dt.Structured(dt.spaces.Orders(items=4), epsilon=1, sensitivity=6).release(steps) == (0, 1, 2, 3)


@pytest.mark.slow
def test_orders_of_twenty_items_are_drawn() -> None:
    square = [[40 if j == i + 1 else 0 for j in range(20)] for i in range(20)]
    assert dt.Structured(dt.spaces.Orders(items=20), epsilon=1, sensitivity="1/2").release(square) == tuple(range(20))


def test_the_sensitivity_is_that_of_the_whole_score() -> None:
    """The twin states how far one item's score moves: a set of two items moves twice as far."""
    pair = [((3, 0, 1, 1), (4, 1, 0, 0))]  # one unit moves every item's score by 1
    subsets = dt.spaces.Subsets(items=4, k=2)
    assert verify(dt.Structured(subsets, epsilon=1, sensitivity=2), pair).holds
    assert not verify(dt.Structured(subsets, epsilon=1, sensitivity=1), pair).holds


def test_the_top_k_at_the_price_of_one_choice_are_refuted() -> None:
    top = dt.Structured(dt.spaces.TopK(items=12, k=2), epsilon=1, sensitivity=1)
    pairs = [((0,) * 12, (1, 1) + (-1,) * 10)]
    assert verify(top, pairs).holds
    assert not verify(top, pairs, claimed="1/2").holds


def test_an_output_below_the_margin_is_rare() -> None:
    choose = dt.Structured(PATHS, epsilon=1, sensitivity=1)
    scores = (9, 0, 0, 0, 3, 0, 0)
    law, outputs = choose.law(scores), PATHS.outputs()
    best = max(PATHS.score(list(scores), each) for each in outputs)
    worse = [k for k, each in enumerate(outputs) if PATHS.score(list(scores), each) < best - choose.margin("0.9")]
    assert sum((law.probability(k) for k in worse), start=ball(0)) <= ball(Fraction(1, 10))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dt.spaces.Paths([("a", "b"), ("b", "a")], "a", "b"), "no cycle"),
        (lambda: dt.spaces.Paths([("a", "b"), ("c", "d")], "a", "d"), "No path"),
        (lambda: dt.spaces.SpanningTrees([(0, 1), (2, 3)]), "connect all nodes"),
        (lambda: dt.spaces.Subsets(items=3, k=4), "at most 3"),
        (lambda: dt.spaces.Orders(items=21), "at most 20"),
        (lambda: dt.spaces.Orders(items=9).outputs(), "too long"),
        (lambda: dt.Structured([1, 2], epsilon=1, sensitivity=1), "space of outputs"),
        (lambda: dt.Structured(PATHS, epsilon=1, sensitivity=1).release([1, 2]), "one for each edge"),
        (lambda: dt.Structured(dt.spaces.Orders(items=2), epsilon=1, sensitivity=1).release([[1], [2]]), "2 rows"),
    ],
)
def test_wrong_spaces_and_scores_are_refused(make: Any, words: str) -> None:
    with pytest.raises(dt.ArgumentError, match=words):
        make()
