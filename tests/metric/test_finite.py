"""Metric privacy on finite sets: the price by going through all pairs and outputs, with twins that break it."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.exact.laws.categorical import Categorical
from dither.metric.finite import MetricExponential, MetricGrid

PLACES = ((0, 0), (1, 0), (0, 1), (5, 5), (2, -3))


def shortest(edges: list[list[int]]) -> list[list[int]]:
    """The lengths of shortest ways: a distance, whatever the edges are."""
    far = [row[:] for row in edges]
    for k, i, j in product(range(len(far)), repeat=3):
        far[i][j] = min(far[i][j], far[i][k] + far[k][j])
    return far


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(2, 6), st.fractions("1/8", 3))
def test_any_distance_keeps_its_price(data: st.DataObject, size: int, epsilon: Fraction) -> None:
    edges = [[0] * size for _ in range(size)]
    for i, j in combinations(range(size), 2):
        edges[i][j] = edges[j][i] = data.draw(st.integers(1, 9))
    far = shortest(edges)
    mechanism = MetricExponential(range(size), lambda x, y: far[x][y], epsilon=epsilon)
    assert dt.verify(mechanism, list(combinations(range(size), 2))).holds


@pytest.mark.parametrize("distance", ["euclid", "manhattan"])
def test_places_keep_their_price(distance: str) -> None:
    mechanism = MetricExponential(PLACES, distance, epsilon="1/2")
    assert dt.verify(mechanism, list(combinations(PLACES, 2))).holds
    assert Fraction(1, 4) < mechanism.true_price() <= Fraction(1, 2)


class Unhalved(MetricExponential):
    """Wrong: the full weight, as if the normaliser did not move."""

    def law(self, exact: Any) -> Categorical:
        return Categorical(tuple(-self.epsilon * far for far in self.table[self.places[exact]]))


def test_that_the_full_weight_breaks_it() -> None:
    line: list[tuple[Hashable, ...]] = [(k,) for k in range(5)]
    assert not dt.verify(Unhalved(line, "manhattan", epsilon=1), list(combinations(line, 2))).holds
    assert dt.verify(MetricExponential(line, "manhattan", epsilon=1), list(combinations(line, 2))).holds


def test_a_grid_is_the_exponential_mechanism_on_its_cells() -> None:
    cells = list(product(range(4), range(3)))
    grid, listed = MetricGrid(4, 3, epsilon="2/3"), MetricExponential(cells, "manhattan", epsilon="2/3")
    for cell in cells:
        columns, rows = grid.laws(cell)
        law = listed.law(cell)
        for place, (i, j) in enumerate(cells):
            assert float(columns.pmf(i) * rows.pmf(j)) == pytest.approx(float(law.pmf(place)), rel=1e-12)
    assert dt.verify(grid, list(combinations(cells, 2))).holds
    assert grid.between((0, 0), (3, 2)) == Fraction(10, 3)


def test_a_near_cell_stays_near() -> None:
    grid = MetricGrid(100, 100, epsilon=1)
    released = grid.release(np.full((20_000, 2), 50))
    assert released.dtype == np.int64
    assert float((np.abs(released - 50).sum(axis=1) <= grid.margin("0.95")).mean()) > 0.93
    assert abs(float(released.mean()) - 50) < 1


def test_cells_outside_count_as_the_nearest() -> None:
    grid = MetricGrid(10, 10, epsilon=200)
    assert grid.release((-5, 99)) == (0, 9)
    assert grid.release(np.array([[10**12, -1]])).tolist() == [[9, 0]]
    assert MetricExponential(("a", "b"), lambda x, y: int(x != y), epsilon=200).release("zebra") == "a"


@pytest.mark.parametrize(
    "call",
    [
        lambda: MetricExponential([(0,)], epsilon=1),
        lambda: MetricExponential(["a", "b"], epsilon=1),
        lambda: MetricExponential([(0,), (0,)], epsilon=1),
        lambda: MetricExponential([(0,), (1,)], "circle", epsilon=1),
        lambda: MetricExponential([(0,), (1,)], lambda x, y: 1, epsilon=1),
        lambda: MetricExponential([0, 1, 2], lambda x, y: (x - y) ** 2, epsilon=1),  # 4 > 1 + 1
        lambda: MetricExponential([0, 1], lambda x, y: y - x, epsilon=1),
        lambda: MetricExponential([(0,), (1,)], epsilon=1).release([]),
        lambda: MetricGrid(0, 3, epsilon=1),
        lambda: MetricGrid(2**21, 3, epsilon=1),
        lambda: MetricGrid(3, 3, epsilon=1).release(np.zeros((2, 2))),
        lambda: MetricGrid(3, 3, epsilon=1).release((1, "a")),
    ],
)
def test_odd_arguments_are_refused_in_words(call: Any) -> None:
    with pytest.raises(dt.DitherError):
        call()
