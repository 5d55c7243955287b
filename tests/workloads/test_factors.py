"""Factors: what they compute without writing W down is what W itself gives."""

from __future__ import annotations

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.workloads.factors import All, Each, Factor, Matrix, Ranges, Thresholds

KINDS = [Each, All, Thresholds, Ranges]
MIXED = Matrix(((1, 0, -2), (3, 3, 3)))
WRITTEN = {
    Each: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    All: [[1, 1, 1]],
    Thresholds: [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
    Ranges: [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1]],
}
FACTORS: list[Factor] = [*(kind(n) for kind in KINDS for n in (1, 2, 5)), MIXED]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_questions(kind: type) -> None:
    assert kind(3).rows().tolist() == WRITTEN[kind]


def test_every_kind_is_tried() -> None:
    assert set(Factor.__subclasses__()) == {type(each) for each in FACTORS}


@pytest.mark.parametrize("factor", FACTORS, ids=repr)
def test_everything_follows_from_the_rows(factor: Factor) -> None:
    rows, rng = factor.rows(), np.random.default_rng(1)
    assert rows.shape == (factor.size, factor.cells)
    assert (factor.gram() == rows.T @ rows).all()
    assert (factor.totals() == np.abs(rows).sum(axis=0)).all()
    assert (factor.squares() == (rows**2).sum(axis=0)).all()
    cells = rng.integers(-5, 9, (factor.cells, 2))
    assert (factor.apply(cells) == rows @ cells).all()
    half = rng.normal(size=(factor.cells, factor.cells))
    assert np.allclose(factor.spread(half @ half.T), np.diagonal(rows @ half @ half.T @ rows.T))


@pytest.mark.parametrize("rows", [(), ((),), ((1, 2), (1,)), ((0.5,),), ((1 << 21,),)])
def test_matrices_are_whole_and_rectangular(rows: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ArgumentError, match="Charged: nothing"):
        Matrix(rows)
