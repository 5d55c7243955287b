"""How far one unit moves measurements: bounds against every unit there is, on small domains."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest

from dither.workloads.blocks import Block, Coefficients, Marginal, Moves, Person, Record, Residual, Unit, exact_gram, together
from dither.workloads.choose import _best
from dither.workloads.factors import Thresholds
from dither.workloads.trees import Level

RNG = np.random.default_rng(7)
SHAPE = (3, 2, 2)
SIGNED = RNG.integers(-4, 5, (5, 4))
BLOCKS: list[tuple[Block, tuple[int, ...]]] = [
    (Coefficients((SIGNED,)), (4,)),
    (Coefficients((np.abs(SIGNED),)), (4,)),
    (Coefficients((RNG.integers(0, 4, (3, 2)), RNG.integers(-2, 3, (2, 3)))), (2, 3)),
    *((Marginal(SHAPE, axes), SHAPE) for axes in [(), (0,), (1, 2), (0, 1, 2)]),
    *((Residual(SHAPE, axes), SHAPE) for axes in [(), (0,), (1,), (0, 2), (0, 1, 2)]),
    *((Level(7, width), (7,)) for width in (1, 2, 3, 8)),
]
UNITS: list[Unit] = [Record(), Person(1, 1), Person(2, 1), Person(3, 2)]


def shares(unit: Unit, cells: int) -> Iterator[np.ndarray]:
    """What one unit may have in each cell. Convex functions of it are largest where every count is 0 or the most."""
    if isinstance(unit, Record):
        yield from np.eye(cells, dtype=np.int64)
        return
    yield np.zeros(cells, dtype=np.int64)
    for places in combinations(range(cells), min(unit.groups, cells)):
        for counts in product((0, unit.rows), repeat=len(places)):
            share = np.zeros(cells, dtype=np.int64)
            share[list(places)] = counts
            yield share


def largest(block: Block, shape: tuple[int, ...], unit: Unit, replaced: bool) -> Moves:
    """How far units really move a block."""
    every = np.unique(np.array(list(shares(unit, int(np.prod(shape))))), axis=0)
    measured = np.array([block.measure(each.reshape(shape)).reshape(-1) for each in every])
    total = squares = most = 0
    for each in measured if replaced else [np.zeros_like(measured[0])]:
        moved = np.abs(measured - each)
        total, squares = max(total, moved.sum(axis=1).max()), max(squares, (moved**2).sum(axis=1).max())
        most = max(most, moved.max())
    return Moves(int(total), int(squares), int(most))


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize(("block", "shape"), BLOCKS, ids=lambda each: type(each).__name__)
def test_no_unit_moves_a_block_further(block: Block, shape: tuple[int, ...], unit: Unit, replaced: bool) -> None:
    stated, found = block.moves(unit, replaced), largest(block, shape, unit, replaced)
    assert found.total <= stated.total
    assert found.squares <= stated.squares
    assert found.largest <= stated.largest


@pytest.mark.parametrize(("block", "shape"), BLOCKS, ids=lambda each: type(each).__name__)
def test_a_record_that_comes_or_goes_moves_a_block_exactly_so_far(block: Block, shape: tuple[int, ...]) -> None:
    assert block.moves(Record(), replaced=False) == largest(block, shape, Record(), replaced=False)


@pytest.mark.parametrize("block", [BLOCKS[0][0], BLOCKS[1][0], *(each for each, _ in BLOCKS if isinstance(each, Residual))])
def test_a_replaced_record_moves_squares_exactly_so_far(block: Block) -> None:
    shape = (4,) if isinstance(block, Coefficients) else SHAPE
    assert block.moves(Record(), replaced=True).squares == largest(block, shape, Record(), replaced=True).squares


def square_root(n: int) -> np.ndarray:
    """The strategy for thresholds whose columns shrink like the square root's power series."""
    series = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])
    return np.array([[series[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])


def test_persons_in_several_cells_move_squares_by_more_than_their_number() -> None:
    """Five neighbouring cells of the square-root strategy for 64 thresholds: 18 times one cell, not 5 times."""
    block = Coefficients((np.rint(square_root(64) * 2**20).astype(np.int64),))
    once = block.moves(Record(), replaced=False).squares
    five = np.zeros(64, dtype=np.int64)
    five[:5] = 1
    moved = int(sum(int(each) ** 2 for each in block.measure(five)))
    assert 18.0 < moved / once < 18.2
    assert moved <= block.moves(Person(5, 1), replaced=False).squares <= 25 * once


def test_the_square_root_of_the_number_of_cells_is_too_little() -> None:
    """The twin: L m^2 S, which holds for histograms, is exceeded by strategies."""
    matrix, _ = _best(Thresholds(8).gram(), True, 20)
    block = Coefficients((matrix,))
    too_little = 3 * block.moves(Record(), replaced=False).squares
    assert largest(block, (8,), Person(3, 1), replaced=False).squares > too_little


def test_products_are_exact_in_doubles() -> None:
    wide = RNG.integers(-(1 << 22), 1 << 22, (40, 9))
    assert (exact_gram(wide).astype(object) == wide.astype(object).T @ wide.astype(object)).all()


def test_the_bound_for_several_cells_covers_every_choice() -> None:
    gram = exact_gram(SIGNED)
    for groups in (1, 2, 3, 4):
        sums = [gram[np.ix_(each, each)].sum() for each in combinations(range(4), groups)]
        assert max(sums) <= together(gram, groups)
